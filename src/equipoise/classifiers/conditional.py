"""One model for every operating point: loss-conditional training, tuned after training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from equipoise._core.checks import FloatArray, check_choice, check_distribution
from equipoise._core.files import write_json
from equipoise._core.sealed import SealedFolder, open_sealed, sealing
from equipoise.classifiers._conditional import (
    ConditionalModule,
    ConditionalStepFactory,
    ConditionedFamily,
    FeaturesOnly,
    tuning_from_dict,
    tuning_to_dict,
)
from equipoise.classifiers._lambda_search import Params, Tuning, default_of, representative_grid
from equipoise.classifiers._prediction import _WrappingClassifier
from equipoise.classifiers._tuning import TunedAfterTraining
from equipoise.classifiers.ledger import posterior_scores, softmax
from equipoise.classifiers.neural import NeuralClassifier
from equipoise.classifiers.saving import check_kind
from equipoise.classifiers.targets import check_inputs, check_training_data
from equipoise.datasets import ImageFiles
from equipoise.training import FamilyLoss, Linear, predict
from equipoise.training.distributions import Distribution, check_distributions, from_dict, to_dict

_DEFAULTS: dict[str, dict[str, Distribution]] = {
    "vs": {"gamma": Linear(0, 0.3, 0), "tau": Linear(0, 3, 0.33)},
    "focal": {"alpha": Linear(0.25, 0.75, 2), "phi": Linear(1, 3, 0.5)},
    "la": {"tau": Linear(0, 3, 0.33)},
}
_SAVED = (
    "loss",
    "loss_params",
    "step_params",
    "film",
    "film_hidden",
    "film_residual",
    "film_scaled",
    "per_sample",
)


@dataclass(repr=False, eq=False)
class ConditionalClassifier(TunedAfterTraining, _WrappingClassifier):
    """Loss-conditional training: a network that is told its loss's hyper-parameters λ, drawn anew each batch.

    After training, any λ of the trained range can be asked for at the cost of the head alone; :meth:`tune`
    finds the best for a metric on validation data.

    Parameters
    ----------
    loss : str
        A loss of :mod:`equipoise.losses` whose hyper-parameters are numbers and that keeps no statistics.
    distribution : dict, optional
        A distribution (:class:`~equipoise.training.Linear`, ``Uniform``, ``LogUniform``, ``Point`` or a number)
        for each hyper-parameter that varies. Defaults exist for ``"vs"``, ``"focal"`` (without α, a weight of two
        classes, where there are more) and ``"la"``.
    loss_params : dict, optional
        Hyper-parameters of the loss that stay fixed.
    step : str or factory
        ``"plain"``, ``"sam"``, or another step by name.
    step_params : dict, optional
        Parameters of the step, such as ``{"clip": 0.5}``.
    estimator : NeuralClassifier, optional
        All else about network and training: epochs, optimizer, augmentation, device … Its loss and step are
        replaced.
    film : bool
        ``False`` draws λ for the loss but hides it from the network (the paper's Eq 8 ablation). The network then
        gives one answer, whatever λ is asked for, and its probabilities are means over the distribution of λ.
    film_hidden, film_residual : int, bool
        Width of the modulating networks; whether they start from the identity.
    film_scaled : bool
        Standardize λ by its distribution before the modulating networks see it; the authors pass it as it is.
    per_sample : bool
        Draw λ for every row rather than for every batch.
    random_state : int, generator or None
        The source of all randomness.

    Attributes
    ----------
    classes_, network_, history_, data_prior_
        As in :class:`NeuralClassifier`.
    params_ : dict
        The λ used where none is given: the medians, or what :meth:`tune` found.
    tuning_ : Tuning
        After :meth:`tune`.

    References
    ----------
    Lieberman, Ravindran, Yuan, Tomasi: Training over a Distribution of Hyperparameters for Enhanced Performance
    and Adaptability on Imbalanced Classification, Eqs 6–8, Appendix D.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(600, weights=[0.9], class_sep=1.5, random_state=0)
    >>> base = NeuralClassifier(epochs=15, lr=0.01)
    >>> clf = ConditionalClassifier("vs", estimator=base, random_state=0).fit(X[:400], y[:400])
    >>> found = clf.tune(X[400:], y[400:], metric="precision_at_recall", recall=0.8)
    >>> sorted(found.params)
    ['gamma', 'tau']
    """

    loss: str = "vs"
    _: KW_ONLY
    distribution: dict[str, Any] | None = None
    loss_params: dict[str, Any] | None = None
    step: str | Callable[..., Any] = "plain"
    step_params: dict[str, Any] | None = None
    estimator: NeuralClassifier | None = None
    film: bool = True
    film_hidden: int = 128
    film_residual: bool = True
    film_scaled: bool = False
    per_sample: bool = False
    random_state: Any = None

    # Fitting

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> ConditionalClassifier:
        """Train over the distribution of hyper-parameters.

        Parameters
        ----------
        X : array-like
            Training samples, as for :class:`NeuralClassifier`.
        y : array-like of shape (n,)
            Labels of any kind.
        sample_weight : array-like of shape (n,), optional
            The weight of each row.

        Returns
        -------
        ConditionalClassifier
            The fitted classifier itself.
        """
        _, labels, _ = check_training_data(self, X, y, sample_weight)
        self.distribution_ = self._read_distribution(len(np.unique(labels)))
        self.default_ = {name: default_of(law) for name, law in self.distribution_.items()}
        self.params_ = dict(self.default_)
        self.classifier_ = self._configured().fit(
            X if isinstance(X, ImageFiles) else np.asarray(X), y, sample_weight
        )
        self.classes_ = self.classifier_.classes_
        self.class_counts_ = self.classifier_.class_counts_
        self.sampled_prior_ = self.classifier_.sampled_prior_
        if hasattr(self, "tuning_"):
            del self.tuning_
        return self

    def _read_distribution(self, n_classes: int) -> dict[str, Distribution]:
        if self.distribution is not None:
            return check_distributions(self.distribution)
        check_choice("loss without a distribution", self.loss, list(_DEFAULTS))
        laws = _DEFAULTS[self.loss].items()
        return {name: law for name, law in laws if name != "alpha" or n_classes == 2}

    def _configured(self) -> NeuralClassifier:
        base = NeuralClassifier() if self.estimator is None else clone(self.estimator)
        return base.set_params(
            module=ConditionalModule.of(self, base.module),
            loss=ConditionedFamily(self.loss, self.default_),
            loss_params=self.loss_params,
            step=ConditionalStepFactory(self.distribution_, self.step, self.per_sample),
            step_params=self.step_params,
            random_state=self.random_state if self.random_state is not None else base.random_state,
        )

    # Predicting

    def backbone(self, X: npt.ArrayLike) -> Tensor:
        """Features of the data, which serve every λ: the costly part of a prediction.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.

        Returns
        -------
        Tensor of shape (n, d)
            The features.
        """
        check_is_fitted(self)
        return predict(FeaturesOnly(self.network_), self.classifier_.preparation_(check_inputs(self, X)))

    def _scores(self, features: Tensor, params: Params | None, prior: Any) -> FloatArray:
        """The raw logits under λ for the prior ``"train"``; for another one the log-posterior, up to a constant."""
        chosen = self._complete(params)
        told = torch.tensor([chosen[name] for name in self.distribution_], dtype=torch.float64)
        logits = self.network_.exact_answer(features, told).numpy()
        if self.film or (isinstance(prior, str) and prior == "train"):
            return self._posterior(logits, chosen, prior)
        trained = representative_grid(self.distribution_)
        proba = np.mean([softmax(self._posterior(logits, one, prior)) for one in trained], axis=0)
        return np.log(np.maximum(proba, np.finfo(np.float64).tiny))

    def _posterior(self, logits: FloatArray, params: Params, prior: Any) -> FloatArray:
        loss = self._loss(params)
        link, trained = loss.link(), self.training_prior(params)
        return posterior_scores(logits, link, prior, data=self.data_prior_, trained=trained)

    def _loss(self, params: Params) -> Any:
        return FamilyLoss(self.loss, tuple(self.class_counts_), self.loss_params or {})(**params)

    def training_prior(self, params: Params | None = None) -> FloatArray:
        """The class prior that the answer under λ is trained to; with logit shifts it depends on λ.

        Parameters
        ----------
        params : dict, optional
            λ, a value for each hyper-parameter; those left out, or all, come from ``params_``.

        Returns
        -------
        array of shape (classes,)
            The class shares.
        """
        return np.asarray(self._loss(self._complete(params)).implied_prior(self.sampled_prior_))

    def _complete(self, params: Params | None) -> Params:
        if params is None:
            return self.params_
        unknown = sorted(set(params) - set(self.distribution_))
        if unknown:
            raise ValueError(
                f"params: unknown {', '.join(unknown)}; there are {', '.join(self.distribution_)}"
            )
        chosen = {**self.params_, **{name: float(value) for name, value in params.items()}}
        for name, law in self.distribution_.items():
            slack = 1e-9 * max(1.0, abs(law.low), abs(law.high))
            if not law.low - slack <= chosen[name] <= law.high + slack:
                warnings.warn(
                    f"{name} = {chosen[name]:g} lies outside the trained range [{law.low:g}, {law.high:g}]: "
                    "the answer is an extrapolation",
                    UserWarning,
                    stacklevel=4,
                )
        return chosen

    def predict_proba(
        self,
        X: npt.ArrayLike,
        params: Params | Sequence[Params] | None = None,
        prior: str | npt.ArrayLike = "data",
    ) -> FloatArray:
        """Class probabilities under λ and a prior (``"data"``, ``"train"`` or an array).

        A list of λ gives an array (λ, rows, classes) for one pass of the backbone.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.
        params : dict or sequence of dict, optional
            One λ or several; ``params_`` by default.
        prior : {"data", "train"} or array
            The class prior of the answer.

        Returns
        -------
        array of shape (n, classes) or (λ, n, classes)
            The probabilities.
        """
        features = self.backbone(X)
        if params is None or isinstance(params, Mapping):
            return softmax(self._scores(features, params, prior))
        return np.stack([softmax(self._scores(features, one, prior)) for one in params])

    def decision_function(self, X: npt.ArrayLike, params: Params | None = None) -> FloatArray:
        """Logits under λ and the prior they were trained to; the difference of the two for two classes.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.
        params : dict, optional
            λ, a value for each hyper-parameter; those left out, or all, come from ``params_``.

        Returns
        -------
        array of shape (n,) or (n, classes)
            The logits.
        """
        scores = self._scores(self.backbone(X), params, "train")
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: npt.ArrayLike, params: Params | None = None) -> npt.NDArray[Any]:
        """Decide under λ: by the rule that :meth:`tune` chose, else the network's own most probable class.

        Parameters
        ----------
        X : array-like
            Samples like those that the classifier was fitted to.
        params : dict, optional
            λ, a value for each hyper-parameter; those left out, or all, come from ``params_``.

        Returns
        -------
        array of shape (n,)
            The labels.
        """
        features = self.backbone(X)
        tuning: Tuning | None = getattr(self, "tuning_", None) if params is None else None
        if tuning is None or tuning.decision is None:
            return np.asarray(self.classes_[self._scores(features, params, "train").argmax(axis=1)])
        order = self._order()
        prior = np.empty(len(order))
        prior[order] = tuning.decision.prior
        proba = softmax(self._scores(features, None, prior))[:, order]
        return np.asarray(self.classes_[order[tuning.decision.codes(proba)]])

    # Keeping

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the fitted classifier, its conditioning and its tuning to a folder, nothing pickled.

        Parameters
        ----------
        folder : path
            Where to write.
        """
        check_is_fitted(self)
        tuning: Tuning | None = getattr(self, "tuning_", None)
        settings = {name: getattr(self, name) for name in _SAVED}
        base: Any = self.classifier_.module
        with sealing(folder) as temporary:
            self.classifier_.save(temporary / "network")
            write_json(
                temporary / "conditional.json",
                {
                    "kind": type(self).__name__,
                    "settings": settings,
                    "step": self.step if isinstance(self.step, str) else None,
                    "module": base.module if isinstance(base.module, str) else None,
                    "distribution": {name: to_dict(law) for name, law in self.distribution_.items()},
                    "params": self.params_,
                    "feature_names_in": list(getattr(self, "feature_names_in_", [])),
                    "class_counts": self.class_counts_.tolist(),
                    "sampled_prior": self.sampled_prior_.tolist(),
                    "default": self.default_,
                    "tuning": None if tuning is None else tuning_to_dict(tuning, self.positive_),
                },
            )

    @classmethod
    def load(cls, folder: str | os.PathLike[str] | SealedFolder, module: Any = None) -> ConditionalClassifier:
        """Read what :meth:`save` wrote; a network that was not given by name must be given again.

        Parameters
        ----------
        folder : path
            The folder.
        module : module or factory, optional
            The network, if it was not given by name.

        Returns
        -------
        ConditionalClassifier
            The fitted classifier.
        """
        saved = open_sealed(folder)
        state = saved.read_json("conditional.json")
        check_kind(saved, state, cls.__name__)
        with saved.reading("conditional.json"):
            laws = {name: from_dict(law) for name, law in state["distribution"].items()}
            made = cls(distribution=laws, step=state["step"] or "plain", **state["settings"])
            network = module if module is not None else state["module"]
        if network is None:
            raise ValueError("the module was not saved, only its weights: pass it to load as module=…")
        with saved.reading("conditional.json"):
            made.distribution_, made.params_, made.default_ = laws, state["params"], state["default"]
            shell = ConditionalModule.of(made, network)
            if state["feature_names_in"]:
                made.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
            made.class_counts_ = np.array(state["class_counts"], dtype=np.float64)
            made.sampled_prior_ = check_distribution("sampled_prior", state["sampled_prior"], tolerance=1e-6)
            made.classifier_ = NeuralClassifier.load(saved / "network", module=shell)
            made.classes_, made.n_features_in_ = made.classifier_.classes_, made.classifier_.n_features_in_
            if state["tuning"] is not None:
                made.tuning_, made.positive_ = tuning_from_dict(state["tuning"], made.classes_)
        return made
