"""One look for all figures."""

from __future__ import annotations

import html
from typing import Any

from equipoise.report.blocks import clip
from equipoise.report.palette import COLORS, FONT, PALETTE

__all__ = ["COLORS", "FONT", "PALETTE", "new_figure", "plain"]


def plain(text: object, limit: int = 60) -> str:
    """Text from a user made safe for plotly, which reads tags in labels: escaped and cut to ``limit`` signs.

    >>> plain("<b>x</b>")
    '&lt;b&gt;x&lt;/b&gt;'
    """
    return html.escape(clip(" ".join(str(text).split()), limit), quote=False)


def new_figure(*traces: Any, x: str = "", y: str = "", **layout: Any) -> Any:
    """A plotly figure in the house's look: axis titles ``x`` and ``y``, further ``layout`` settings."""
    import plotly.graph_objects as go

    axis: dict[str, Any] = {
        "gridcolor": COLORS["grid"], "zeroline": False, "linecolor": COLORS["muted"], "ticks": "outside",
        "tickcolor": COLORS["muted"], "ticklen": 4, "automargin": True, "title": {"standoff": 8},
    }  # fmt: skip
    figure = go.Figure(list(traces))
    figure.update_layout(
        template="none",
        font={"family": FONT, "size": 13, "color": COLORS["ink"]},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        colorway=PALETTE,
        margin={"l": 56, "r": 16, "t": 12, "b": 48},
        hoverlabel={"bgcolor": "white", "font": {"family": FONT}},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        xaxis=axis,
        yaxis=axis,
    )
    figure.update_xaxes(title_text=x)
    figure.update_yaxes(title_text=y)
    figure.update_layout(**layout)
    return figure
