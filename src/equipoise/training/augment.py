"""Random changes of image batches that keep the class. What is drawn follows from the generator."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise._core.checks import check_choice, check_in_range, check_integer


class FlipAndShift:
    """Mirror left to right with probability ½ and shift by up to ``shift`` pixels each way, a draw an image.

    Shifting by padding and cropping is what He et al. 2016 (section 4.2) do on CIFAR.

    Parameters
    ----------
    shift : int
        Largest shift in pixels.
    flip : bool
        Mirror; wrong for digits and letters.
    padding : {"border", "zero"}
        What comes in from outside: the border repeated, or zeros (the mean of standardized pixels).

    Examples
    --------
    >>> images = torch.arange(16.0).reshape(1, 1, 4, 4)
    >>> FlipAndShift(shift=1, flip=False)(images, torch.Generator().manual_seed(0)).shape
    torch.Size([1, 1, 4, 4])
    """

    def __init__(self, shift: int = 4, flip: bool = True, padding: str = "border") -> None:
        self.shift = check_integer("shift", shift, low=0)
        self.flip = bool(flip)
        self.padding = check_choice("padding", padding, ["border", "zero"])

    def __call__(self, inputs: Tensor, generator: torch.Generator) -> Tensor:
        if inputs.ndim != 4:
            raise ValueError(f"augment needs images (n, channels, height, width), got {tuple(inputs.shape)}")
        n, _, height, width = inputs.shape
        drawn = torch.randint(0, 2 * self.shift + 1, (2, n), generator=generator).to(inputs.device)
        mirrored = torch.rand(n, generator=generator).to(inputs.device) < (0.5 if self.flip else 0.0)
        rows = drawn[0, :, None] + torch.arange(height, device=inputs.device)
        columns = drawn[1, :, None] + torch.arange(width, device=inputs.device)
        columns = torch.where(mirrored[:, None], columns.flip(1), columns)
        mode = "replicate" if self.padding == "border" else "constant"
        padded = F.pad(inputs, (self.shift,) * 4, mode=mode)
        image = torch.arange(n, device=inputs.device)[:, None, None]
        # Indices around a slice put the channels last; back in front, in the layout that convolutions like.
        return padded[image, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


class RandomAffine:
    """Each image shifted, turned, zoomed and mirrored by its own random amounts, in one resampling.

    Parameters
    ----------
    shift : float
        Largest shift, a share of the image's side.
    rotate : float
        Largest angle in degrees.
    zoom : float
        Sizes between 1 − zoom and 1 + zoom.
    flip : bool
        Mirror every second image, left to right.

    Examples
    --------
    >>> images = torch.rand(5, 1, 8, 8)
    >>> still = RandomAffine(shift=0, rotate=0, zoom=0)
    >>> torch.allclose(still(images, torch.Generator().manual_seed(0)), images, atol=1e-6)
    True
    """

    def __init__(
        self, shift: float = 0.125, rotate: float = 0.0, zoom: float = 0.0, flip: bool = False
    ) -> None:
        self.shift = float(check_in_range("shift", shift, 0, 1))
        self.rotate = float(check_in_range("rotate", rotate, 0, 180))
        self.zoom = float(check_in_range("zoom", zoom, 0, 1, closed="left"))
        self.flip = bool(flip)

    def __repr__(self) -> str:
        return f"RandomAffine({self.shift}, {self.rotate}, {self.zoom}, {self.flip})"

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        n = len(images)
        draws = torch.rand(5, n, generator=generator) * 2 - 1
        angle = draws[0] * (self.rotate * torch.pi / 180)
        scale = 1 / (1 + draws[1] * self.zoom)
        mirror = torch.where(draws[2] < 0, -1.0, 1.0) if self.flip else torch.ones(n)
        cos, sin = torch.cos(angle) * scale, torch.sin(angle) * scale
        moves = 2 * self.shift * draws[3:]
        theta = torch.stack(
            [torch.stack([cos * mirror, -sin, moves[0]], 1), torch.stack([sin * mirror, cos, moves[1]], 1)], 1
        ).to(images)
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        return F.grid_sample(images, grid, padding_mode="zeros", align_corners=False)


class AdaptiveAugmentation:
    """Change only so many images as keep a critic from knowing the training data by heart.

    The share of changed images starts at 0. It rises while more than ``target`` of the critic's verdicts on
    training images are positive, which tells that it overfits, and falls otherwise. Reals and fakes are changed
    alike, so that the critic cannot tell them by the change (Karras et al., NeurIPS 2020; in the runs of Mondal
    et al., AISTATS 2023, though not in their text).

    Parameters
    ----------
    change : callable, optional
        ``change(images, generator)``; shifts, turns, zooms and mirrors by default.
    target : float
        The share of positive verdicts above which the critic counts as overfitting.
    patience : int
        Verdicts that take the share from 0 to 1, if all of them say so.

    Attributes
    ----------
    share : float
        Of images that are changed now.

    Examples
    --------
    >>> augment = AdaptiveAugmentation(patience=100)
    >>> augment.hear(torch.ones(25))
    >>> augment.share
    0.25
    >>> augment.hear(-torch.ones(5))
    >>> round(augment.share, 2)
    0.2
    """

    def __init__(
        self,
        change: Callable[[Tensor, torch.Generator], Tensor] | None = None,
        target: float = 0.85,
        patience: int = 20_000,
    ) -> None:
        self.change = RandomAffine(0.125, 45, 0.2, flip=True) if change is None else change
        self.target = float(check_in_range("target", target, 0, 1))
        self.patience = check_integer("patience", patience, low=1)
        self.share = 0.0

    def __repr__(self) -> str:
        return f"AdaptiveAugmentation({self.change!r}, {self.target}, {self.patience})"

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        chosen = torch.rand(len(images), generator=generator).to(images.device) < self.share
        if not bool(chosen.any()):
            return images
        changed = self.change(images, generator)
        return torch.where(chosen.reshape(-1, *(1,) * (images.ndim - 1)), changed, images)

    def hear(self, verdicts: Tensor) -> None:
        """The critic's verdicts on training images.

        Parameters
        ----------
        verdicts : Tensor of shape (n,)
            The verdicts, positive for "real".
        """
        positive = float((verdicts > 0).float().mean())
        step = len(verdicts) / self.patience
        self.share = min(1.0, max(0.0, self.share + (step if positive > self.target else -step)))
