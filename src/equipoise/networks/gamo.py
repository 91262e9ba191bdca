"""GAMO's players (Mullick et al. 2019): a classifier, a discriminator and a generator of convex mixes."""

from __future__ import annotations

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
    """GAMO's three players: classifier, conditional discriminator, generator."""

    def __init__(self, points: list[Tensor], width: int = 256) -> None:
        super().__init__()
        columns, n_classes = points[0].shape[1], len(points)
        self.n_classes = n_classes
        self.classifier = encoder((columns,), n_classes, (width, width // 2))
        self.discriminator = encoder((columns + n_classes,), 1, (width, width // 2))
        self.generator = ConvexGenerator(points, width=width)

    def judge(self, x: Tensor, codes: Tensor) -> Tensor:
        told = F.one_hot(codes, self.n_classes).to(x)
        verdict: Tensor = torch.sigmoid(self.discriminator(torch.cat([x, told], dim=1))).squeeze(1)
        return verdict

    def classify(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.classifier(x))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.classifier(x)
        return logits
