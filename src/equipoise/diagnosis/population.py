"""Is the rare class the tail of one population, or a group of its own?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import IntArray
from equipoise.diagnosis._contract import Answer, Sample
from equipoise.theory.anomaly import tail_or_group

ORDER = 30
USUAL_SECONDS = 1
QUESTION = "Is it anomaly-detection imbalance, or separate groups?"
MOST = 3000


def rows_of_the_rarest(sample: Sample) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """The rows that this question and the one about the training share look at; which are of the rarest class."""
    rows = sample.rows(MOST, "population", least=500)
    return rows, sample.y[rows] == sample.rare


def pool_of(sample: Sample) -> tuple[int, int]:
    """Rows of the rarest class and of all others together."""
    rare = int(sample.counts[sample.rare])
    return rare, int(sample.counts.sum()) - rare


def ask(sample: Sample) -> Answer:
    """Which of two models is closer to the rows' positions across a linear boundary."""
    rows, mine = rows_of_the_rarest(sample)
    if mine.sum() < 20:
        raise ValueError("it needs at least 20 rows of the rarest class")
    found = tail_or_group(
        sample.encoded(rows), mine, pool=pool_of(sample), random_state=sample.random("population")
    )
    values = {"kind": found.verdict, "evidence": found.evidence, "label_noise": found.label_noise}
    return Answer("note", values, {"positions": found.positions, "mine": mine})
