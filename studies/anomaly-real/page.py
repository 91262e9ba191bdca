"""Scores over the training fraction on real data, at a fixed number of rows and with the rows at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.report import PALETTE, Headline, Picture, Section, Table, Text
from equipoise.studies.spec import Spec

from ..shared.anomaly_pages import beside, new_panels

_METRICS = ("balanced_accuracy", "recall", "specificity", "precision", "f1", "negative_f1", "auc")
_MODELS = ("perceptron_plain", "perceptron_weighted", "logistic_plain", "logistic_weighted")


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """G.2 with all metrics, G.3 as the paper has it, G.3 on the pool, and what the paper says."""
    parts = {name: results[results["part"] == name] for name in ("G.2", "G.3", "pool")}
    sections = []
    if len(parts["G.2"]):
        sections.append(Section("A small network (G.2, Fig 14 right)", _network(parts["G.2"])))
    if len(parts["G.3"]):
        sections.append(Section("A perceptron at a fixed number of rows (G.3, Fig 18)", _fixed(parts["G.3"])))
    if len(parts["pool"]):
        sections.append(Section("Linear classifiers on the rows at hand", _pool(parts["pool"])))
    sections.append(Section("The paper", [*_components(results), beside(spec.paper)]))
    first = sections[0]
    return [Section(first.title, [Headline(_claim(parts)), *first.blocks]), *sections[1:]]


def _claim(parts: dict[str, pd.DataFrame]) -> str:
    """Where the best fractions lie, and whether leaving rows out beats weighting all of them."""
    said = []
    plain = parts["G.3"][parts["G.3"]["reweight"].eq(False)]
    if len(plain):
        best = plain.loc[plain.groupby("dataset")["test_balanced_accuracy"].idxmax(), "train_fraction"]
        said.append(
            f"At a fixed number of rows the best mean score is at a share of anomalies from {best.min():g} to "
            f"{best.max():g} in {len(best)} categories; the paper's best shares are 0.1 to 0.3."
        )
    if len(parts["pool"]):
        _, gain, interval, verdict = _compared(parts["pool"])[0]
        said.append(
            "With the rows at hand, weighting all of them instead of leaving rows out until the classes are equal "
            f"changes a logistic regression's balanced accuracy by {gain} (95% interval {interval}): {verdict}."
        )
    return " ".join(said)


def _network(part: pd.DataFrame) -> list[Any]:
    """Every metric over ρ on a test set with equal classes, and where each peaks."""
    sets = list(dict.fromkeys(part["dataset"]))
    figure, axes = new_panels(len(sets), 5.0)
    rows: list[list[Any]] = []
    for axis, name in zip(axes, sets, strict=True):
        group = part[part["dataset"] == name].sort_values("train_fraction")
        x = group["train_fraction"]
        for metric, color in zip(_METRICS, PALETTE, strict=False):
            y = group[f"test_{metric}"]
            axis.plot(x, y, ".-", lw=1, color=color, label=metric)
            best = group.loc[y.idxmax()]
            half = group.loc[(x - 0.5).abs().idxmin()]
            rows.append([name, metric, best["train_fraction"], y.max(), half[f"test_{metric}"]])
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("ρ_train", fontsize=8)
    axes[0].legend(fontsize=6)
    picture = Picture.from_matplotlib(
        figure,
        "anomaly-real-network",
        "Means over re-samplings, on a test set with equal classes.",
        "Line plots",
    )
    columns = ["data", "metric", "best ρ", "score there", "score at ½"]
    return [picture, Table(columns, rows, formats={"score there": ".4f", "score at ½": ".4f"})]


def _fixed(part: pd.DataFrame) -> list[Any]:
    """Balanced accuracy over ρ, trained and tested, with and without re-weighting; the best fraction of each."""
    sets = list(dict.fromkeys(part["dataset"]))
    figure, axes = new_panels(len(sets))
    rows: list[list[Any]] = []
    for axis, name in zip(axes, sets, strict=True):
        for reweight, color in ((False, PALETTE[0]), (True, PALETTE[1])):
            group = part[(part["dataset"] == name) & (part["reweight"] == reweight)].sort_values(
                "train_fraction"
            )
            if group.empty:
                continue
            x, y = group["train_fraction"], group["test_balanced_accuracy"]
            label = "re-weighted" if reweight else "plain"
            axis.errorbar(
                x, y, group["test_standard_error"], color=color, marker=".", lw=1, label=f"test, {label}"
            )
            axis.plot(
                x, group["train_balanced_accuracy"], color=color, lw=0.8, ls=":", label=f"train, {label}"
            )
            best, half = group.loc[y.idxmax()], group.loc[(x - 0.5).abs().idxmin()]
            rows.append([
                name, label, best["train_fraction"], best["test_balanced_accuracy"], best["test_standard_error"],
                half["test_balanced_accuracy"], half["test_standard_error"],
            ])  # fmt: skip
        axis.set_title(name, fontsize=9)
        axis.set_xlabel("ρ_train", fontsize=8)
    axes[0].set_ylabel("balanced accuracy", fontsize=8)
    axes[0].legend(fontsize=6)
    picture = Picture.from_matplotlib(
        figure, "anomaly-real-sweep", "Means and standard errors over re-samplings.", "Line plots"
    )
    columns = ["data", "loss", "best ρ", "score there", "± ", "score at ½", "±"]
    table = Table(columns, rows, "The fraction with the best test score, and what one half has.")
    return [picture, table, _reweighting(part)]


def _reweighting(part: pd.DataFrame) -> Text:
    """In how many (set, fraction) pairs re-weighting helps, split at the usual fractions."""
    wide = part.pivot_table(
        index=["dataset", "train_fraction"], columns="reweight", values="test_balanced_accuracy"
    )
    if wide.shape[1] < 2:
        return Text("Re-weighting was not run.")
    gain = wide[True] - wide[False]
    fraction = gain.index.get_level_values("train_fraction")
    said = [
        f"{label}: re-weighting changes the score by {gain[mask].mean():+.4f} on average and raises it in "
        f"{int((gain[mask] > 0).sum())} of {int(mask.sum())} pairs of set and fraction"
        for label, mask in (
            ("ρ below 0.1", fraction < 0.1),
            ("ρ from 0.1 to 0.7", (fraction >= 0.1) & (fraction <= 0.7)),
            ("ρ above 0.7", fraction > 0.7),
        )
        if mask.any()
    ]
    return Text("; ".join(said) + ".")


def _placed(part: pd.DataFrame) -> pd.DataFrame:
    """The part with the means over draws, and its share as ``place``, which is 0 for all rows."""
    means = {name: [float(np.mean(scores)) for scores in part[name]] for name in _MODELS}
    return part.assign(place=part["train_fraction"].fillna(0.0), **means)


def _compared(part: pd.DataFrame) -> list[list[str]]:
    """What beats what, paired by category."""
    wide = _placed(part).pivot_table(index="dataset", columns="place", values=list(_MODELS))
    pairs = [
        ("weighted logistic regression on all rows over logistic regression at ½", ("logistic_weighted", 0.0),
        ("logistic_plain", 0.5)), ("logistic regression at ½ over all rows", ("logistic_plain", 0.5),
        ("logistic_plain", 0.0)), ("perceptron at 0.3 over ½", ("perceptron_plain", 0.3), ("perceptron_plain",
        0.5)), ("weighted perceptron over perceptron, all rows", ("perceptron_weighted", 0.0),
        ("perceptron_plain", 0.0)),
    ]  # fmt: skip
    return [[label, *_paired(wide[first] - wide[second])] for label, first, second in pairs]


def _pool(part: pd.DataFrame) -> list[Any]:
    """Means over categories and draws at each share, and what beats what."""
    means = _placed(part).groupby("place")[list(_MODELS)].mean()
    rows = [
        ["all rows" if place == 0 else f"{place:g}", *row]
        for place, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    columns = ["share", *(name.replace("_", ", ") for name in _MODELS)]
    formats = dict.fromkeys(columns[1:], ".4f")
    caption = (
        "Test balanced accuracy, means over categories; rows are left out only as far as the share asks."
    )
    return [
        Table(columns, rows, caption, formats=formats),
        Table(
            ["comparison", "difference", "95% interval", "verdict"],
            _compared(part),
            "Paired over categories.",
        ),
    ]


def _paired(difference: pd.Series) -> list[str]:
    """The mean difference over categories, its t interval, and what that allows to say."""
    mean, error = float(difference.mean()), float(difference.sem())
    if len(difference) < 2:
        return [f"{mean:+.4f}", "one category only", "cannot tell"]
    low, high = stats.t.interval(0.95, len(difference) - 1, mean, error)
    verdict = "better" if low > 0 else "worse" if high < 0 else "cannot tell"
    return [f"{mean:+.4f}", f"{low:+.4f} to {high:+.4f}", verdict]


def _components(results: pd.DataFrame) -> list[Any]:
    """Figs 16-17: the first 30 components of a category's features, by class; left out without the data."""
    from equipoise.datasets import load_mvtec_features

    categories = results.loc[results["part"] != "G.2", "dataset"]
    try:
        data = load_mvtec_features(categories.iloc[0])
    except (FileNotFoundError, IndexError):
        return []
    from sklearn.decomposition import PCA

    components = PCA(30, whiten=True, random_state=0).fit_transform(data.table)
    figure, axes = new_panels(30, 1.6)
    shared = []
    for axis, column in zip(axes, components.T, strict=True):
        edges = np.histogram_bin_edges(column, 16)
        heights = []
        for label, color in ((0, PALETTE[0]), (1, PALETTE[1])):
            height, _ = np.histogram(column[data.y == label], edges, density=True)
            axis.stairs(height, edges, color=color, fill=True, alpha=0.5)
            heights.append(height)
        shared.append(float((np.minimum(*heights) * np.diff(edges)).sum()))
        axis.set(xticks=[], yticks=[])
    caption = (
        f"Figs 16-17: the first 30 components of MVTec {categories.iloc[0]}, normal and anomalous; the classes' "
        f"histograms share {np.mean(shared):.0%} of their area on average."
    )
    return [Picture.from_matplotlib(figure, "anomaly-real-components", caption, "Histograms by class")]
