"""GAMO: a generator of convex mixes that plays against a classifier and a discriminator."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_integer
from equipoise.oversampling._neural import NeuralSampler

if TYPE_CHECKING:
    import torch

_RECORDED_PARENTS = 5


@dataclass(kw_only=True, repr=False, eq=False)
class GAMO(NeuralSampler):
    """Generative adversarial minority oversampling.

    For each class a generator turns noise into weights over all of the class's points; the new point is their
    mix. A classifier learns to tell the classes, fakes included; a discriminator to tell fakes from reals; the
    generator wants fakes that pass for real and are misclassified, so that they lie where classes meet.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in :class:`ProvenanceSampler`.
    image_shape : tuple, optional
        Images are scaled to [−1, 1] and mixed pixel by pixel; None for tables.
    architecture : {"dense", "convolutional"}
        What the players see: the pixels, as in the authors' dense program, or features of images by convolutions
        that learn with the classifier, as in their convolutional one. Rows are mixes of pixels in both.
    width : int
        Of the widest layers.
    epochs, batch_size : int
        Batches of 32 in the paper.
    lr : float
        Of Adam (β₁ = 0.5) for all three.
    augment : callable, optional
        ``augment(images, generator)`` on every training batch; for the convolutional architecture.
    average : float
        Decay of the moving average of the classifier's weights, with which it is kept. 0 for none.
    on_low_quality : {"warn", "raise", "skip"}
        As in :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.
    device, precision : str
        Where and in which precision to train, as for :func:`~equipoise.training.make_fabric`; rows are made on the
        CPU.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Attributes
    ----------
    network_ : Players
        With the classifier that was trained along.

    Notes
    -----
    A row's provenance names the five points with the largest weights. The authors turn mixes of features into
    images by another network (GAMO2PIX); here the weights, which belong to rows, mix the rows' pixels.

    References
    ----------
    S. S. Mullick, S. Datta, S. Das: Generative Adversarial Minority Oversampling, ICCV 2019.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(120, 4, weights=[0.94], random_state=0)
    >>> X_new, y_new = GAMO(epochs=2, random_state=0).fit_resample(X, y)
    >>> int((y_new == 0).sum()) == int((y_new == 1).sum())
    True
    """

    _signed = True

    architecture: str = "dense"
    width: int = 256
    epochs: int = 50
    batch_size: int = 32
    lr: float = 2e-4
    augment: Callable[..., Any] | None = None
    average: float = 0.0

    def _train(self, inputs: torch.Tensor, targets: torch.Tensor, seed: int) -> None:
        from equipoise.networks.gamo import Players
        from equipoise.training import ExponentialAverage
        from equipoise.training.generators import GAMOStep

        dense = check_choice("architecture", self.architecture, ["dense", "convolutional"]) == "dense"
        if inputs.ndim == 2 and not dense:
            raise ValueError("architecture='convolutional' needs images; give image_shape")
        if self.augment is not None and dense:
            raise ValueError("augment changes images and needs architecture='convolutional'")
        rows = inputs.flatten(1) if dense else inputs
        points = [rows[targets == code].flatten(1) for code in range(int(targets.max()) + 1)]
        width = check_integer("width", self.width, low=2)
        network = Players(points, width, image_shape=None if dense else inputs.shape[1:])
        step = GAMOStep(targets.bincount(), self.lr)
        size = max(2, check_integer("batch_size", self.batch_size, low=1))
        callbacks = [ExponentialAverage(self.average, skip=("discriminator", "generator"))]
        self.history_ = self._fit(
            network,
            step,
            (rows, targets),
            epochs=self.epochs,
            batch_size=size,
            seed=seed,
            augment=copy.deepcopy(self.augment),
            callbacks=callbacks if self.average else [],
        )
        self.network_ = network

    def _make(
        self, inputs: torch.Tensor, members: IntArray, code: int, count: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, IntArray, FloatArray]:
        import torch

        generator = self.network_.generator
        kept = min(_RECORDED_PARENTS, len(members))
        made, parents, shares = [], [], []
        points = inputs[members].flatten(1)
        with torch.inference_mode():
            for start in range(0, count, 1024):
                weights = generator.weights(torch.randn(min(1024, count - start), generator.noise), code)
                made.append((weights @ points).reshape(-1, *inputs.shape[1:]))
                top = weights.topk(kept, dim=1)
                parents.append(members[top.indices.numpy()])
                shares.append(top.values.double().numpy())
        return torch.cat(made), np.concatenate(parents), np.concatenate(shares)
