"""The reasons of single rows obey the laws of Shapley values, by shap and by our own sampling."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

from equipoise.advisor import Advisor, row_reasons
from equipoise.advisor._held_out import HeldOutModel, RowSample
from equipoise.advisor.page import build_report
from equipoise.advisor.reasons import find_reasons
from equipoise.advisor.row_reasons import DONORS, by_sampling, by_shap, exchanging, worst_errors

EFFECT = {"A": 0.0, "B": 1.5, "C": -0.8}


def table(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "site": rng.choice(list("ABC"), n),
            "x": rng.normal(size=n),
            "day": pd.Timestamp("2025-03-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
            "z": rng.normal(size=n),
        }
    )
    chance = 1 / (1 + np.exp(-(2 * frame["x"] + frame["site"].map(EFFECT) - 1.5)))
    return frame, (rng.random(n) < chance).astype(int)


@pytest.fixture(scope="module")
def advisor():
    return Advisor(treatments=["logistic", "lightgbm"], trials=0).fit(*table())


@pytest.fixture(params=["shap", "sampling"])
def explain(request):
    if request.param == "sampling":
        return by_sampling
    pytest.importorskip("shap")
    return by_shap


class Additive:
    """Log-odds that are a sum over the columns, so that every share is known."""

    parts = staticmethod(lambda X: np.stack([X["site"].map(EFFECT), 2.0 * X["x"], np.sin(X["z"])], axis=1))

    def proba(self, X, block):
        chance = 1 / (1 + np.exp(-self.parts(X).sum(axis=1)))
        return np.stack([1 - chance, chance], axis=1)


class Product(Additive):
    parts = staticmethod(lambda X: (X["x"] * X["z"] * (X["site"] == "B")).to_numpy()[:, None])


def asked(advisor, places):
    sample = RowSample.of(advisor, 200, 0)
    others = np.arange(DONORS)
    typical = sample.table.rows(advisor.judged_[sample.kept[others]])
    error = next(e for e in worst_errors(advisor, 1) if e.truth == 1)
    return error, typical, lambda model: exchanging(model, sample, error, places, others)


def test_the_reasons_add_up_to_what_sets_a_row_apart_in_log_odds(advisor, explain):
    model = HeldOutModel(advisor)
    error, typical, of = asked(advisor, [0, 1, 2, 3])
    shares = explain(of(model), 4)
    own = advisor.compared_.rows([error.row])
    there, usual = (logit(model.proba(X, np.full(len(X), error.fold))[:, 1]) for X in (own, typical))
    assert shares.sum() == pytest.approx(there[0] - usual.mean(), abs=1e-9)
    assert abs(shares[1]) > abs(shares[3])  # the signal against nothing


def test_each_share_is_the_columns_own_part_where_log_odds_are_a_sum(advisor, explain):
    error, typical, of = asked(advisor, [0, 1, 3])
    own = Additive.parts(advisor.compared_.rows([error.row]))[0]
    known = own - Additive.parts(typical).mean(axis=0)
    np.testing.assert_allclose(explain(of(Additive()), 3), known, atol=1e-8)


def test_shap_shares_out_what_columns_do_only_together(advisor):
    pytest.importorskip("shap")
    _, _, of = asked(advisor, [0, 1, 3])
    answer, typical = of(Product()), np.tile(np.arange(1.0, DONORS + 1)[:, None], (1, 3))
    known = np.zeros(3)
    for order in permutations(range(3)):
        for k in range(3):
            after, before = (np.where(np.isin(range(3), order[: k + j]), 0.0, typical) for j in (1, 0))
            known[order[k]] += (answer(after) - answer(before)).mean() / 6
    np.testing.assert_allclose(by_shap(answer, 3), known, atol=1e-8)


def test_shap_leaves_the_global_generator_alone_and_answers_the_same_again(advisor):
    pytest.importorskip("shap")
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (find_reasons(advisor, seconds=60) for _ in range(2))
    assert first.errors == second.errors
    assert first.explained.endswith("computed exactly by shap.")
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_without_shap_a_sentence_names_it(advisor, monkeypatch):
    monkeypatch.setattr(row_reasons, "find_spec", lambda name: None)
    reasons = find_reasons(advisor, seconds=60)
    assert reasons.errors[0].reasons is not None
    page = build_report(advisor, advisor.table_, None, reasons=reasons).to_html()
    assert "equipoise[shap]" in page


def test_with_little_time_shap_is_not_even_imported(advisor, monkeypatch):
    monkeypatch.setattr(row_reasons, "by_shap", None)
    reasons = find_reasons(advisor, seconds=3)
    assert reasons.errors[0].reasons is not None
    assert "estimated" in reasons.explained


def test_odds_beyond_a_thousand_are_not_counted_out():
    from equipoise.advisor._reasons_section import _times

    assert _times(np.log(2.5)) == "2.5"
    assert _times(20.0) == "more than 1,000"
