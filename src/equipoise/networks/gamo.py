"""GAMO's players (Mullick et al. 2019): a classifier, a discriminator and a generator of convex mixes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise.networks.encoders import encoder


class ConvexGenerator(nn.Module):
    """GAMO's generator: noise and class to a softmax over all points of that class, hence a convex mix of them.

    A trunk that the classes share (the conditional transient mapping unit) feeds one output layer per class (its
    instance generation unit).
    """

    points0: Tensor

    def __init__(self, points: list[Tensor], noise: int = 100, width: int = 256) -> None:
        super().__init__()
        self.noise, self.n_classes = noise, len(points)
        self.trunk = nn.Sequential(
            nn.Linear(noise + self.n_classes, width),
            nn.BatchNorm1d(width),
            nn.LeakyReLU(0.1),
            nn.Linear(width, 64),
            nn.BatchNorm1d(64),
            nn.LeakyReLU(0.1),
        )
        self.units = nn.ModuleList(nn.Linear(64, len(rows)) for rows in points)
        self.remember(points)

    def remember(self, points: list[Tensor]) -> None:
        """Take these points of each class to mix from now on."""
        for code, rows in enumerate(points):
            self.register_buffer(f"points{code}", rows, persistent=False)

    def weights(self, noise: Tensor, code: int) -> Tensor:
        """How much of each point of the class goes in."""
        told = F.one_hot(torch.full((len(noise),), code), self.n_classes).to(noise)
        return F.softmax(self.units[code](self.trunk(torch.cat([noise, told], dim=1))), dim=1)

    def forward(self, noise: Tensor, codes: Tensor) -> Tensor:
        made = noise.new_zeros(len(noise), self.points0.shape[1])
        told = F.one_hot(codes, self.n_classes).to(noise)
        shared = self.trunk(torch.cat([noise, told], dim=1))
        for code in torch.unique(codes).tolist():
            mine = codes == code
            shares = F.softmax(self.units[code](shared[mine]), dim=1)
            made[mine] = (shares @ getattr(self, f"points{code}")).to(made)
        return made


class Players(nn.Module):
    """GAMO's three players: classifier, conditional discriminator, generator.

    All play on rows. With ``image_shape`` the rows are features of images, by a convolutional extractor that
    learns with the classifier; else they are the inputs.
    """

    def __init__(
        self, points: list[Tensor], width: int = 256, *, image_shape: Sequence[int] | None = None
    ) -> None:
        super().__init__()
        n_classes = len(points)
        self.n_classes, self.extractor = n_classes, None
        if image_shape is not None:  # no batch statistics: features must be the same in training and after it
            convolutions = encoder(image_shape, 2 * width, (32, 64), normalize=False)
            self.extractor = nn.Sequential(convolutions, nn.Tanh())
            points = [rows.new_zeros(len(rows), 2 * width) for rows in points]
        columns = points[0].shape[1]
        self.classifier = encoder((columns,), n_classes, (width, width // 2))
        self.discriminator = encoder((columns + n_classes,), 1, (width, width // 2))
        self.generator = ConvexGenerator(points, width=width)

    def seen(self, x: Tensor) -> Tensor:
        """The rows that are played on."""
        return x if self.extractor is None else self.extractor(x)

    @torch.no_grad()
    def look_again(self, x: Tensor, labels: Tensor) -> None:
        """Let the generator mix what the extractor now makes of all images."""
        if self.extractor is not None:
            rows = torch.cat([self.extractor(part) for part in torch.split(x, 1024)])
            self.generator.remember([rows[labels == code] for code in range(self.n_classes)])

    def judge(self, rows: Tensor, codes: Tensor) -> Tensor:
        told = F.one_hot(codes, self.n_classes).to(rows)
        return torch.sigmoid(self.discriminator(torch.cat([rows, told], dim=1))).squeeze(1)

    def classify(self, rows: Tensor) -> Tensor:
        return torch.sigmoid(self.classifier(rows))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.seen(x))
