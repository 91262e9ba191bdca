"""A scikit-learn classifier whose loss is learned on a meta set, and views of what was learned."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import nn

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_in_range
from equipoise._core.random import draw_seed
from equipoise._core.sealed import SealedFolder, open_sealed, sealing
from equipoise.classifiers._prediction import _WrappingClassifier
from equipoise.classifiers.neural import NeuralClassifier
from equipoise.classifiers.saving import check_kind
from equipoise.classifiers.targets import Targets, check_inputs, check_training_data
from equipoise.losses import LearnedLoss, MetaENumLoss, MetaSAugLoss, MetaWeightNetLoss
from equipoise.losses.functional import data_scatter
from equipoise.training import load_state, save_state
from equipoise.training.bilevel import BilevelStep
from equipoise.training.inputs import Preparation
from equipoise.training.metaset import MetaSet, take_meta_set

METHODS: dict[str, type[LearnedLoss]] = {
    "meta-enum": MetaENumLoss,
    "mwn": MetaWeightNetLoss,
    "metasaug": MetaSAugLoss,
}
"""Learned losses by name."""

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {
        "meta-enum": {"hold_out": False, "warmup": 1 / 3, "meta_loss": "ce"},
        "mwn": {"hold_out": False, "warmup": 0.0, "meta_loss": "ce"},
        "metasaug": {"hold_out": False, "warmup": 0.5, "meta_loss": "ce"},
    },
    "paper": {  # T₁: Wu & Li §5.1 take 160 of 240 epochs, Li et al. 160 of 200
        "meta-enum": {"hold_out": True, "warmup": 2 / 3, "meta_loss": "literal"},
        "mwn": {"hold_out": True, "warmup": 0.0, "meta_loss": "ce"},
        "metasaug": {"hold_out": True, "warmup": 0.8, "meta_loss": "ce"},
    },
}
"""What the study ``meta-fashion-lt`` found best, and what the authors did."""


class _StepFactory:
    """Makes the bilevel step for the class counts that the base classifier found."""

    def __init__(self, meta: MetaSet) -> None:
        self.meta = meta

    def __call__(
        self, loss: nn.Module, method: str, method_params: dict[str, Any], **params: Any
    ) -> BilevelStep:
        counts: Any = loss.class_counts
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(params.pop("seed"))
            learned = METHODS[method](counts.cpu().numpy(), **method_params)
        return BilevelStep(learned, self.meta, **params)


@dataclass(repr=False, eq=False)
class MetaClassifier(_WrappingClassifier):
    """A network trained by a loss that is itself learned, on a few balanced training samples.

    Parameters
    ----------
    method : {"meta-enum", "mwn", "metasaug"}
        Meta-ENum (Wu & Li, Algorithm 1), Meta-Weight-Net (Shu et al. 2019), or MetaSAug (Li et al. 2021).
    method_params : dict, optional
        For the learned loss, such as ``{"tau1": 0}`` (without h), ``{"tau2": 0}`` (without the scatter) or
        ``{"covariance": "diagonal"}``: see :class:`~equipoise.losses.MetaENumLoss`,
        :class:`~equipoise.losses.MetaWeightNetLoss`, :class:`~equipoise.losses.MetaSAugLoss`.
    meta_set : int or array of int
        Samples of each class to draw as the meta set, or the row numbers themselves.
    preset : {"default", "paper"}
        Where ``hold_out``, ``warmup`` and ``meta_loss`` come from if they are not given: from the study
        ``meta-fashion-lt``, which found training on the meta rows better by 1.25 points and the early warm-up
        by 2.1, or from the authors of the method.
    hold_out : bool, optional
        Keep the meta rows out of training; ``"default"`` does not, ``"paper"`` does. The only row of a class
        serves both.
    warmup : float, optional
        Part of the run with plain cross-entropy. Meta-ENum: ⅓, ``"paper"`` ⅔; MetaSAug: ½ and 0.8;
        Meta-Weight-Net: none.
    meta_loss : {"ce", "literal"}, optional
        Cross-entropy; ``"paper"`` has Meta-ENum's own loss, as Eqs 24 and 25 are printed.
    layers : {"all", "head"}
        Let the virtual update move every layer, or the head alone.
    virtual : {"optimizer", "plain"}
        Replicate SGD's momentum and weight decay in the virtual update, or take a plain SGD step.
    meta_batch_size : int, optional
        Meta samples per step; as many as the batch has by default.
    meta_lr : float
        λ₃, the learning rate of Adam on the loss's networks.
    clip : float, optional
        The largest norm of the gradient.
    estimator : NeuralClassifier, optional
        Says all else: network, optimizer, epochs, checkpoint, processes. Its loss and step are replaced.
        Default: SGD with momentum, batches of 100, learning rate 0.1, gradients of norm 5 at most.
    random_state : int, generator or None
        The source of all randomness.

    Attributes
    ----------
    classes_, network_, history_, data_prior_, training_prior_
        As for :class:`NeuralClassifier`; ``history_`` has the column ``meta_loss``.
    meta_rows_ : ndarray
        The rows of ``X`` in the meta set (of those with a positive weight).
    learned_ : LearnedLoss
        The loss with what it learned.

    References
    ----------
    Wu & Li: Revisiting the Effective Number Theory for Imbalanced Learning.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(600, weights=[0.9], class_sep=2, flip_y=0, random_state=0)
    >>> base = NeuralClassifier(module_params={"hidden": (16,)}, optimizer="sgd", lr=0.1, epochs=9)
    >>> clf = MetaClassifier("meta-enum", estimator=base, random_state=0).fit(X, y)
    >>> len(clf.meta_rows_), bool(clf.score(X, y) > 0.9)
    (20, True)
    >>> clf.weights_over_time().shape  # three epochs of warm-up, six of meta-learning
    (6, 2)
    """

    method: str = "meta-enum"
    _: KW_ONLY
    method_params: dict[str, Any] | None = None
    meta_set: int | npt.ArrayLike = 10
    preset: str = "default"
    hold_out: bool | None = None
    warmup: float | None = None
    meta_loss: str | None = None
    layers: str = "all"
    virtual: str = "optimizer"
    meta_batch_size: int | None = None
    meta_lr: float = 1e-3
    clip: float | None = 5.0
    estimator: NeuralClassifier | None = None
    random_state: Any = None

    # Fitting

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> MetaClassifier:
        """Take the meta set and train; ``X``, ``y`` and weights as for :class:`NeuralClassifier`.

        Parameters
        ----------
        X : array-like
            Training samples.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,), optional
            The weight of each row.

        Returns
        -------
        MetaClassifier
            The fitted classifier itself.
        """
        check_choice("method", self.method, METHODS)
        check_choice("preset", self.preset, PRESETS)
        X, y, weight = check_training_data(self, X, y, sample_weight)
        targets = Targets.fit(y, weight, None)
        self.classes_, codes = targets.classes, targets.codes.numpy()
        base = self._base()
        seed = draw_seed(self.random_state if self.random_state is not None else base.random_state)
        self.meta_rows_ = self._meta_rows(y, codes, seed)
        train = self._training_rows(codes)
        prepare = Preparation.fit(X[train], base.image_shape)
        meta = MetaSet(
            prepare(X[self.meta_rows_])[torch.arange(len(self.meta_rows_))],
            targets.codes[self.meta_rows_],
            _positions(self.meta_rows_, train, len(y)),
            len(self.classes_),
        )
        self.classifier_ = base.set_params(
            loss="class_balanced",
            loss_params={"beta": 0.0 if self.method == "mwn" else self._params().get("beta", 0.9999)},
            step=_StepFactory(meta),
            step_params=self._step_params(seed),
            random_state=seed,
        )
        self.classifier_.fit(X[train], y[train], None if weight is None else weight[train])
        self.classifier_.data_prior_ = targets.prior()
        self.learned_ = self._learned()
        return self

    def _base(self) -> NeuralClassifier:
        if self.estimator is None:
            return NeuralClassifier(optimizer="sgd", lr=0.1, batch_size=100)
        return clone(self.estimator)

    def _params(self) -> dict[str, Any]:
        own = {"preset": self.preset} if self.method == "metasaug" else {}
        return {**own, **(self.method_params or {})}

    def _setting(self, name: str) -> Any:
        given = getattr(self, name)
        return PRESETS[self.preset][self.method][name] if given is None else given

    def _step_params(self, seed: int) -> dict[str, Any]:
        names = ("method", "layers", "virtual", "meta_batch_size", "meta_lr", "clip")
        own = {name: getattr(self, name) for name in names}
        chosen = {name: self._setting(name) for name in ("warmup", "meta_loss")}
        return {**own, **chosen, "method_params": self._params(), "seed": seed}

    def _meta_rows(self, y: npt.NDArray[Any], codes: IntArray, seed: int) -> IntArray:
        if np.ndim(self.meta_set) == 0:
            return take_meta_set(y, int(self.meta_set), random_state=seed)  # type: ignore[arg-type]
        rows = np.asarray(self.meta_set)
        if not np.issubdtype(rows.dtype, np.integer):
            raise TypeError(f"meta_set must be a number or row numbers, got {rows.dtype} values")
        check_in_range("meta_set", rows, 0, len(codes) - 1)
        return np.unique(rows).astype(np.int64)

    def _training_rows(self, codes: IntArray) -> IntArray:
        if not self._setting("hold_out"):
            return np.arange(len(codes))
        free = np.ones(len(codes), dtype=bool)
        free[self.meta_rows_] = False
        left = np.bincount(codes[free], minlength=len(self.classes_))
        return np.flatnonzero(free | (left == 0)[codes])

    def _learned(self) -> LearnedLoss:
        """The learned loss, made again from what the run returned, so that processes may have come and gone."""
        state = self.classifier_.step_state_
        counts = state["loss"]["class_counts"].numpy()
        learned = METHODS[self.method](counts, **self._params())
        n_rows = len(state["loss"].get("counter.visits", ()))
        head: Any = self.network_.head
        learned.prepare(head.in_features, n_rows)
        learned.load_state_dict(state["loss"])
        return learned.eval()

    # Predicting

    @property
    def training_prior_(self) -> FloatArray:
        """The class prior that the posterior was trained to."""
        return self.classifier_.training_prior_

    def _ask(self, method: str, X: npt.ArrayLike, *more: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.classifier_, method)(check_inputs(self, X), *more)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of each sample, decided under the prior that training aimed at.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.

        Returns
        -------
        array of shape (n,)
            The labels.
        """
        return self._ask("predict", X)

    def predict_proba(self, X: npt.ArrayLike, prior: str | npt.ArrayLike = "data") -> FloatArray:
        """Class probabilities under a prior: ``"data"``, ``"train"`` or an array.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.
        prior : {"data", "train"} or array
            The class prior of the answer.

        Returns
        -------
        array of shape (n, classes)
            The probabilities.
        """
        return self._ask("predict_proba", X, prior)

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """Logits; the difference of the two for two classes.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.

        Returns
        -------
        array of shape (n,) or (n, classes)
            The logits.
        """
        return self._ask("decision_function", X)

    # Looking at what was learned

    def offset_curve(self, forgetting: npt.ArrayLike = (0.0, 0.5, 1.0), points: int = 99) -> pd.DataFrame:
        """Learned h against p(z|x), for a sample torn between its class y and z (p(y|x) = 1 − p(z|x)).

        Parameters
        ----------
        forgetting : array
            Shares of earlier visits in which z was preferred, a column each.
        points : int
            Values of p.

        Returns
        -------
        DataFrame
            Indexed by p(z|x).
        """
        check_is_fitted(self)
        learned = self.learned_
        if not isinstance(learned, MetaENumLoss):
            raise ValueError(f"only 'meta-enum' learns h, this is {self.method!r}")
        p = torch.linspace(0, 1, points + 2)[1:-1]
        shares = np.atleast_1d(check_in_range("forgetting", forgetting, 0, 1))
        surprise, entropy = -torch.log1p(-p), -(torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p))
        curves = {}
        for share in shares.tolist():
            margin = torch.log1p(-p) - p.log()
            dynamics = torch.stack([surprise, p, entropy, margin, torch.full_like(p, share)], dim=-1)
            with torch.inference_mode():
                curves[share] = learned.offsets(dynamics).numpy()
        index = pd.Index(p.numpy(), name="p(z|x)")
        return pd.DataFrame(curves, index=index).rename_axis(columns="forgetting")

    def weight_curve(self, losses: npt.ArrayLike | None = None) -> pd.Series:
        """The weight that Meta-Weight-Net gives to a sample, against the sample's loss.

        Parameters
        ----------
        losses : array, optional
            The losses; by default from 0 to 8.

        Returns
        -------
        Series
            The weight of each loss.

        Raises
        ------
        ValueError
            If the method is not ``"mwn"``.
        """
        check_is_fitted(self)
        learned = self.learned_
        if not isinstance(learned, MetaWeightNetLoss):
            raise ValueError(f"only 'mwn' learns a weight of the loss, this is {self.method!r}")
        x = np.linspace(0, 8, 81) if losses is None else check_in_range("losses", losses, 0)
        with torch.inference_mode():
            weights = learned.weights(torch.as_tensor(x, dtype=torch.float32)).double().numpy()
        return pd.Series(weights, index=pd.Index(x, name="loss"), name="weight")

    def scatter(self) -> pd.DataFrame:
        """DS_yz (Wu & Li, Eq 16): rows y, columns z, from the running covariances and the head's weights.

        Returns
        -------
        DataFrame
            The scatter of each class toward each other.

        Raises
        ------
        ValueError
            If the method keeps no covariances.
        """
        check_is_fitted(self)
        statistics: Any = getattr(self.learned_, "statistics", None)
        if statistics is None:
            raise ValueError("this method keeps no covariances (method 'mwn', or tau2 = 0)")
        head: Any = self.network_.head
        with torch.inference_mode():
            every = torch.arange(len(self.classes_))
            values = data_scatter(head.weight.to(statistics.sigma), statistics.sigma, every)
        return pd.DataFrame(values.numpy(), index=self.classes_, columns=self.classes_)

    def weights_over_time(self) -> pd.DataFrame:
        """The mean weight of each class in each epoch of meta-learning: the loss's pull on the true logit
        over cross-entropy's.

        Returns
        -------
        DataFrame
            A row per epoch, a column per class.
        """
        check_is_fitted(self)
        pulls = self.classifier_.step_state_["class_pull"]
        first = len(self.history_) - len(pulls) + 1
        values = torch.stack(pulls).numpy() if pulls else np.zeros((0, len(self.classes_)))
        index = pd.RangeIndex(first, first + len(values), name="epoch")
        return pd.DataFrame(values, index=index, columns=self.classes_)

    # Keeping

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write network, learned loss and meta rows to a folder: safetensors and JSON, nothing pickled.

        Parameters
        ----------
        folder : path
            Where to write.
        """
        check_is_fitted(self)
        params = {**self.get_params(deep=False), "meta_set": np.asarray(self.meta_set).tolist()}
        for name in ("estimator", "random_state"):
            del params[name]
        step = self.classifier_.step_state_
        state = {
            "kind": type(self).__name__,
            "params": params,
            "meta_rows": self.meta_rows_.tolist(),
            "step": {"loss": dict(step["loss"]), "class_pull": list(step["class_pull"])},
        }
        with sealing(folder) as temporary:
            self.classifier_.save(temporary / "network")
            save_state(temporary / "learned", state)

    @classmethod
    def load(cls, folder: str | os.PathLike[str] | SealedFolder, **params: Any) -> MetaClassifier:
        """Read what :meth:`save` wrote; a ``module`` that was not given by name must be given again.

        Parameters
        ----------
        folder : path
            The folder.
        **params : Any
            Parameters of the inner :class:`NeuralClassifier` that JSON could not hold.

        Returns
        -------
        MetaClassifier
            The fitted classifier.
        """
        saved = open_sealed(folder)
        state = load_state(saved / "learned")
        check_kind(saved, state, cls.__name__)
        network = NeuralClassifier.load(saved / "network", **params)
        with saved.reading("learned"):
            made = cls(**state["params"])
            made.classifier_ = network
            made.classifier_.step_state_ = state["step"]
            made.meta_rows_ = np.array(state["meta_rows"], dtype=np.int64)
            made.classes_, made.n_features_in_ = network.classes_, network.n_features_in_
            if hasattr(network, "feature_names_in_"):
                made.feature_names_in_ = network.feature_names_in_
            made.learned_ = made._learned()
        return made


def _positions(meta: IntArray, train: IntArray, n_rows: int) -> torch.Tensor:
    """Where meta rows stand among the training rows; −1 for those that are not trained on."""
    position = np.full(n_rows, -1, dtype=np.int64)
    position[train] = np.arange(len(train))
    return torch.from_numpy(position[meta])
