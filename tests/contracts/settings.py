"""How the contract suites build each class: quick settings, and checks that a class cannot pass, each with
its reason.

A class that is not listed is built with its defaults; a new slow one adds its line here.
"""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module
from typing import Any

import pytest


def _quick_conditional() -> dict[str, Any]:
    from equipoise.classifiers import NeuralClassifier

    return {"estimator": NeuralClassifier(**QUICK["NeuralClassifier"])}


QUICK: dict[str, dict[str, Any]] = {
    "BAGAN": {"latent": 4, "widths": (16,), "pretrain_epochs": 1, "epochs": 1},
    "DeepSMOTE": {"latent": 4, "widths": (16,), "epochs": 1},
    "GAMO": {"width": 32, "epochs": 1},
    "GenerativeClassifier": {"latent": 8, "widths": (64,), "epochs": 12, "batch_size": 32, "lr": 0.01},
    "AutoencoderClassifier": {"epochs": 8, "lr": 0.02, "decode": False, "mixing": "beta"},
    "AutoencoderOversampler": {"epochs": 1, "plan_params": {"adversarial": False}},
    "ConditionalRegressor": {"module_params": {"hidden": (16,)}, "epochs": 25, "batch_size": 32, "lr": 0.02},
    "NeuralClassifier": {"module_params": {"hidden": (16,)}, "epochs": 15, "batch_size": 32, "lr": 0.02},
}

_ROUNDING = "float32: a row alone and in a batch agree to rounding, not to the 1e-7 that is asked"
_ORDER = "batches are drawn by row number, so repeating a row is not the same stream as weighing it"
CANNOT: dict[str, dict[str, str]] = {
    "AutoencoderClassifier": {
        "check_methods_subset_invariance": _ROUNDING,
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
    "GenerativeClassifier": {
        "check_methods_subset_invariance": _ROUNDING,
    },
    "NeuralClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
    "ConditionalRegressor": {
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
    "MetaClassifier": {
        "check_methods_subset_invariance": _ROUNDING,
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
    "ConditionalClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _ORDER,
        "check_sample_weight_equivalence_on_sparse_data": _ORDER,
    },
}


def classes_of(room: str, method: str) -> list[type]:
    """The public classes of a room that have a method; modules are imported, so nothing hides."""
    package = import_module(f"equipoise.{room}")
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        import_module(module.name)
    found = [getattr(package, name) for name in getattr(package, "__all__", [])]
    classes = [thing for thing in found if inspect.isclass(thing) and not inspect.isabstract(thing)]
    return [cls for cls in classes if hasattr(cls, method)]


def as_list(mark: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """The same parametrization from a list: pytest no longer wants the generator that libraries give it."""
    names, cases = mark.args
    return pytest.mark.parametrize(names, list(cases), **mark.kwargs)


def build(cls: type) -> Any:
    around = {"ConditionalClassifier": _quick_conditional, "MetaClassifier": _quick_meta}
    quick = around.get(cls.__name__)
    params = dict(QUICK.get(cls.__name__, {})) if quick is None else quick()
    if "random_state" in inspect.signature(cls).parameters:
        params.setdefault("random_state", 0)
    return cls(**params)


def _quick_meta() -> dict[str, Any]:
    from equipoise.classifiers import NeuralClassifier

    base = NeuralClassifier(
        module_params={"hidden": (16,)}, epochs=12, batch_size=32, lr=0.1, optimizer="sgd"
    )
    return {"estimator": base, "meta_set": 1, "warmup": 0.75}


def expected_failures(estimator: Any) -> dict[str, str]:
    return CANNOT.get(type(estimator).__name__, {})
