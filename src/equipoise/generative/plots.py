"""The curves of a diffusion run and of several together (Nicoletti et al., Figs 5 and 11), by plotly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray
from equipoise.generative.clock import Clock
from equipoise.report import COLORS, PALETTE, new_figure, plain, scatter


@dataclass(frozen=True)
class GapPoint:
    """The gap of one class of one run to the reference class of that run."""

    run: str
    reference: str
    partner: str
    variance: float
    share: float
    reference_share: float
    gap: float
    low: float
    high: float
    censored: bool
    predicted: float


def color(code: int) -> str:
    return PALETTE[code % len(PALETTE)]


def _soft(code: int) -> str:
    red, green, blue = (int(color(code)[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


def _of_class(table: pd.DataFrame, code: int) -> pd.DataFrame:
    return table[table["label"] == code].sort_values("step")


def _shaded(x: Any, low: Any, high: Any, fill: str) -> list[Any]:
    """A band between two curves."""
    edge = {"line": {"width": 0}, "hoverinfo": "skip", "showlegend": False, "mode": "lines"}
    return [scatter(x=x, y=high, **edge), scatter(x=x, y=low, fill="tonexty", fillcolor=fill, **edge)]


def _over_steps(table: pd.DataFrame, traces: Sequence[Any], y: str) -> Any:
    figure = new_figure(*traces, x="training step", y=y)
    decades = np.log10(table["step"].max() / table["step"].min())
    figure.update_xaxes(type="log", tickformat="~s", dtick=1 if decades > 1.5 else None)
    return figure


def _curve(own: pd.DataFrame, column: str, code: int, name: str, value: str, **look: Any) -> Any:
    line = {"color": color(code), "width": 2, **look.pop("line", {})}
    hover = f"{name}, step %{{x:,}}: {value}<extra></extra>"
    return scatter(x=own["step"], y=own[column], name=name, line=line, hovertemplate=hover, **look)


def memorized_curves(table: pd.DataFrame, clock: Clock) -> Any:
    """Memorized fraction of each class over the steps, with bands, the threshold and the window (Fig 5a)."""
    traces = []
    for code, name in enumerate(clock.names):
        own = _of_class(table, code).dropna(subset=["fraction"])
        look = {
            "mode": "lines+markers", "line": {"width": 2.5}, "marker": {"size": 6}, "customdata": own["n"],
        }  # fmt: skip
        traces += [
            *_shaded(own["step"], own["low"], own["high"], _soft(code)),
            _curve(own, "fraction", code, plain(name), "%{y:.0%} of %{customdata} samples", **look),
        ]
    figure = _over_steps(table, traces, "samples that are copies")
    figure.update_layout(legend_traceorder="normal")
    figure.update_yaxes(tickformat=".0%", range=[-0.03, 1.03])
    figure.add_hline(clock.threshold, line={"dash": "dash", "color": COLORS["muted"], "width": 1})
    for code, time in enumerate(clock.memorized):
        if np.isfinite(time.value):
            figure.add_vline(time.value, line={"dash": "dot", "color": color(code), "width": 1.5})
    if clock.window is not None and clock.window.is_open:
        end = clock.window.closes if np.isfinite(clock.window.closes) else clock.last
        figure.add_vrect(clock.window.opens, end, fillcolor=COLORS["soft"], line_width=0, layer="below")
        figure.add_annotation(
            x=float(np.log10(clock.window.opens)),  # annotations of a log axis are placed by the exponent
            y=1,
            xanchor="left",
            yanchor="top",
            showarrow=False,
            text="window",
            font={"color": COLORS["accent"]},
        )
    return figure


def error_curves(table: pd.DataFrame, names: Sequence[str]) -> Any:
    """Denoising error of each class on held-out images: falling while the class is learned."""
    look = {"mode": "lines+markers", "marker": {"size": 5}}
    traces = [
        _curve(_of_class(table, code), "held_out_error", code, plain(name), "%{y:.4f}", **look)
        for code, name in enumerate(names)
    ]
    return _over_steps(table, traces, "error on held-out images")


def distance_curves(table: pd.DataFrame, clock: Clock) -> Any:
    """Mean distance of samples to the nearest and the second nearest training image (Fig 11, below)."""
    traces = [
        _curve(own, column, code, f"{plain(name)}, {column}", "%{y:.3g}", mode="lines", line={"dash": dash})
        for code, name in enumerate(clock.names)
        for own in [_of_class(table, code)]
        for column, dash in (("nearest", "solid"), ("second", "dash"))
    ]
    figure = _over_steps(table, traces, "mean distance")
    figure.update_yaxes(type="log")
    return figure


def gaps_against_variance(points: Sequence[GapPoint], seed: int = 0) -> Any:
    """The gap to the reference class against the other class's variance, with a line and its band (Fig 5b)."""
    x = np.array([p.variance for p in points])
    y = np.array([p.gap for p in points])
    traces = []
    if len(np.unique(x)) > 2:
        grid = np.linspace(x.min(), x.max(), 40)
        line = {"color": COLORS["muted"], "dash": "dash", "width": 1.5}
        traces = [
            *_shaded(grid, *_band(x, y, grid, seed), "rgba(86,100,111,0.15)"),
            scatter(x=grid, y=_line(x, y, grid), mode="lines", line=line, name="linear fit"),
        ]
    figure = new_figure(*traces, *_points(points, x), x="variance of the other class", y="gap in steps")
    figure.update_layout(legend_traceorder="normal", showlegend=True)
    figure.add_hline(0, line={"color": COLORS["muted"], "width": 1})
    return figure


def gaps_against_share(points: Sequence[GapPoint]) -> Any:
    """The gap to the reference class against the other class's share, a line per class (Fig 5c)."""
    traces = []
    for number, partner in enumerate(dict.fromkeys(p.partner for p in points)):
        own = sorted((p for p in points if p.partner == partner), key=lambda p: p.share)
        if len({p.share for p in own}) > 1:
            shares = sorted({p.share for p in own})
            means = [float(np.mean([p.gap for p in own if p.share == share])) for share in shares]
            line = {"color": color(number), "width": 1.5}
            traces.append(
                scatter(x=shares, y=means, mode="lines", line=line, hoverinfo="skip", showlegend=False)
            )
    x = np.array([p.share for p in points])
    figure = new_figure(*traces, *_points(points, x), x="share of the other class", y="gap in steps")
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    figure.update_layout(showlegend=True)
    figure.add_hline(0, line={"color": COLORS["muted"], "width": 1})
    return figure


def _points(points: Sequence[GapPoint], x: FloatArray) -> list[Any]:
    traces = []
    for number, partner in enumerate(dict.fromkeys(p.partner for p in points)):
        rows = [i for i, p in enumerate(points) if p.partner == partner]
        own, text = [points[i] for i in rows], plain(partner)
        spread = {
            "type": "data",
            "symmetric": False,
            "array": [max(p.high - p.gap, 0) if np.isfinite(p.high) else 0 for p in own],
            "arrayminus": [max(p.gap - p.low, 0) if np.isfinite(p.low) else 0 for p in own],
            "thickness": 1.2,
        }
        traces.append(
            scatter(
                x=x[rows],
                y=[p.gap for p in own],
                error_y=spread,
                mode="markers",
                name=text,
                marker={
                    "color": color(number),
                    "size": 10,
                    "symbol": ["triangle-up" if p.censored else "circle" for p in own],
                },
                customdata=[
                    [plain(p.run), "at least " if p.censored else "", plain(p.reference)] for p in own
                ],
                hovertemplate=f"%{{customdata[0]}}: {text} %{{customdata[1]}}%{{y:,.0f}} steps before "
                "%{customdata[2]}<extra></extra>",
            )
        )
    return traces


def _line(x: FloatArray, y: FloatArray, grid: FloatArray) -> FloatArray:
    slope, offset = np.polyfit(x, y, 1)
    return np.asarray(slope * grid + offset)


def _band(x: FloatArray, y: FloatArray, grid: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """95 % bootstrap band of the line: points redrawn, line fitted again."""
    rng = np.random.default_rng(seed)
    lines: list[FloatArray] = []
    while len(lines) < 300:
        rows = rng.integers(len(x), size=len(x))
        if len(np.unique(x[rows])) > 1:
            lines.append(_line(x[rows], y[rows], grid))
    low, high = np.quantile(lines, [0.025, 0.975], axis=0)
    return low, high
