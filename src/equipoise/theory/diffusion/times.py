"""When a class generalizes and when it is memorized, read off its test error (Nicoletti et al., Eq 15)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from equipoise._core.checks import FloatArray


def minimum_times(times: FloatArray, errors: FloatArray) -> FloatArray:
    """Where each curve is lowest: the grid's minimum, refined by a parabola in log τ.

    >>> tau = np.geomspace(0.1, 10, 41)
    >>> bool(abs(minimum_times(tau, np.log(tau / 1.3)[None] ** 2) - 1.3) < 1e-9)
    True
    """
    x = np.log(times)
    found = []
    for curve in errors:
        i = int(np.argmin(curve))
        if 0 < i < len(x) - 1:
            a, b, _ = np.polyfit(x[i - 1 : i + 2] - x[i], curve[i - 1 : i + 2] - curve[i], 2)
            shift = -b / (2 * a) if a > 0 else 0.0
            found.append(np.exp(x[i] + np.clip(shift, x[i - 1] - x[i], x[i + 1] - x[i])))
        else:
            found.append(times[i])
    return np.array(found)


def local_minima(times: FloatArray, errors: FloatArray) -> list[list[tuple[float, float]]]:
    """The times and depths of all minima of each curve, in order of time; the deepest is the time of Eq 15.

    >>> tau = np.geomspace(0.1, 10, 81)
    >>> [(round(t, 1), round(e, 1)) for t, e in local_minima(tau, np.cos(2 * np.log(tau))[None])[0]]
    [(0.2, -1.0), (4.7, -1.0)]
    """
    found = []
    for curve in errors:
        inner = np.flatnonzero((curve[1:-1] < curve[:-2]) & (curve[1:-1] <= curve[2:])) + 1
        found.append([(float(times[i]), float(curve[i])) for i in inner])
    return found


def crossing_times(times: FloatArray, errors: FloatArray, threshold: float = 1.0) -> FloatArray:
    """Where each curve, after its minimum, first comes back to the threshold (linear in log τ); nan if never.

    >>> tau = np.geomspace(0.1, 10, 401)
    >>> crossing_times(tau, np.vstack([np.log(tau) ** 2, -np.log(tau)])).round(2)
    array([2.72,  nan])
    """
    x = np.log(times)
    found = []
    for curve in errors:
        start = int(np.argmin(curve))
        above = np.flatnonzero(curve[start:] >= threshold)
        if above.size == 0 or curve[start] >= threshold:
            found.append(np.nan)
            continue
        i = start + int(above[0])
        share = (threshold - curve[i - 1]) / (curve[i] - curve[i - 1])
        found.append(np.exp(x[i - 1] + share * (x[i] - x[i - 1])))
    return np.array(found)


def jackknife(runs: FloatArray, statistic: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Standard error of a statistic of the mean curve, leaving out one instance at a time; nan for one."""
    n = len(runs)
    if n < 2:
        return np.full(runs.shape[1], np.nan)
    total = runs.sum(axis=0)
    values = np.array([statistic((total - run) / (n - 1)) for run in runs])
    return np.sqrt((n - 1) / n * ((values - values.mean(axis=0)) ** 2).sum(axis=0))
