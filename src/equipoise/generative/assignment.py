"""Which class is a sample of? A classifier trained on the same images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.metrics import f1_score, recall_score
from torch import Tensor, nn

from equipoise.networks import build_network
from equipoise.training import LearningRate, PlainStep, TensorData, fit, predict

_BATCH = 64
_LEAST_STEPS = 200


class Assigner:
    """Class codes of images by a classifier trained on the training images.

    It trains for ``epochs``, and for as many more as few images need to make 200 steps: fifteen rounds of forty
    images leave it guessing.

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        As the diffusion model sees them.
    codes : array of shape (n,)
        Their classes.
    network : str
        ``"convnet"``, a small one, or another name that :func:`~equipoise.networks.build_network` knows, such as
        the paper's ``"resnet18"`` (here without pretrained weights).
    epochs : int
        The least number of passes over them.
    seed : int
        The seed of the network, the held-out images and the batches.

    Attributes
    ----------
    balanced_accuracy : float
        On a held-out tenth of every class.
    macro_f1 : float
        On the same images.

    References
    ----------
    Nicoletti et al., App. J.1: ResNet-18, AdamW, cosine annealing, 15 epochs, label smoothing 0.1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 40)
    >>> images = rng.normal(size=(80, 1, 8, 8)) + 3 * codes[:, None, None, None]
    >>> Assigner(torch.tensor(images, dtype=torch.float32), codes, epochs=8).balanced_accuracy > 0.9
    True
    """

    def __init__(
        self,
        images: Tensor,
        codes: npt.ArrayLike,
        *,
        network: str = "convnet",
        epochs: int = 15,
        seed: int = 0,
    ) -> None:
        labels = np.asarray(codes, dtype=np.int64)
        self.n_classes = int(labels.max()) + 1
        held = self._held_out(labels, seed)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            small = {"widths": (8, 16, 32)} if network == "convnet" else {}
            self.network = build_network(network, tuple(images.shape[1:]), self.n_classes, **small)
        counts = np.bincount(labels[~held], minlength=self.n_classes)
        weight = torch.tensor(counts.mean() / np.maximum(counts, 1), dtype=torch.float32)
        rounds = max(epochs, -(-_LEAST_STEPS // -(-int((~held).sum()) // _BATCH)))
        rate = 3e-3 if network == "convnet" else 1e-3
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=0.01)
        fit(
            self.network,
            PlainStep(_WeightedEntropy()),
            TensorData(images[torch.from_numpy(~held)], torch.from_numpy(labels[~held])),
            optimizer=optimizer,
            epochs=rounds,
            batch_size=_BATCH,
            seed=seed,
            class_weight=weight,
            callbacks=[LearningRate("cosine")],
            verbose=False,
        )
        truth, found = labels[held], self(images[torch.from_numpy(held)])
        options: dict[str, Any] = {"labels": np.unique(truth), "average": "macro", "zero_division": 0}
        self.balanced_accuracy = float(recall_score(truth, found, **options))
        self.macro_f1 = float(f1_score(truth, found, **options))

    @staticmethod
    def _held_out(labels: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.bool_]:
        """A tenth of every class, at least one image, for the measured accuracy."""
        rng = np.random.default_rng(seed)
        held = np.zeros(len(labels), dtype=bool)
        for label in np.unique(labels):
            rows = np.flatnonzero(labels == label)
            if len(rows) < 4:
                raise ValueError(
                    f"class {label} has only {len(rows)} images: too few to tell samples apart by"
                )
            held[rng.choice(rows, max(1, len(rows) // 10), replace=False)] = True
        return held

    def __call__(self, images: Tensor) -> npt.NDArray[np.int64]:
        return predict(self.network, images).argmax(dim=1).numpy()


class _WeightedEntropy(nn.Module):
    """Cross-entropy with label smoothing .1 (App. J.1) and sample weights."""

    def forward(self, input: Tensor, target: Tensor, *, sample_weight: Any = None) -> Tensor:
        each = nn.functional.cross_entropy(input, target, reduction="none", label_smoothing=0.1)
        return each.mean() if sample_weight is None else (each * sample_weight).sum() / sample_weight.sum()
