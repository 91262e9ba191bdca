"""What the looks say: when each class is memorized, in which window to stop, and which checkpoint to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray, check_columns, check_fraction, check_integer
from equipoise.generative.memorization import crossing_time
from equipoise.generative.monitor import Window, crossing_times, window
from equipoise.report import Interval

SURE = 0.95


@dataclass(frozen=True)
class Clock:
    """The reading of a run's looks.

    Attributes
    ----------
    names : tuple of str
        The classes.
    threshold : float
        The memorized fraction at which a class counts as memorized.
    memorized : tuple of Estimate
        t_mem of each class (Nicoletti et al., App. J.1).
    generalized : tuple of float
        The first look at which a class's held-out error is near its lowest; NaN without held-out images.
    first : str or None
        The class memorized first; None if none was.
    sureness : float
        The share of bootstrap draws in which that class comes first.
    gaps : dict
        t_mem(a) − t_mem(b) for each pair (a, b) (Eq 147); NaN where neither was memorized.
    window : Window or None
        From "every class generalizes" to "some class is memorized"; None without held-out images.
    advised : int or None
        The look whose checkpoint to use; None if even the first is too late.
    worst : tuple or None
        The class that is worst off there, and its held-out error over its lowest.
    last : int
        The last look.
    final : tuple of Estimate
        The memorized fraction of each class at the last look.
    """

    names: tuple[str, ...]
    threshold: float
    memorized: tuple[Interval, ...]
    generalized: tuple[float, ...]
    first: str | None
    sureness: float
    gaps: dict[tuple[str, str], Interval]
    window: Window | None
    advised: int | None
    worst: tuple[str, float] | None
    last: int
    final: tuple[Interval, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Memorized classes, first to last."""
        times = [estimate.value for estimate in self.memorized]
        return tuple(self.names[i] for i in np.argsort(times, kind="stable") if np.isfinite(times[i]))


def read_clock(
    table: pd.DataFrame,
    names: Sequence[str],
    *,
    threshold: float = 1 / 3,
    n_bootstrap: int = 400,
    confidence: float = 0.95,
    seed: int = 0,
) -> Clock:
    """Read the clock from a monitor's table.

    The bootstrap redraws the samples of every look: a fraction f of n samples becomes Binomial(n, f)/n.

    Parameters
    ----------
    table : DataFrame
        A line for each class and look, as ``MemorizationMonitor.table`` and ``RunFolder.table()`` have
        it.
    names : sequence of str
        The classes, in the order of their codes.
    threshold : float
        The memorized fraction at which a class counts as memorized.
    n_bootstrap : int
        The number of redraws.
    confidence : float
        Of the intervals.
    seed : int
        The seed of the redraws.

    Returns
    -------
    Clock
        The reading.

    Examples
    --------
    >>> table = pd.DataFrame({"label": [0, 1] * 3, "step": [10, 10, 100, 100, 1000, 1000], "n": 100,
    ...     "fraction": [0, 0, 0.5, 0, 1, 0.1], "low": 0, "high": 0, "held_out_error": [3, 3, 2, 2, 2, 2]})
    >>> clock = read_clock(table, ["wide", "narrow"])
    >>> clock.first, round(clock.memorized[0].value), clock.memorized[1].value, clock.advised
    ('wide', 46, inf, 10)
    """
    check_fraction("threshold", threshold)
    check_integer("n_bootstrap", n_bootstrap, low=1)
    tail = (1 - float(check_fraction("confidence", confidence))) / 2
    check_columns("table", table, ["step", "label", "n", "fraction"])
    looks = table.sort_values(["step", "label"])
    codes = range(len(names))
    times = np.array([crossing_times(looks, threshold).get(code, np.inf) for code in codes])
    draws = _redrawn(looks, len(names), threshold, n_bootstrap, seed)
    end = looks[looks["step"] == looks["step"].max()].set_index("label")
    earliest = int(times.argmin())
    found = bool(np.isfinite(times[earliest]))
    between = _window(looks, threshold)
    advised, (worst, excess) = _advised(looks, times.min(), between)
    return Clock(
        tuple(names),
        threshold,
        tuple(_estimate(times[code], draws[:, code], tail) for code in codes),
        tuple(_generalized(looks, code) for code in codes),
        names[earliest] if found else None,
        float((draws[:, earliest] <= draws.min(axis=1)).mean()) if found else float("nan"),
        {
            (names[a], names[b]): _estimate(_gap(times[a], times[b]), _gap(draws[:, a], draws[:, b]), tail)
            for a, b in combinations(codes, 2)
        },
        between,
        advised,
        (names[int(worst)], excess) if worst else None,
        int(looks["step"].max()),
        tuple(Interval(*(float(end.loc[code, c]) for c in ("fraction", "low", "high"))) for code in codes),
    )


def _redrawn(looks: pd.DataFrame, n_classes: int, threshold: float, n: int, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    draws = np.full((n, n_classes), np.inf)
    for code in range(n_classes):
        own = looks[(looks["label"] == code) & (looks["n"] > 0)]
        if len(own):
            size = own["n"].to_numpy(dtype=np.int64)
            drawn = rng.binomial(size, own["fraction"].to_numpy(), (n, len(own))) / size
            steps = own["step"].to_numpy(dtype=np.float64)
            draws[:, code] = [crossing_time(steps, fractions, threshold) for fractions in drawn]
    return draws


def _gap(a: FloatArray | float, b: FloatArray | float) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.subtract(a, b), dtype=np.float64)


def _estimate(value: FloatArray | float, draws: FloatArray, tail: float) -> Interval:
    known = draws[~np.isnan(draws)]
    if not len(known) or np.isnan(value):
        return Interval(float("nan"), float("nan"), float("nan"))
    low, high = np.quantile(known, [tail, 1 - tail], method="nearest")
    return Interval(float(value), float(low), float(high))


def _generalized(looks: pd.DataFrame, code: int, slack: float = 0.05) -> float:
    if "held_out_error" not in looks:
        return float("nan")
    own = looks[looks["label"] == code]
    error = own["held_out_error"].to_numpy(dtype=np.float64)
    if np.isnan(error).all():
        return float("nan")
    return float(own["step"].to_numpy()[error <= np.nanmin(error) * (1 + slack)][0])


def _window(looks: pd.DataFrame, threshold: float) -> Window | None:
    if "held_out_error" not in looks or looks["held_out_error"].isna().any():
        return None
    return window(looks, threshold)


def _advised(
    looks: pd.DataFrame, closes: float, found: Window | None
) -> tuple[int | None, tuple[str, float]]:
    """Of the looks in the window (or else before it closes), that whose worst class is nearest to its best error.

    Returns it with the code of that class and its error over its lowest. Without held-out images, the last of them.
    """
    before = looks[looks["step"] < closes]
    if before.empty:
        return None, ("", 1.0)
    if found is None:
        return int(before["step"].max()), ("", 1.0)
    inside = before[before["step"] >= found.opens]
    before = before if inside.empty else inside
    best = looks.groupby("label")["held_out_error"].min()
    excess = (before["held_out_error"] / before["label"].map(best)).to_numpy()
    at, labels = before["step"].to_numpy(), before["label"].to_numpy()
    worst = {int(step): float(excess[at == step].max()) for step in np.unique(at)}
    step = min(worst, key=lambda step: worst[step])
    return step, (str(labels[(at == step) & (excess == worst[step])][0]), worst[step])


def in_words(clock: Clock) -> list[str]:
    """The reading in plain sentences: who comes first, the window, which checkpoint.

    Parameters
    ----------
    clock : Clock
        The reading.

    Returns
    -------
    list of str
        The sentences.
    """
    return [_first_in_words(clock), _window_in_words(clock), _advice_in_words(clock)]


def _first_in_words(clock: Clock) -> str:
    if clock.first is None:
        most = int(np.nanargmax([final.value for final in clock.final]))
        share = f"{clock.final[most].value:.0%} of {clock.names[most]!r}"
        return f"No class is memorized within {clock.last:,} steps (most copies at the end: {share})."
    time = clock.memorized[clock.names.index(clock.first)]
    text = f"{clock.first!r} is memorized first, at step {steps(time.value)} ({span(time)})"
    if clock.sureness < SURE:
        text += f", though the order is not certain: it is first in {clock.sureness:.0%} of the redraws"
    later = [name for name in clock.order if name != clock.first]
    never = [name for name in clock.names if name not in clock.order]
    if later:
        at = (f"{name!r} at {steps(clock.memorized[clock.names.index(name)].value)}" for name in later)
        text += "; then " + ", ".join(at)
    if never:
        text += f"; {', '.join(map(repr, never))} not within {clock.last:,} steps"
    return text + "."


def _window_in_words(clock: Clock) -> str:
    found = clock.window
    if found is None:
        return "When classes generalize is not known: no images of some class were held out."
    if clock.first is None and found.opens >= clock.last:
        still = ", ".join(
            repr(n) for n, at in zip(clock.names, clock.generalized, strict=True) if at >= clock.last
        )
        return f"The error on held-out images is still falling at the end for {still}: train on."
    if clock.first is None:
        return f"Every class generalizes from step {steps(found.opens)} on, as far as the run goes."
    if found.is_open:
        return (
            f"Every class generalizes from step {steps(found.opens)}, and none is memorized before step "
            f"{steps(found.closes)}: stop in between."
        )
    late = max(zip(clock.generalized, clock.names, strict=True))[1]
    return (
        f"There is no window: {late!r} generalizes only at step {steps(found.opens)}, after {clock.first!r} is "
        f"memorized at {steps(found.closes)}."
    )


def _advice_in_words(clock: Clock) -> str:
    if clock.advised is None:
        return "Even the first checkpoint copies: look earlier, or train on more images."
    text = f"Use the checkpoint of step {clock.advised:,}"
    if clock.window is not None and clock.window.opens > clock.advised:
        text += ", the best for all classes before the copying starts"
    if clock.worst is not None and clock.worst[1] > 1.05:
        name, excess = clock.worst
        text += f"; there the error of {name!r} on held-out images is {excess - 1:.0%} above its lowest"
    return text + "."


def steps(value: float) -> str:
    """A number of steps as text; ∞ as "never"."""
    return f"{value:,.0f}" if np.isfinite(value) else "never"


def span(estimate: Interval) -> str:
    """An interval of steps as text.

    >>> span(Interval(5.0, 3.0, float("inf")))
    '95 % interval: from 3 on'
    """
    if not np.isfinite(estimate.low):
        return "95 % interval: beyond the run"
    if not np.isfinite(estimate.high):
        return f"95 % interval: from {steps(estimate.low)} on"
    return f"95 % interval: {steps(estimate.low)} to {steps(estimate.high)}"
