"""scikit-learn's checks on every classifier; classes are found, not listed."""

from __future__ import annotations

import inspect
import pkgutil
from importlib import import_module

from sklearn.utils.estimator_checks import parametrize_with_checks

from contracts.settings import as_list, build, classes_of, expected_failures

CLASSES = classes_of("classifiers", "predict")


@as_list(parametrize_with_checks([build(cls) for cls in CLASSES], expected_failed_checks=expected_failures))
def test_scikit_learn(estimator, check):
    check(estimator)


def test_none_is_left_out():
    """A classifier in any module of the room is exported, so that this suite sees it."""
    room = import_module("equipoise.classifiers")
    defined = {
        name
        for module in pkgutil.walk_packages(room.__path__, room.__name__ + ".")
        for name, thing in vars(import_module(module.name)).items()
        if inspect.isclass(thing)
        and thing.__module__ == module.name
        and hasattr(thing, "predict")
        and not name.startswith("_")
    }
    assert defined <= {cls.__name__ for cls in CLASSES}
    assert {"NeuralClassifier", "ResampledClassifier"} <= defined
