"""How good are generated samples? Density, coverage and Fréchet distance on features that the user gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import linalg

from equipoise._core.checks import FloatArray, check_array, check_choice, check_integer
from equipoise._core.random import RandomState
from equipoise.metrics.intervals import BootstrapInterval, bootstrap

_CELLS = 4_000_000  # distances held at once: 32 MB


def _features(real: npt.ArrayLike, fake: npt.ArrayLike, fewest: int) -> tuple[FloatArray, FloatArray]:
    a, b = check_array("real", real), check_array("fake", fake)
    for name, table in (("real", a), ("fake", b)):
        if table.ndim != 2:
            raise ValueError(f"{name} must have the shape (samples, features), got {table.shape}")
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"real and fake must have as many features, got {a.shape[1]} and {b.shape[1]}")
    if len(a) < fewest:
        raise ValueError(f"real must have at least {fewest} samples, got {len(a)}")
    center = a.mean(axis=0)  # distances do not change, and their rounding errors shrink
    return a - center, b - center


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    size = max(1, _CELLS // columns)
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def _rough_squares(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Squared distances by one matrix product, and a bound on their rounding error.

    |a|² + |b|² − 2ab loses digits for near points. The bound is the standard one of a dot product,
    (d + 4)·ε·(|a|² + |b|²) with room to spare, so that a comparison knows which pairs need a second look.
    """
    norms = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)
    return norms - 2 * (a @ b.T), 4 * (a.shape[1] + 4) * np.finfo(np.float64).eps * norms


def _exact_squares(a: FloatArray, b: FloatArray, pairs: npt.NDArray[np.bool_]) -> FloatArray:
    """Σ(a − b)² for the marked pairs, in bounded memory."""
    left, right = np.nonzero(pairs)
    out = np.empty(left.size)
    for part in _blocks(left.size, a.shape[1]):
        out[part] = ((a[left[part]] - b[right[part]]) ** 2).sum(axis=1)
    return out


def _squared_radii(real: FloatArray, k: int) -> FloatArray:
    """Squared distance of each real sample to its k-th nearest other one."""
    radii = np.empty(len(real))
    for rows in _blocks(len(real), len(real)):
        squares, slack = _rough_squares(real[rows], real)
        squares[np.arange(len(squares)), np.arange(rows.start, rows.stop)] = np.inf
        kth = np.partition(squares + slack, k - 1, axis=1)[:, [k - 1]]
        near = squares - slack <= kth
        exact = np.full(squares.shape, np.inf)
        exact[near] = _exact_squares(real[rows], real, near)
        radii[rows] = np.partition(exact, k - 1, axis=1)[:, k - 1]
    return radii


@dataclass(frozen=True)
class Balls:
    """How generated samples fall into the balls around real ones (k-th neighbor's distance, strictly inside).

    Attributes
    ----------
    hits : array of int
        For each fake sample, in how many balls of real samples it lies.
    covered : array of bool
        For each real sample, whether a fake lies in its ball.
    k : int
        The neighbor that sets the radius of the balls.
    """

    hits: npt.NDArray[np.int64]
    covered: npt.NDArray[np.bool_]
    k: int

    @property
    def density(self) -> float:
        """The mean number of balls that contain a fake sample, divided by ``k``."""
        return float(self.hits.mean() / self.k)

    @property
    def coverage(self) -> float:
        """The share of real samples whose ball contains a fake."""
        return float(self.covered.mean())


def balls(real: npt.ArrayLike, fake: npt.ArrayLike, *, k: int = 5) -> Balls:
    """Which fakes lie in which real samples' balls: density and coverage from one pass.

    Exact: pairs that the fast product cannot decide are computed again. Memory is bounded
    for any number of samples.

    Parameters
    ----------
    real : array of shape (samples, features)
        The real samples.
    fake : array of shape (samples, features)
        The generated samples.
    k : int
        The ball of a real sample reaches as far as its k-th nearest real neighbor.

    Returns
    -------
    Balls
        What the balls of the real samples contain.

    Examples
    --------
    >>> found = balls([[0.0], [1.0], [2.0]], [[0.5], [9.0]], k=1)
    >>> found.hits.tolist(), found.covered.tolist()
    ([2, 0], [True, True, False])
    """
    check_integer("k", k, low=1)
    a, b = _features(real, fake, fewest=k + 1)
    radii = _squared_radii(a, k)
    hits, covered = np.zeros(len(b), dtype=np.int64), np.zeros(len(a), dtype=bool)
    for rows in _blocks(len(b), len(a)):
        squares, slack = _rough_squares(b[rows], a)
        inside = squares < radii
        unsure = np.abs(squares - radii) <= slack
        inside[unsure] = _exact_squares(b[rows], a, unsure) < radii[np.nonzero(unsure)[1]]
        hits[rows] = inside.sum(axis=1)
        covered |= inside.any(axis=0)
    return Balls(hits, covered, k)


def density(real: npt.ArrayLike, fake: npt.ArrayLike, *, k: int = 5) -> float:
    """Density: the mean number of real balls that a fake lies in, over k. About 1 for equal distributions.

    Parameters
    ----------
    real : array of shape (samples, features)
        The real samples.
    fake : array of shape (samples, features)
        The generated samples.
    k : int
        The ball of a real sample reaches as far as its k-th nearest real neighbor.

    Returns
    -------
    float
        The value of the metric.

    References
    ----------
    Naeem et al. (2020), Reliable Fidelity and Diversity Metrics for Generative Models, Eq 4.

    Examples
    --------
    >>> density([[0.0], [1.0], [2.0]], [[0.5], [1.5]], k=1)
    2.0
    """
    return balls(real, fake, k=k).density


def coverage(real: npt.ArrayLike, fake: npt.ArrayLike, *, k: int = 5) -> float:
    """Coverage: the share of real samples whose ball contains a fake.

    Parameters
    ----------
    real : array of shape (samples, features)
        The real samples.
    fake : array of shape (samples, features)
        The generated samples.
    k : int
        The ball of a real sample reaches as far as its k-th nearest real neighbor.

    Returns
    -------
    float
        The value of the metric.

    References
    ----------
    Naeem et al. (2020), Eq 5. For equal distributions and n fakes of n reals its mean is about 1 − 2^(−k).

    Examples
    --------
    >>> coverage([[0.0], [1.0], [2.0]], [[0.5]], k=1)
    0.666...
    """
    return balls(real, fake, k=k).coverage


def _moments(table: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean, and a triangular root R of the covariance, RᵀR."""
    total = weights.sum()
    mean = weights @ table / total
    scaled = (table - mean) * np.sqrt(weights / (total - 1))[:, None]
    return mean, linalg.qr(scaled, mode="r", check_finite=False)[0][: table.shape[1]]


def _frechet(a: FloatArray, b: FloatArray, weights_a: FloatArray, weights_b: FloatArray) -> float:
    (mean_a, root_a), (mean_b, root_b) = _moments(a, weights_a), _moments(b, weights_b)
    shift = float(((mean_a - mean_b) ** 2).sum())
    spread = float((root_a**2).sum() + (root_b**2).sum())
    shared = float(linalg.svdvals(root_a @ root_b.T, check_finite=False).sum())
    return max(0.0, shift + spread - 2 * shared)


def frechet_distance(real: npt.ArrayLike, fake: npt.ArrayLike) -> float:
    """Fréchet distance (squared) between Gaussians with the samples' means and covariances.

    ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2(Σ₁Σ₂)^½). With Σ = RᵀR from a QR of the centered samples the last trace is the
    sum of the singular values of R₁R₂ᵀ: no matrix root is taken and fewer samples than features do no harm.

    Parameters
    ----------
    real : array of shape (samples, features)
        The real samples.
    fake : array of shape (samples, features)
        The generated samples.

    Returns
    -------
    float
        The value of the metric.

    References
    ----------
    Dowson & Landau (1982); Heusel et al. (2017) on the features of an Inception network.

    Examples
    --------
    >>> frechet_distance([[0.0], [2.0]], [[3.0], [5.0]])
    9.0
    """
    a, b = _features(real, fake, fewest=2)
    if len(b) < 2:
        raise ValueError(f"fake must have at least 2 samples, got {len(b)}")
    return _frechet(a, b, np.ones(len(a)), np.ones(len(b)))


def generative_interval(
    name: str,
    real: npt.ArrayLike,
    fake: npt.ArrayLike,
    *,
    k: int = 5,
    confidence: float = 0.95,
    method: str = "percentile",
    n_resamples: int = 1000,
    random_state: RandomState = None,
) -> BootstrapInterval:
    """``"density"``, ``"coverage"`` or ``"frechet_distance"`` with a bootstrap interval.

    Density is resampled over the fakes and coverage over the reals, the balls staying as they are (a
    repeated real sample would have a ball of radius zero). The Fréchet distance is resampled over both;
    resamples look farther apart than the samples are, so prefer ``method="basic"`` there, which turns that
    bias around.

    Parameters
    ----------
    name : {"density", "coverage", "frechet_distance"}
        The metric.
    real : array of shape (samples, features)
        The real samples.
    fake : array of shape (samples, features)
        The generated samples.
    k : int
        The ball of a real sample reaches as far as its k-th nearest real neighbor.
    confidence : float
        The nominal coverage of the interval.
    method : {"percentile", "bca", "basic"}
        The kind of bootstrap interval.
    n_resamples : int
        The number of resamples.
    random_state : int, generator or None
        The source of the resamples.

    Returns
    -------
    BootstrapInterval
        The value with its bounds and standard error.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(60, 2))
    >>> 0.5 < generative_interval("coverage", x[:30], x[30:], random_state=0).low < 1
    True
    """
    check_choice("name", name, ("density", "coverage", "frechet_distance"))
    options = {
        "confidence": confidence,
        "method": method,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    if name == "frechet_distance":
        estimate = frechet_distance(real, fake)
        a, b = _features(real, fake, fewest=2)
        cut = len(a)
        return bootstrap(
            lambda rows: np.array([_frechet(a, b, row[:cut], row[cut:]) for row in rows]),
            [np.arange(cut), np.arange(cut, cut + len(b))],
            estimate=estimate,
            **options,  # type: ignore[arg-type]
        )
    found = balls(real, fake, k=k)
    each = found.hits / k if name == "density" else found.covered.astype(np.float64)
    return bootstrap(lambda rows: rows @ each / each.size, [np.arange(each.size)], **options)  # type: ignore[arg-type]
