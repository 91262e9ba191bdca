"""What another training share would bring for the rows at hand, by the solvable model of anomaly detection."""

from __future__ import annotations

from equipoise.diagnosis._contract import Answer, Sample
from equipoise.theory.anomaly import advise_training

ORDER = 100
QUESTION = "Which share of rare rows should training see?"
MOST = 3000
USUAL_SECONDS = 3.5
WAYS = ("subset", "weights", "fresh")


def ask(sample: Sample) -> Answer:
    """What the rows at hand can gain, by leaving common ones out or by weights, and what fresh ones would."""
    rows = sample.rows(MOST, "ratio", least=200)
    rare = int(sample.counts[sample.rare])
    pool = (rare, int(sample.counts.sum()) - rare)
    if pool[0] > pool[1]:
        raise ValueError("the rarest class is not rarer than the others together")
    mine = sample.y[rows] == sample.rare
    advice = advise_training(sample.encoded(rows), mine, pool=pool, random_state=sample.random("ratio"))
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
        "verdict": advice.verdict, "best": plan.best, "as_is": plan.as_is, **ways, "share": rare / sum(pool),
        "samples_per_dim": advice.samples_per_dim, "temperature": advice.temperature,
    }  # fmt: skip
    return Answer("note", values, {"plan": plan, "doubts": advice.reasons})
