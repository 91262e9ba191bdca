"""Mix in the latent space of a class-preserving auto-encoder, and decode."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._core.checks import FloatArray, IntArray
from equipoise.oversampling._neural import NeuralSampler, random_parents

if TYPE_CHECKING:
    import torch


@dataclass(kw_only=True, repr=False, eq=False)
class AutoencoderOversampler(NeuralSampler):
    """New rows decoded from mixes of latents of one class.

    The auto-encoder is trained as in :class:`~equipoise.classifiers.AutoencoderClassifier` (encoder, decoder,
    critic, mixer and linear classifier together), with more time for the decoder. Each new row has ``n_mixed``
    parents, whose latents are mixed with weights of the trained mixer or random ones.

    Parameters
    ----------
    sampling_strategy : str, float, dict or callable
        As in imbalanced-learn; see :class:`ProvenanceSampler`.
    image_shape : tuple, optional
        What image a row holds: (height, width), (channels, height, width) or (height, width, channels). None for
        tables; mixed tables come back with their own columns and categories.
    latent, size, n_mixed : int, str, int
        As in the classifier.
    mixing : {"uniform", "beta", "learned"}
        Where the weights come from. The trained mixer looks for mixes that are hard to classify; the score of a
        wrong class is linear in the weights, so it ends near the corners of the simplex and mixes little. For
        new rows uniform weights are the default.
    plan_params : dict, optional
        Over this sampler's plan, which decodes whole batches: see :class:`~equipoise.training.autoencoder.Plan`.
    epochs : int
        The number of passes over the data.
    batch_size : int
        The rows of a batch.
    lr : float
        The learning rate.
    weight_decay : float
        The weight decay.
    average : float
        Decay of the moving average of the weights that decode.
    device, precision : str
        Where and in which precision to train, as for :func:`~equipoise.training.make_fabric`; rows are made on the
        CPU.
    checkpoint : path, optional
        A folder; training that was killed goes on from there.
    on_low_quality : {"warn", "raise", "skip"}
        As in :class:`ProvenanceSampler`.
    random_state : int, generator or None
        The source of all randomness.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Attributes
    ----------
    network_ : Autoencoder
        The trained network.
    history_ : list of dict
        One record per epoch.
    provenance_, quality_, sample_weight_, extra_
        See :class:`ProvenanceSampler`.

    Notes
    -----
    On Fashion-MNIST, after about a minute of training, the decoded images cover less of their classes than SMOTE's
    and are further from real ones, in a classifier's features (study ``oversampling-samples``).

    References
    ----------
    A. K. Mondal, L. Singhal, P. Tiwary, P. Singla, Prathosh AP: Minority Oversampling for Imbalanced Data via
    Class-Preserving Regularized Auto-Encoders, AISTATS 2023.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(120, 4, weights=[0.8], random_state=0)
    >>> sampler = AutoencoderOversampler(epochs=30, random_state=0)
    >>> X_new, y_new = sampler.fit_resample(X, y)
    >>> int((y_new == 0).sum()) == int((y_new == 1).sum())
    True
    >>> sampler.provenance_.parents.shape[1]
    2
    """

    latent: int | None = None
    size: str = "small"
    n_mixed: int = 2
    mixing: str = "uniform"
    plan_params: dict[str, Any] | None = None
    epochs: int = 50
    batch_size: int = 64
    lr: float = 2e-3
    weight_decay: float = 1e-2
    average: float = 0.99
    checkpoint: str | os.PathLike[str] | None = None

    def _train(self, inputs: torch.Tensor, targets: torch.Tensor, seed: int) -> None:
        from equipoise.networks import Autoencoder
        from equipoise.training import Checkpoint, ExponentialAverage, LearningRate, TensorData
        from equipoise.training.autoencoder import Plan, check_plan_params, train_autoencoder
        from equipoise.training.checkpoint import run_identity

        settings: dict[str, Any] = {
            "decode_share": 1.0,
            "decode_rate": 1.0,
            "mae_weight": 1.0,
            "decoder_rate": 0.5,
        }
        check_plan_params(self.plan_params)
        settings |= self.plan_params or {}
        network = Autoencoder(
            tuple(inputs.shape[1:]),
            int(targets.max()) + 1,
            latent=self.latent,
            size=self.size,
            n_mixed=self.n_mixed,
        )
        callbacks: list[Any] = [LearningRate("cosine")]
        if self.average:
            callbacks.append(ExponentialAverage(self.average, skip=("critic", "mixer")))
        if self.checkpoint is not None:
            identity = run_identity(self, seed, inputs=inputs, targets=targets)
            callbacks.append(Checkpoint(self.checkpoint, identity=identity))
        run = train_autoencoder(
            network,
            TensorData(inputs, targets),
            Plan(mixing=self.mixing, **settings),
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            seed=seed,
            callbacks=callbacks,
            fabric=self._fabric(),
            verbose=self.verbose,
        )
        self.network_ = network.cpu().eval()
        self.history_ = run.history

    def _make(
        self, inputs: torch.Tensor, members: IntArray, code: int, count: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, IntArray, FloatArray]:
        import torch

        from equipoise.training.autoencoder import draw_weights, mix

        network = self.network_
        parents = random_parents(members, count, self.n_mixed, rng)
        made, weights = [], []
        with torch.inference_mode():
            latents = torch.cat([network.features(part) for part in torch.split(inputs[members], 1024)])
            place = np.searchsorted(members, parents)
            for block in torch.split(torch.from_numpy(place), 1024):
                groups, codes = latents[block], torch.full((len(block),), code)
                alpha = (
                    network.mix_weights(groups, codes)
                    if self.mixing == "learned"
                    else draw_weights(self.mixing, len(block), self.n_mixed)
                )
                weights.append(alpha)
                made.append(network.decode(mix(groups, alpha), codes))
        return torch.cat(made), parents, torch.cat(weights).double().numpy()
