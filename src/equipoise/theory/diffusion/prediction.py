"""From a labeled data set to the order in which a diffusion model will memorize its classes (Result 4, Fig 6).

The data enter only through the class shares, the mean variances and the Gram matrix of the centroids. The model is
that of Appendix I.2. Two errors make up the intervals: that of the model's own random draws, by a jackknife over
instances, and that of the data's statistics, by a bootstrap on common draws at a smaller dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise._core.checks import FloatArray, check_fraction, check_integer, check_positive
from equipoise._core.progress import track
from equipoise._core.random import RandomState, as_generator, derive_seed, draw_seed
from equipoise.theory.diffusion.curves import LearningCurves, check_shares
from equipoise.theory.diffusion.mixture import ClassMixture, unit_scale
from equipoise.theory.diffusion.model import RandomFeatures
from equipoise.theory.diffusion.times import jackknife

TIMES = np.geomspace(1e-3, 1e5, 240)
LIMIT_TIMES = np.geomspace(3e-3, 1e4, 100)
FEATURES_PER_DIM = 100.0  # P = 10000, N = 100 and M = 500 for Section 4 (Appendix I.2)
SAMPLES_PER_DIM = 5.0
DIMENSION = 100
DIFFUSION_TIME = 0.01
THRESHOLD = 1.2  # a test error 20 % above the initial one, as in Fig 6
FEWEST = 8  # samples of a class, of which a centroid and a variance are known well enough to say anything
_BOOTSTRAP_DIMENSION = 16


@dataclass(frozen=True)
class PredictedOrder:
    """Predicted class times, with intervals for the errors of the model's draws and of the data. Prints as a table.

    Attributes
    ----------
    mixture : ClassMixture
        The classes as the theory sees them: shares, variances and centroids.
    memorization_time : array of shape (C,)
        The training time τ at which each class is memorized; NaN if it never is.
    memorization_interval : array of shape (2, C)
        The bounds of these times.
    generalization_time : array of shape (C,)
        The training time τ at which each class generalizes; NaN if it never does.
    generalization_interval : array of shape (2, C)
        The bounds of these times.
    pairs : tuple of pairs
        The pairs of classes that the gaps belong to.
    gap : array of shape (pairs,)
        τ_m⁽ⁱ⁾ − τ_m⁽ʲ⁾ for pairs (i, j).
    gap_lower : array of shape (pairs,)
        The lower bounds of the gaps.
    gap_upper : array of shape (pairs,)
        The upper bounds of the gaps.
    """

    mixture: ClassMixture
    memorization_time: FloatArray
    memorization_interval: FloatArray
    generalization_time: FloatArray
    generalization_interval: FloatArray
    pairs: tuple[tuple[Any, Any], ...]
    gap: FloatArray
    gap_lower: FloatArray
    gap_upper: FloatArray

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names of the classes."""
        return self.mixture.classes

    @property
    def order(self) -> tuple[Any, ...]:
        """Classes from the first memorized to the last, by their expected times."""
        return tuple(self.classes[i] for i in np.argsort(self.memorization_time))  # nan sorts last

    def first(self, a: Any, b: Any) -> Any | None:
        """The class of a pair that is memorized first; None for a tie, where the gap's interval holds zero.

        Parameters
        ----------
        a : label
            A class.
        b : label
            Another class.

        Returns
        -------
        label or None
            The class.

        Raises
        ------
        ValueError
            If no gap was asked for between them.
        """
        if (b, a) in self.pairs:
            a, b = b, a
        if (a, b) not in self.pairs:
            raise ValueError(f"no gap was asked for between {a!r} and {b!r}")
        at = self.pairs.index((a, b))
        if self.gap_lower[at] > 0:
            return b
        return a if self.gap_upper[at] < 0 else None

    def in_words(self) -> str:
        """The order as a chain, in which ``≈`` joins neighbors that cannot be told apart.

        Returns
        -------
        str
            The chain, the first class first.
        """
        order = self.order
        words = [str(order[0])]
        for before, after in pairwise(order):
            known = (before, after) in self.pairs or (after, before) in self.pairs
            settled = known and self.first(before, after) is not None
            words.append(f"{'→' if settled else '≈'} {after}")
        return " ".join(words)

    def __str__(self) -> str:
        norms = self.mixture.centroid_norms
        header = ["class", "share", "variance", "centroid norm", "memorized at", "interval", "generalizes at"]
        rows = [
            [
                str(name),
                f"{self.mixture.weights[i]:.1%}",
                f"{self.mixture.variances[i]:.3f}",
                f"{norms[i]:.3f}",
                _number(self.memorization_time[i]),
                " to ".join(_number(end) for end in self.memorization_interval[:, i]),
                _number(self.generalization_time[i]),
            ]
            for i, name in sorted(enumerate(self.classes), key=lambda item: self.order.index(item[1]))
        ]
        widths = [max(len(row[k]) for row in [header, *rows]) for k in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                 for row in [header, *rows]]  # fmt: skip
        return "\n".join([*lines, f"Order of memorization (≈: a tie): {self.in_words()}"])


def _number(value: float) -> str:
    return "never" if np.isnan(value) else f"{value:.3g}"


def predict_order(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    preprocess: Callable[[FloatArray], FloatArray] | None = unit_scale,
    pairs: str | Iterable[tuple[Any, Any]] | None = None,
    diffusion_time: float = DIFFUSION_TIME,
    features_per_dim: float = FEATURES_PER_DIM,
    samples_per_dim: float = SAMPLES_PER_DIM,
    dimension: int | None = DIMENSION,
    n_instances: int = 4,
    n_bootstrap: int = 40,
    confidence: float = 0.95,
    threshold: float = THRESHOLD,
    drawn: npt.ArrayLike | None = None,
    random_state: RandomState = None,
    verbose: bool | None = None,
) -> PredictedOrder:
    """Predict which class of a data set is memorized first, and by how much.

    Parameters
    ----------
    X : array-like of shape (n, …)
        The data, as for :meth:`ClassMixture.from_data`.
    y : array-like of shape (n,)
        The labels.
    preprocess : callable, optional
        What is done to the data before they are described. By default their overall standard deviation
        becomes the unit and their mean stays, as in the paper's descriptors; None for data as they are.
    pairs : {None, "all"} or sequence of pairs
        None for one model of all classes; ``"all"``, or a list of pairs, for a model of each pair alone
        with the shares that the two have in the data, as in Fig 6.
    diffusion_time : float
        t of the random-features model.
    features_per_dim : float
        χ_p of the model.
    samples_per_dim : float
        χ_m of the model.
    dimension : int, optional
        N of the model. The defaults are the paper's P = 10000, N = 100 and M = 500, a few seconds for
        each instance of a pair of classes. None computes the limit of large dimension, which has no
        randomness of its own.
    n_instances : int
        Draws of the model, at least two for intervals.
    n_bootstrap : int
        Resamples of the data; with 0 the intervals hold the model's randomness only.
    confidence : float
        Of the intervals.
    threshold : float
        The test error at which a class counts as memorized, in units of the initial one.
    drawn : array-like of shape (C,), optional
        How often training draws each class, in sorted order, where that is not the class's share of the
        data; not with ``pairs``.
    random_state : int, generator or None
        The seed.
    verbose : bool, optional
        Whether to show a progress bar.

    Returns
    -------
    PredictedOrder
        The class times and gaps, with intervals.

    Raises
    ------
    ValueError
        If a class has fewer than eight samples or does not vary, or if a pair names an unknown class.

    References
    ----------
    Nicoletti et al., Section 4, Result 4, Figs 6 and 24, Appendix I.2.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 30)) * np.repeat([0.7, 0.5], 300)[:, None] + 1
    >>> found = predict_order(X, np.repeat(["wide", "narrow"], 300), dimension=16, n_bootstrap=4, random_state=0)
    >>> found.in_words()
    'wide → narrow'
    """
    check_integer("n_bootstrap", n_bootstrap, low=0)
    confidence = float(check_fraction("confidence", confidence))
    check_positive("threshold", threshold)
    seed = draw_seed(random_state)
    _check_counts(y)
    mixture = ClassMixture.from_data(X, y, preprocess=preprocess)
    if mixture.n_classes < 2:
        raise ValueError(f"y must have at least two classes for an order, got only {mixture.classes[0]!r}")
    wanted = _pairs(mixture, pairs)
    if drawn is not None and pairs is not None:
        raise ValueError("drawn is of all classes together: drop drawn or pairs")
    visits = None if drawn is None else check_shares(drawn, mixture.n_classes)
    setup = _Setup(
        diffusion_time, features_per_dim, samples_per_dim, dimension, n_instances, confidence, threshold, visits,
        derive_seed(seed, "model"),
    )  # fmt: skip
    resampled = [
        _resampled(X, y, preprocess, derive_seed(seed, "bootstrap", i))
        for i in track(range(n_bootstrap), "bootstrap", verbose=verbose)
    ]
    joint = setup.estimates(mixture, resampled, wanted if pairs is None else ())
    c = mixture.n_classes
    gap = joint[:, 2 * c :]
    if pairs is not None:
        alone = [
            setup.estimates(mixture.subset(pair), [other.subset(pair) for other in resampled], (pair,))
            for pair in track(wanted, "pairs", verbose=verbose)
        ]
        gap = np.column_stack([found[:, -1] for found in alone])
    times = np.exp(joint[:, : 2 * c]).reshape(3, 2, c)
    return PredictedOrder(
        mixture, times[0, 0], times[1:, 0], times[0, 1], times[1:, 1], wanted, gap[0], gap[1], gap[2]
    )


def _check_counts(y: npt.ArrayLike) -> None:
    names, counts = np.unique(np.asarray(y), return_counts=True)
    if len(counts) and counts.min() < FEWEST:
        few = ", ".join(
            f"{name!r} has {n}" for name, n in zip(names.tolist(), counts, strict=True) if n < FEWEST
        )
        raise ValueError(f"a class needs at least {FEWEST} samples for its time to be predicted: {few}")


@dataclass(frozen=True)
class _Setup:
    """The model of which times are asked, for any mixture of classes."""

    diffusion_time: float
    features_per_dim: float
    samples_per_dim: float
    dimension: int | None
    n_instances: int
    confidence: float
    threshold: float
    visits: FloatArray | None
    seed: int

    def curves(self, mixture: ClassMixture, dimension: int | None) -> LearningCurves:
        visited = mixture if self.visits is None else mixture.with_weights(self.visits)
        model = RandomFeatures(visited, self.diffusion_time, self.features_per_dim, self.samples_per_dim)
        shares = None if self.visits is None else mixture.weights
        if dimension is None:
            return model.limit_curves(LIMIT_TIMES, sample_shares=shares).with_threshold(self.threshold)
        found = model.learning_curves(
            dimension,
            TIMES,
            self.n_instances,
            self.seed,
            matrices="equivalent",
            step=None,
            sample_shares=shares,
            verbose=False,
        )
        return found.with_threshold(self.threshold)

    def estimates(
        self, mixture: ClassMixture, resampled: Sequence[ClassMixture], pairs: Sequence[tuple[Any, Any]]
    ) -> FloatArray:
        """Values, lower and upper ends of the log times and of the gaps of the pairs: (3, 2C + n)."""
        index = np.array([[mixture.classes.index(name) for name in pair] for pair in pairs], dtype=int)
        index = index.reshape(-1, 2)
        full = self.curves(mixture, self.dimension)
        value = _statistics(full.memorization_time, full.generalization_time, index)
        half = np.zeros_like(value)
        if self.dimension is not None:
            quantile = stats.t.ppf(0.5 + self.confidence / 2, max(self.n_instances - 1, 1))
            half = quantile * _jackknifed(full, index)
        if len(resampled) > 1:
            half = np.hypot(half, self._data_half_width(full, mixture, resampled, index))
        return np.array([value, value - half, value + half])

    def _data_half_width(
        self,
        full: LearningCurves,
        mixture: ClassMixture,
        resampled: Sequence[ClassMixture],
        index: npt.NDArray[Any],
    ) -> FloatArray:
        """What the data's own error adds: relative changes of the times on common draws, at a smaller dimension."""
        small = max(_BOOTSTRAP_DIMENSION, mixture.n_classes + 2)
        small = small if self.dimension is None else min(self.dimension, small)
        base = self.curves(mixture, small)
        draws = []
        for other in (self.curves(one, small) for one in resampled):
            memorized = full.memorization_time * other.memorization_time / base.memorization_time
            generalized = full.generalization_time * other.generalization_time / base.generalization_time
            draws.append(_statistics(memorized, generalized, index))
        return np.asarray(np.std(draws, axis=0, ddof=1) * stats.norm.ppf(0.5 + self.confidence / 2))


def _statistics(memorized: FloatArray, generalized: FloatArray, index: npt.NDArray[Any]) -> FloatArray:
    """Log times of both kinds and the gaps of the pairs, in one vector."""
    gaps = memorized[index[:, 0]] - memorized[index[:, 1]]
    return np.concatenate([np.log(memorized), np.log(generalized), gaps])


def _jackknifed(curves: LearningCurves, index: npt.NDArray[Any]) -> FloatArray:
    """Standard errors of :func:`_statistics` over instances; nan for a single one."""

    def statistic(mean: FloatArray) -> FloatArray:
        one = curves.with_test_errors(mean[None])
        return _statistics(one.memorization_time, one.generalization_time, index)

    if len(curves.test_runs) < 2:
        return np.full(2 * len(curves.classes) + len(index), np.nan)
    return jackknife(curves.test_runs, statistic)


def _pairs(
    mixture: ClassMixture, pairs: str | Iterable[tuple[Any, Any]] | None
) -> tuple[tuple[Any, Any], ...]:
    if pairs is None or (isinstance(pairs, str) and pairs == "all"):
        return tuple(combinations(mixture.classes, 2))
    if isinstance(pairs, str):
        raise ValueError(f"pairs must be None, 'all' or a list of pairs of classes, got {pairs!r}")
    chosen = tuple((a, b) for a, b in pairs)
    for pair in chosen:
        if pair[0] == pair[1]:
            raise ValueError(f"a pair must name two classes, got {pair[0]!r} twice")
        mixture.subset(list(pair))  # names an unknown class
    return chosen


def _resampled(
    X: npt.ArrayLike, y: npt.ArrayLike, preprocess: Callable[[FloatArray], FloatArray] | None, seed: int
) -> ClassMixture:
    """A bootstrap sample within each class, so that no class vanishes."""
    rng = as_generator(seed)
    labels = np.asarray(y)
    counts = np.zeros(len(labels))
    for name in np.unique(labels):
        members = np.flatnonzero(labels == name)
        counts[members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)))
    return ClassMixture.from_data(X, labels, preprocess=preprocess, sample_weight=counts)
