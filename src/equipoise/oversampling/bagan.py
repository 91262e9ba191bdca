"""BAGAN: a generative adversarial network begun from an auto-encoder, with balanced classes."""

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
class BAGAN(NeuralSampler):
    """Data augmentation with a balancing GAN.

    An auto-encoder is trained on all rows; each class gets a normal distribution in its latent space. The decoder
    then becomes the generator, fed from these, and the encoder the discriminator, which names the class of a
    real or says fake. Fakes are asked for with all classes equally often.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in :class:`ProvenanceSampler`.
    image_shape : tuple, optional
        Images are scaled to [−1, 1]; None for tables.
    latent : int
        The width of the latent space.
    widths : sequence of int
        Channels of the encoder's convolutions (widths of its layers for tables); the decoder mirrors them.
    pretrain_epochs, epochs : int
        Of the auto-encoder, and of the play.
    batch_size : int
        The rows of a batch.
    lr : float
        Of Adam (β₁ = 0.5) in the play; the auto-encoder takes ``pretrain_lr``.
    pretrain_lr : float
        The learning rate of the auto-encoder.
    on_low_quality : {"warn", "raise", "skip"}
        As in :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.
    device, precision : str
        Where and in which precision to train, as for :func:`~equipoise.training.make_fabric`; rows are made on the
        CPU.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Notes
    -----
    Rows have no parents: they are drawn from a distribution.

    References
    ----------
    G. Mariani, F. Scheidegger, R. Istrate, C. Bekas, C. Malossi: BAGAN: Data Augmentation with Balancing GAN,
    arXiv:1803.09655, 2018.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(120, 4, weights=[0.8], random_state=0)
    >>> sampler = BAGAN(latent=4, pretrain_epochs=40, epochs=1, random_state=0)
    >>> X_new, y_new = sampler.fit_resample(X, y)
    >>> int((y_new == 0).sum()) == int((y_new == 1).sum())
    True
    """

    _signed = True

    latent: int = 100
    widths: Sequence[int] = (32, 64, 128)
    pretrain_epochs: int = 50
    epochs: int = 50
    batch_size: int = 128
    lr: float = 5e-5
    pretrain_lr: float = 1e-3

    def _train(self, inputs: torch.Tensor, targets: torch.Tensor, seed: int) -> None:
        from equipoise.networks.bagan import BalancingGAN, ClassGaussians
        from equipoise.networks.encoders import EncoderDecoder, encode
        from equipoise.training.generators import BAGANStep, ReconstructionStep

        size = check_integer("batch_size", self.batch_size, low=1)
        pair = EncoderDecoder(tuple(inputs.shape[1:]), self.latent, self.widths, "tanh")
        data, settings = (inputs, targets), {"batch_size": max(2, size), "seed": seed}
        first = self._fit(
            pair, ReconstructionStep(), data, lr=self.pretrain_lr, epochs=self.pretrain_epochs, **settings
        )
        self.gaussians_ = ClassGaussians(encode(pair.encoder, inputs), targets)
        network = BalancingGAN(pair.train(), int(targets.max()) + 1)
        step = BAGANStep(self.gaussians_.draw, self.lr)
        self.history_ = [*first, *self._fit(network, step, data, epochs=self.epochs, **settings)]
        self.network_ = network

    def _make(
        self, inputs: torch.Tensor, members: IntArray, code: int, count: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, IntArray, FloatArray]:
        import torch

        from equipoise.networks.encoders import encode

        latents = self.gaussians_.draw(torch.full((count,), code))
        return encode(self.network_.generator, latents), np.full((count, 1), -1), np.zeros((count, 1))
