"""Features of pictures: what they see and what they do not."""

from __future__ import annotations

import numpy as np
import pytest

from equipoise.datasets.image_features import ImageEncoder
from pictures import stripes


def test_stripes_that_no_pixel_tells_apart_are_told_apart() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import average_precision_score

    X, y = stripes(400, 0)
    fresh, truth = stripes(400, 1)
    encoder = ImageEncoder((16, 16, 1), for_trees=False).fit(X)
    model = LogisticRegression().fit(encoder.transform(X), y)
    pixels = LogisticRegression(max_iter=500).fit(X, y)
    assert average_precision_score(truth, model.predict_proba(encoder.transform(fresh))[:, 1]) > 0.99
    assert average_precision_score(truth, pixels.predict_proba(fresh)[:, 1]) < 0.5


def test_edges_do_not_change_with_the_contrast() -> None:
    X = np.random.default_rng(0).random((6, 20 * 24))
    encoder = ImageEncoder((20, 24, 1))
    one, three = encoder.fit_transform(X), encoder.transform(3 * X + 2)
    same = np.isclose(one, three, atol=1e-6).all(axis=0)
    assert same.sum() == 2 * 8 * (16 + 4 + 1)  # the histograms at two sizes; brightness and strength change


def test_a_row_has_the_same_features_alone_and_among_others() -> None:
    X = np.random.default_rng(0).random((1030, 8 * 8 * 3)).astype(np.float32)
    encoder = ImageEncoder((8, 8, 3), for_trees=False).fit(X)
    np.testing.assert_allclose(encoder.transform(X)[1025:1026], encoder.transform(X[1025:1026]), atol=1e-12)
    assert len(encoder.get_feature_names_out()) == encoder.n_features_out_


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 3), (3, 2, 1), (64, 5, 3)])
def test_any_shape_gives_finite_features(shape: tuple[int, int, int]) -> None:
    X = np.random.default_rng(0).random((4, int(np.prod(shape))))
    X[0, 0] = np.nan
    assert np.isfinite(ImageEncoder(shape, for_trees=False).fit_transform(X)).all()


def test_another_number_of_pixels_is_refused() -> None:
    with pytest.raises(ValueError, match=r"64 columns, one a pixel of \(8, 8, 1\)"):
        ImageEncoder((8, 8, 1)).fit(np.zeros((3, 63)))
