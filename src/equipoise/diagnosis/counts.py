"""Counts and ratio, with intervals."""

from __future__ import annotations

import numpy as np
from scipy import stats

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, Figure, bar, new_figure, plain

ORDER = 0
QUESTION = "How rare is the rarest class?"
FEW = 50


def share_interval(count: int, total: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's interval of a share.

    >>> low, high = share_interval(5, 100)
    >>> round(low, 3), round(high, 3)
    (0.022, 0.112)
    """
    found = stats.binomtest(count, total).proportion_ci(level, method="wilson")
    return float(found.low), float(found.high)


def ask(sample: Sample) -> Finding:
    counts, total = sample.counts, int(sample.counts.sum())
    rare, common = sample.rare, int(counts.argmax())
    low, high = share_interval(int(counts[rare]), total)
    ratio = counts[common] / counts[rare]
    # log ratio of two Poisson counts has variance 1/a + 1/b
    reach = 1.96 * np.sqrt(1 / counts[rare] + 1 / counts[common])
    span = (float(ratio * np.exp(-reach)), float(ratio * np.exp(reach)))
    answer = (
        f"{sample.label(rare)} has {counts[rare]:,} of {total:,} rows, {counts[rare] / total:.2%} "
        f"({low:.2%} to {high:.2%}); {sample.label(common)} has {ratio:.1f} times as many "
        f"({span[0]:.1f} to {span[1]:.1f})."
    )
    if counts[rare] < FEW:
        answer += " With so few, every figure about this class is rough: read the intervals, not the means."
    order = np.argsort(-counts, kind="stable")
    labels = [plain(sample.classes[code], 24) for code in order]
    shades = [COLORS["minority"] if code == rare else COLORS["majority"] for code in order]
    bars = bar(
        x=labels, y=counts[order], marker_color=shades, text=[f"{c:,}" for c in counts[order]],
        textposition="outside",
        cliponaxis=False, hovertemplate="%{x}: %{y:,} rows<extra></extra>",
    )  # fmt: skip
    figure = new_figure(bars, y="rows", margin_t=28)
    figure.update_xaxes(type="category")
    figure.update_layout(bargap=0.35, xaxis_range=[-0.75, max(len(labels), 3) - 0.25])
    alt = "Bar chart of class sizes: " + ", ".join(f"{sample.classes[c]} {counts[c]}" for c in order[:12])
    values = {
        "counts": counts, "share": counts[rare] / total, "share_interval": (low, high),
        "ratio": ratio, "ratio_interval": span,
    }  # fmt: skip
    level = "warning" if counts[rare] < FEW else "note"
    return Finding("counts", QUESTION, answer, level, values, [Figure(figure, "Class sizes.", alt, 300)])
