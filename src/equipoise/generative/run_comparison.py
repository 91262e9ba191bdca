"""Several diffusion runs on one page: gaps against variance and against imbalance (Nicoletti et al., Fig 5b, c)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from equipoise.generative.plots import GapPoint, gaps_against_share, gaps_against_variance
from equipoise.generative.run_summary import RunSummary
from equipoise.generative.sections import time_cell
from equipoise.report import Figure, Interval, Note, Row, Table
from equipoise.report.blocks import Block


def compare_runs(summaries: Sequence[RunSummary], reference: str | None = None) -> list[Block]:
    """What the runs say together."""
    points = gap_points(summaries, reference)
    balanced = [p for p in points if 0.4 <= p.share / (p.share + p.reference_share) <= 0.6]
    enough = len({p.partner for p in balanced}) > 2
    shown = balanced if enough else points
    blocks: list[Block] = [_summary(summaries, points, shown)]
    if points:
        blocks += [
            Row(
                [
                    Figure(
                        gaps_against_variance(shown),
                        "Gap to the reference class against the mean pixel variance of the other one"
                        + (", pairs of equal shares only. " if enough else ". ")
                        + "Above zero: the other class is memorized first.",
                        "Memorization gap against variance",
                    ),
                    Figure(
                        gaps_against_share(points),
                        "Gap against how often the other class is drawn. Triangles: the reference "
                        "class was not memorized "
                        "within the run, so the gap is at least this.",
                        "Memorization gap against share",
                    ),
                ]
            ),
            _gaps_table(points),
        ]
    return [*blocks, _runs_table(summaries)]


def gap_points(summaries: Sequence[RunSummary], reference: str | None = None) -> list[GapPoint]:
    """A point for every class of every run but the run's reference class; pairs never memorized have none."""
    points = []
    for one in summaries:
        if len(one.names) < 2:
            continue
        base = _reference(one, summaries, reference)
        for partner in one.names:
            if partner == base:
                continue
            gap = _gap(one, base, partner)
            if not np.isnan(gap.value):
                points.append(_point(one, base, partner, gap))
    return points


def _reference(one: RunSummary, summaries: Sequence[RunSummary], wanted: str | None) -> str:
    """The class asked for; else, of those that all runs have (or else this one), that which varies least."""
    if wanted is not None:
        if wanted not in one.names:
            listed = ", ".join(map(repr, one.names))
            raise ValueError(f"--reference: {one.folder.path} has no class {wanted!r}; it has {listed}")
        return wanted
    shared = set.intersection(*(set(other.names) for other in summaries))
    among = summaries if shared else [one]
    return min(
        sorted(shared or one.names),
        key=lambda name: np.mean([other.pixel_variance[other.names.index(name)] for other in among]),
    )


def _gap(one: RunSummary, base: str, partner: str) -> Interval:
    """t_mem(reference) − t_mem(partner), Eq 147."""
    if (base, partner) in one.clock.gaps:
        return one.clock.gaps[base, partner]
    turned = one.clock.gaps[partner, base]
    return Interval(-turned.value, -turned.high, -turned.low)


def _point(one: RunSummary, base: str, partner: str, gap: Interval) -> GapPoint:
    code, other = one.names.index(partner), one.names.index(base)
    censored = bool(np.isinf(gap.value))
    times = [one.clock.memorized[i].value for i in (other, code)]
    known = [time if np.isfinite(time) else float(one.clock.last) for time in times]
    predicted = float("nan")
    if one.predicted is not None:
        predicted = float(one.predicted.memorization_time[other] - one.predicted.memorization_time[code])
    value = known[0] - known[1] if censored else gap.value
    low, high = (value, value) if censored else (gap.low, gap.high)
    return GapPoint(
        one.folder.name, base, partner, one.pixel_variance[code], one.shares[code],
        one.shares[other], value, low, high,
        censored, predicted,
    )  # fmt: skip


def _summary(summaries: Sequence[RunSummary], points: Sequence[GapPoint], shown: Sequence[GapPoint]) -> Note:
    if not points:
        return Note(
            "In no run has a class been memorized yet: train on with --resume --steps.", "note", "No gaps yet"
        )
    first = sum(p.gap > 0 for p in points)
    text = f"In {first} of {len(points)} pairs the other class is memorized before the reference class."
    whole = [p for p in points if not p.censored]
    if whole:
        sure = sum(p.low > 0 or p.high < 0 for p in whole)
        text += f" Of {len(whole)} gaps that were seen to their end, {sure} have an interval that leaves out zero."
    known = [p for p in points if np.isfinite(p.predicted)]
    if known:
        right = sum(np.sign(p.predicted) == np.sign(p.gap) for p in known)
        text += f" The theory tells the order in {right} of {len(known)}."
    x, y = np.array([p.variance for p in shown]), np.array([p.gap for p in shown])
    if len(np.unique(x)) > 3:
        pearson, spearman = stats.pearsonr(x, y)[0], stats.spearmanr(x, y)[0]
        text += f" Gap and variance correlate by {pearson:.2f} (ranks: {spearman:.2f})."
    return Note(text, "note", f"{len(summaries)} runs")


def _runs_table(summaries: Sequence[RunSummary]) -> Table:
    rows = []
    for one in summaries:
        clock = one.clock
        drawn = " · ".join(f"{name} {share:.0%}" for name, share in zip(one.names, one.shares, strict=True))
        times = " · ".join(
            f"{name} {time_cell(time, clock.last)}"
            for name, time in zip(one.names, clock.memorized, strict=True)
        )
        window = clock.window
        span = "unknown" if window is None else "none"
        if window is not None and window.is_open:
            end = f"{window.closes:,.0f}" if np.isfinite(window.closes) else "the end"
            span = f"{window.opens:,.0f} to {end}"
        how = (
            "prescribed"
            if one.folder.record.get("prescription")
            else "given"
            if one.folder.settings["class_shares"]
            else "the data's"
        )
        steps = [time.value for time in clock.memorized]
        spread = f"{max(steps) / min(steps):.2f}" if np.isfinite(steps).all() else "–"
        advised = f"{clock.advised:,}" if clock.advised else "none"
        rows.append([one.folder.name, drawn, how, times, spread, span, advised])
    columns = ["run", "drawn", "shares", "memorized at", "latest / earliest", "window", "checkpoint"]
    return Table(columns, rows, "Steps, with 95 % bootstrap intervals.")


def _gaps_table(points: Sequence[GapPoint]) -> Table:
    rows = []
    for p in sorted(points, key=lambda p: (p.partner, p.share)):
        gap = f"at least {p.gap:,.0f}" if p.censored and p.gap > 0 else f"{p.gap:,.0f}"
        if p.censored and p.gap < 0:
            gap = f"at most {p.gap:,.0f}"
        if not p.censored and np.isfinite([p.low, p.high]).all():
            gap += f" ({p.low:,.0f} to {p.high:,.0f})"
        rows.append([p.run, f"{p.reference} – {p.partner}", p.variance, f"{p.share:.0%}", gap, p.predicted])
    columns = ["run", "pair", "variance", "share", "gap in steps", "theory's gap"]
    return Table(
        columns,
        rows,
        "Positive: the second of the pair is memorized first.",
        {"variance": ".3f", "theory's gap": ".3g"},
    )
