"""DeepSMOTE: SMOTE in the latent space of an auto-encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from equipoise._core.checks import FloatArray, IntArray, check_integer
from equipoise.oversampling._neural import NeuralSampler

if TYPE_CHECKING:
    import torch


@dataclass(kw_only=True, repr=False, eq=False)
class DeepSMOTE(NeuralSampler):
    """Encode, interpolate between nearest neighbors of one class, decode.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in :class:`ProvenanceSampler`.
    image_shape : tuple, optional
        What image a row holds; None for tables.
    k_neighbors : int
        Neighbors in the latent space; as many as there are in a class that has fewer.
    latent : int
        300 for gray images in the paper, 600 for color.
    widths : sequence of int
        Channels of the encoder's convolutions (widths of its layers for tables); the decoder mirrors them.
        (64, 128, 256, 512) in the paper; the default is a quarter of it, for a CPU.
    permute : bool
        Compare the decoded samples of a class with a permutation of them, as the paper writes its penalty;
        the authors' program does not.
    epochs, batch_size : int
        200 and 100 in the paper.
    lr : float
        Of Adam.
    on_low_quality : {"warn", "raise", "skip"}
        As in :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.
    device, precision : str
        Where and in which precision to train, as for :func:`~equipoise.training.make_fabric`; rows are made on the
        CPU.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    References
    ----------
    D. Dablain, B. Krawczyk, N. V. Chawla: DeepSMOTE: Fusing Deep Learning and SMOTE for Imbalanced Data, IEEE
    TNNLS 34(9), 2023.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(120, 4, weights=[0.8], random_state=0)
    >>> sampler = DeepSMOTE(widths=(32,), latent=4, epochs=60, lr=0.01, random_state=0)
    >>> X_new, y_new = sampler.fit_resample(X, y)
    >>> int((y_new == 0).sum()) == int((y_new == 1).sum())
    True
    """

    k_neighbors: int = 5
    latent: int = 300
    widths: Sequence[int] = (16, 32, 64, 128)
    permute: bool = False
    epochs: int = 200
    batch_size: int = 100
    lr: float = 2e-4

    def _train(self, inputs: torch.Tensor, targets: torch.Tensor, seed: int) -> None:
        from equipoise.networks.encoders import EncoderDecoder
        from equipoise.training.generators import DeepSMOTEStep

        network = EncoderDecoder(tuple(inputs.shape[1:]), self.latent, self.widths, "sigmoid")
        step, settings = DeepSMOTEStep(targets, self.permute), {"epochs": self.epochs, "seed": seed}
        self.history_ = self._fit(
            network, step, (inputs, targets), lr=self.lr, batch_size=self.batch_size, **settings
        )
        self.network_ = network

    def _make(
        self, inputs: torch.Tensor, members: IntArray, code: int, count: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, IntArray, FloatArray]:
        import torch
        from sklearn.neighbors import NearestNeighbors

        from equipoise.networks.encoders import encode

        latents = encode(self.network_.encoder, inputs[members])
        k = min(check_integer("k_neighbors", self.k_neighbors, low=1), len(members) - 1)
        first = rng.integers(len(members), size=count)
        second = first
        if k > 0:
            near = NearestNeighbors(n_neighbors=k).fit(latents.numpy()).kneighbors(return_distance=False)
            second = near[first, rng.integers(k, size=count)]
        share = rng.random(count)
        step = torch.from_numpy(share.astype(np.float32))[:, None]
        mixes = latents[first] + step * (latents[second] - latents[first])
        parents = np.stack([members[first], members[second]], axis=1)
        return encode(self.network_.decoder, mixes), parents, np.stack([1 - share, share], axis=1)
