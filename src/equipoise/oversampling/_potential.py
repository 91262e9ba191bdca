"""The mutual potential of two groups of points, to second order about any places."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.ndimage import gaussian_filter, spline_filter

from equipoise._core.checks import FloatArray, IntArray

REACH = 3.5  # in units of gamma: a point farther away adds less than 5e-6 to the potential of 1 of an origin
_NODES_PER_GAMMA = 5  # of a tabulated potential, whose cubic splines then err by 1e-4 of it
_NODES_PER_POINT = 300  # where a table pays: one or two columns, and three of ten thousand rows
_TOGETHER = 128  # places that share the points about them


class Potential(Protocol):
    """Σ cᵢ·exp(−|x − pᵢ|²/γ²)."""

    def around(self, places: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The value (n,), the gradient (n, d) and the Hessian (n, d, d) at some places."""


def potential_of(points: FloatArray, charge: FloatArray, gamma: float) -> Potential:
    """The potential of charged points in a few columns, tabulated where that pays."""
    return TabulatedPotential.of(points, charge, gamma) or PointPotential(points, charge, gamma)


@dataclass(frozen=True)
class PointPotential:
    """A sum over the points within reach of each place.

    With u = (p − x)/γ and e = c·exp(−|u|²), the value is Σ e, the gradient 2·Σ e·u/γ and the Hessian
    (4·Σ e·uuᵀ − 2·Σ e·I)/γ². Places that lie together share their points, so that all sums are two matrix
    products; single precision errs by less than what lies out of reach.
    """

    points: FloatArray
    charge: FloatArray
    gamma: float

    def around(self, places: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The value, the gradient and the Hessian at some places."""
        n, d = places.shape
        value, slope, bend = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
        x, points = places / self.gamma, _single(self.points.T / self.gamma)  # rows of points are long
        charge = _single(self.charge)
        for some, near in _together(_single(x), np.arange(n), points, np.arange(len(charge))):
            value[some], slope[some], bend[some] = _sums(x[some], points.take(near, axis=1), charge[near])
        return value, slope / self.gamma, bend / self.gamma**2


def _together(x: Any, some: IntArray, points: Any, near: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Places that lie together, and the points within reach of their box: half by half, along its longest side."""
    low, high = x[some].min(axis=0), x[some].max(axis=0)
    outside = points.take(near, axis=1)
    outside -= outside.clip(low[:, None], high[:, None])
    near = near[np.square(outside, out=outside).sum(axis=0) <= REACH**2]
    if len(some) <= _TOGETHER:
        yield some, near
        return
    middle = len(some) // 2
    order = some[np.argpartition(x[some, (high - low).argmax()], middle)]
    yield from _together(x, order[:middle], points, near)
    yield from _together(x, order[middle:], points, near)


def _sums(x: FloatArray, p: Any, charge: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, gradient and Hessian at the places x, in units of γ and single precision."""
    d, middle = x.shape[1], _single(x.mean(axis=0))
    first, second = np.triu_indices(d)
    x, p = x - middle, p - middle[:, None]
    one, squares = np.ones_like(charge), p[first] * p[second]
    left = np.column_stack([2 * x, -(x**2).sum(axis=1), -np.ones(len(x))])
    bells = _single(left) @ np.vstack([p, one, (p**2).sum(axis=0)])
    np.exp(bells, out=bells)
    sums = (bells @ (np.vstack([one, p, squares]) * charge).T).astype(np.float64)
    value, about = sums[:, 0], sums[:, 1 : d + 1]
    slope = about - value[:, None] * x
    bend = np.empty((len(x), d, d))
    bend[:, first, second] = bend[:, second, first] = sums[:, d + 1 :]
    bend -= about[:, :, None] * x[:, None] + x[:, :, None] * slope[:, None]
    return value, 2 * slope, 4 * bend - 2 * value[:, None, None] * np.eye(d)


def _single(values: FloatArray) -> npt.NDArray[np.float32]:
    return values.astype(np.float32)


@dataclass(frozen=True)
class TabulatedPotential:
    """Values on a grid, as coefficients of cubic splines; zero off the grid."""

    low: FloatArray
    spacing: float
    coefficients: FloatArray

    @classmethod
    def of(cls, points: FloatArray, charge: FloatArray, gamma: float) -> TabulatedPotential | None:
        """The table, or None where it would have too many nodes to pay.

        A Gaussian is a narrow one, which is put down for every point, smoothed by a wide one, once for all.
        """
        spacing, narrow = gamma / _NODES_PER_GAMMA, gamma / 3
        margin = int(REACH * _NODES_PER_GAMMA) + 1
        shape = np.ceil(np.ptp(points, axis=0) / spacing).astype(int) + 2 * margin + 1
        if math.prod(shape.tolist()) > _NODES_PER_POINT * len(points):  # a float overflows with many columns
            return None
        place = (points - points.min(axis=0)) / spacing + margin
        about = np.rint(place).astype(int)[:, :, None] + np.arange(-margin // 2, margin // 2 + 1)
        bells = np.exp(-(((place[:, :, None] - about) * spacing / narrow) ** 2))
        values = np.zeros(shape)
        for first, bell, own in zip(about[:, :, 0], bells, charge, strict=True):
            window = tuple(slice(at, at + bell.shape[1]) for at in first)
            values[window] += own * reduce(np.multiply.outer, bell)
        sigma = np.sqrt((gamma**2 - narrow**2) / 2) / spacing
        smooth = gaussian_filter(values, sigma, mode="constant", radius=margin)
        smooth *= (gamma / narrow) ** points.shape[1]  # a narrow bell of height 1 was spread out to less
        return cls(points.min(axis=0) - margin * spacing, spacing, spline_filter(smooth, order=3))

    def around(self, places: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The value, the gradient and the Hessian at some places: those of the spline."""
        n, d = places.shape
        shape = np.array(self.coefficients.shape)
        nodes = (places - self.low) / self.spacing
        first = np.floor(nodes).astype(np.int64) - 1
        inside = ((first >= 0) & (first + 4 <= shape)).all(axis=1)
        first = np.clip(first, 0, shape - 4)
        offsets = np.ravel_multi_index(tuple(np.indices((4,) * d)), self.coefficients.shape)
        start = np.ravel_multi_index(tuple(first.T), self.coefficients.shape)
        window = self.coefficients.ravel()[start.reshape(n, *(1,) * d) + offsets]
        weights = _spline_weights(nodes - np.floor(nodes))
        sums: dict[tuple[int, ...], Any] = {(): window * inside.reshape(n, *(1,) * d)}
        for axis in reversed(range(d)):  # keys are the axes that were differentiated along, in order
            sums = {
                (axis,) * order + done: np.einsum("n...i,ni->n...", part, weights[order][:, axis])
                for done, part in sums.items()
                for order in range(3 - len(done))
            }
        slope, bend = np.empty((n, d)), np.empty((n, d, d))
        for j in range(d):
            slope[:, j] = sums[j,] / self.spacing
            for k in range(j, d):
                bend[:, j, k] = bend[:, k, j] = sums[j, k] / self.spacing**2
        return sums[()], slope, bend


def _spline_weights(t: FloatArray) -> list[FloatArray]:
    """Of the four cubic B-splines about a place t past the second one's node: values, slopes, curvatures."""
    s = 1 - t
    return [
        np.stack([s**3, 4 - 3 * t**2 * (1 + s), 4 - 3 * s**2 * (1 + t), t**3], axis=-1) / 6,
        np.stack([-(s**2), t * (3 * t - 4), s * (1 + 3 * t), t**2], axis=-1) / 2,
        np.stack([s, 3 * t - 2, 1 - 3 * t, t], axis=-1),
    ]
