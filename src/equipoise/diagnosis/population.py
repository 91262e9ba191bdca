"""Is the rare class the tail of one population, or a group of its own?"""

from __future__ import annotations

from equipoise.diagnosis._contract import Answer, Sample
from equipoise.theory.anomaly import tail_or_group

ORDER = 30
USUAL_SECONDS = 1
QUESTION = "Is it anomaly-detection imbalance, or separate groups?"
MOST = 5000


def ask(sample: Sample) -> Answer:
    """Which of two models is closer to the rows' positions across a linear boundary."""
    rows = sample.rows(MOST, "population", least=500)
    mine = sample.y[rows] == sample.rare
    if mine.sum() < 20:
        raise ValueError("it needs at least 20 rows of the rarest class")
    found = tail_or_group(sample.encoded(rows), mine, random_state=sample.random("population"))
    values = {"kind": found.verdict, "evidence": found.evidence, "label_noise": found.label_noise}
    return Answer("note", values, {"positions": found.positions, "mine": mine})
