"""What the classifiers over one network share once fitted: scores under a prior, decisions, saving."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import nn

from equipoise._core.checks import FloatArray
from equipoise._core.random import derive_seed, draw_seed
from equipoise._core.sealed import SealedFolder
from equipoise.classifiers.ledger import posterior_scores, softmax
from equipoise.classifiers.saving import load_classifier, save_classifier
from equipoise.classifiers.targets import Targets, check_inputs, check_training_data
from equipoise.losses._links import Link
from equipoise.training import (
    Callback,
    Checkpoint,
    EarlyStopping,
    LearningRate,
    TensorData,
    Validation,
    predict,
)
from equipoise.training.checkpoint import run_identity
from equipoise.training.inputs import Preparation, unit_preparation

C = TypeVar("C", bound="_NetworkClassifier")


class _ImageClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of rows or of images."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags


class _NetworkClassifier(_ImageClassifier):
    """A subclass has ``fit``, which sets the attributes below, its settings, and ``_empty_network``."""

    classes_: npt.NDArray[Any]
    preparation_: Preparation
    network_: nn.Module
    data_prior_: FloatArray
    training_prior_: FloatArray
    link_: Link | None = None
    history_: pd.DataFrame
    decision_prior: str | npt.ArrayLike
    schedule: Any
    callbacks: Sequence[Callback]
    early_stopping: Any
    checkpoint: Any
    image_shape: Any
    random_state: Any

    @abstractmethod
    def _empty_network(self) -> nn.Module:
        """A network of the fitted shape, for weights that were saved."""

    def _begin(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Targets, Any, Any, int]:
        """The checked targets, the inputs scaled by their range, an untrained network, and the seed."""
        X, y, weight = check_training_data(self, X, y, sample_weight)
        targets, seed = Targets.fit(y, weight, None), draw_seed(self.random_state)
        self.classes_, self.n_features_in_ = targets.classes, X.shape[1]
        self.preparation_ = unit_preparation(X, self.image_shape)
        inputs = self.preparation_(X)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(derive_seed(seed, "network"))
            return targets, inputs, self._empty_network(), seed

    def _callbacks(
        self, held_out: TensorData | None, data: TensorData, seed: int, *, own: Sequence[Callback] = (),
        monitor: str = "val_loss", loss: Any = None,
    ) -> list[Callback]:  # fmt: skip
        """The learning rate's, the user's, the method's own, early stopping on held-out rows, and checkpoints."""
        schedule, stopping = self.schedule, self.early_stopping
        rate = copy.deepcopy(schedule) if isinstance(schedule, LearningRate) else LearningRate(schedule)
        wanted: list[Callback] = [rate, *copy.deepcopy(list(self.callbacks)), *own]
        if held_out is not None:
            asked = isinstance(stopping, EarlyStopping)
            wanted += [
                Validation(held_out, loss),
                copy.deepcopy(stopping) if asked else EarlyStopping(monitor),
            ]
        if self.checkpoint is not None:
            wanted.append(Checkpoint(self.checkpoint, identity=run_identity(self, seed, data=data)))
        return wanted

    def _inputs(self, X: npt.ArrayLike) -> Any:
        check_is_fitted(self)
        return self.preparation_(check_inputs(self, X))

    def _scores(self, X: npt.ArrayLike, prior: Any) -> FloatArray:
        """The raw logits for the prior ``"train"``; for another one the log-posterior, up to a constant."""
        inputs = self._inputs(X)
        logits = predict(self.network_, inputs).double().numpy()
        if not np.isfinite(logits).all():
            raise ValueError("the network's outputs are not finite: fit again with a lower lr")
        return posterior_scores(
            logits, self.link_, prior, data=self.data_prior_, trained=self.training_prior_
        )

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """Logits under ``decision_prior``; the difference of the two for two classes.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.

        Returns
        -------
        array of shape (n,) or (n, classes)
            The logits.
        """
        scores = self._scores(X, self.decision_prior)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of each sample, decided under ``decision_prior``.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.

        Returns
        -------
        array of shape (n,)
            The labels.
        """
        scores = self._scores(X, self.decision_prior)
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def predict_proba(self, X: npt.ArrayLike, prior: str | npt.ArrayLike = "data") -> FloatArray:
        """Class probabilities under a prior.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.
        prior : {"data", "train"} or array
            The data's class shares, those that training aimed at (the network's raw answer), or any
            others, such as those where the model will be used.

        Returns
        -------
        array of shape (n, classes)
            The probabilities, in the order of ``classes_``.
        """
        return softmax(self._scores(X, prior))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a folder: safetensors and JSON, nothing pickled.

        Parameters
        ----------
        folder : path
            Where to write.
        """
        check_is_fitted(self)
        save_classifier(self, folder)

    @classmethod
    def load(cls: type[C], folder: str | os.PathLike[str] | SealedFolder, **params: Any) -> C:
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        folder : path
            The folder.
        **params
            Parameters that JSON could not hold. A ``module`` that was a factory must be given again.

        Returns
        -------
        estimator
            The fitted classifier.
        """
        return load_classifier(cls, folder, params)


class _WrappingClassifier(_ImageClassifier):
    """A subclass's ``fit`` trains ``classifier_``, a :class:`NeuralClassifier`, whose facts it shows as its own."""

    classifier_: Any

    @property
    def network_(self) -> Any:
        """The trained network."""
        return self.classifier_.network_

    @property
    def history_(self) -> pd.DataFrame:
        """A row an epoch of training."""
        return self.classifier_.history_

    @property
    def data_prior_(self) -> FloatArray:
        """The class shares of the training data."""
        return self.classifier_.data_prior_
