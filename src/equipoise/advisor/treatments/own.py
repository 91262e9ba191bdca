"""Equipoise's own treatments: networks made for imbalance, and its oversamplers before any learner.

All give probabilities for the data's class shares, whatever they were trained to.
"""

from __future__ import annotations

import functools
from typing import Any

from equipoise.advisor.treatments._contract import Context, Range, Treatment
from equipoise.advisor.treatments.baselines import make_smote


def _standardized(model: Any) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), model)


def _network(context: Context, *, epochs: int, lr: float, weight_decay: float, **more: Any) -> Any:
    from equipoise.classifiers import NeuralClassifier

    decay = {"weight_decay": weight_decay}
    return NeuralClassifier(
        epochs=epochs, lr=lr, optimizer_params=decay, random_state=context.seed, verbose=False, **more
    )


def _neural(context: Context, *, loss: str, sampler: str | None, **settings: Any) -> Any:
    return _standardized(_network(context, loss=loss, sampler=sampler, **settings))


def _conditional(context: Context, **settings: Any) -> Any:
    from equipoise.advisor.treatments._held_out_tuning import HeldOutTuning
    from equipoise.classifiers import ConditionalClassifier

    model = ConditionalClassifier("vs", estimator=_network(context, **settings), random_state=context.seed)
    return _standardized(HeldOutTuning(model, random_state=context.seed))


def _autoencoder(context: Context, *, epochs: int, lr: float, weight_decay: float) -> Any:
    from equipoise.classifiers import AutoencoderClassifier

    return _standardized(
        AutoencoderClassifier(
            epochs=epochs, lr=lr, weight_decay=weight_decay, random_state=context.seed, verbose=False
        )
    )


def _sampled(context: Context, sampler: Any) -> Any:
    from equipoise.classifiers import ResampledClassifier

    return _standardized(ResampledClassifier(context.base(), sampler))


def _smote(context: Context, *, k_neighbors: int) -> Any:
    return _sampled(context, make_smote(context, k_neighbors))


def _by_own_sampler(context: Context, *, sampler: str, **settings: Any) -> Any:
    from equipoise import oversampling

    return _sampled(context, getattr(oversampling, sampler)(random_state=context.seed, **settings))


def _trained(name: str, summary: str, build: Any, **more: Any) -> Treatment:
    return Treatment(
        name,
        summary,
        build,
        defaults={"epochs": 30, "lr": 3e-3, "weight_decay": 1e-2},
        space={"lr": Range(3e-4, 3e-2, log=True), "weight_decay": Range(1e-4, 1.0, log=True)},
        takes_learner=False,
        **more,
    )


def _with_loss(name: str, summary: str, loss: str, sampler: str | None = None) -> Treatment:
    return _trained(name, summary, functools.partial(_neural, loss=loss, sampler=sampler))


def _with_sampler(
    sampler: str, name: str, shown: str, defaults: dict[str, Any], space: dict[str, Range], **fixed: Any
) -> Treatment:
    build = functools.partial(_by_own_sampler, sampler=sampler, **fixed)
    return Treatment(name, f"{shown} on standardized features", build, defaults=defaults, space=space)


TREATMENTS = [
    _with_loss("neural", "a small network with cross-entropy", "ce"),
    _with_loss("neural-balanced", "a small network on class-balanced batches", "ce", "balanced"),
    _with_loss("neural-logit-adjusted", "a small network with logit adjustment", "logit_adjusted"),
    _with_loss("neural-ldam", "a small network with label-distribution-aware margins", "ldam"),
    _with_loss("neural-nenum", "a small network with effective numbers and data scatter", "nenum"),
    _trained(
        "conditional",
        "a loss-conditional network, its operating point tuned on a quarter of the training rows",
        _conditional,
        multiclass=False,
    ),
    _trained("autoencoder", "classes kept apart and mixed in an auto-encoder's latent space", _autoencoder),
    Treatment(
        "smote-corrected",
        "SMOTE on standardized features, probabilities at the data's class shares",
        _smote,
        defaults={"k_neighbors": 5},
        space={"k_neighbors": Range(1, 10)},
    ),
    _with_sampler("MCCCR", "mc-ccr", "MC-CCR", {"energy": 0.25}, {"energy": Range(0.05, 5.0, log=True)}),
    _with_sampler(
        "MCRBO", "mc-rbo", "MC-RBO", {"gamma": 0.05}, {"gamma": Range(0.05, 5.0, log=True)}, n_steps=100
    ),
    _with_sampler("AMDO", "amdo", "AMDO", {"k_neighbors": 10}, {"k_neighbors": Range(5, 15)}),
]
