"""Logistic regression, plain and with the two cheapest treatments: class weights and a tuned threshold."""

from __future__ import annotations

from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment, balanced_prior
from equipoise.advisor._old_treatments._parts import LINEAR_SETTINGS, linear, pipeline


def _plain(task: Task, seed: int) -> Any:
    return pipeline(task, seed, linear(seed))


def _weighted(task: Task, seed: int) -> Any:
    return pipeline(task, seed, linear(seed, class_weight="balanced"))


TREATMENTS = [
    Treatment(
        "plain", "Logistic regression, plain", "the classes separate well enough without help",
        _plain, LINEAR_SETTINGS, decision="argmax", order=0, baseline=True,
    ),
    Treatment(
        "class_weight", "Logistic regression, class weights",
        "weighting the rare class moves the boundary off it",
        _weighted, LINEAR_SETTINGS, decision="argmax", trained_prior=balanced_prior, order=1, baseline=True,
    ),
    Treatment(
        "threshold", "Logistic regression, tuned threshold",
        "the ranking of a plain model is sound and only its threshold was wrong",
        _plain, LINEAR_SETTINGS, order=2, baseline=True,
    ),
    Treatment(
        "weights_threshold", "Logistic regression, class weights and tuned threshold",
        "weights and a tuned threshold together move the boundary where the errors balance",
        _weighted, LINEAR_SETTINGS, trained_prior=balanced_prior, order=3, baseline=True,
    ),
]  # fmt: skip
