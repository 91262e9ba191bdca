"""Is the rare class the tail of one population, or a group of its own?"""

from __future__ import annotations

import numpy as np

from equipoise._core.checks import FloatArray
from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, Figure, bar, new_figure, plain
from equipoise.theory.anomaly import TailOrGroup, tail_or_group

ORDER = 30
USUAL_SECONDS = 2
QUESTION = "Is it anomaly-detection imbalance, or separate groups?"
MOST = 5000
_ANSWERS = {
    "tail": "Anomaly-detection imbalance: the rare class is cut off from one population, like its tail. "
    "The threshold then matters more than new points.",
    "group": "Separate groups: the rare class has a distribution of its own. Methods that model each class, "
    "or add points inside the group, can help.",
    "undecided": "The rare class may be a tail or a group of its own: these data cannot tell.",
}


def compute(sample: Sample) -> tuple[TailOrGroup, np.ndarray]:
    """The verdict on the rarest class, and which of the rows looked at belong to it."""
    rows = sample.rows(MOST, "population", least=500)
    mine = sample.y[rows] == sample.rare
    return tail_or_group(sample.encoded(rows), mine, random_state=sample.random("population")), mine


def ask(sample: Sample) -> Finding:
    """Which of two models is closer to the rows' positions across a linear boundary."""
    found, mine = compute(sample)
    answer = f"{_ANSWERS[found.verdict]} (Evidence {found.evidence:+.1f} standard errors"
    answer += (
        f"; about {found.label_noise:.1%} of the labels look wrong.)" if found.label_noise > 0.002 else ".)"
    )
    values = {"kind": found.verdict, "evidence": found.evidence, "label_noise": found.label_noise}
    block = _figure(found.positions, mine, plain(sample.classes[sample.rare], 24))
    return Finding("population", QUESTION, answer, "note", values, [block])


def _figure(position: FloatArray, mine: np.ndarray, name: str) -> Figure:
    edges = np.histogram_bin_edges(position, 40)
    traces = []
    for rows, label, color in (
        (~mine, "the others", COLORS["majority"]),
        (mine, name, COLORS["minority"]),
    ):
        density, _ = np.histogram(position[rows], edges, density=True)
        traces.append(bar(x=(edges[:-1] + edges[1:]) / 2, y=density, name=label, marker_color=color,
                             opacity=0.75, hovertemplate=f"{label}: %{{y:.2f}}<extra></extra>"))  # fmt: skip
    figure = new_figure(*traces, x="position across the boundary (held-out)", y="density in its class",
                        barmode="overlay", bargap=0)  # fmt: skip
    caption = "Each class's rows across a linear boundary, each scaled to its own size."
    return Figure(figure, caption, "Histograms of both classes across the boundary.", 280)
