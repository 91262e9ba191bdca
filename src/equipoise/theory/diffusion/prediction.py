"""From a labeled data set to the order in which a diffusion model will memorize its classes (Result 4, Fig 6).

The data enter only through class shares, mean variances and the centroid gram. All instances share their random
draws, so the bootstrap's spread is that of the data's statistics and not of the model's randomness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_fraction, check_integer, check_positive
from equipoise._core.progress import track
from equipoise._core.random import RandomState, as_generator, derive_seed, draw_seed
from equipoise.theory.diffusion.curves import check_shares
from equipoise.theory.diffusion.mixture import GaussianMixture
from equipoise.theory.diffusion.model import RandomFeatures

TIMES = np.geomspace(1e-3, 1e5, 240)


@dataclass(frozen=True)
class PredictedOrder:
    """Predicted class times with bootstrap intervals.

    Attributes
    ----------
    classes : names
    memorization_time, generalization_time : training time τ of each class; nan if never reached
    memorization_interval, generalization_interval : (2, C), bootstrap intervals
    order : classes from the first memorized to the last
    gap, gap_lower, gap_upper : τ_m⁽ⁱ⁾ − τ_m⁽ʲ⁾ for pairs (i, j), with intervals
    pairs : the pairs of classes that the gaps belong to
    """

    classes: tuple[Any, ...]
    memorization_time: FloatArray
    memorization_interval: FloatArray
    generalization_time: FloatArray
    generalization_interval: FloatArray
    pairs: tuple[tuple[Any, Any], ...]
    gap: FloatArray
    gap_lower: FloatArray
    gap_upper: FloatArray

    @property
    def order(self) -> tuple[Any, ...]:
        return tuple(self.classes[i] for i in np.argsort(self.memorization_time))  # nan sorts last


def predict_order(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    preprocess: Callable[[FloatArray], FloatArray] | None = None,
    pairs: str | Iterable[tuple[Any, Any]] | None = None,
    diffusion_time: float = 0.01,
    features_per_dim: float = 40.0,
    samples_per_dim: float = 10.0,
    dimension: int = 16,
    n_instances: int = 2,
    n_bootstrap: int = 40,
    confidence: float = 0.95,
    threshold: float = 1.0,
    drawn: npt.ArrayLike | None = None,
    random_state: RandomState = None,
    verbose: bool | None = None,
) -> PredictedOrder:
    """Predict which class of a data set is memorized first, and by how much.

    Parameters
    ----------
    X, y, preprocess : as for :meth:`GaussianMixture.from_data`
    pairs : None for one model of all classes; "all", or a list of pairs, for a model of each pair alone with the
        shares that the two have in the data, as in Fig 6
    diffusion_time, features_per_dim, samples_per_dim, dimension, n_instances : the random-features model and the
        size of its instances
    n_bootstrap : resamples of the data; 0 for no intervals
    confidence : of the intervals
    threshold : the test error at which a class counts as memorized
    drawn : how often training draws each class, in sorted order, where that is not the class's share of the data;
        not with ``pairs``

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 30)) * np.repeat([0.7, 0.5], 300)[:, None] + 1
    >>> found = predict_order(X, np.repeat(["wide", "narrow"], 300), n_bootstrap=4, random_state=0)
    >>> found.order
    ('wide', 'narrow')
    """
    check_integer("n_bootstrap", n_bootstrap, low=0)
    confidence = float(check_fraction("confidence", confidence))
    check_positive("threshold", threshold)
    seed = draw_seed(random_state)
    mixture = GaussianMixture.from_data(X, y, preprocess=preprocess)
    wanted = _pairs(mixture, pairs)
    if drawn is not None and pairs is not None:
        raise ValueError("drawn is of all classes together: drop drawn or pairs")
    visits = None if drawn is None else check_shares(drawn, mixture.n_classes)

    def times(described: GaussianMixture) -> FloatArray:
        """(2, C) class times and below them, padded with nan, the gaps of the pairs."""
        visited = described if visits is None else described.with_weights(visits)
        model = RandomFeatures(visited, diffusion_time, features_per_dim, samples_per_dim)
        curves = model.learning_curves(
            dimension,
            TIMES,
            n_instances,
            derive_seed(seed, "model"),
            matrices="equivalent",
            step=None,
            sample_shares=None if visits is None else described.weights,
            verbose=False,
        )
        return np.array([curves.with_threshold(threshold).memorization_time, curves.generalization_time])

    def everything(described: GaussianMixture) -> tuple[FloatArray, FloatArray]:
        both = times(described)
        index = {name: i for i, name in enumerate(described.classes)}
        if pairs is None:
            return both, np.array([both[0, index[a]] - both[0, index[b]] for a, b in wanted])
        alone = [times(described.subset([a, b]))[0] for a, b in wanted]
        return both, np.array([pair[0] - pair[1] for pair in alone])

    value, gap = everything(mixture)
    data = np.asarray(X, dtype=np.float64).reshape(len(np.asarray(y)), -1)
    labels = np.asarray(y)
    draws = [
        everything(_resampled(data, labels, preprocess, derive_seed(seed, "bootstrap", i)))
        for i in track(range(n_bootstrap), "bootstrap", verbose=verbose)
    ]
    spread = _interval([d[0] for d in draws], confidence, value)
    gaps = _interval([d[1] for d in draws], confidence, gap)
    return PredictedOrder(
        mixture.classes, value[0], spread[:, 0], value[1], spread[:, 1], wanted, gap, gaps[0], gaps[1]
    )


def _pairs(
    mixture: GaussianMixture, pairs: str | Iterable[tuple[Any, Any]] | None
) -> tuple[tuple[Any, Any], ...]:
    if pairs is None or (isinstance(pairs, str) and pairs == "all"):
        return tuple(combinations(mixture.classes, 2))
    if isinstance(pairs, str):
        raise ValueError(f"pairs must be None, 'all' or a list of pairs of classes, got {pairs!r}")
    chosen = tuple((a, b) for a, b in pairs)
    for pair in chosen:
        mixture.subset(list(pair))  # names an unknown class
    return chosen


def _resampled(
    data: FloatArray,
    labels: npt.NDArray[Any],
    preprocess: Callable[[FloatArray], FloatArray] | None,
    seed: int,
) -> GaussianMixture:
    """A bootstrap sample within each class, so that no class vanishes."""
    rng = as_generator(seed)
    counts = np.zeros(len(data))
    for name in np.unique(labels):
        members = np.flatnonzero(labels == name)
        counts[members] = rng.multinomial(len(members), np.full(len(members), 1 / len(members)))
    return GaussianMixture.from_data(data, labels, preprocess=preprocess, sample_weight=counts)


def _interval(draws: list[FloatArray], confidence: float, value: FloatArray) -> FloatArray:
    """Percentile intervals, (2, …); nan without draws. A time that is never reached counts as infinitely late."""
    if not draws:
        return np.full((2, *value.shape), np.nan)
    tail = (1 - confidence) / 2
    late = np.where(np.isnan(draws), np.inf, draws)
    ends = np.quantile(late, [tail, 1 - tail], axis=0, method="nearest")
    return np.where(np.isinf(ends), np.nan, ends)
