"""Classical samplers against imbalanced-learn's SMOTEENN on the same 10,000 × 50 table, in one run."""

from __future__ import annotations

import time

import pytest
from imblearn.combine import SMOTEENN
from sklearn.datasets import make_classification

from equipoise.oversampling import AMDO, MCCCR, MCRBO


@pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
def test_classical_samplers_within_twenty_times_smoteenn(record_property):
    X, y = make_classification(10_000, 50, n_informative=20, weights=[0.9], random_state=0)

    def seconds(sampler):
        start = time.perf_counter()
        sampler.fit_resample(X, y)
        return time.perf_counter() - start

    base = min(seconds(SMOTEENN(random_state=0)) for _ in range(2))
    for sampler in (AMDO(random_state=0), MCCCR(random_state=0), MCRBO(random_state=0)):
        ratio = seconds(sampler) / base
        record_property(type(sampler).__name__, round(ratio, 2))
        print(f"{type(sampler).__name__}: {ratio:.2f} × SMOTEENN")
        assert ratio <= 20
