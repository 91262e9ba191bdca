"""Whole recipes of training by name: those that the studies found none better than, whoever invented them."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from equipoise._core.checks import check_choice
from equipoise.theory.effective_number import effective_number_weights
from equipoise.training import DeferredReweighting

T = TypeVar("T")


def _equipoise() -> dict[str, Any]:
    """LDAM-DRW: the least error in meta-fashion-lt; losses-recipe finds none better beyond the paired interval."""
    return {
        "loss": "ldam",
        "loss_params": {"max_margin": 0.3},
        "optimizer": "sgd",
        "optimizer_params": {"weight_decay": 5e-4},
        "lr": 0.1,
        "batch_size": 100,
        "step_params": {"clip": 5.0},
        "callbacks": [DeferredReweighting(functools.partial(effective_number_weights, beta=0.999))],
    }


RECIPES: dict[str, Callable[[], dict[str, Any]]] = {"equipoise": _equipoise}
"""Settings of :class:`~equipoise.classifiers.NeuralClassifier` by the name of a recipe."""


def with_recipe(estimator: T, recipe: str | None) -> T:
    """A copy of an estimator with a recipe's settings wherever it has its defaults.

    A loss that was given comes with its own parameters and callbacks: the recipe's belong to the recipe's loss.
    """
    if recipe is None:
        return estimator
    check_choice("recipe", recipe, RECIPES)
    defaults = inspect.signature(type(estimator).__init__).parameters
    settings = RECIPES[recipe]()
    if getattr(estimator, "loss") != defaults["loss"].default:  # noqa: B009
        settings = {name: v for name, v in settings.items() if name not in ("loss_params", "callbacks")}
    planned = copy.copy(estimator)
    for name, value in settings.items():
        if getattr(estimator, name) == defaults[name].default:
            setattr(planned, name, value)
    return planned
