"""The page of the clock study: verdicts, curves, gaps, theory beside experiment, interventions, samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import Block, Headline, Interval, Note, Picture, Section, Table, Text
from equipoise.studies import Spec

from ..shared.tables import Paired, paired
from .gap_figures import (
    DESCRIPTORS,
    agreement,
    correlation,
    moderate,
    plot_gap_against,
    plot_gap_by_share,
    plot_prediction,
)
from .pictures import curves_picture, distances_picture, gallery_pictures
from .verdicts import CANNOT_TELL, NOT_RUN, Finding, findings, first_in, pair_gap, quality

_THRESHOLDS = {"": "1/3", "_sixth": "1/6", "_twelfth": "1/12"}
_TIE = 0.05  # a gap in theory of less than 5 % in time is called a tie
_COUNTED = {
    "agrees": ("agrees with these runs", "agree with these runs"),
    "differs": ("differs", "differ"),
    CANNOT_TELL: ("cannot be told", "cannot be told"),
    NOT_RUN: ("was not run", "were not run"),
}  # a verdict, of one statement and of several
INTERVENTIONS = {
    "equalized": "as the theory prescribes",
    "measured": "as the clock of a plain run on other images prescribes",
}


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    everything = prepared(results)
    fashion = everything[everything["dataset"] == "fashion-mnist"]
    plain = fashion[fashion["method"] == "plain"]
    balanced = plain[plain["share"] == 0.5]
    color = everything[everything["dataset"] == "cifar10"]
    found = findings(plain, color)
    sections = [Section("What came out", [_headline(found), _verdicts(found, spec), *_unsure(plain)])]
    if len(balanced):
        pictures = [curves_picture(balanced)]
        sections += [
            Section("Memorized fractions (Figs 5a and 20)", pictures),
            Section(
                "Gap against variance, share and centroid norm (Fig 5b to d)", list(_gaps(plain, balanced))
            ),
            Section("Theory beside experiment (Fig 6)", list(_theory_blocks(plain, balanced))),
        ]
    if len(plain):
        sections.insert(1, Section("The gap, pair by pair", [_pairs_table(plain)]))
    treated = list(intervention(fashion))
    if treated:
        sections.append(Section("Interventions", treated))
    if len(color):
        sections.append(Section("CIFAR-10 (Figs 21 and 22)", list(_color_blocks(color))))
    drawn = [*distances_picture(balanced), *gallery_pictures(balanced)]
    if drawn:
        sections.append(Section("Samples and their neighbors (Figs 11 to 19)", drawn))
    return sections


def prepared(results: pd.DataFrame) -> pd.DataFrame:
    """The cells in which at least one class was memorized have a gap; all have these derived columns."""
    runs = results.copy()
    for suffix in _THRESHOLDS:
        runs[f"log_gap{suffix}"] = pd.to_numeric(runs[f"log_gap{suffix}"])
    runs["pair"] = runs["partner"]
    for name in ("variance", "norm", "own_variance"):
        runs[f"{name}_ratio"] = runs[f"{name}_partner"] / runs[f"{name}_reference"]
    return runs


def _headline(found: dict[str, Finding]) -> Headline:
    given = Counter(finding.verdict for finding in found.values())
    counts = [
        f"{given[verdict]} {words[given[verdict] > 1]}"
        for verdict, words in _COUNTED.items()
        if given[verdict]
    ]
    return Headline(
        f"Of the paper's {len(found)} statements, {', '.join(counts)}. The order at equal shares: "
        f"{found['order'].text}."
    )


def _verdicts(found: dict[str, Finding], spec: Spec) -> Table:
    rows = [[topic, said, found[topic].text, found[topic].verdict] for topic, said in spec.paper.items()]
    return Table(
        ["", "the paper", "here", "verdict"],
        rows,
        "Intervals are 95 %: over seeds for one pair (Student's t), over pairs for the effect of the share "
        "(Student's t) and for correlations (Fisher's z). A verdict needs an interval without zero, and that on "
        "the order more than half of the pairs with one and none against the paper. Where a run ended before a "
        "class had crossed, the gap counts with its bound.",
    )


def _unsure(plain: pd.DataFrame) -> list[Block]:
    """One run a point has no interval: say so."""
    seeds = plain.groupby(["partner", "share"])["seed"].nunique()
    single = int((seeds < 2).sum())
    if not single:
        return []
    return [
        Note(f"{single} of {len(seeds)} pairs and shares have been run once: no interval.", level="warning")
    ]


def _mean(gap: Paired | None) -> str:
    return "–" if gap is None else str(gap)


def _pairs_table(plain: pd.DataFrame) -> Table:
    rows: list[list[Any]] = []
    for (partner, share), own in plain.groupby(["partner", "share"], sort=False):
        gap, predicted = pair_gap(own["log_gap"]), own["predicted_log_gap"].mean()
        reference = own["reference"].iloc[0]
        in_theory = "tie" if abs(predicted) < _TIE else str(partner) if predicted > 0 else reference
        times = [pd.to_numeric(own[f"time_{role}"]).mean() for role in ("reference", "partner")]
        rows.append(
            [
                str(partner),
                f"{share:.0%}",
                len(own),
                own["variance_ratio"].mean(),
                *times,
                _mean(gap),
                int((own["bound"] != 0).sum()) or "",
                predicted,
                first_in(gap, str(partner), reference),
                in_theory,
            ]
        )
    caption = (
        "Steps until a third of a class's samples are copies, means over seeds; log gap: mean ± half of its 95 % "
        "interval, positive where the partner is first; bounds: runs that ended before both classes had crossed, "
        "whose gap is only known to be at least that; first: cannot tell where the interval holds zero. A tie in "
        "theory is less than 5 % in time."
    )
    names = [
        "partner", "share", "seeds", "variance ratio", "t reference", "t partner", "log gap", "bounds",
        "theory's log gap", "first", "first in theory",
    ]  # fmt: skip
    formats = {
        "variance ratio": ".2f", "t reference": ",.0f", "t partner": ",.0f", "theory's log gap": "+.2f",
    }  # fmt: skip
    return Table(names, rows, caption, formats=formats)


def _gaps(plain: pd.DataFrame, balanced: pd.DataFrame) -> Iterator[Block]:
    kept, left_out = moderate(balanced)
    without = f" Left out for their variance: {', '.join(left_out)}." if left_out else ""
    for runs, column, label, more in (
        (balanced, "variance_partner", "variance of the partner (the pair's is 1)", ""),
        (kept, "norm_ratio", "centroid norm, partner : Sneaker", without),
    ):
        yield Picture.from_matplotlib(
            plot_gap_against(runs, column, label),
            f"diffusion-clock-{column.replace('_', '-')}",
            "Equal shares: points are seeds (hollow: a bound), diamonds their mean, the band resamples "
            f"pairs.{more}",
            f"Memorization gap against {label}",
        )
    if plain["share"].nunique() > 1:
        yield Picture.from_matplotlib(
            plot_gap_by_share(plain),
            "diffusion-clock-share",
            "Mean and range over seeds.",
            "Memorization gap of each pair over the partner's share",
        )


def _theory_blocks(plain: pd.DataFrame, balanced: pd.DataFrame) -> Iterator[Block]:
    yield Picture.from_matplotlib(
        plot_prediction(balanced),
        "diffusion-clock-prediction",
        "Equal shares, means over seeds. Pearson's r and Spearman's ρ over the pairs; lines only guide the eye.",
        "Gaps of experiment and theory over three descriptors",
    )
    if balanced["pair"].nunique() < 3:
        return
    yield _by_share(plain)
    rows = []
    for suffix, name in _THRESHOLDS.items():
        other = balanced.assign(log_gap=balanced[f"log_gap{suffix}"], bound=balanced[f"bound{suffix}"])
        found = agreement(other)["spearman_experiment"]
        rows.append([name, *(found[column] for column in DESCRIPTORS), found["prediction"]])
    columns = ["fraction that counts as memorized", *DESCRIPTORS.values(), "theory's gap"]
    yield Table(
        columns,
        rows,
        "Spearman's ρ of the measured gap with each, at equal shares (Fig 23's other thresholds).",
        formats=dict.fromkeys(columns[1:], "+.2f"),
    )
    known = plain[plain["log_gap"].notna()]
    found = agreement(known, {"own_variance_ratio": ""}, by="run")["spearman_experiment"]
    yield Text(
        f"Run by run at any share ({len(known)} runs), the gap goes with the variance ratio of the very images "
        f"that the run was trained on by ρ = {found['own_variance_ratio']:+.2f}."
    )


def _by_share(plain: pd.DataFrame) -> Table:
    """How theory, variance and experiment go together at each share."""
    rows: list[list[Any]] = []
    for share, own in plain.groupby("share"):
        found = [correlation(own, column) for column in ("predicted_log_gap", "variance_partner")]
        rows.append([f"{share:.0%}", found[0][3], *(_correlated(one) for one in found)])
    columns = ["share of the partner", "pairs", "r of theory and experiment", "r of variance and experiment"]
    return Table(
        columns,
        rows,
        "Pearson's correlation of the measured log gap, a mean of seeds for each pair, with the theory's and with "
        "the partner's variance, with 95 % intervals over the pairs (Fisher's z).",
        formats=dict.fromkeys(columns[2:], "+.2f"),
    )


def _correlated(found: tuple[float, float, float, int]) -> Any:
    value, low, high, _ = found
    return Interval(value, low, high) if np.isfinite([value, low, high]).all() else None


def intervention(runs: pd.DataFrame) -> Iterator[Block]:
    """What other shares do to the gap and to the samples, beside plain runs on the same images."""
    index = ["partner", "share", "seed"]
    plain = runs[runs["method"] == "plain"].set_index(index)
    for method, title in INTERVENTIONS.items():
        treated = runs[runs["method"] == method].set_index(index)
        both = treated.join(plain["log_gap"].rename("log_gap_plain"), how="inner")
        both = both.dropna(subset=["log_gap", "log_gap_plain"])
        if not len(both):
            continue
        shrinks = both["log_gap_plain"].abs() - both["log_gap"].abs()
        rows = [
            [
                str(partner),
                len(own),
                own["drawn_share_partner"].mean(),
                _mean(pair_gap(own["log_gap_plain"])),
                _mean(pair_gap(own["log_gap"])),
                int((shrinks[own.index] > 0).sum()),
            ]
            for partner, own in both.groupby(level="partner", sort=False)
        ]
        yield Table(
            ["partner", "seeds", "partner drawn", "log gap, plain", f"log gap, {method}", "shrinks in"],
            rows,
            f"Classes drawn for training {title}: the same images as in the plain runs, other shares.",
            formats={"partner drawn": ".0%"},
        )
        smaller = paired(-shrinks)
        yield Note(
            f"Drawn {title}, the size of the gap changes by {smaller} log steps and the gap itself by "
            f"{paired(both['log_gap'] - both['log_gap_plain'])}; it shrinks in {int((shrinks > 0).sum())} of "
            f"{len(shrinks)} runs: {smaller.word('the gap shrinks', 'the gap grows')}.",
            title=f"Intervention, {title}",
            level="good" if smaller.word() == "less" else "warning",
        )
        cost = _quality_table(quality(both), quality(plain), method)
        if cost is not None:
            yield cost


def _quality_table(treated: pd.DataFrame, plain: pd.DataFrame, method: str) -> Table | None:
    rows: list[list[Any]] = []
    named = {"density": "density", "coverage": "coverage", "frechet": "Fréchet distance"}
    for measure, name in named.items():
        for role in ("reference", "partner"):
            column = f"{measure}_{role}"
            after = treated[column].rename("after")
            known = plain[[column]].join(after, how="inner").dropna()
            if len(known):
                change = paired(known["after"] - known[column])
                values = [known[column].mean(), known["after"].mean()]
                rows.append([name, role, len(known), *values, str(change), change.word("lower", "higher")])
    if not rows:
        return None
    columns = ["samples'", "class", "runs", "plain", method, "change", "so"]
    return Table(
        columns,
        rows,
        "What it costs in quality, at the look at which one would stop (a third of a class's samples are copies): "
        "samples of a class beside test images of it, in the features of the classifier that tells the classes; "
        "changes with their 95 % interval. A higher density and coverage and a lower distance are better.",
        formats={"plain": ".3f", method: ".3f"},
    )


def _color_blocks(color: pd.DataFrame) -> Iterator[Block]:
    yield Text(
        f"Pairs of {color['images'].max():,} images with {color['reference'].iloc[0]}, the second neighbor within "
        "the class as in the paper."
    )
    yield _pairs_table(color)
    yield curves_picture(color, "diffusion-clock-cifar")
    yield from distances_picture(color, "diffusion-clock-cifar-distances")
    yield from gallery_pictures(color)
