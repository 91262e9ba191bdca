"""One model for every operating point: loss-conditional training, tuned after training."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from equipoise._core.checks import FloatArray, IntArray, check_choice, check_distribution
from equipoise._core.files import write_json
from equipoise._core.sealed import SealedFolder, open_sealed, sealing
from equipoise.classifiers._conditional import (
    ConditionalModule,
    ConditionalStepFactory,
    ConditionedFamily,
    FeaturesOnly,
    _View,
    tuning_from_dict,
    tuning_to_dict,
)
from equipoise.classifiers._lambda_search import (
    Held,
    Params,
    Tuning,
    default_of,
    read_grid,
    read_metric,
    representative_grid,
    scan,
    search_continuously,
)
from equipoise.classifiers._prediction import _WrappingClassifier
from equipoise.classifiers.ledger import posterior_scores, softmax
from equipoise.classifiers.neural import NeuralClassifier
from equipoise.classifiers.saving import check_kind
from equipoise.classifiers.targets import check_inputs, check_training_data
from equipoise.datasets import ImageFiles
from equipoise.metrics import precision_at_recall
from equipoise.networks import ConditionalNetwork
from equipoise.training import FamilyLoss, Linear, predict
from equipoise.training.distributions import Distribution, check_distributions, from_dict, to_dict

_DEFAULTS: dict[str, dict[str, Distribution]] = {
    "vs": {"gamma": Linear(0, 0.3, 0), "tau": Linear(0, 3, 0.33)},
    "focal": {"alpha": Linear(0.25, 0.75, 2), "phi": Linear(1, 3, 0.5)},
    "la": {"tau": Linear(0, 3, 0.33)},
}


class ConditionalClassifier(_WrappingClassifier):
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

    def __init__(
        self,
        loss: str = "vs",
        *,
        distribution: dict[str, Any] | None = None,
        loss_params: dict[str, Any] | None = None,
        step: str | Callable[..., Any] = "plain",
        step_params: dict[str, Any] | None = None,
        estimator: NeuralClassifier | None = None,
        film: bool = True,
        film_hidden: int = 128,
        film_residual: bool = True,
        film_scaled: bool = False,
        per_sample: bool = False,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.distribution = distribution
        self.loss_params = loss_params
        self.step = step
        self.step_params = step_params
        self.estimator = estimator
        self.film = film
        self.film_hidden = film_hidden
        self.film_residual = film_residual
        self.film_scaled = film_scaled
        self.per_sample = per_sample
        self.random_state = random_state

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
        self.class_counts_, self.sampled_prior_ = (
            self.classifier_.class_counts_,
            self.classifier_.sampled_prior_,
        )
        self._forget_tuning()
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

    def _forget_tuning(self) -> None:
        if hasattr(self, "tuning_"):
            del self.tuning_

    @property
    def network_(self) -> ConditionalNetwork:
        """The trained network."""
        network: ConditionalNetwork = self.classifier_.network_
        return network

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

    def _logits(self, features: Tensor, params: Params) -> FloatArray:
        told = torch.tensor([params[name] for name in self.distribution_], dtype=torch.float64)
        logits: FloatArray = self.network_.exact_answer(features, told).numpy()
        return logits

    def _scores(self, features: Tensor, params: Params | None, prior: Any) -> FloatArray:
        """The raw logits under λ for the prior ``"train"``; for another one the log-posterior, up to a constant."""
        chosen = self._complete(params)
        logits = self._logits(features, chosen)
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

    # Choosing after training

    def tune(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        metric: str | Callable[..., float] | None = None,
        *,
        params: Any = None,
        search: str = "grid",
        prior: str | npt.ArrayLike = "data",
        pos_label: Any = None,
        **keywords: Any,
    ) -> Tuning:
        """Choose λ and, for a metric of labels, the decision on validation data. Nothing is retrained.

        What is judged is what :meth:`predict` does afterwards.

        Parameters
        ----------
        X : array-like
            Validation samples that took no part in training.
        y : array-like of shape (n,)
            Their labels.
        metric : str or callable, optional
            A name of ``equipoise.metrics.METRICS``, ``"f1"``, ``"cost"`` (with ``cost_matrix``), or a
            scikit-learn scorer ``scorer(estimator, X, y)``. A wish needs no metric: ``recall=0.9`` finds
            the best precision, ``precision=0.9`` or ``alerts=0.01`` (the largest share of rows) the best
            recall. A wanted recall or precision holds for new rows with a ``confidence`` of 0.95. Without
            either the average precision is tuned.
        params : dict or list of dict, optional
            Values to combine, or the λ themselves; by default five values over each range.
        search : {"grid", "continuous"}
            Over those λ, or over the whole trained range.
        prior : {"data"}, float or array
            ``"data"`` takes the validation rows as they come. An array, or the share of the positive
            class, says what the class shares will be in use: rows are weighted and decisions made for
            those.
        pos_label : label, optional
            The positive class; the rarer one by default.
        **keywords : Any
            Keywords of the metric, or a wish such as ``recall=0.99``.

        Returns
        -------
        Tuning
            The best λ, the decision and what they are worth on the validation data.

        Raises
        ------
        UnmetWish
            If the rows cannot promise the wanted recall or precision; the message says what they can promise.
        """
        check_choice("search", search, ["grid", "continuous"])
        if pos_label is not None and pos_label not in self.classes_.tolist():
            raise ValueError(f"pos_label must be one of {self.classes_.tolist()}, got {pos_label!r}")
        self.positive_ = self._positive() if pos_label is None else pos_label
        features, rows = self.backbone(X), self._held(y, prior)
        judge, sign = self._judge(metric, keywords, features, X, np.asarray(y), rows)
        if search == "grid":
            found = scan(read_grid(params, self.distribution_), judge)
        else:
            found = search_continuously(self.distribution_, judge, sign)
        table = pd.DataFrame(found)
        best = found[int(np.nanargmax(sign * table["value"].to_numpy(dtype=float)))]
        self.params_ = {name: best[name] for name in self.distribution_}
        told = prior if rows.weight is None else rows.prior.tolist()
        self.tuning_ = Tuning(
            self.params_, float(best["value"]), best["decision"], told, table.drop(columns="decision")
        )
        return self.tuning_

    def _positive(self) -> Any:
        return self.classes_[int(self.data_prior_.argmin())]

    def _order(self) -> IntArray:
        """Columns of the classes, the positive one last if there are two."""
        order = np.arange(len(self.classes_))
        return order[::-1] if len(order) == 2 and self.positive_ == self.classes_[0] else order

    def _held(self, y: npt.ArrayLike, prior: Any) -> Held:
        order = self._order()
        place = {label: code for code, label in enumerate(self.classes_[order].tolist())}
        labels = np.asarray(y).tolist()
        unknown = sorted(set(map(str, set(labels) - set(place))))
        if unknown:
            raise ValueError(f"y holds the class {unknown[0]}, which was not trained on")
        codes = np.array([place[label] for label in labels], dtype=np.int64)
        given = self.data_prior_[order]
        if isinstance(prior, str):
            check_choice("prior", prior, ["data"])
            return Held.make(codes, given, None)
        shares = np.asarray(prior, dtype=np.float64)
        if shares.ndim == 0:
            shares = np.array([1 - shares, shares])[np.argsort(order)]
        if not ((shares > 0) & (shares < 1)).all():
            raise ValueError(
                f"prior must lie between 0 and 1 for every class, got {np.asarray(prior).tolist()}"
            )
        if len(shares) != len(order):
            raise ValueError(f"prior must have a share for each of {len(order)} classes, got {len(shares)}")
        return Held.make(codes, given, check_distribution("prior", shares)[order])

    def _judge(
        self, metric: Any, keywords: dict[str, Any], features: Tensor, X: Any, y: npt.NDArray[Any], rows: Held
    ) -> tuple[Callable[[Params], tuple[float, Any]], int]:
        if callable(metric):
            view = _View(self, features)
            weights = {} if rows.weight is None else {"sample_weight": rows.weight}

            def by_scorer(candidate: Params) -> tuple[float, None]:
                view.params = candidate
                return float(metric(view, X, y, **weights)), None

            return by_scorer, 1
        judge, order = read_metric(metric, keywords), self._order()

        def by_name(candidate: Params) -> tuple[float, Any]:
            own = np.argsort(order)[self._scores(features, candidate, "train").argmax(axis=1)]
            return judge(rows, softmax(self._scores(features, candidate, "data"))[:, order], own)

        return by_name, judge.metric.sign

    def survey(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        metrics: Sequence[str] = ("auc", "brier", "precision_at_recall", "best_f1"),
        *,
        params: Any = None,
        prior: str | npt.ArrayLike = "data",
    ) -> pd.DataFrame:
        """Several metrics under every λ for one pass of the backbone: one row per λ; nothing is chosen.

        ``params`` and ``prior`` are those of :meth:`tune`. Draw the table with
        :func:`~equipoise.classifiers.plot_tradeoff` or :func:`~equipoise.classifiers.plot_map`.

        Parameters
        ----------
        X : array-like
            Validation samples.
        y : array-like of shape (n,)
            Their labels.
        metrics : sequence of str
            Names of ``equipoise.metrics.METRICS``.
        params : dict or list of dict, optional
            As in :meth:`tune`.
        prior : {"data"}, float or array
            As in :meth:`tune`.

        Returns
        -------
        DataFrame
            A column for each hyper-parameter and each metric.
        """
        self.positive_ = getattr(self, "positive_", self._positive())
        features, rows, order = self.backbone(X), self._held(y, prior), self._order()
        judges = {name: read_metric(name, {}, promise=False) for name in metrics}
        found = []
        for candidate in read_grid(params, self.distribution_):
            own = np.argsort(order)[self._scores(features, candidate, "train").argmax(axis=1)]
            proba = softmax(self._scores(features, candidate, "data"))[:, order]
            found.append(
                {**candidate, **{name: judge(rows, proba, own)[0] for name, judge in judges.items()}}
            )
        return pd.DataFrame(found)

    def frontier(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        recalls: npt.ArrayLike | None = None,
        params: Any = None,
    ) -> pd.DataFrame:
        """The best precision at each recall over all λ, and the λ that gives it.

        Returns a table with ``recall``, ``precision`` and one column a hyper-parameter. On validation data this
        is a menu; the precision of a chosen line is to be measured on other data.

        Parameters
        ----------
        X : array-like
            Validation samples.
        y : array-like of shape (n,)
            Their labels, of two classes.
        recalls : array, optional
            The recalls; by default twenty from 0.05 to 1.
        params : dict or list of dict, optional
            As in :meth:`tune`.

        Returns
        -------
        DataFrame
            A row for each recall.
        """
        if len(self.classes_) != 2:
            raise ValueError(f"a precision-recall frontier needs two classes, got {len(self.classes_)}")
        wanted = np.linspace(0.05, 1, 20) if recalls is None else np.atleast_1d(np.asarray(recalls, float))
        features, y = self.backbone(X), np.asarray(y)
        positive = self._positive()
        column = self.classes_.tolist().index(positive)
        rows = []
        for candidate in read_grid(params, self.distribution_):
            scores = softmax(self._scores(features, candidate, "data"))[:, column]
            rows += [
                {
                    "recall": recall,
                    "precision": precision_at_recall(y, scores, min_recall=recall, pos_label=positive),
                    **candidate,
                }
                for recall in wanted
            ]
        table = pd.DataFrame(rows)
        return table.loc[table.groupby("recall")["precision"].idxmax()].reset_index(drop=True)

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
        settings = {
            name: getattr(self, name)
            for name in (
                "loss",
                "loss_params",
                "step_params",
                "film",
                "film_hidden",
                "film_residual",
                "film_scaled",
                "per_sample",
            )
        }
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
