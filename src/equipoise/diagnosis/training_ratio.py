"""What another training share would bring for the rows at hand, by the solvable model of anomaly detection."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, PALETTE, Figure, new_figure, scatter
from equipoise.theory.anomaly import PoolPlan, TrainingAdvice, advise_training

ORDER = 100
QUESTION = "Which share of rare rows should training see?"
MOST = 3000
_LABELS = {"subset": "leaving common rows out", "weights": "weighting the classes", "fresh": "fresh rows"}
_STYLES = {
    "subset": (COLORS["majority"], "solid"),
    "weights": (COLORS["accent"], "solid"),
    "fresh": (PALETTE[2], "dot"),
}
_CAPTION = (
    "Pezzicoli, Ros, Landes & Baity-Jesi: a perceptron that learns a hyperplane cut into one Gaussian "
    "population, with the load and the noise at which it does what a linear classifier does on these rows. "
    "Leaving rows out and class weights use the rows at hand; the dotted line would need as many fresh rows at "
    "that share. The model knows no label noise, no ridge penalty and no other shape of features."
)


def compute(sample: Sample) -> TrainingAdvice:
    """The model's advice for the rarest class against the others."""
    rows = sample.rows(MOST, "ratio", least=200)
    rare = int(sample.counts[sample.rare])
    pool = (rare, int(sample.counts.sum()) - rare)
    if pool[0] > pool[1]:
        raise ValueError("the rarest class is not rarer than the others together")
    mine = sample.y[rows] == sample.rare
    return advise_training(sample.encoded(rows), mine, pool=pool, random_state=sample.random("ratio"))


def ask(sample: Sample) -> Finding:
    """What the rows at hand can gain, and what fresh ones would."""
    advice = compute(sample)
    return Finding(
        "training_ratio", QUESTION, _answer(advice), "note", _values(advice), [_figure(advice.plan)]
    )


def _answer(advice: TrainingAdvice) -> str:
    plan = advice.plan
    gains = ", ".join(
        f"{label} {getattr(plan, way).gain_at_half:+.3f} ({low:+.3f} to {high:+.3f})"
        for way, label in _LABELS.items()
        for low, high in [advice.half_interval[way]]
    )
    best = {
        "subset": f"the best is to keep {plan.subset.n_negative:,} of the {plan.n_negative:,} common rows, "
        f"a share of {plan.subset.train_fraction:.2f} ({plan.subset.gain:+.3f})",
        "weights": "the best is to weight the classes so that the rare one has "
        f"{plan.weights.train_fraction:.0%} of the weight ({plan.weights.gain:+.3f})",
        "as is": "the best is to train on all rows as they are",
    }[plan.best]
    worth = {
        "usable": "The solvable model of anomaly detection fits data like these.",
        "weak": "The solvable model of anomaly detection fits these data only in part.",
        "worthless": "The solvable model of anomaly detection does not apply to these data.",
    }[advice.verdict]
    doubts = " ".join(reason.removeprefix("Worthless: ").capitalize() for reason in advice.reasons)
    return (
        f"{worth} {doubts}{' ' if doubts else ''}With the rows at hand {best} in balanced accuracy. "
        f"At equal shares the model expects: {gains}."
    )


def _values(advice: TrainingAdvice) -> dict[str, Any]:
    plan = advice.plan
    ways = {
        way: {
            "share": getattr(plan, way).train_fraction,
            "gain": getattr(plan, way).gain,
            "gain_interval": advice.gain_interval[way],
            "gain_at_half": getattr(plan, way).gain_at_half,
            "gain_at_half_interval": advice.half_interval[way],
        }
        for way in _LABELS
    }
    return {
        "verdict": advice.verdict, "best": plan.best, "as_is": plan.as_is, **ways,
        "share": plan.n_positive / (plan.n_positive + plan.n_negative),
        "samples_per_dim": advice.samples_per_dim, "temperature": advice.temperature,
    }  # fmt: skip


def _figure(plan: PoolPlan) -> Figure:
    traces = [
        scatter(x=plan.shares, y=np.round(getattr(plan, f"{way}_curve"), 4), mode="lines", name=label,
                   line={"color": _STYLES[way][0], "width": 2.5, "dash": _STYLES[way][1]},
                   hovertemplate=f"{label}<br>share %{{x:.2f}}<br>balanced accuracy %{{y:.3f}}<extra></extra>")
        for way, label in _LABELS.items()
    ]  # fmt: skip
    own = plan.n_positive / (plan.n_positive + plan.n_negative)
    traces.append(
        scatter(x=[own], y=[plan.as_is], mode="markers", name="all rows as they are",
                   marker={"color": COLORS["minority"], "size": 12},
                   hovertemplate=f"all rows, share {own:.3f}<br>balanced accuracy %{{y:.3f}}<extra></extra>")
    )  # fmt: skip
    figure = new_figure(
        *traces, x="share of rare rows (or of their weight) in training", y="in the solvable model"
    )
    return Figure(figure, _CAPTION, "Theory: what the pool of rows gives at every training share.", 340)
