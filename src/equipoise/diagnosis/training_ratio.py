"""What another training share would bring for the rows at hand, by the solvable model of anomaly detection."""

from __future__ import annotations

from equipoise.diagnosis._contract import Answer, Sample
from equipoise.diagnosis.population import pool_of, rows_of_the_rarest
from equipoise.theory.anomaly import advise_training

ORDER = 100
QUESTION = "Which share of rare rows should training see?"
USUAL_SECONDS = 3.5
WAYS = ("subset", "weights", "fresh")


def ask(sample: Sample) -> Answer:
    """What the rows at hand can gain, by leaving common ones out or by weights, and what fresh ones would."""
    rows, mine = rows_of_the_rarest(sample)
    pool = pool_of(sample)
    if pool[0] > pool[1]:
        raise ValueError("the rarest class is not rarer than the others together")
    # The stream of the question about the population: whether the rare class is a tail has one answer.
    advice = advise_training(sample.encoded(rows), mine, pool=pool, random_state=sample.random("population"))
    plan = advice.plan
    ways = {
        way: {
            "share": getattr(plan, way).train_fraction,
            "gain": getattr(plan, way).gain,
            "gain_interval": advice.gain_interval[way],
            "gain_at_half": getattr(plan, way).gain_at_half,
            "gain_at_half_interval": advice.half_interval[way],
        }
        for way in WAYS
    }
    values = {
        "verdict": advice.verdict, "best": plan.best, "as_is": plan.as_is, **ways, "share": pool[0] / sum(pool),
        "samples_per_dim": advice.samples_per_dim, "temperature": advice.temperature,
    }  # fmt: skip
    return Answer("note", values, {"plan": plan, "doubts": advice.reasons})
