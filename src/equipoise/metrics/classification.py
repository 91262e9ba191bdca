"""Metrics of predicted labels and of rankings. Where scikit-learn or imbalanced-learn has one, it is theirs.

Conventions. Averages over classes run over the classes that occur in ``y_true`` (precision and F: in either
vector, as in scikit-learn). With two classes the positive one is the last in sorted order unless
``pos_label`` says otherwise; ``average="auto"`` means that class for two classes and the plain mean over
classes for more. A quotient 0/0 counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import sklearn.metrics

from equipoise._core.checks import check_choice, check_in_range, check_positive
from equipoise.metrics import _kernels as kernels
from equipoise.metrics._inputs import (
    LabelInput,
    encode,
    label_input,
    positive_class,
    proba_input,
    require_two_classes,
    score_input,
)
from equipoise.metrics._registry import metric

_AVERAGES = ("auto", "binary", "macro")


def _imblearn_metrics() -> Any:
    """Imported when a metric needs it: it takes longer than most of this package."""
    import imblearn.metrics

    return imblearn.metrics


def _averaged(
    function: Callable[..., Any],
    given: LabelInput,
    pos_label: Hashable | None,
    average: str,
    *,
    truth_only: bool,
    **params: Any,
) -> float:
    """Call a score of scikit-learn's or imbalanced-learn's for the positive class or averaged."""
    check_choice("average", average, _AVERAGES)
    true, predicted, classes, params["sample_weight"] = given
    require_two_classes(true)
    if kernels.is_binary(average, classes, pos_label):
        positive = positive_class(classes, pos_label)
        if truth_only and not (true == positive).any():
            raise ValueError(f"y_true must have the positive class, got no {positive!r}")
        a, b = (true == positive).astype(int), (predicted == positive).astype(int)
        return float(function(a, b, pos_label=1, average="binary", **params))
    wanted = np.unique(true) if truth_only else None
    return float(function(true, predicted, labels=wanted, average="macro", **params))


@metric(needs="labels", weighted=kernels.from_classes(kernels.class_recalls, kernels.mean_present))
def recall(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    average: str = "auto",
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Recall (sensitivity): the share of the positive class that is found.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    average : {"auto", "binary", "macro"}
        ``"binary"`` is the value of the positive class, ``"macro"`` the plain mean over classes;
        ``"auto"`` takes the first with two classes and the second with more.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> recall([0, 0, 1, 1], [0, 1, 1, 0])
    0.5
    """
    given, score = label_input(y_true, y_pred, labels, sample_weight), sklearn.metrics.recall_score
    return _averaged(score, given, pos_label, average, truth_only=True, zero_division=0)


@metric(needs="labels", weighted=kernels.from_classes(kernels.class_specificities, kernels.mean_present))
def specificity(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    average: str = "auto",
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Specificity: the share of the negatives that is not called positive.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    average : {"auto", "binary", "macro"}
        ``"binary"`` is the value of the positive class, ``"macro"`` the plain mean over classes;
        ``"auto"`` takes the first with two classes and the second with more.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> specificity([0, 0, 0, 0, 1], [0, 0, 0, 1, 1])
    0.75
    """
    given, score = label_input(y_true, y_pred, labels, sample_weight), _imblearn_metrics().specificity_score
    return _averaged(score, given, pos_label, average, truth_only=True)


@metric(
    needs="labels", weighted=kernels.from_classes(kernels.class_precisions, lambda values: values.mean(-1))
)
def precision(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    average: str = "auto",
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Precision: the share of what is called positive that is.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    average : {"auto", "binary", "macro"}
        ``"binary"`` is the value of the positive class, ``"macro"`` the plain mean over classes;
        ``"auto"`` takes the first with two classes and the second with more.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> precision([0, 0, 1, 1], [0, 1, 1, 1])
    0.666...
    """
    given, score = label_input(y_true, y_pred, labels, sample_weight), sklearn.metrics.precision_score
    return _averaged(score, given, pos_label, average, truth_only=False, zero_division=0)


@metric(needs="labels", weighted=kernels.from_classes(kernels.class_f_betas, lambda values: values.mean(-1)))
def f_beta(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    beta: float = 1.0,
    pos_label: Hashable | None = None,
    average: str = "auto",
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """F-beta: harmonic mean of precision and recall, recall weighing ``beta``² times as much.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    beta : float
        Recall weighs ``beta``² times as much as precision.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    average : {"auto", "binary", "macro"}
        ``"binary"`` is the value of the positive class, ``"macro"`` the plain mean over classes;
        ``"auto"`` takes the first with two classes and the second with more.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> f_beta([0, 0, 1, 1], [0, 1, 1, 1], beta=2)
    0.909...
    """
    check_in_range("beta", check_positive("beta", beta), high=1e6)
    given, score = label_input(y_true, y_pred, labels, sample_weight), sklearn.metrics.fbeta_score
    return _averaged(score, given, pos_label, average, truth_only=False, beta=beta, zero_division=0)


@metric(needs="labels", weighted=kernels.from_tallies(lambda m: kernels.class_f_betas(m).mean(-1)))
def macro_f1(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Macro F1: the plain mean of the classes' F1.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> macro_f1([0, 0, 1, 1], [0, 1, 1, 1])
    0.733...
    """
    return f_beta(y_true, y_pred, average="macro", labels=labels, sample_weight=sample_weight)


@metric(
    needs="labels", weighted=kernels.from_tallies(lambda m: kernels.mean_present(kernels.class_recalls(m)))
)
def balanced_accuracy(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Balanced accuracy, also called ACSA: the plain mean of the classes' recalls.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> balanced_accuracy([0, 0, 0, 0, 1], [0, 0, 0, 0, 0])
    0.5
    """
    return recall(y_true, y_pred, average="macro", labels=labels, sample_weight=sample_weight)


acsa = balanced_accuracy


def _geometric_means(given: LabelInput, average: str | None) -> Any:
    """imbalanced-learn's G-mean, over the classes that occur in the truth."""
    true, predicted, _, weight = given
    require_two_classes(true)
    score = _imblearn_metrics().geometric_mean_score
    return score(true, predicted, average=average, labels=np.unique(true), sample_weight=weight)


@metric(needs="labels", weighted=kernels.from_tallies(kernels.g_mean))
def g_mean(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """G-mean: the C-th root of the product of the C recalls; √(recall · specificity) for two classes.

    The literature has two more, for which see :func:`g_mean_macro` and :func:`g_mean_per_class`.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    References
    ----------
    Lieberman et al., Eq 17.

    Examples
    --------
    >>> g_mean([0, 0, 0, 1], [0, 0, 1, 1])
    0.816...
    >>> g_mean([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 2, 2])
    0.793...
    """
    return float(_geometric_means(label_input(y_true, y_pred, labels, sample_weight), "multiclass"))


@metric(needs="labels", weighted=kernels.from_tallies(kernels.g_mean_per_class))
def g_mean_per_class(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """G-mean, per class: the mean over classes of √(sensitivity · specificity), as DGC reports it.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> g_mean_per_class([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 2, 2])
    0.857...
    """
    return float(np.mean(_geometric_means(label_input(y_true, y_pred, labels, sample_weight), None)))


@metric(needs="labels", weighted=kernels.from_tallies(kernels.g_mean_macro))
def g_mean_macro(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """G-mean, macro: √(mean sensitivity · mean specificity), the one of Mondal et al., Table 1.

    For two classes it is the balanced accuracy; :func:`g_mean` is what most papers mean.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> g_mean_macro([0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 2, 2])
    0.874...
    """
    return float(_geometric_means(label_input(y_true, y_pred, labels, sample_weight), "macro"))


@metric(
    needs="labels",
    greater_is_better=False,
    weighted=kernels.from_tallies(kernels.error_rate),
)
def top1_error(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Top-1 error: the share of samples whose predicted label is wrong.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> top1_error(["a", "b", "b", "c"], ["a", "b", "c", "c"])
    0.25
    """
    true, predicted, _, weight = label_input(y_true, y_pred, labels, sample_weight)
    return float(sklearn.metrics.zero_one_loss(true, predicted, sample_weight=weight))


@metric(needs="scores", multiclass=False, weighted=kernels.from_curve(kernels.step_precision))
def average_precision(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """Average precision: the area under the precision-recall steps of the positive class.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_score : array of shape (samples,)
        Scores that grow with the probability of the positive class.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.833...
    """
    positive, score, weight = score_input(y_true, y_score, pos_label, sample_weight)
    return float(sklearn.metrics.average_precision_score(positive, score, sample_weight=weight))


@metric(needs="scores", weighted=kernels.one_vs_all(kernels.step_precision))
def auprc_ova(
    y_true: npt.ArrayLike,
    proba: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """AUPRC, one versus all: the mean over the classes that occur of their average precision.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    proba : array of shape (samples, classes)
        The class probabilities or scores, a column for each label.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> auprc_ova([0, 1, 2], [[0.8, 0.1, 0.1], [0.3, 0.5, 0.2], [0.2, 0.6, 0.2]])
    0.666...
    """
    codes, table, _, weight = proba_input(y_true, proba, labels, sample_weight, scores=True)
    require_two_classes(codes)
    found = np.unique(codes)
    score = sklearn.metrics.average_precision_score
    return float(np.mean([score(codes == c, table[:, c], sample_weight=weight) for c in found]))


def _prepare_auc(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    labels: npt.ArrayLike | None = None,
) -> kernels.Statistic:
    if _is_table(y_score):
        return kernels.one_vs_all(kernels.area_under_roc)(y_true, y_score, labels=labels)
    return kernels.from_curve(kernels.area_under_roc)(y_true, y_score, pos_label=pos_label)


def _is_table(y_score: npt.ArrayLike) -> bool:
    shape = np.shape(y_score)
    return len(shape) == 2 and shape[1] > 2


@metric(needs="scores", weighted=_prepare_auc)
def auc(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    pos_label: Hashable | None = None,
    labels: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> float:
    """AUC: the area under the ROC curve; with a column per class, the mean of one class against the rest.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_score : array of shape (samples,) or (samples, classes)
        Scores that grow with the probability of the positive class, or of the class of each column.
    pos_label : label, optional
        The positive class of two; by default the last in sorted order.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.
    sample_weight : array of shape (samples,), optional
        The weight of each sample; by default all weigh the same.

    Returns
    -------
    float
        The value of the metric.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    score = sklearn.metrics.roc_auc_score
    if not _is_table(y_score):
        positive, values, weight = score_input(y_true, y_score, pos_label, sample_weight)
        return float(score(positive, values, sample_weight=weight))
    codes, table, _, weight = proba_input(y_true, y_score, labels, sample_weight, scores=True)
    require_two_classes(codes)
    return float(np.mean([score(codes == c, table[:, c], sample_weight=weight) for c in np.unique(codes)]))


def per_class(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, *, labels: npt.ArrayLike | None = None
) -> pd.DataFrame:
    """Recall, specificity, precision, F1, G-mean and support of each class.

    Parameters
    ----------
    y_true : array of shape (samples,)
        The true labels.
    y_pred : array of shape (samples,)
        The predicted labels.
    labels : array, optional
        All labels, where the vectors may lack one; by default those that occur.

    Returns
    -------
    DataFrame
        A row for each class, with its recall, specificity, precision, F1, G-mean and number of samples.

    Examples
    --------
    >>> per_class(["a", "a", "b"], ["a", "b", "b"]).loc["a", "recall"]
    np.float64(0.5)
    """
    true, predicted, classes, _ = label_input(y_true, y_pred, labels)
    counts = kernels.tally(
        encode(true, classes), encode(predicted, classes), classes.size, np.ones((1, true.size))
    )
    sensitivity, rest = kernels.class_recalls(counts), kernels.class_specificities(counts)
    columns = {
        "recall": sensitivity,
        "specificity": rest,
        "precision": kernels.class_precisions(counts),
        "f1": kernels.class_f_betas(counts),
        "g_mean": np.sqrt(sensitivity * rest),
        "support": counts.actual.astype(int),
    }
    table = {name: values[0] for name, values in columns.items()}
    return pd.DataFrame(table, index=pd.Index(classes, name="class"))
