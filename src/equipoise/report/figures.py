"""Figures that a page draws: traces and a layout as plain values, for the plot library that the page carries.

The look (fonts, grid, colors by day and by night) is put on in the page, so a figure says only what is its own.
Nested settings may be written with an underscore: ``xaxis_range=[0, 1]`` is ``xaxis={"range": [0, 1]}``.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from equipoise.report.blocks import clip

Trace = dict[str, Any]
_NESTED = ("xaxis", "yaxis", "margin", "legend", "marker", "line", "title", "font")


def plain(text: object, limit: int = 60) -> str:
    """Text from a user made safe for plotly, which reads tags in labels: escaped and cut to ``limit`` signs.

    Parameters
    ----------
    text : object
        Anything; its ``str`` is taken.
    limit : int
        The most signs.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> plain("<b>x</b>")
    '&lt;b&gt;x&lt;/b&gt;'
    """
    return html.escape(clip(" ".join(str(text).split()), limit), quote=False)


def plain_labels(labels: Iterable[object], limit: int = 24) -> list[str]:
    """Labels for an axis, safe and short as by :func:`plain`; a number tells apart those that begin alike.

    Parameters
    ----------
    labels : iterable of object
        The labels.
    limit : int
        The most signs of one.

    Returns
    -------
    list of str
        The labels, all different.

    Examples
    --------
    >>> plain_labels(["a long label", "a long lie", "b"], 6)
    ['a lon…', 'a lon… (2)', 'b']
    """
    seen: Counter[str] = Counter()
    made = []
    for label in labels:
        text = plain(label, limit)
        seen[text] += 1
        made.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return made


def _merge(target: dict[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings put into a nested dictionary, those with an underscore one level down."""
    for key, value in settings.items():
        head, _, rest = key.partition("_")
        if rest and head in _NESTED:
            key, value = head, {rest: value}
        if isinstance(value, Mapping):
            value = _merge(dict(target.get(key) or {}), value)
        target[key] = value
    return target


def scatter(**settings: Any) -> Trace:
    """Lines or markers: ``x``, ``y``, ``mode``, ``name`` and whatever else plotly's ``scatter`` knows.

    Parameters
    ----------
    **settings : Any
        Settings by plotly's names; ``marker_color="red"`` stands for ``marker={"color": "red"}``.

    Returns
    -------
    dict
        A trace for :func:`new_figure`.

    Examples
    --------
    >>> scatter(x=[1], y=[2], marker_color="red")
    {'type': 'scatter', 'x': [1], 'y': [2], 'marker': {'color': 'red'}}
    """
    return _merge({"type": "scatter"}, settings)


def bar(**settings: Any) -> Trace:
    """Bars, with the settings of plotly's ``bar``.

    Parameters
    ----------
    **settings : Any
        Settings by plotly's names; ``marker_color="red"`` stands for ``marker={"color": "red"}``.

    Returns
    -------
    dict
        A trace for :func:`new_figure`.

    Examples
    --------
    >>> bar(x=["a"], y=[1])
    {'type': 'bar', 'x': ['a'], 'y': [1]}
    """
    return _merge({"type": "bar"}, settings)


def heatmap(**settings: Any) -> Trace:
    """A heat map, with the settings of plotly's ``heatmap``.

    Parameters
    ----------
    **settings : Any
        Settings by plotly's names; ``marker_color="red"`` stands for ``marker={"color": "red"}``.

    Returns
    -------
    dict
        A trace for :func:`new_figure`.

    Examples
    --------
    >>> heatmap(z=[[1, 2]])
    {'type': 'heatmap', 'z': [[1, 2]]}
    """
    return _merge({"type": "heatmap"}, settings)


@dataclass
class Chart:
    """Traces and a layout. Make one with :func:`new_figure`; the methods are named as plotly's own.

    Attributes
    ----------
    data : list of dict
        The traces.
    layout : dict
        Plotly's layout.
    """

    data: list[Any]
    layout: dict[str, Any] = field(default_factory=dict)

    def update_layout(self, **settings: Any) -> None:
        """Change settings of the layout.

        Parameters
        ----------
        **settings : Any
            Settings by plotly's names; ``marker_color="red"`` stands for ``marker={"color": "red"}``.
        """
        _merge(self.layout, settings)

    def update_xaxes(self, **settings: Any) -> None:
        """Change settings of the horizontal axis.

        Parameters
        ----------
        **settings : Any
            Settings by plotly's names; ``marker_color="red"`` stands for ``marker={"color": "red"}``.
        """
        _merge(self.layout, {"xaxis": settings})

    def update_yaxes(self, **settings: Any) -> None:
        """Change settings of the vertical axis.

        Parameters
        ----------
        **settings : Any
            Settings by plotly's names; ``marker_color="red"`` stands for ``marker={"color": "red"}``.
        """
        _merge(self.layout, {"yaxis": settings})

    def add_hline(self, y: float, **style: Any) -> None:
        """A level line across the whole plot.

        Parameters
        ----------
        y : float
            Its height.
        **style : Any
            Further settings of plotly's shape, such as ``line_color``.
        """
        self._add_shape(type="line", xref="paper", x0=0, x1=1, y0=y, y1=y, **style)

    def add_vline(self, x: float, **style: Any) -> None:
        """An upright line over the whole plot.

        Parameters
        ----------
        x : float
            Its place.
        **style : Any
            Further settings of plotly's shape, such as ``line_color``.
        """
        self._add_shape(type="line", yref="paper", y0=0, y1=1, x0=x, x1=x, **style)

    def add_vrect(self, x0: float, x1: float, **style: Any) -> None:
        """An upright band over the whole plot.

        Parameters
        ----------
        x0 : float
            The left edge.
        x1 : float
            The right edge.
        **style : Any
            Further settings of plotly's shape, such as ``line_color``.
        """
        self._add_shape(type="rect", yref="paper", y0=0, y1=1, x0=x0, x1=x1, **style)

    def add_annotation(self, **settings: Any) -> None:
        """Add a text at a point.

        Parameters
        ----------
        **settings : Any
            Settings of plotly's annotation, such as ``x``, ``y`` and ``text``.
        """
        self.layout.setdefault("annotations", []).append(_merge({}, settings))

    def _add_shape(self, **settings: Any) -> None:
        self.layout.setdefault("shapes", []).append(_merge({}, settings))


def new_figure(*traces: Any, x: str = "", y: str = "", **layout: Any) -> Chart:
    """A figure for a page.

    Parameters
    ----------
    *traces : dict
        From :func:`scatter`, :func:`bar` and :func:`heatmap`.
    x, y : str
        Titles of the axes.
    **layout : Any
        Further settings of plotly's layout.

    Returns
    -------
    Chart
        The figure.

    Examples
    --------
    >>> figure = new_figure(scatter(x=[0, 1], y=[0, 1]), x="time", xaxis_range=[0, 2])
    >>> figure.layout["xaxis"]
    {'title': {'text': 'time'}, 'range': [0, 2]}
    """
    figure = Chart(list(traces), {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}})
    figure.update_layout(**layout)
    return figure
