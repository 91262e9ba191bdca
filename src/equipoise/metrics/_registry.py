"""The list of metrics, filled by the decorator that stands on each of them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy.typing as npt

from equipoise._core.checks import check_choice, check_type
from equipoise.metrics._inputs import AnyArray, positive_class, proba_input
from equipoise.metrics._kernels import Statistic

Needs = Literal["labels", "scores", "proba"]


@dataclass(frozen=True)
class Metric:
    """A metric and what a caller has to know about it.

    Attributes
    ----------
    name : str
        As in ``METRICS``.
    function : callable
        ``(y_true, values, **keywords)`` to the value.
    needs : {"labels", "scores", "proba"}
        What the second argument is: predicted ``"labels"``, ``"scores"`` (any increasing function of the
        positive class's probability, or one column per class), or ``"proba"`` (distributions over the classes).
    greater_is_better : bool
        Whether to maximize it.
    multiclass : bool
        Whether it takes more than two classes.
    bounds : tuple of float
        The smallest and largest value it can have.
    weighted : callable, optional
        Makes the form of the metric that takes many vectors of weights at once, which bootstrap intervals
        use.
    params : mapping
        Keywords bound to the function, as in ``get_metric("f_beta", beta=2)``.

    Examples
    --------
    >>> from equipoise.metrics import get_metric
    >>> metric = get_metric("f_beta", beta=2)
    >>> metric([0, 0, 1, 1], [0, 1, 1, 1])
    0.909...
    >>> metric.evaluate(["a", "b", "b"], [[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    0.555...
    """

    name: str
    function: Callable[..., float]
    needs: Needs
    greater_is_better: bool
    multiclass: bool
    bounds: tuple[float, float]
    weighted: Callable[..., Statistic] | None = field(default=None, repr=False)
    params: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def sign(self) -> int:
        """+1 if more is better, −1 if less is."""
        return 1 if self.greater_is_better else -1

    @property
    def accepts(self) -> frozenset[str]:
        """Keywords that its function takes."""
        return frozenset(inspect.signature(self.function).parameters) - {"y_true"}

    def __call__(self, y_true: npt.ArrayLike, values: npt.ArrayLike, **keywords: Any) -> float:
        return self.function(y_true, values, **{**self.params, **keywords})

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.name.partition("(")[0], dict(self.params))

    def arguments(
        self,
        y_true: npt.ArrayLike,
        proba: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
        pos_label: Hashable | None = None,
    ) -> tuple[AnyArray, dict[str, Any]]:
        """From class probabilities to this metric's second argument and keywords.

        Parameters
        ----------
        y_true : array of shape (samples,)
            The true labels.
        proba : array of shape (samples, classes) or (samples,)
            The class probabilities, a column for each label; with two classes a vector holds those of the
            second.
        labels : array, optional
            The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
        pos_label : label, optional
            The positive class of two; by default the last in sorted order.

        Returns
        -------
        array
            What the metric takes as its second argument: labels, scores or the table of probabilities.
        dict
            The keywords to call it with.

        Raises
        ------
        ValueError
            If the metric takes two classes and there are more.
        """
        _, table, classes, _ = proba_input(y_true, proba, labels)
        keywords: dict[str, Any] = {"labels": classes} if "labels" in self.accepts else {}
        if classes.size == 2 and "pos_label" in self.accepts:
            keywords["pos_label"] = positive_class(classes, pos_label)
        if self.needs == "labels":
            return classes[table.argmax(axis=1)], keywords
        if classes.size > 2 and not self.multiclass:
            raise ValueError(f"{self.name} takes two classes, got the labels {classes.tolist()}")
        if self.needs == "scores" and classes.size == 2 and "pos_label" in keywords:
            keywords.pop("labels", None)
            return table[:, classes.tolist().index(keywords["pos_label"])], keywords
        return table, keywords

    def evaluate(
        self,
        y_true: npt.ArrayLike,
        proba: npt.ArrayLike,
        *,
        labels: npt.ArrayLike | None = None,
        pos_label: Hashable | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> float:
        """The metric from class probabilities, whatever it needs (labels are the most probable class).

        ``labels`` names the columns of ``proba`` and is needed when ``y_true`` lacks a class.

        Parameters
        ----------
        y_true : array of shape (samples,)
            The true labels.
        proba : array of shape (samples, classes) or (samples,)
            The class probabilities, a column for each label; with two classes a vector holds those of the
            second.
        labels : array, optional
            The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
        pos_label : label, optional
            The positive class of two; by default the last in sorted order.
        sample_weight : array of shape (samples,), optional
            The weight of each sample.

        Returns
        -------
        float
            The value of the metric.
        """
        values, keywords = self.arguments(y_true, proba, labels=labels, pos_label=pos_label)
        return self(y_true, values, sample_weight=sample_weight, **keywords)

    def scorer(self, estimator: Any, X: Any, y: Any) -> float:
        """For scikit-learn's ``scoring=``: from a fitted classifier, more is better.

        Parameters
        ----------
        estimator : classifier
            A fitted scikit-learn classifier.
        X : array or DataFrame
            The rows to score it on.
        y : array
            Their labels.

        Returns
        -------
        float
            The value, times −1 where less is better.
        """
        if self.needs == "labels":
            return self.sign * self(y, estimator.predict(X))
        if self.needs == "proba" or not hasattr(estimator, "decision_function"):
            return self.sign * self.evaluate(y, estimator.predict_proba(X), labels=estimator.classes_)
        values, keywords = estimator.decision_function(X), {}
        if len(estimator.classes_) == 2 and "pos_label" in self.accepts:
            keywords = {"pos_label": estimator.classes_[1]}
        elif "labels" in self.accepts:
            keywords = {"labels": estimator.classes_}
        return self.sign * self(y, values, **keywords)


_KNOWN: dict[str, Metric] = {}
METRICS: Mapping[str, Metric] = MappingProxyType(_KNOWN)
"""All metrics by name."""


def metric(
    *,
    needs: Needs,
    greater_is_better: bool = True,
    multiclass: bool = True,
    bounds: tuple[float, float] = (0.0, 1.0),
    weighted: Callable[..., Statistic] | None = None,
) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Enter a function ``(y_true, values, *, ...) → float`` in ``METRICS``."""

    def enter(function: Callable[..., float]) -> Callable[..., float]:
        key = function.__name__
        _KNOWN[key] = Metric(key, function, needs, greater_is_better, multiclass, bounds, weighted)
        return function

    return enter


def get_metric(name: str | Metric, **params: Any) -> Metric:
    """A metric by its name, with keywords bound to it.

    The name may carry its keywords, as configuration files need it.

    Parameters
    ----------
    name : str or Metric
        A name in ``METRICS``, perhaps with its keywords, or a metric, which is returned with the keywords
        bound.
    **params : Any
        Keywords to bind to the metric's function.

    Returns
    -------
    Metric
        The metric.

    Raises
    ------
    ValueError
        If there is no such metric or it does not take a keyword.

    Examples
    --------
    >>> get_metric("brier").greater_is_better
    False
    >>> get_metric("precision_at_recall(min_recall=0.9)")([0, 1, 0, 1], [0.1, 0.4, 0.5, 0.8])
    0.666...
    >>> get_metric("acuracy")
    Traceback (most recent call last):
    ...
    ValueError: metric must be one of ..., got 'acuracy'
    """
    if isinstance(name, Metric):
        found = name
    else:
        base, written = _parse(name)
        params = {**written, **params}
        found = _KNOWN[check_choice("metric", base, sorted(_KNOWN))]
    unknown = set(params) - found.accepts
    if unknown:
        raise ValueError(f"{found.name} does not take {sorted(unknown)}; it takes {sorted(found.accepts)}")
    if not params:
        return found
    shown = ", ".join(f"{key}={value!r}" for key, value in params.items())
    return replace(found, name=f"{found.name}({shown})", params={**found.params, **params})


def _restore(name: str, params: dict[str, Any]) -> Metric:
    """For pickle, which cannot carry the closures: workers find the metric by its name."""
    return get_metric(name, **params)


def _parse(name: str) -> tuple[str, dict[str, Any]]:
    check_type("metric", name, str)
    if not name.endswith(")"):
        return name, {}
    try:
        call = ast.parse(name, mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args):
            raise ValueError("not of the form name(key=value)")
        return call.func.id, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"metric must be a name or name(key=value, ...), got {name!r}") from error


def evaluate_all(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    metrics: list[str] | tuple[str, ...] | None = None,
    *,
    labels: npt.ArrayLike | None = None,
    pos_label: Hashable | None = None,
) -> dict[str, float]:
    """Several metrics from one table of class probabilities; by default all that need no keyword.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes) or (samples,)
        The class probabilities, a column for each label; with two classes a vector holds those of the
        second.
    metrics : sequence of str, optional
        Names in ``METRICS``; by default all that need no keyword and fit the number of classes.
    labels : array, optional
        The labels of the columns of ``proba``; by default the sorted labels of ``y_true``.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.

    Returns
    -------
    dict of str to float
        The value of each metric, by name.

    Examples
    --------
    >>> evaluate_all([0, 0, 1], [0.2, 0.6, 0.9], ["auc", "top1_error", "recall"])
    {'auc': 1.0, 'top1_error': 0.333..., 'recall': 1.0}
    """
    _, table, classes, _ = proba_input(y_true, proba, labels)
    if metrics is None:
        chosen = [m for m in _KNOWN.values() if not _required(m) and (m.multiclass or classes.size == 2)]
    else:
        chosen = [get_metric(name) for name in metrics]
    return {m.name: m.evaluate(y_true, table, labels=classes, pos_label=pos_label) for m in chosen}


def _required(entry: Metric) -> set[str]:
    parameters = list(inspect.signature(entry.function).parameters.values())[2:]
    return {p.name for p in parameters if p.default is p.empty} - set(entry.params)
