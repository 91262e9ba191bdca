"""MetaClassifier: methods, meta rows, resume, processes, views, bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification

from equipoise._core.sealed import sealing
from equipoise.classifiers import MetaClassifier, NeuralClassifier
from equipoise.classifiers.meta_pictures import plot_offset_curve, plot_scatter, plot_weights_over_time
from equipoise.training import Callback


def base(**params):
    return NeuralClassifier(
        **{"module_params": {"hidden": (16,)}, "optimizer": "sgd", "lr": 0.1, "epochs": 8, "batch_size": 50}
        | params
    )


@pytest.fixture(scope="module")
def table():
    return make_classification(
        500, 8, n_informative=5, n_classes=3, weights=[0.7, 0.2], class_sep=1.5, random_state=1
    )


@pytest.mark.parametrize("method", ["meta-enum", "mwn", "metasaug"])
def test_every_method_learns(table, method):
    X, y = table
    clf = MetaClassifier(method, estimator=base(epochs=12), warmup=0.5, random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.8
    assert clf.history_["meta_loss"].notna().sum() == 6
    assert clf.weights_over_time().index.tolist() == list(range(7, 13))
    proba = clf.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1)
    again = MetaClassifier(method, estimator=base(epochs=12), warmup=0.5, random_state=0).fit(X, y)
    assert np.array_equal(proba, again.predict_proba(X))


def test_images():
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 3].reshape(-1, 8, 8), y[y < 3]
    net = base(module="convnet", module_params={"widths": (8, 16)}, epochs=6)
    assert MetaClassifier(estimator=net, random_state=0).fit(X, y).score(X, y) > 0.9


def test_meta_rows_are_balanced_and_held_out(table):
    X, y = table
    clf = MetaClassifier(estimator=base(epochs=3), meta_set=5, hold_out=True, random_state=0).fit(X, y)
    assert np.bincount(y[clf.meta_rows_]).tolist() == [5, 5, 5]
    assert float(clf.learned_.class_counts.sum()) == len(y) - 15
    assert len(clf.learned_.counter.visits) == len(y) - 15
    assert (clf.learned_.counter.visits == 3).all()
    shared = MetaClassifier(estimator=base(epochs=3), meta_set=5, hold_out=False, random_state=0).fit(X, y)
    assert float(shared.learned_.class_counts.sum()) == len(y)
    assert np.allclose(clf.data_prior_, np.bincount(y) / len(y))


@pytest.mark.parametrize(
    ("method", "preset", "trained", "learning"),
    [
        ("meta-enum", "default", 500, 6),  # of nine epochs three warm up
        ("meta-enum", "paper", 485, 3),
        ("metasaug", "default", 500, 4),
        ("metasaug", "paper", 485, 1),
        ("mwn", "default", 500, 9),
        ("mwn", "paper", 485, 9),
    ],
)
def test_presets_say_what_is_not_said(table, method, preset, trained, learning):
    X, y = table
    clf = MetaClassifier(method, preset=preset, estimator=base(epochs=9), meta_set=5, random_state=0).fit(
        X, y
    )
    assert int(clf.learned_.class_counts.sum()) == trained
    assert len(clf.weights_over_time()) == learning
    assert clf.score(X, y) > 0.6
    given = MetaClassifier(method, preset=preset, hold_out=False, warmup=1.0, estimator=base(epochs=3))
    assert len(given.fit(X, y).weights_over_time()) == 0


def test_meta_set_by_row_numbers(table):
    X, y = table
    rows = np.concatenate([np.flatnonzero(y == code)[:4] for code in range(3)])
    clf = MetaClassifier(estimator=base(epochs=3), meta_set=rows, random_state=0).fit(X, y)
    assert np.array_equal(clf.meta_rows_, np.sort(rows))


def test_a_class_of_one_sample_serves_both(table):
    X, y = table
    kept = np.r_[np.flatnonzero(y != 2), np.flatnonzero(y == 2)[:1]]
    with pytest.warns(UserWarning, match=r"2: 1 of 1"):
        clf = MetaClassifier(estimator=base(epochs=3), random_state=0).fit(X[kept], y[kept])
    assert clf.learned_.class_counts[2] == 1


class _Die(Callback):
    """Stops the run with an error after some epochs."""

    def __init__(self, after):
        self._after = after  # private: no setting that the run depends on

    def on_epoch_start(self, run):
        if run.epoch >= self._after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("method", ["meta-enum", "metasaug", "mwn"])
def test_resume_ends_with_the_same_bits(table, method, tmp_path):
    X, y = table

    def make(callbacks, checkpoint):
        net = base(epochs=6, callbacks=callbacks, checkpoint=checkpoint)
        return MetaClassifier(method, estimator=net, warmup=0.3, random_state=0)

    whole = make([_Die(99)], None).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        make([_Die(4)], tmp_path).fit(X, y)
    resumed = make([_Die(99)], tmp_path).fit(X, y)
    assert np.array_equal(whole.predict_proba(X), resumed.predict_proba(X))
    for one, two in zip(
        whole.learned_.state_dict().values(), resumed.learned_.state_dict().values(), strict=True
    ):
        assert torch.equal(one, two)
    assert whole.weights_over_time().equals(resumed.weights_over_time())


@pytest.mark.slow
def test_two_processes_equal_one(table):
    X, y = table
    params = {"module_params": {"hidden": (16,), "activation": "tanh"}, "epochs": 3, "batch_size": 49}
    weight = np.linspace(0.5, 1.5, len(y))
    one, two = (
        MetaClassifier(estimator=base(**params, num_processes=n), warmup=0.3, clip=0.5, random_state=0).fit(
            X, y, weight
        )
        for n in (1, 2)
    )
    for alone, shared in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.allclose(alone, shared, rtol=0, atol=1e-5)
    assert torch.equal(one.learned_.counter.visits, two.learned_.counter.visits)
    assert torch.allclose(one.learned_.statistics.sigma, two.learned_.statistics.sigma, atol=1e-5)
    for alone, shared in zip(one.learned_.parameters(), two.learned_.parameters(), strict=True):
        assert torch.allclose(alone, shared, rtol=0, atol=1e-4)


@pytest.mark.parametrize("method", ["meta-enum", "metasaug", "mwn"])
def test_save_and_load_keep_all_that_was_learned(table, method, tmp_path):
    X, y = table
    names = np.array(["fine", "worn", "broken"])
    clf = MetaClassifier(method, estimator=base(epochs=4), meta_set=5, warmup=0.5, random_state=0)
    clf.fit(X, names[y]).save(tmp_path / "model")
    again = MetaClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.predict(X[:5]).tolist() == clf.predict(X[:5]).tolist()
    assert again.get_params()["meta_set"] == 5
    np.testing.assert_array_equal(again.meta_rows_, clf.meta_rows_)
    assert again.weights_over_time().equals(clf.weights_over_time())
    view = {"meta-enum": "offset_curve", "metasaug": "scatter", "mwn": "weight_curve"}[method]
    assert getattr(again, view)().equals(getattr(clf, view)())
    with sealing(tmp_path / "model2") as folder:
        NeuralClassifier(epochs=1, random_state=0).fit(X, y).save(folder / "learned")
    with pytest.raises(ValueError, match="must hold a MetaClassifier"):
        MetaClassifier.load(tmp_path / "model2")


def test_views_and_their_pictures(table):
    X, y = table
    labels = np.array(["<b>a</b>", "b $x$", "c"])[y]
    clf = MetaClassifier(estimator=base(epochs=6), warmup=0.5, random_state=0).fit(X, labels)
    curve = clf.offset_curve()
    assert curve.shape == (99, 3)
    assert curve.to_numpy().min() >= 0
    assert curve.to_numpy().max() <= 1
    scatter = clf.scatter()
    assert (np.diag(scatter) == 0).all()
    assert (scatter.to_numpy() >= 0).all()
    assert clf.weights_over_time().shape == (3, 3)
    for plot in (plot_offset_curve, plot_scatter, plot_weights_over_time):
        figure = plot(clf)
        figure.canvas.draw()
    with pytest.raises(ValueError, match="only 'mwn'"):
        clf.weight_curve()


def test_views_of_a_weighting_network(table):
    X, y = table
    clf = MetaClassifier("mwn", estimator=base(epochs=2), random_state=0).fit(X, y)
    assert clf.weight_curve([0.0, 1.0]).between(0, 1).all()
    with pytest.raises(ValueError, match="only 'meta-enum'"):
        clf.offset_curve()
    with pytest.raises(ValueError, match="no covariances"):
        clf.scatter()


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"method": "maml"}, ValueError, "method must be one of"),
        ({"meta_set": 0}, ValueError, "per_class must be"),
        ({"meta_set": [0.5, 1.5]}, TypeError, "meta_set must be a number or row numbers"),
        ({"meta_set": [5000]}, ValueError, "meta_set must lie in"),
        ({"method_params": {"gamma": 1}}, TypeError, "gamma"),
    ],
)
def test_bad_input(table, params, error, message):
    X, y = table
    with pytest.raises(error, match=message):
        MetaClassifier(**{"estimator": base(epochs=1), "random_state": 0} | params).fit(X, y)


def test_a_meta_set_that_lacks_a_class_says_so(table):
    X, y = table
    rows = np.concatenate([np.flatnonzero(y == code)[:4] for code in (0, 1)])
    with pytest.warns(UserWarning, match=r"no sample of classes \[2\]"):
        MetaClassifier(estimator=base(epochs=1), meta_set=rows, random_state=0).fit(X, y)


def test_the_page_runs():
    import doctest
    from pathlib import Path

    page = Path(__file__).parents[2] / "docs" / "explanation" / "meta.md"
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.testfile(str(page), module_relative=False, optionflags=flags, encoding="utf-8")
    assert results.attempted > 5
    assert results.failed == 0
