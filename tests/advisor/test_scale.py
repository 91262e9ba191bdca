"""Large tables: a sample that keeps the rare rows, the true class shares, all rows in the end, and a cluster."""

from __future__ import annotations

import copy
import functools
import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score
from sklearn.preprocessing import FunctionTransformer

import equipoise.advisor._advisor as module
from equipoise.advisor import Advisor
from equipoise.advisor.bags import FoldJob, Rows, fit_bag
from equipoise.advisor.predicting import predict_file
from equipoise.advisor.splits import make_folds
from equipoise.advisor.treatments import Context, Treatment
from equipoise.advisor.treatments._boosted import LightGBMTrees
from equipoise.datasets import read_table
from equipoise.datasets.blocks import Block, table_blocks

FAST = {"treatments": ["lightgbm", "logistic"], "trials": 0, "budget": 600}


def make_rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    score = 2.5 * (X[:, 0] + 0.6 * X[:, 1] * X[:, 2]) - 7.5
    return X, (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)


def write_parts(folder, X, y, parts=5):
    folder.mkdir()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(X.shape[1])]).assign(fraud=y)
    for number, rows in enumerate(np.array_split(np.arange(len(y)), parts)):
        frame.iloc[rows].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def data():
    return make_rows(20_000)


@pytest.fixture(scope="module")
def sampled(data):
    """An advisor that compares on a tenth of the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_COMPARED", 2_000)
        return Advisor(**FAST).fit(*data)


def test_the_delivered_model_saw_all_rows_and_says_so(sampled):
    boosted = next(bag for bag in sampled.bags_ if bag.name == "lightgbm")
    assert len(boosted.models) == 1
    text = boosted.models[0].estimator.booster_.model_to_string()
    assert (
        max(map(int, text.split("leaf_count=")[1].splitlines()[0].split())) > 2_000
    )  # more than the sample has
    notes = " ".join(sampled.notes_)
    assert "compared on 2,000 of 20,000 rows" in notes
    assert "was fitted to all 20,000 rows" in notes


def test_a_sample_keeps_the_true_class_shares(sampled, data):
    y = data[1]
    np.testing.assert_allclose(sampled.data_prior_, np.bincount(y) / len(y))
    fresh, truth = make_rows(20_000, seed=1)
    proba = sampled.predict_proba(fresh)[:, 1]
    assert proba.mean() == pytest.approx(truth.mean(), rel=0.1)
    assert (sampled.truth_ == 1).sum() == y.sum()  # every rare row was judged


def test_a_sample_judges_as_all_rows_do(sampled, data):
    """Weighted figures of the sample agree with what fresh rows show."""
    fresh, truth = make_rows(60_000, seed=2)
    shown = sampled.leaderboard_.loc[sampled.verdict_.recommended, "average_precision"]
    assert shown == pytest.approx(average_precision_score(truth, sampled.predict_proba(fresh)[:, 1]), abs=0.1)


def test_time_that_is_left_goes_into_more_rows(data, monkeypatch):
    from equipoise.advisor import all_rows

    monkeypatch.setattr(module, "MOST_COMPARED", 2_000)
    monkeypatch.setattr(all_rows, "boosting_seconds", lambda *_: 5_000.0)  # ten times what there is, it seems
    advisor = Advisor(**{**FAST, "treatments": ["lightgbm"]}).fit(*data)
    assert any("was fitted to all 20,000 rows" in note for note in advisor.notes_)


def test_time_kept_for_all_rows_follows_what_the_boosted_models_took(data, monkeypatch):
    from equipoise.advisor import all_rows

    kept = []

    def watched(rows, treatments, context, folds, budget, **more):
        kept.append(budget.aside)
        found = search(rows, treatments, context, folds, budget, **more)
        kept.append(budget.aside)
        return found

    search = module.search
    monkeypatch.setattr(module, "search", watched)
    monkeypatch.setattr(module, "MOST_COMPARED", 2_000)
    monkeypatch.setattr(all_rows, "expected_seconds", lambda *_: 1e9)  # the first guess is far off
    Advisor(**{**FAST, "treatments": ["lightgbm"], "budget": 1e6}).fit(*data)  # much, for a busy machine
    assert 0 < kept[1] < 0.1 * kept[0] < 1e9


def test_too_little_room_thins_the_frequent_rows_and_says_so(data, monkeypatch):
    from equipoise.advisor import all_rows

    monkeypatch.setattr(module, "MOST_COMPARED", 2_000)
    monkeypatch.setattr(all_rows, "AllRows", functools.partial(all_rows.AllRows, most=5_000))
    advisor = Advisor(**{**FAST, "treatments": ["lightgbm"]}).fit(*data)
    assert any("with the class shares corrected" in note for note in advisor.notes_)
    fresh, truth = make_rows(20_000, seed=1)
    assert advisor.predict_proba(fresh)[:, 1].mean() == pytest.approx(truth.mean(), rel=0.3)


def test_half_a_model_on_all_rows_does_not_replace_a_whole_one(data, monkeypatch):
    """The budget ends while the last model is fitted."""
    from equipoise.advisor.budget import Budget

    def deadline(self, share=1.0):
        return time.monotonic() + (
            1000 if share < 1 else -1
        )  # the first bag gets a part, the last fit the rest

    monkeypatch.setattr(module, "MOST_COMPARED", 2_000)
    monkeypatch.setattr(Budget, "deadline", deadline)
    advisor = Advisor(**{**FAST, "treatments": ["lightgbm"]}).fit(*data)
    assert len(advisor.bags_[0].models) == 5
    assert any(note.startswith("The delivered model is the one that was compared") for note in advisor.notes_)


class Slow:
    """A classifier that takes its time and keeps a deadline, without a clock of its own."""

    classes_ = np.array([0, 1])

    def __init__(self, deadlines, deadline):
        deadlines.append(deadline)

    def get_params(self, deep=True):
        return {}

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_every_fit_is_told_its_share_of_the_time(data):
    X, y = data[0][:500], data[1][:500] | (np.arange(500) % 7 == 0)
    told: list[float] = []
    treatment = Treatment("slow", "slow", lambda context: Slow(told, context.deadline))
    folds = make_folds(y, 4, 0)
    now = time.monotonic()
    fit_bag(treatment, Context(0), {}, Rows({"linear": X}, y, 2), folds, deadline=now + 1000)
    assert len(told) == 4
    assert told == sorted(told)
    assert told[0] == pytest.approx(now + 250, abs=5)  # an equal share for each of four
    assert told[-1] == pytest.approx(now + 1000, abs=5)  # the last may use all that is left


@pytest.mark.parametrize("trees", [5, 25])
def test_a_forest_grown_in_batches_is_the_forest_of_one_fit(data, trees):
    from sklearn.ensemble import ExtraTreesClassifier

    from equipoise.advisor.bags import _grow

    X, y = data[0][:300], data[1][:300] | (np.arange(300) % 7 == 0)
    grown = ExtraTreesClassifier(trees, random_state=0)
    _grow(grown, X, y, np.inf)
    whole = ExtraTreesClassifier(trees, random_state=0).fit(X, y)
    np.testing.assert_array_equal(grown.predict_proba(X), whole.predict_proba(X))
    stopped = ExtraTreesClassifier(100, random_state=0)
    _grow(stopped, X, y, time.monotonic() - 1)
    assert len(stopped.estimators_) == 10


@pytest.mark.parametrize("name", ["network-logit-adjusted", "network-conditional", "latent-mixing"])
def test_a_network_stops_at_its_deadline(data, name):
    pytest.importorskip("torch")
    from equipoise.advisor.treatments import get_treatment

    treatment = get_treatment(name)
    late = Context(0, n_rows=300, deadline=time.monotonic() - 1)
    X, y = data[0][:300], data[1][:300] | (np.arange(300) % 7 == 0)
    model = treatment.build(late, **{**treatment.defaults, "epochs": 1000}).fit(X, y)
    history = getattr(model, "history_", None)
    assert len(model.classifier_.history_ if history is None else history) == 1


def test_a_deadline_travels_as_seconds_that_are_left(monkeypatch):
    """The clocks of two machines have nothing in common."""
    fold = make_folds(np.array([0, 1] * 4), 2, 0)[0]
    sent = FoldJob(Treatment("t", "t", max), Context(0), {}, None, fold, time.monotonic() + 30).__getstate__()
    monkeypatch.setattr("equipoise.advisor.bags.time.monotonic", lambda: 1e6)
    arrived = object.__new__(FoldJob)
    arrived.__setstate__(sent)
    assert arrived.deadline == pytest.approx(1e6 + 30, abs=5)


def test_parts_are_never_loaded_whole(tmp_path, data, monkeypatch):
    """Only labels and a sample are read; the model sees all rows, and predicts part by part."""
    from equipoise.datasets._parquet import ParquetTable

    X, y = data
    folder = write_parts(tmp_path / "parts", X, y)
    read: list[list[str]] = []
    frame = ParquetTable.frame
    monkeypatch.setattr(
        ParquetTable, "frame", lambda self, columns: read.append(list(columns)) or frame(self, columns)
    )
    table = read_table(folder, "fraud", memory="2MiB")
    assert read == [["fraud"]]
    assert len(table) < 4_000
    assert table.counts.tolist() == np.bincount(y).tolist()
    advisor = Advisor(**FAST).fit_table(table)
    assert any("was fitted to" in note for note in advisor.notes_)
    predictions, _ = predict_file(advisor, folder)
    assert len(predictions) == len(y)
    columns = pd.DataFrame(X, columns=[f"c{i}" for i in range(6)])
    np.testing.assert_allclose(predictions["probability of 1"], advisor.predict_proba(columns)[:, 1])
    assert predictions["probability of 1"].mean() == pytest.approx(y.mean(), rel=0.3)


def test_parts_that_fit_are_a_table_like_any_other(tmp_path):
    X, y = make_rows(800)
    whole = read_table(write_parts(tmp_path / "parts", X, y), "fraud")
    parts = read_table(tmp_path / "parts", "fraud", memory="1GiB")
    np.testing.assert_array_equal(whole.X, parts.X)
    assert parts.class_totals is None


@pytest.mark.parametrize("memory", ["lots", "0GiB", "-1"])
def test_a_memory_that_is_none_is_refused(tmp_path, memory):
    folder = write_parts(tmp_path / "parts", *make_rows(100))
    with pytest.raises(ValueError, match="memory must be a size such as 2GiB"):
        read_table(folder, "fraud", memory=memory)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50, memory_limit="1GiB"
    ) as found:
        yield found


def test_a_cluster_gives_the_same_bits(cluster):
    X, y = make_rows(1_500, seed=3)
    settings = {**FAST, "trials": 2}
    local = Advisor(**settings).fit(X, y)
    spread = Advisor(**settings, engine=cluster.scheduler_address).fit(X, y)
    np.testing.assert_array_equal(local.predict_proba(X), spread.predict_proba(X))
    assert list(local.leaderboard_.index) == list(spread.leaderboard_.index)


@pytest.mark.slow
def test_a_cluster_boosts_on_parts_though_workers_are_killed(tmp_path, cluster, data, monkeypatch):
    """One worker is killed while the bags are fitted, one while LightGBM boosts on all rows."""
    from equipoise.advisor import engines

    def kill_one():
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

    killed = []
    whole = engines._while_complete

    def killing(client, work, deadline):
        def interrupted():
            if not killed:
                killed.append(True)
                kill_one()
            return work()

        return whole(client, interrupted, deadline)

    monkeypatch.setattr(engines, "_while_complete", killing)
    table = read_table(write_parts(tmp_path / "parts", *data), "fraud", memory="2MiB")
    settings = {**FAST, "treatments": ["lightgbm"]}
    threading.Timer(4, kill_one).start()
    spread = Advisor(**settings, engine=cluster.scheduler_address).fit_table(table)
    assert killed
    assert any("was fitted to all 20,000 rows" in note for note in spread.notes_)
    local = Advisor(**settings).fit_table(table)
    fresh, truth = make_rows(60_000, seed=2)
    columns = pd.DataFrame(fresh, columns=[f"c{i}" for i in range(6)])
    found, wanted = (average_precision_score(truth, a.predict_proba(columns)[:, 1]) for a in (spread, local))
    assert found > wanted - 0.02


@pytest.mark.slow
def test_a_cluster_too_slow_for_all_rows_takes_fewer_without_boosting_to_the_end(
    tmp_path, cluster, data, monkeypatch
):
    """The first workers' pace says that all rows take too long; what is left of the budget goes into fewer rows."""
    from equipoise.advisor import all_rows

    asked = []
    whole = all_rows.boost_on_cluster

    def slow(engine, shared, rows, deadline, needed):
        asked.append(sum(int(own.sum()) for _, own in rows))
        if len(asked) == 1:
            time.sleep(0.5 * (deadline - time.monotonic()))
            shared.trees.set_params(rounds=max(2, needed // 2))
        return whole(engine, shared, rows, deadline, needed)

    monkeypatch.setattr(all_rows, "boost_on_cluster", slow)
    table = read_table(write_parts(tmp_path / "parts", *data), "fraud", memory="2MiB")
    settings = {**FAST, "treatments": ["lightgbm"], "budget": 40}
    spread = Advisor(**settings, engine=cluster.scheduler_address).fit_table(table)
    assert asked[0] == 20_000 > asked[1] >= len(table)
    assert any("was fitted to" in note for note in spread.notes_)


def test_networks_are_left_out_where_workers_need_their_memory_for_all_rows(tmp_path, cluster, data):
    table = read_table(write_parts(tmp_path / "parts", *data), "fraud", memory="2MiB")
    settings = {**FAST, "treatments": ["lightgbm", "network-logit-adjusted"]}
    spread = Advisor(**settings, engine=cluster.scheduler_address).fit_table(table)
    assert any("workers have less than 2 GiB" in note for note in spread.notes_)


def test_bins_are_made_once_for_all_folds_and_stay_where_they_are(data):
    X, y = data
    rows = Rows({"trees": X}, y, 2)
    made = []

    class Counting(LightGBMTrees):
        def dataset(self, *args):
            made.append(True)
            return super().dataset(*args)

    treatment = Treatment("counted", "trees", lambda context, **settings: Counting(rounds=5), view="trees")
    bag = fit_bag(treatment, Context(0), {}, rows, make_folds(y, 3, 0))
    assert len(made) == 1
    assert np.isfinite(bag.held_out).all()
    assert rows.bins
    assert not copy.copy(rows).bins  # copies go by the state that is sent to workers


@pytest.mark.slow
def test_rows_that_do_not_fit_into_the_workers_are_thinned_and_said(tmp_path, cluster, data, monkeypatch):
    from equipoise.advisor import all_rows

    table = read_table(write_parts(tmp_path / "parts", *data), "fraud", memory="2MiB")
    monkeypatch.setattr(all_rows, "rows_on_cluster", lambda engine, width: 9_000)
    settings = {**FAST, "treatments": ["lightgbm"]}
    spread = Advisor(**settings, engine=cluster.scheduler_address).fit_table(table)
    assert any("was fitted to 9,000 of 20,000 rows" in note for note in spread.notes_)
    fresh, truth = make_rows(20_000, seed=2)
    columns = pd.DataFrame(fresh, columns=[f"c{i}" for i in range(6)])
    assert spread.predict_proba(columns)[:, 1].mean() == pytest.approx(truth.mean(), rel=0.15)


def test_a_cluster_that_fails_in_the_end_leaves_the_model_that_was_compared(
    tmp_path, cluster, data, monkeypatch
):
    from equipoise.advisor import engines

    monkeypatch.setattr(engines, "_boosted", lambda *_: 1 / 0)
    monkeypatch.setattr(engines.time, "sleep", lambda seconds: None)
    table = read_table(write_parts(tmp_path / "parts", *data), "fraud", memory="2MiB")
    spread = Advisor(**{**FAST, "treatments": ["lightgbm"]}, engine=cluster.scheduler_address).fit_table(
        table
    )
    assert any("failed 3 times" in note and "the one that was compared" in note for note in spread.notes_)
    fresh, truth = make_rows(20_000, seed=2)
    columns = pd.DataFrame(fresh, columns=[f"c{i}" for i in range(6)])
    assert spread.predict_proba(columns)[:, 1].mean() == pytest.approx(truth.mean(), rel=0.3)


def test_a_cluster_that_fails_while_treatments_are_compared_leaves_the_same_report(cluster, monkeypatch):
    from equipoise.advisor import engines

    def lost(job, rows):
        raise OSError("a worker was lost")

    monkeypatch.setattr(engines, "_fit", lost)
    monkeypatch.setattr(engines.time, "sleep", lambda seconds: None)
    X, y = make_rows(1_500, seed=3)
    settings = {**FAST, "treatments": ["lightgbm"]}
    spread = Advisor(**settings, engine=cluster.scheduler_address).fit(X, y)
    assert any("The fits went on without the cluster" in note for note in spread.notes_)
    np.testing.assert_array_equal(spread.predict_proba(X), Advisor(**settings).fit(X, y).predict_proba(X))


def test_a_sample_fits_into_a_worker(cluster):
    from equipoise.advisor.engines import room_for_a_sample

    assert room_for_a_sample("local") > 2**60
    assert room_for_a_sample(cluster.scheduler_address) == 2**30 - 350 * 2**20


def test_workers_end_on_the_same_round_when_the_rounds_that_are_needed_are_out_of_reach(cluster, data):
    """As many rounds as the second look allows, by all workers."""
    from equipoise._core.cluster import EngineError
    from equipoise.advisor.engines import Shared, boost_on_cluster
    from equipoise.datasets import DataTable

    X, y = data
    blocks = [(b, np.ones(len(b.y), dtype=bool)) for b in table_blocks(DataTable.from_arrays(X, y), 5_000)]
    shared = Shared(LightGBMTrees(rounds=60), FunctionTransformer(), X[:2_000], y[:2_000], 2)
    boost = functools.partial(boost_on_cluster, cluster.scheduler_address, shared, blocks)
    ended, whole = boost(time.monotonic() + 300, needed=10**9), boost(np.inf)
    assert (ended.rounds_, whole.rounds_) == (30, 60)
    np.testing.assert_array_equal(  # the first rounds are the same: all workers took part in them
        ended.booster_.predict(X[:50]), whole.booster_.predict(X[:50], num_iteration=30)
    )
    with pytest.raises(EngineError, match="the budget ended before the workers"):
        boost(0.0)


def test_workers_that_hang_do_not_outlast_the_budget(cluster, monkeypatch):
    from equipoise.advisor import engines

    monkeypatch.setattr(engines, "_GONE_AFTER", 1.0)
    client, hung = cluster.get_client(), threading.Event()
    started = time.monotonic()
    with pytest.raises(engines._TimeUp):
        engines._while_complete(client, lambda: hung.wait(60), started + 1.0)
    assert time.monotonic() - started < 30
    hung.set()
    client.close()


def test_workers_without_room_leave_the_model_that_was_compared(tmp_path, cluster, data, monkeypatch):
    from equipoise.advisor import all_rows

    monkeypatch.setattr(all_rows, "rows_on_cluster", lambda engine, width: 0)
    table = read_table(write_parts(tmp_path / "parts", *data), "fraud", memory="2MiB")
    spread = Advisor(**{**FAST, "treatments": ["lightgbm"]}, engine=cluster.scheduler_address).fit_table(
        table
    )
    assert any("more memory than there is" in note for note in spread.notes_)


@pytest.mark.slow
def test_a_block_that_cannot_be_read_ends_the_work_of_all_workers(tmp_path, cluster, data, monkeypatch):
    from equipoise._core.cluster import EngineError
    from equipoise.advisor import engines

    X, y = data
    monkeypatch.setattr(engines, "_TRIES", 1)
    gone = Block(y[:5], functools.partial(open, tmp_path / "gone"))
    blocks = [(block, np.ones(5, dtype=bool)) for block in (Block(y[:5], X[:5].copy), gone)]
    shared = engines.Shared(LightGBMTrees(rounds=60), FunctionTransformer(), X[:2_000], y[:2_000], 2)
    with pytest.raises(EngineError, match=r"failed 1 times: .*No such file"):
        engines.boost_on_cluster(cluster.scheduler_address, shared, blocks, np.inf)


def test_rows_on_a_cluster_follow_its_memory(cluster):
    from equipoise.advisor.engines import rows_on_cluster

    few, many = (rows_on_cluster(cluster.scheduler_address, width) for width in (300, 30))
    assert 2 * 2**30 * 0.75 / (4 * 30) > many > 9 * few >= 0


def test_blocks_are_dealt_evenly_but_not_beyond_a_workers_room():
    """One worker that is nearly full once left all others nearly empty."""
    from equipoise.advisor.engines import _dealt

    blocks = [(Block(np.zeros(10), None), np.arange(10) < kept) for kept in (10, 10, 6, 10, 10, 10)]

    def rows(room):
        return {worker: sum(own.sum() for _, own in part) for worker, part in _dealt(blocks, room).items()}

    assert rows({"a": 100, "b": 100, "c": 100}) == {"a": 20, "b": 20, "c": 16}
    assert rows({"a": 5, "b": 100, "c": 26}) == {"b": 36, "c": 20}
    assert sum(rows({"a": 5, "b": 20, "c": 8}).values()) == 56  # more than there is room for: none is lost


def test_a_short_budget_compares_on_fewer_rows():
    from equipoise.advisor.budget import Budget
    from equipoise.datasets import DataTable

    y = np.zeros(300_000, dtype=np.int64)
    y[:3] = 1
    large = DataTable.from_arrays(np.zeros((len(y), 1), dtype=np.float32), y)
    assert [module._most_compared(large, Budget(s)) for s in (1, 300, 3600)] == [50_000, 120_000, 200_000]
    assert module._most_compared(large.take(np.arange(100_000)), Budget(1)) == 100_000
