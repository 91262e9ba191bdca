"""imbalanced-learn's checks on every sampler; classes are found, not listed."""

from __future__ import annotations

import numpy as np
import pytest
from imblearn.utils.estimator_checks import parametrize_with_checks
from sklearn.datasets import make_classification

from contracts.settings import as_list, build, classes_of, expected_failures

# Settings that are quick make poor rows, and the gate says so.
pytestmark = pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")

CLASSES = classes_of("oversampling", "fit_resample")
NAMES = [cls.__name__ for cls in CLASSES]


@as_list(parametrize_with_checks([build(cls) for cls in CLASSES], expected_failed_checks=expected_failures))
def test_imbalanced_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", CLASSES, ids=NAMES)
def test_same_seed_same_rows(cls):
    X, y = make_classification(120, 5, weights=[0.8], random_state=0)
    first, second = (build(cls).fit_resample(X, y) for _ in range(2))
    for one, two in zip(first, second, strict=True):
        assert np.array_equal(one, two)
