"""The page of the clock study: curves, gaps, theory beside experiment, the intervention, a verdict in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from equipoise.report import Block, Headline, Note, Picture, Section, Table, Text
from equipoise.studies import Spec

from .gap_figures import DESCRIPTORS, agreement, plot_gap_against, plot_gap_by_share, plot_prediction
from .images import REFERENCES
from .pictures import curves_picture, distances_picture, gallery_pictures

_THRESHOLDS = {"": "1/3", "_sixth": "1/6", "_twelfth": "1/12"}
_KINDS: tuple[Literal["pearson"], Literal["spearman"]] = ("pearson", "spearman")
_UNDECIDED = 0.05  # a gap of less than 5 % in steps is called a tie


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    everything = prepared(results)
    fashion = everything[everything["data"] == "fashion-mnist"]
    runs = fashion[fashion["images"] == fashion["images"].min()]
    larger, cifar = fashion.drop(index=runs.index), everything.drop(index=fashion.index)
    plain = runs[runs["method"] == "plain"]
    balanced = plain[plain["share"] == 0.5]
    sections = [
        Section(
            "What came out",
            [Headline(next(verdict(runs)).text), *verdict(runs), _paper_table(runs, spec), *_seeds(runs)],
        ),
        Section("Memorized fractions (Fig 5a)", [curves_picture(balanced)]),
        Section("The gap, pair by pair", [_pairs_table(plain)]),
        Section(
            "Gap against variance, share and centroid norm (Fig 5b, c, d)",
            list(_gap_pictures(plain, balanced)),
        ),
        Section("Theory beside experiment (Fig 6)", list(_theory_blocks(plain, balanced))),
    ]
    treated = list(intervention(runs))
    if treated:
        sections.append(Section("The intervention", treated))
    if len(larger):
        sections.append(Section("More images", list(_larger_blocks(larger))))
    drawn = list(_neighbors(balanced, "diffusion-clock-distances"))
    if drawn:
        sections.append(Section("Samples and their neighbors (Figs 11–19)", drawn))
    if len(cifar):
        sections.append(Section("CIFAR-10 (Figs 21, right, and 22)", list(_cifar_blocks(cifar))))
    return sections


def _neighbors(balanced: pd.DataFrame, name: str) -> Iterator[Block]:
    yield from gallery_pictures(balanced)
    distances = distances_picture(balanced, name)
    if distances is not None:
        yield distances


def _cifar_blocks(cifar: pd.DataFrame) -> Iterator[Block]:
    yield Text(
        f"Deer has the least variance of CIFAR-10's classes and Automobile the most; {cifar['images'].max():,} "
        f"color images at {cifar['pixels'].max()}×{cifar['pixels'].max()} pixels, the second neighbor "
        "within the class, as in the paper, where Automobile is memorized before Deer."
    )
    yield curves_picture(cifar, "diffusion-clock-cifar")
    yield _pairs_table(cifar)
    yield from _neighbors(cifar, "diffusion-clock-cifar-distances")


def prepared(results: pd.DataFrame) -> pd.DataFrame:
    """The cells in which at least one class was memorized have a gap; all have these derived columns."""
    runs = results.copy()
    for suffix in _THRESHOLDS:
        runs[f"log_gap{suffix}"] = pd.to_numeric(runs[f"log_gap{suffix}"])
    runs["pair"] = runs["partner"]
    for name in ("variance", "norm"):
        runs[f"{name}_ratio"] = runs[f"{name}_partner"] / runs[f"{name}_sneaker"]
    runs["variance_difference"] = runs["variance_partner"] - runs["variance_sneaker"]
    return runs


def _row(table: pd.DataFrame, name: str) -> dict[str, float]:
    return dict(zip(map(str, table.columns), table.loc[[name]].to_numpy(dtype=float)[0], strict=True))


def _sign(value: float, tie: float = _UNDECIDED) -> int:
    return 0 if np.isnan(value) or abs(value) < tie else int(np.sign(value))


def share_effect(plain: pd.DataFrame) -> pd.Series[float]:
    """What going from the smallest to the largest share of the partner does to the gap, a pair and seed."""
    wide = plain.pivot_table(index=["partner", "seed"], columns="share", values="log_gap", sort=False)
    ends = wide[[wide.columns.min(), wide.columns.max()]].dropna()
    return ends.iloc[:, 1] - ends.iloc[:, 0]


def with_interval(values: Any) -> str:
    """Mean with a 95 % interval by Student's t; the mean alone for fewer than three."""
    from scipy import stats

    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if not len(known):
        return "–"
    if len(known) < 3:
        return f"{known.mean():+.2f}"
    half = stats.t.ppf(0.975, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))
    return f"{known.mean():+.2f} ({known.mean() - half:+.2f} to {known.mean() + half:+.2f})"


def verdict(runs: pd.DataFrame) -> Iterator[Note]:
    plain = runs[runs["method"] == "plain"]
    balanced = plain[(plain["share"] == 0.5) & plain["log_gap"].notna()]
    means = balanced.groupby("partner", sort=False)[
        ["log_gap", "variance_difference", "predicted_log_gap"]
    ].mean()
    gaps, variances, predicted = means.to_numpy(dtype=float).T
    right = [_sign(gap) == _sign(v, 0.0) for gap, v in zip(gaps, variances, strict=True)]
    wrong = [str(name) for name, fits in zip(means.index, right, strict=True) if not fits]
    yield Note(
        f"At equal shares the class of higher variance was memorized first in {sum(right)} of {len(right)} pairs"
        + (f" (not: {', '.join(wrong)})" if wrong else "")
        + ". In the paper the partner comes first in all pairs but Trouser.",
        title="Order",
        level="good" if sum(right) >= len(right) - 1 else "warning",
    )
    rank = _row(agreement(balanced, {"variance_difference": ""}), "variance_difference")[
        "spearman_experiment"
    ]
    yield Note(
        f"Over the pairs the gap goes with the difference of variances by Spearman's ρ = {rank:+.2f} "
        "(the paper: positively).",
        title="Variance",
        level="good" if rank > 0 else "warning",
    )
    effect = share_effect(plain)
    yield Note(
        f"From the smallest to the largest share of the partner the gap changes by {with_interval(effect)} in "
        f"log steps; it falls in {int((effect < 0).sum())} of {len(effect)} pairs and seeds (the paper: it "
        "generally falls).",
        title="Share",
        level="good" if len(effect) and (effect < 0).mean() > 0.5 else "warning",
    )
    signs = [_sign(gap) == _sign(p) for gap, p in zip(gaps, predicted, strict=True)]
    both = _row(agreement(balanced), "prediction")
    yield Note(
        f"Theory names the right order in {sum(signs)} of {len(signs)} pairs; its gaps go with the "
        f"measured ones by Pearson's r = {both['pearson_experiment']:+.2f} and Spearman's ρ = "
        f"{both['spearman_experiment']:+.2f}.",
        title="Prediction",
        level="good" if both["spearman_experiment"] > 0 else "warning",
    )


def _seeds(runs: pd.DataFrame) -> list[Block]:
    """One run a point has no interval: say so."""
    seeds = runs.loc[runs["method"] == "plain", "seed"].nunique()
    if seeds > 1:
        return []
    return [
        Note(
            "Each point is one run: there is no interval over seeds, and with so few images the draw "
            "may decide.",
            level="warning",
            title="One seed",
        )
    ]


def _paper_table(runs: pd.DataFrame, spec: Spec) -> Table:
    plain = runs[runs["method"] == "plain"]
    balanced = plain[plain["share"] == 0.5]
    gap = balanced.groupby("partner", sort=False)["log_gap"].mean()
    effect = share_effect(plain)
    found = agreement(balanced)
    ours = {
        "order": ", ".join(f"{name} {value:+.2f}" for name, value in gap.items()) + " (log gap)",
        "variance": f"ρ {_row(found, 'variance_ratio')['spearman_experiment']:+.2f}",
        "share": f"{with_interval(effect)}, falls in {int((effect < 0).sum())} of {len(effect)}",
        "norm": f"ρ {_row(found, 'norm_ratio')['spearman_experiment']:+.2f}",
        "assigner": f"balanced accuracy {runs['assigner_accuracy'].min():.1%} or more on 200 images",
    }
    rows = [[topic, said, ours[topic]] for topic, said in spec.paper.items()]
    return Table(
        ["", "the paper", "here"], rows, "The paper prints no table of gaps: its statements, and ours."
    )


def _range(values: pd.Series[float]) -> str:
    known = values.dropna()
    if len(known) == 0:
        return "–"
    return f"{known.mean():+.2f}" + (f" ({known.min():+.2f} … {known.max():+.2f})" if len(known) > 1 else "")


def _pairs_table(plain: pd.DataFrame) -> Table:
    rows: list[list[Any]] = []
    for (partner, share), own in plain.groupby(["partner", "share"], sort=False):
        gap, predicted = own["log_gap"].mean(), own["predicted_log_gap"].mean()
        bounds = int((own["bound"] != 0).sum())
        first = {1: str(partner), -1: REFERENCES[own["data"].iloc[0]], 0: "tie"}
        rows.append(
            [
                str(partner),
                f"{share:.0%}",
                len(own),
                own["variance_partner"].mean() / own["variance_sneaker"].mean(),
                own["time_sneaker"].mean(),
                own["time_partner"].mean(),
                _range(own["log_gap"]),
                bounds or "",
                predicted,
                first[_sign(gap)],
                first[_sign(predicted)],
            ]
        )
    caption = (
        "Steps until a third of a class's samples are copies, means over seeds; log gap: mean (range over "
        "seeds), positive where the partner is first; bounds: runs that ended before both classes had "
        "crossed, whose gap is only known to be at least that; a tie is less than 5 % in steps."
    )
    names = [
        "partner", "share", "seeds", "variance ratio", "t reference", "t partner", "log gap", "bounds",
        "theory's log gap", "first", "first in theory",
    ]  # fmt: skip
    formats = {
        "variance ratio": ".2f", "t reference": ",.0f", "t partner": ",.0f", "theory's log gap": "+.2f",
    }  # fmt: skip
    return Table(names, rows, caption, formats=formats)


def _larger_blocks(larger: pd.DataFrame) -> Iterator[Block]:
    yield Text(
        f"Pairs of {larger['images'].max():,} images, drawn and watched alike, for {larger['steps'].max():,} "
        "steps at most."
    )
    yield curves_picture(larger, "diffusion-clock-larger")
    yield _pairs_table(larger)


def _gap_pictures(plain: pd.DataFrame, balanced: pd.DataFrame) -> Iterator[Block]:
    for column, label in (
        ("variance_difference", "variance of the partner − variance of Sneaker (the pair's is 1)"),
        ("norm_ratio", "centroid norm, partner : Sneaker"),
    ):
        yield Picture.from_matplotlib(
            plot_gap_against(balanced, column, label),
            f"diffusion-clock-{column.replace('_', '-')}",
            "Equal shares: points are seeds (hollow: a bound), diamonds their mean, the band resamples pairs.",
            f"Memorization gap against {label}",
        )
    yield from _norm_alone(balanced)
    yield Picture.from_matplotlib(
        plot_gap_by_share(plain),
        "diffusion-clock-share",
        "Mean and range over seeds.",
        "Memorization gap of each pair over the partner's share",
    )


def _norm_alone(balanced: pd.DataFrame) -> Iterator[Text]:
    """Fig 5d: the gap and the centroid norm without the pairs of extreme variance, and at equal variance."""
    columns = ["log_gap", "norm_ratio", "variance_ratio"]
    means = balanced.groupby("partner")[columns].mean().dropna()
    if len(means) < 6:
        return
    inner = means.sort_values("variance_ratio").iloc[1:-1]
    left_out = [str(name) for name in means.index if name not in inner.index]
    alone = float(inner[columns[:2]].corr(method="spearman").to_numpy()[0, 1])
    ranks = means.rank().to_numpy()
    others = np.column_stack([np.ones(len(ranks)), ranks[:, 2]])
    rest = ranks[:, :2] - others @ np.linalg.lstsq(others, ranks[:, :2], rcond=None)[0]
    partial = float(np.corrcoef(rest.T)[0, 1])
    yield Text(
        f"Without the pairs of least and greatest variance ({', '.join(left_out)}), the gap goes with the centroid "
        f"norm by Spearman's ρ = {alone:+.2f} over {len(inner)} pairs; over all {len(means)}, with the variance "
        f"held fixed in ranks, by {partial:+.2f} (the paper: a smaller norm goes with a larger gap)."
    )


def _theory_blocks(plain: pd.DataFrame, balanced: pd.DataFrame) -> Iterator[Block]:
    yield Picture.from_matplotlib(
        plot_prediction(balanced),
        "diffusion-clock-prediction",
        "Equal shares, means over seeds; the theory is told the very images that the network was trained on. "
        "Pearson's r and Spearman's ρ over the pairs; lines only guide the eye.",
        "Gaps of experiment and theory over three descriptors",
    )
    rows = []
    for suffix, name in _THRESHOLDS.items():
        other = balanced.drop(columns=["log_gap", "bound"]).rename(
            columns={f"log_gap{suffix}": "log_gap", f"bound{suffix}": "bound"}
        )
        if suffix == "":
            other = balanced
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
    found = agreement(known, by="run")["spearman_experiment"]
    yield Text(
        f"Run by run, each with the descriptors of its own images and at any share ({len(known)} runs), the gap "
        + "goes "
        + ", ".join(f"with the {label} by ρ = {found[name]:+.2f}" for name, label in DESCRIPTORS.items())
        + "."
    )
    means = known.groupby(["partner", "share"], sort=False)[["log_gap", "predicted_log_gap"]].mean()
    r, rho = (float(means.corr(method=kind).to_numpy()[0, 1]) for kind in _KINDS)
    yield Text(
        f"Over all pairs and shares ({len(means)} points) theory and experiment go together by "
        f"r = {r:+.2f}, ρ = {rho:+.2f}."
    )
    yield _by_share(known)


def _by_share(known: pd.DataFrame) -> Table:
    """How theory and experiment go together at each share; the interval draws the pairs again."""
    rows = []
    for share, own in known.groupby("share"):
        means = own.groupby("partner")[["log_gap", "predicted_log_gap"]].mean().to_numpy()
        drawn = np.random.default_rng(0).integers(len(means), size=(2000, len(means)))
        with np.errstate(invalid="ignore", divide="ignore"):
            centered = means[drawn] - means[drawn].mean(axis=1, keepdims=True)
            product = centered.prod(axis=2).sum(axis=1)
            found = product / np.sqrt((centered**2).sum(axis=1).prod(axis=1))
        low, high = np.nanquantile(found, [0.025, 0.975]) if len(means) > 2 else (np.nan, np.nan)
        value = float(np.corrcoef(means.T)[0, 1]) if len(means) > 2 else np.nan
        rows.append([f"{share:.0%}", len(means), value, f"{low:+.2f} to {high:+.2f}"])
    columns = [
        "share of the partner",
        "pairs",
        "Pearson's r of theory and experiment",
        "95% interval over pairs",
    ]
    return Table(columns, rows, "With so few pairs the intervals are wide.", formats={columns[2]: "+.2f"})


INTERVENTIONS = {
    "equalized": "as the theory prescribes for these images",
    "measured": "as the clock of a plain run on other images prescribes",
}


def intervention(runs: pd.DataFrame) -> Iterator[Block]:
    index = ["partner", "share", "seed"]
    before = runs[runs["method"] == "plain"].set_index(index)
    for method, title in INTERVENTIONS.items():
        treated = runs[(runs["method"] == method) & runs["log_gap"].notna()].set_index(index)
        both = treated.join(before["log_gap"].rename("log_gap_plain"), how="inner")
        both = both.dropna(subset=["log_gap_plain"])
        if not len(both):
            continue
        shrinks = both["log_gap_plain"].abs() - both["log_gap"].abs()
        rows = [
            [
                str(partner),
                len(own),
                own["drawn_share_partner"].mean(),
                _range(own["log_gap_plain"]),
                _range(own["log_gap"]),
                int((shrinks[own.index] > 0).sum()),
            ]
            for partner, own in both.groupby(level="partner", sort=False)
        ]
        yield Table(
            ["partner", "seeds", "partner drawn", "log gap, plain", f"log gap, {method}", "shrinks in"],
            rows,
            f"Classes drawn for training {title}: the same images, other shares.",
            formats={"partner drawn": ".0%"},
        )
        yield Note(
            f"Drawn {title}, the gap's size changes by {with_interval(-shrinks)} log steps; it shrinks in "
            f"{int((shrinks > 0).sum())} of {len(shrinks)} runs. The gap itself moves by "
            f"{with_interval(both['log_gap'] - both['log_gap_plain'])}.",
            title=f"Intervention, {title}",
            level="good" if shrinks.mean() > 0 else "warning",
        )
        yield from _cost(treated, before)


def _cost(treated: pd.DataFrame, before: pd.DataFrame) -> Iterator[Table]:
    """What an intervention costs in sample quality where one would stop: before any class is memorized."""
    if "coverage" not in treated or "coverage" not in before:
        return
    rows = []
    for name in ("density", "coverage", "frechet"):
        pairs = [
            (quality_before_copying(before.loc[key], name), quality_before_copying(run, name))
            for key, run in treated.iterrows()
            if key in before.index
        ]
        plain, other = np.array(pairs, dtype=float).reshape(-1, 2).T
        rows.append([name, len(pairs), np.nanmean(plain), np.nanmean(other), with_interval(other - plain)])
    columns = ["in the classifier's features", "runs", "plain", "treated", "change (95% interval)"]
    yield Table(
        columns,
        rows,
        "Sample quality at the last look before a third of some class's samples are copies, against images that "
        "were not trained on. Density and coverage are better if higher, the Fréchet distance if lower.",
        formats=dict.fromkeys(columns[2:4], ".3f"),
    )


def quality_before_copying(run: Any, name: str) -> float:
    """The last look of a run at which no class's memorized fraction has reached a third; the first, if none."""
    if not isinstance(run[name], list):
        return float("nan")
    fractions = np.array([run["fraction_sneaker"], run["fraction_partner"]], dtype=float)
    copied = np.flatnonzero((np.nan_to_num(fractions) >= 1 / 3).any(axis=0))
    last = max(copied[0] - 1, 0) if len(copied) else -1
    return float(run[name][last])
