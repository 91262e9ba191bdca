"""Figures of gaps: the numbers behind them, and that they draw what they were given."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.studies.locate import study_module

_figures = study_module("diffusion-clock", "gap_figures")
DESCRIPTORS, agreement = _figures.DESCRIPTORS, _figures.agreement
plot_gap_against, plot_gap_by_share = _figures.plot_gap_against, _figures.plot_gap_by_share
plot_prediction = _figures.plot_prediction


def runs(n=5, seeds=2):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(n):
        for seed in range(seeds):
            gap = 0.2 * i - 0.2 + 0.01 * rng.normal()
            rows.append(
                {"pair": f"pair ${i}", "share": 0.5, "seed": seed, "log_gap": gap, "bound": int(i == 4),
                 "variance_ratio": 0.2 + 0.1 * i, "norm_ratio": 2 - 0.1 * i, "cosine": rng.uniform(),
                 "predicted_log_gap": 2 * gap}
            )  # fmt: skip
    return pd.DataFrame(rows)


def test_correlations_of_a_planted_trend():
    found = agreement(runs())
    assert found.loc["variance_ratio", "spearman_experiment"] == pytest.approx(1)
    assert found.loc["norm_ratio", "pearson_prediction"] < -0.99
    assert found.loc["prediction", "pearson_experiment"] == pytest.approx(1)


def test_runs_have_descriptors_of_their_own():
    table = runs()
    table["variance_ratio"] = 1 + table["log_gap"]  # within pairs too
    table.loc[table["seed"] == 0, "log_gap"] += 1
    assert agreement(table).loc["variance_ratio", "pearson_experiment"] == pytest.approx(1, abs=1e-3)
    assert agreement(table, by="run").loc["variance_ratio", "pearson_experiment"] < 0.8
    with pytest.raises(ValueError, match="by"):
        agreement(table, by="class")


def test_runs_without_a_gap_are_left_out_and_two_pairs_say_nothing():
    table = runs()
    table.loc[table["pair"] == "pair $0", "log_gap"] = np.nan
    assert agreement(table).loc["prediction", "pearson_experiment"] == pytest.approx(1)
    assert np.isnan(agreement(runs(2)).loc["prediction", "pearson_experiment"])


def test_gap_against_a_descriptor_draws_every_run():
    figure = plot_gap_against(runs(), "variance_ratio", "variance", n_bootstrap=20)
    ax = figure.axes[0]
    drawn = sum(len(dots.get_offsets()) for dots in ax.collections if hasattr(dots, "get_offset_transform"))
    assert drawn >= 10 + 5, "ten runs and five means"
    assert ax.get_xlabel() == "variance"
    figure.canvas.draw()


def test_gap_by_share_and_prediction_draw():
    table = pd.concat([runs().assign(share=share) for share in (0.25, 0.5, 0.75)])
    assert len(plot_gap_by_share(table).axes[0].containers) == 5
    figure = plot_prediction(runs())
    assert len(figure.axes) == len(DESCRIPTORS) + 1
    assert "+1.00" in figure.axes[0].get_title()
    figure.canvas.draw()
