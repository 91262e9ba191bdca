"""DGC, the deep generative classifier."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from equipoise._core.checks import check_in_range, check_positive
from equipoise.classifiers._prediction import _NetworkClassifier
from equipoise.networks.generative import GenerativeNetwork
from equipoise.training import (
    Callback,
    ClassSampler,
    ExponentialAverage,
    LearningRate,
    TensorData,
    fit,
    make_fabric,
)
from equipoise.training.generators import DensityStep


@dataclass(kw_only=True, repr=False, eq=False)
class GenerativeClassifier(_NetworkClassifier):
    """One latent behind both the sample and its label; classes are weighed by the joint density (DGC).

    Training minimizes ½‖x − x̂‖² + 10·CE + 10⁻⁴·KL(q(z|x, y) ‖ p(z)) with a mixture of normals p(z), a component a
    class. Batches are balanced: a rare sample comes back again and again, each time with another draw of its
    latent, which is the method's perturbation of the data. To predict, ``n_draws`` latents are drawn for each
    class and log p(x, y) is estimated from them.

    Parameters
    ----------
    image_shape : tuple, optional
        For a 2-D ``X`` whose rows are images.
    latent : int
        The width of the latent.
    widths : sequence of int
        Of the encoder; the decoder mirrors it.
    n_draws : int
        Latents a class and a sample at prediction, which costs as many decodings.
    clf_weight : float
        The weight of the cross-entropy in the objective.
    kl_weight : float
        The weight of the divergence in the objective.
    epochs : int
        The number of passes over the data.
    batch_size : int
        The rows of a batch.
    lr : float
        The learning rate.
    augment : callable, optional
        ``augment(inputs, generator)`` on every training batch, as for :class:`NeuralClassifier`.
    average : float
        Decay of the moving average of the weights, through which the network is kept. 0 for none.
    decision_prior : {"train", "data"} or array
        The class prior under which ``predict`` decides.
    device, precision : str
        Where and in which precision to train, as for :func:`~equipoise.training.make_fabric`.
    random_state : int, generator or None
        The source of all randomness.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Notes
    -----
    The class scores use the same weights as the training objective, so their scale is that of the bound and not
    of calibrated log-probabilities. The draws at prediction are the same for every call.

    References
    ----------
    X. Wang, Y. Lyu, L. Jing: Deep Generative Model for Robust Imbalance Classification, CVPR 2020.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(300, 6, weights=[0.9], class_sep=2, flip_y=0, random_state=0)
    >>> clf = GenerativeClassifier(latent=8, widths=(32,), epochs=20, lr=0.01, random_state=0).fit(X, y)
    >>> bool(clf.score(X, y) > 0.85)
    True
    """

    image_shape: Sequence[int] | None = None
    latent: int = 64
    widths: Sequence[int] = (32, 64)
    n_draws: int = 10
    clf_weight: float = 10.0
    kl_weight: float = 1e-4
    epochs: int = 50
    batch_size: int = 100
    lr: float = 1e-3
    augment: Callable[..., Any] | None = None
    average: float = 0.0
    decision_prior: str | npt.ArrayLike = "train"
    device: str = "cpu"
    precision: str = "32-true"
    random_state: Any = None
    verbose: bool | None = None

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> GenerativeClassifier:
        """Train all parts together.

        Parameters
        ----------
        X : array-like
            A table (n, columns), or images.
        y : array-like of shape (n,)
            Labels of any kind.

        Returns
        -------
        GenerativeClassifier
            The fitted classifier itself.
        """
        check_in_range("clf_weight", self.clf_weight, 0)
        check_in_range("kl_weight", self.kl_weight, 0)
        targets, inputs, network, seed = self._begin(X, y)
        shares = np.full(len(self.classes_), 1 / len(self.classes_))
        callbacks: list[Callback] = [LearningRate("cosine")]
        if self.average:
            callbacks.append(ExponentialAverage(self.average))
        run = fit(
            network,
            DensityStep(),
            TensorData(inputs, targets.codes),
            optimizer=torch.optim.Adam(network.parameters(), lr=float(check_positive("lr", self.lr))),
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=seed,
            sampler=ClassSampler(targets.codes, shares),
            augment=copy.deepcopy(self.augment),
            callbacks=callbacks,
            fabric=make_fabric(self.device, self.precision),
            verbose=self.verbose,
        )
        self.network_ = network.cpu().eval()
        self.history_ = pd.DataFrame(run.history)
        self.data_prior_, self.training_prior_ = targets.prior(), shares
        return self

    def _empty_network(self) -> GenerativeNetwork:
        return GenerativeNetwork(
            self.preparation_.input_shape,
            len(self.classes_),
            latent=self.latent,
            widths=self.widths,
            n_draws=self.n_draws,
            clf_weight=self.clf_weight,
            kl_weight=self.kl_weight,
        )
