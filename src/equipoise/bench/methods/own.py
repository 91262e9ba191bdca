"""Equipoise's own treatments: networks with losses for imbalance, and its oversamplers before any learner."""

from __future__ import annotations

import functools
from typing import Any

from equipoise.bench.methods import Context, Method, Range


def _neural(
    context: Context, *, loss: str, sampler: str | None, epochs: int, lr: float, weight_decay: float
) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from equipoise.classifiers import NeuralClassifier

    network = NeuralClassifier(
        loss=loss,
        sampler=sampler,
        epochs=epochs,
        lr=lr,
        optimizer_params={"weight_decay": weight_decay},
        random_state=context.seed,
        verbose=False,
    )
    return make_pipeline(StandardScaler(), network)


def _sampled(context: Context, sampler: Any) -> Any:
    from imblearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), sampler, context.base())


def _mc_ccr(context: Context, *, energy: float) -> Any:
    from equipoise.oversampling import MCCCR

    return _sampled(context, MCCCR(energy=energy, random_state=context.seed))


def _mc_rbo(context: Context, *, gamma: float) -> Any:
    from equipoise.oversampling import MCRBO

    return _sampled(context, MCRBO(gamma=gamma, n_steps=100, random_state=context.seed))


def _amdo(context: Context, *, k_neighbors: int) -> Any:
    from equipoise.oversampling import AMDO

    return _sampled(context, AMDO(k_neighbors=k_neighbors, random_state=context.seed))


def _network(name: str, summary: str, loss: str, sampler: str | None = None) -> Method:
    return Method(
        name,
        summary,
        functools.partial(_neural, loss=loss, sampler=sampler),
        defaults={"epochs": 30, "lr": 3e-3, "weight_decay": 1e-2},
        space={"lr": Range(3e-4, 3e-2, log=True), "weight_decay": Range(1e-4, 1.0, log=True)},
        takes_learner=False,
    )


METHODS = [
    _network("neural", "a small network with cross-entropy", "ce"),
    _network("neural-balanced", "a small network on class-balanced batches", "ce", "balanced"),
    _network("neural-logit-adjusted", "a small network with logit adjustment", "logit_adjusted"),
    _network("neural-ldam", "a small network with label-distribution-aware margins", "ldam"),
    Method(
        "mc-ccr",
        "MC-CCR on standardized features",
        _mc_ccr,
        defaults={"energy": 0.25},
        space={"energy": Range(0.05, 5.0, log=True)},
    ),
    Method(
        "mc-rbo",
        "MC-RBO on standardized features",
        _mc_rbo,
        defaults={"gamma": 0.05},
        space={"gamma": Range(0.05, 5.0, log=True)},
    ),
    Method(
        "amdo",
        "AMDO on standardized features",
        _amdo,
        defaults={"k_neighbors": 10},
        space={"k_neighbors": Range(5, 15)},
    ),
]
