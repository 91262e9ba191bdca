"""Still figures: one maker of axes, one palette, and the critical-difference diagram."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import equipoise
from equipoise.metrics.significance import pairwise, rank_groups
from equipoise.report import COLORS, PALETTE, Picture, literal, new_axes, plot_critical_difference

PACKAGE = Path(equipoise.__file__).parent


def test_axes_take_the_palette_and_the_rest_is_blank():
    figure, axes = new_axes(6, 4, 2, 2, count=3)
    assert [ax.axison for ax in axes] == [True, True, True, False]
    (line,) = axes[0].plot([0, 1])
    assert line.get_color() == PALETTE[0]
    assert not axes[0].spines["top"].get_visible()
    assert "$" in Picture.from_matplotlib(_titled(figure, axes[0]), "x").svg


def _titled(figure, ax):
    ax.set_title(literal("$5 to $9"))
    return figure


def test_the_diagram_shows_every_method_and_every_bar():
    pytest.importorskip("scikit_posthocs")
    rng = np.random.default_rng(0)
    names = ["a $ sign", "b", "c", "d", "e"]
    scores = pd.DataFrame(rng.normal(size=(20, 5)) + np.arange(5) * 0.6, columns=names)
    result = pairwise(scores, correction="nemenyi")
    figure = plot_critical_difference(result, title="AUC")
    (ax,) = figure.axes
    texts = [text.get_text() for text in ax.texts]
    assert f"e ({result.ranks['e']:.2f})" in texts
    assert len(texts) == 5
    assert "CD = " in ax.get_title()
    bars = [line for line in ax.lines if line.get_linewidth() == 3]
    assert {tuple(sorted(bar.get_xdata())) for bar in bars} == {
        tuple(sorted(result.ranks[name] for name in group)) for group in rank_groups(result)
    }


def test_colors_and_axes_come_from_the_kit():
    """No other palette, and no other maker of axes, anywhere in the package."""
    others = re.compile(r"[\"']#[0-9a-fA-F]{6}[\"']|import plotly|subplots?\(")
    rooms = [path for path in PACKAGE.rglob("*.py") if path.parent.name != "report"]
    assert len(rooms) > 100
    assert [path for path in rooms if others.search(path.read_text(encoding="utf-8"))] == []


def test_every_color_has_its_night():
    from equipoise.report.palette import DARK, night_colors

    assert set(DARK) == set(COLORS)
    assert set(PALETTE) <= set(night_colors())
