"""The edges of the spectrum, exactly (Nicoletti et al., Eqs 115–117), and their large-ratio forms (118–128).

Outside the bulks the resolvents are real. On the real curve of the second of Eqs 114, written for the slope
k = g_Ω/g as a polynomial in g, an edge is a stationary point of the position λ. All stationary points are
found (they are at most 2C + 4), polished by Newton, and the sign of the density between neighbors, taken from
the physical branch of Eq 114, says which of them bound a bulk. No bulk is missed for being narrow.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import optimize

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.solution import ConvergenceError, ConvergenceWarning, Status
from equipoise.theory.diffusion.spectrum import CenteredModel, solve_resolvents

_PER_DECADE = 160  # slopes k that bracket the stationary points, which are then polished
_SAME = 1e-9
_NODES = 40  # in each panel of a bulk
_HALVINGS = 30
_MISSING = 1e-6


@dataclass(frozen=True)
class Bulk:
    """A connected part of the spectrum: its ends and the share of all eigenvalues in it.

    Attributes
    ----------
    lower : float
        The lower end.
    upper : float
        The upper end.
    mass : float
        The share of all eigenvalues in it.
    """

    lower: float
    upper: float
    mass: float


@dataclass(frozen=True)
class Edges:
    """Where the spectrum begins and ends.

    Attributes
    ----------
    bulks : tuple of Bulk
        All bulks, from left to right.
    delta_peak : float or None
        ς, where a share of the eigenvalues sits exactly; None if there is none.
    delta_mass : float
        That share.
    separated : bool
        Whether the rightmost bulk holds N eigenvalues and another bulk lies to its left, so that
        generalization and memorization are different phases.
    missing_mass : float
        What the bulks and the delta peak lack of one; above 1e-6 a warning says so.
    """

    bulks: tuple[Bulk, ...]
    delta_peak: float | None
    delta_mass: float
    separated: bool
    missing_mass: float = 0.0

    @property
    def generalization(self) -> tuple[float, float]:
        """Lower and upper edge of the rightmost bulk; the lower one is λ_gen."""
        self._need_separation()
        return self.bulks[-1].lower, self.bulks[-1].upper

    @property
    def memorization_upper(self) -> float:
        """λ_mem⁽¹⁾, the upper edge of the bulk left of the generalization bulk."""
        self._need_separation()
        return self.bulks[-2].upper

    @property
    def memorization_lower(self) -> float:
        """λ_mem⁽²⁾, the lower edge of the leftmost bulk (not the delta peak, which lies below it)."""
        self._need_separation()
        return self.bulks[0].lower

    @property
    def all(self) -> FloatArray:
        """All bulk edges in ascending order."""
        return np.array([edge for bulk in self.bulks for edge in (bulk.lower, bulk.upper)])

    def _need_separation(self) -> None:
        if not self.separated:
            spans = ", ".join(f"[{b.lower:.4g}, {b.upper:.4g}]" for b in self.bulks)
            raise ValueError(
                f"the generalization bulk is not separated from the others (bulks: {spans}); "
                "larger features_per_dim and samples_per_dim separate them"
            )


def exact_edges(model: CenteredModel) -> Edges:
    """All bulks from Eqs 116–117 (the roots decide where, the physical branch decides which)."""
    x = _candidates(model)
    probes = np.concatenate([[x[0] / 2], np.sqrt(x[:-1] * x[1:]), [2 * x[-1]]])
    g, _, status, _ = solve_resolvents(model, probes)
    failed = status != Status.CONVERGED
    if failed.any():
        where = probes[failed] + model.floor
        raise ConvergenceError(f"the spectrum did not converge at {where}: the edges are not known")
    inside = g.imag > 1e-7 * np.abs(g)
    if inside[0]:  # at χ_p = χ_m + 1 the spectrum reaches down to ς: a hard edge, not a stationary point
        x = np.concatenate([[x[0] * 1e-15], x])
        inside = np.concatenate([[False], inside])
    starts = np.flatnonzero(inside[1:-1] & ~inside[:-2])
    ends = np.flatnonzero(inside[1:-1] & ~inside[2:])
    spans = [(float(x[i]), float(x[j + 1])) for i, j in zip(starts, ends, strict=True)]
    masses = _masses(model, spans)
    bulks = tuple(
        Bulk(model.floor + low, model.floor + high, float(mass))
        for (low, high), mass in zip(spans, masses, strict=True)
    )
    own = 1 / model.features_per_dim
    separated = len(bulks) > 1 and abs(bulks[-1].mass - own) < 1e-3 * own
    peak = model.peak_mass
    missing = float(1 - peak - masses.sum())
    _tell_missing(missing)
    return Edges(bulks, model.floor if peak > 0 else None, peak, separated, missing)


def _tell_missing(missing: float) -> None:
    """The masses of all bulks and of the delta peak must make one, or a bulk is missing."""
    if abs(missing) > 1e-3:
        raise ConvergenceError(f"the bulks found lack a mass of {missing:.3g}: the edges are not known")
    if abs(missing) > _MISSING:
        warnings.warn(
            f"the masses of the bulks miss one by {missing:.2g}: a bulk may be missing or not resolved",
            ConvergenceWarning,
            stacklevel=4,
        )


def _masses(model: CenteredModel, spans: list[tuple[float, float]]) -> FloatArray:
    """The mass of each bulk, by panels that are halved until both halves agree with the whole.

    Where two bulks have just met, the density dips nearly to zero between them, which no fixed rule resolves.
    """
    masses = np.zeros(len(spans))
    bulk, low, high = np.arange(len(spans)), np.zeros(len(spans)), np.full(len(spans), np.pi)
    whole = _panel_masses(model, spans, bulk, low, high)
    for _ in range(_HALVINGS):
        middle, n = (low + high) / 2, len(whole)
        bulk, low, high = np.tile(bulk, 2), np.append(low, middle), np.append(middle, high)
        parts = _panel_masses(model, spans, bulk, low, high)
        both = parts[:n] + parts[n:]
        settled = np.abs(both - whole) < 0.02 * _MISSING
        np.add.at(masses, bulk[:n][settled], both[settled])
        left = np.tile(~settled, 2)
        bulk, low, high, whole = bulk[left], low[left], high[left], parts[left]
        if whole.size == 0:
            break
    np.add.at(masses, bulk, whole)
    return masses


def _panel_masses(
    model: CenteredModel, spans: list[tuple[float, float]], bulk: IntArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    rules = [
        bulk_nodes(spans[i][0], spans[i][1], _NODES, a, b) for i, a, b in zip(bulk, low, high, strict=True)
    ]
    g, *_ = solve_resolvents(model, np.concatenate([x for x, _ in rules]))
    density = g.imag.reshape(-1, _NODES) / np.pi
    return np.array([weights @ own for (_, weights), own in zip(rules, density, strict=True)])


def bulk_nodes(
    lower: float, upper: float, n_nodes: int, start: float = 0.0, end: float = np.pi
) -> tuple[FloatArray, FloatArray]:
    """Positions x and weights for integrals over a bulk, dense at its square-root edges.

    The angle runs from 0 at the lower edge to π at the upper one; ``start`` and ``end`` take a part of it.
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    reach = 0.5 * (end - start)
    angle = start + reach * (nodes + 1)
    middle, half = 0.5 * np.log(lower * upper), 0.5 * np.log(upper / lower)
    x = np.exp(middle - half * np.cos(angle))
    return x, weights * reach * half * np.sin(angle) * x


def _stationarity(model: CenteredModel, g: Any, w: Any) -> tuple[Any, Any]:
    """The second of Eqs 114, and dλ along its curve (the first two of Eqs 116 with ω eliminated)."""
    p, ratio = model.features_per_dim, model.ratio
    _, slope_sum, hh, hs, ss = model.sums(g, w)
    curve = 1 / (p * w) - model.diffusion_slope - 1 / (p * g) - slope_sum
    x_g = (1 - 1 / p) / g**2 + 2 * w / (p * g**3) - ratio * hh
    x_w = -1 / (p * g**2) - ratio * hs
    f_g = 1 / (p * g**2) + ratio * hs
    f_w = -1 / (p * w**2) + ratio * ss
    return curve, (x_g * f_w - x_w * f_g) * (g * w) ** 2


def _curve_polynomials(model: CenteredModel, k: FloatArray) -> FloatArray:
    """For each slope k the polynomial of the curve in u = χ_pm·g, highest power first: shape (n, C + 2)."""
    factors = [np.stack([s * k + h, np.ones_like(k)]) for s, h in zip(model.slope2, model.noise, strict=True)]

    def product(parts: list[FloatArray]) -> FloatArray:
        result = np.ones((1, k.size))
        for part in parts:
            grown = np.zeros((result.shape[0] + 1, k.size))
            grown[:-1] += result * part[0]
            grown[1:] += result * part[1]
            result = grown
        return result

    everything = product(factors)
    c, p, ratio = model.diffusion_slope, model.features_per_dim, model.ratio
    poly = np.zeros((len(factors) + 2, k.size))
    poly[:-1] += c * everything
    poly[1:] -= ratio * (1 / k - 1) / p * everything
    for i, (b, s) in enumerate(zip(model.weights, model.slope2, strict=True)):
        poly[1:-1] += b * s * product(factors[:i] + factors[i + 1 :])
    return poly.T


def _real_roots(polynomials: FloatArray) -> FloatArray:
    """Sorted real roots of each row; the places of complex ones hold nan."""
    n, degree = polynomials.shape[0], polynomials.shape[1] - 1
    companion = np.zeros((n, degree, degree))
    companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1
    companion[:, 0, :] = -polynomials[:, 1:] / polynomials[:, :1]
    roots = np.linalg.eigvals(companion)
    real = np.where(np.abs(roots.imag) < 1e-10 * np.abs(roots), roots.real, np.nan)
    return np.sort(real, axis=1)


def _slopes(model: CenteredModel) -> FloatArray:
    """Ratios k = g_Ω/g > 0 that reach from far below the bulks of the sample noise to far above all others."""
    scale = model.diffusion_slope + float(model.weights @ model.slope2)
    quiet = float(model.noise[model.noise > 0].min(initial=1.0)) / scale
    low = min(-9.0, np.log10(quiet) - 4)
    return np.logspace(low, 9.0, int(_PER_DECADE * (9.0 - low)))


def _candidates(model: CenteredModel) -> FloatArray:
    """Positions x > 0 of all stationary points of λ on the real curve, ascending."""
    slopes = _slopes(model)
    found: list[float] = []
    for k in (-slopes[::-1], slopes):
        g = _real_roots(_curve_polynomials(model, k)) / model.ratio
        with np.errstate(all="ignore"):
            _, value = _stationarity(model, g, k[:, None] * g)
        for i, j in _brackets(g, value):
            x = _polish(model, float(g[i, j]), float(k[i] * g[i, j]))
            if x is not None and x > 0:
                found.append(x)
    distinct: list[float] = []
    for x in sorted(found):
        if not distinct or x > distinct[-1] * (1 + _SAME):
            distinct.append(x)
    return np.array(distinct)


def _brackets(g: FloatArray, value: FloatArray) -> list[tuple[int, int]]:
    """Where the stationarity changes sign along a branch, or between two branches next to where they meet."""
    sign, side = np.sign(value), np.sign(g)
    along = (sign[:-1] * sign[1:] < 0) & (side[:-1] == side[1:])
    places = [(int(i), int(j)) for i, j in np.argwhere(along)]
    count = np.isfinite(g).sum(axis=1)
    for i in np.flatnonzero(np.diff(count)):
        fuller = int(i) + int(count[i + 1] > count[i])
        meet = (sign[fuller, :-1] * sign[fuller, 1:] < 0) & (side[fuller, :-1] == side[fuller, 1:])
        places += [(fuller, int(j)) for j in np.flatnonzero(meet)]
    return places


def _polish(model: CenteredModel, g: float, w: float) -> float | None:
    """Solve Eqs 116 from a bracketed point, in relative units; None if the root runs away."""
    size = np.abs(_stationarity(model, 1.01 * g, 0.99 * w)) + 1e-300

    def residual(v: FloatArray) -> FloatArray:
        return np.array(_stationarity(model, g * v[0], w * v[1])) / size

    with np.errstate(all="ignore"):
        solution = optimize.root(residual, np.ones(2), tol=1e-13)
    step = np.abs(solution.x - 1).max()
    if not np.all(np.isfinite(solution.x)) or step > 0.5 or np.abs(solution.fun).max() > 1e-6:
        return None
    return float(model.position(g * solution.x[0], w * solution.x[1]))


@dataclass(frozen=True)
class AsymptoticEdges:
    """Edges for χ_p > χ_m ≫ 1 and t ≪ 1: λ_gen± (Eq 121), λ_mem⁽¹⁾ (Eq 118) and the leftmost bulk.

    Attributes
    ----------
    generalization : tuple of float
        λ_gen− and λ_gen+.
    memorization_upper : float
        λ_mem⁽¹⁾.
    leftmost : tuple of float
        The ends of the leftmost bulk.
    """

    generalization: tuple[float, float]
    memorization_upper: float
    leftmost: tuple[float, float]


def asymptotic_edges(model: CenteredModel) -> AsymptoticEdges:
    """The large-ratio forms beside the exact edges.

    The leftmost bulk is not Eq 126 as printed (which puts it on top of the delta peak). With
    χ_pm(γ²g_Ω + h²g) ≫ 1 the equations become homogeneous in (g, g_Ω) and leave one rational function of
    k = g_Ω/g,  x(k) = c₀ N(k)/D(k),  N = 1 − χ_p − k + χ_m Σ b h²/(γ²k + h²),
    D = 1/k − 1 − χ_m Σ b γ²/(γ²k + h²),  whose extrema are the edges. It is linear in t (Eq 127).
    """
    b, s, h = model.weights, model.slope2, model.noise
    p = model.features_per_dim
    slope = model.diffusion_slope + float(b @ s)
    base = model.floor + float(b @ h)
    root = math.sqrt(p)
    general = (base + slope * (1 - root) ** 2, base + slope * (1 + root) ** 2)
    return AsymptoticEdges(general, _asymptotic_memorization(model), _asymptotic_leftmost(model))


def _asymptotic_memorization(model: CenteredModel) -> float:
    """The largest λ over the real solutions of 1/g² = χ_pm Σ b h⁴/(1 + χ_pm h² g)² (Eq 118)."""
    b, s, h, ratio = model.weights, model.slope2, model.noise, model.ratio
    poly = np.poly1d([0.0])
    squares = [np.poly1d([float(ratio * hc), 1.0]) ** 2 for hc in h]
    everything = math.prod([np.poly1d([1.0]), *squares])
    for i, (bc, hc) in enumerate(zip(b, h, strict=True)):
        others = math.prod([np.poly1d([1.0]), *squares[:i], *squares[i + 1 :]])
        poly = poly + np.poly1d([float(ratio * bc * hc**2), 0.0, 0.0]) * others
    roots = (everything - poly).roots
    g = roots[np.abs(roots.imag) < 1e-8 * np.abs(roots)].real
    inverse = 1 / (1 + ratio * np.outer(g, h))
    w = 1 / (model.diffusion_slope + inverse @ (b * s)) / model.features_per_dim
    edges = model.floor + inverse @ (b * h) - 1 / g - w / g**2
    return float(edges.max())


def _asymptotic_leftmost(model: CenteredModel) -> tuple[float, float]:
    b, s, h = model.weights, model.slope2, model.noise
    p, m = model.features_per_dim, model.samples_per_dim

    def position(k: npt.ArrayLike) -> FloatArray:
        k = np.asarray(k, dtype=np.float64)
        inverse = 1 / (np.multiply.outer(k, s) + h)
        n = 1 - p - k + m * inverse @ (b * h)
        d = 1 / k - 1 - m * inverse @ (b * s)
        return model.diffusion_slope * n / d

    slopes = _slopes(model)
    k = np.concatenate([-slopes[::-1], slopes])
    with np.errstate(all="ignore"):
        x = position(k)
    slopes = np.diff(x)
    turn = np.flatnonzero((slopes[:-1] * slopes[1:] < 0) & (x[1:-1] > 0) & (k[:-2] * k[2:] > 0)) + 1
    values = sorted(float(x[i]) for i in turn if np.isfinite(x[i]))
    if len(values) < 2:
        return float("nan"), float("nan")
    return model.floor + values[0], model.floor + values[1]
