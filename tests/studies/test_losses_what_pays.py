"""The ranks on the page of what pays, on made-up results."""

from __future__ import annotations

import importlib

import pandas as pd
import pytest
from scipy import stats

from equipoise.studies.locate import study_module

_study = study_module("losses-what-pays")
_page = importlib.import_module(f"{_study.__package__}.page")


def results():
    """Harder sets, and a seed on each that one method has not finished, where all others are far off."""
    frame = pd.DataFrame(_study.SPEC.cells()).query("judge == 'test'")
    place = frame.groupby(["dataset", "ratio"], sort=False).ngroup()
    order = frame["method"].map({name: k for k, name in enumerate(_study.METHODS)})
    frame = frame.assign(error=20 + 10 * place + order + (frame["method"] == "CE") * 9.5 * (place == 1))
    last = frame["seed"] == frame["seed"].max()
    frame.loc[last, "error"] += 50
    return frame[~(last & (frame["method"] == "LA"))]


def test_ranks_are_over_sets_by_the_seeds_that_all_methods_share():
    table = _page.mean_errors(results())
    sets = len(_study.PLACES)
    assert table.shape == (sets, len(_study.WHOLE))  # not what ran on the first set alone
    assert (table.min(axis=1) < 70).all()  # the seed that LA lacks is left out
    (section,) = _page._ranks(results())
    text, shown = section.blocks
    chi2 = stats.friedmanchisquare(*table.to_numpy().T).statistic
    k = table.shape[1]
    f = (sets - 1) * chi2 / (sets * (k - 1) - chi2)
    assert f"T_F = {f:.2f}" in text.text
    p = stats.f.sf(f, k - 1, (k - 1) * (sets - 1))
    assert f"p = {p:.2g}" in text.text
    ranks = {row[0]: float(row[1]) for row in shown.rows}
    assert sum(ranks.values()) == pytest.approx(k * (k + 1) / 2, abs=0.05)
    assert [row[1] for row in shown.rows] == sorted((row[1] for row in shown.rows), key=float)


def test_one_set_or_two_methods_have_no_ranks():
    frame = results()
    assert list(_page._ranks(frame[frame["ratio"] == 10].query("dataset == 'fashion-mnist'"))) == []
    assert list(_page._ranks(frame[frame["method"].isin(["CE", "LA"])])) == []
