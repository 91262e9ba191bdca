"""AutoencoderOversampler: rows that look like their class, provenance that explains them, tables and images."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from imblearn.pipeline import make_pipeline
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from equipoise.oversampling import AutoencoderOversampler
from sampler_cases import blobs, mixed

FAST = {"epochs": 12, "batch_size": 32, "random_state": 0}
QUIET = pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")


@QUIET
def test_decodes_mixes_of_its_parents():
    X, y = blobs()
    sampler = AutoencoderOversampler(**{**FAST, "epochs": 20}, lr=1e-2, plan_params={"lr": 5e-3}, n_mixed=3)
    X_new, y_new = sampler.fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [120, 120, 120]
    made = sampler.provenance_
    assert np.allclose(made.weights.sum(axis=1), 1)
    assert (y[made.parents] == y_new[made.synthetic][:, None]).all()
    assert (np.sort(made.parents, axis=1)[:, 1:] != np.sort(made.parents, axis=1)[:, :-1]).all()
    for code in (1, 2):
        own, new = X[y == code], X_new[len(X) :][y_new[len(X) :] == code]
        assert np.abs(new.mean(axis=0) - own.mean(axis=0)).max() < 0.6


@QUIET
def test_images_keep_their_range_and_class():
    X, y = load_digits(n_class=2, return_X_y=True)
    keep = (y == 0) | (np.arange(len(y)) < 80)
    X, y = X[keep], y[keep]
    sampler = AutoencoderOversampler(**{**FAST, "epochs": 15}, image_shape=(8, 8), latent=8)
    X_new, y_new = sampler.fit_resample(X, y)
    new = X_new[len(X) :]
    assert new.min() >= 0
    assert new.max() <= 16
    judge = LogisticRegression(max_iter=500).fit(X, y)
    assert (judge.predict(new) == y_new[len(X) :]).mean() > 0.9


@QUIET
def test_mixed_table_comes_back_as_it_was():
    frame, y = mixed()
    new, labels = AutoencoderOversampler(**{**FAST, "epochs": 3}, mixing="beta").fit_resample(frame, y)
    assert (new.dtypes == frame.dtypes).all()
    assert set(new["city"]) <= set(frame["city"])
    assert (labels == "fraud").sum() == 100


@QUIET
def test_works_in_a_pipeline_and_repeats():
    X, y = blobs((80, 30))
    pipeline = make_pipeline(AutoencoderOversampler(**{**FAST, "epochs": 3}), LogisticRegression())
    assert cross_validate(pipeline, X, y, cv=2)["test_score"].mean() > 0.7
    one, two = (AutoencoderOversampler(**{**FAST, "epochs": 2}).fit_resample(X, y)[0] for _ in range(2))
    assert np.array_equal(one, two)


@QUIET
def test_one_sample_class_constant_column_and_wrong_shape():
    X, y = blobs((30, 1))
    X[:, 1] = 4.0
    X_new, y_new = AutoencoderOversampler(**{**FAST, "epochs": 2}).fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [30, 30]
    assert (X_new[:, 1] == 4.0).all()
    with pytest.raises(ValueError, match=r"image_shape \(2, 2\) does not fit"):
        AutoencoderOversampler(image_shape=(2, 2)).fit_resample(X, y)
    with pytest.raises(ValueError, match="never removes rows"):
        AutoencoderOversampler(sampling_strategy={0: 3}).fit_resample(X, y)


def test_the_room_does_not_load_torch():
    code = "import sys, equipoise.oversampling; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
