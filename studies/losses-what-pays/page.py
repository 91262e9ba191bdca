"""The page of the study: what is learned, what pays, and every try for a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.metrics.significance import friedman
from equipoise.report import Block, Headline, Section, Table, Text

from ..shared.tables import paired, spread

BASE = "Combined"
OFFSET_AT = np.linspace(0, 1, 21)[1:-1]
"""The values of p(z|x) at which cells keep the learned h."""


def page(results: pd.DataFrame, spec: Any) -> Sequence[Section]:
    """Claims first, then ranks over the sets, a table a set, the learned h, and the tries."""
    final = results[(results["judge"] == "test") & (results["recipe"] == "sgd")]
    places = list(dict.fromkeys(zip(final["dataset"], final["ratio"], strict=True)))
    table = _claims(final, places)
    sections = [Section("What the paper says, and what is seen here", [_first(table), table]), *_ranks(final)]
    for dataset, ratio in places:
        at = final[(final["dataset"] == dataset) & (final["ratio"] == ratio)]
        sections.append(Section(f"{dataset}, long-tailed {ratio:g} : 1", [_table(at)]))
    sections += _offset(final)
    tries = results[results["judge"] == "validation"]
    if len(tries):
        sections.append(Section("Tries for a recipe, on validation images", [_tries(tries)]))
    return sections


def _first(table: Table) -> Headline:
    """The first claim, which the study is about; then how many of all hold here, and which."""
    asked, gain, pairs, _ = table.rows[0]
    settled = [row for row in table.rows if row[3] in ("agrees", "differs")]
    held = sum(row[3] == "agrees" for row in settled)
    named = "".join(
        f" “{text}” {'holds' if here == 'agrees' else 'does not hold'} ({more} points of error, {n} pairs)."
        for text, more, n, here in settled
    )
    return Headline(
        f"“{asked}”: by {gain} points of error here ({pairs} pairs). Of {len(table.rows)} claims, {held or 'none'} "
        f"held, {len(settled) - held or 'none'} did not, and {len(table.rows) - len(settled) or 'none'} cannot be "
        f"decided with these seeds.{named}"
    )


def _errors(at: pd.DataFrame) -> pd.DataFrame:
    return at.pivot(index="seed", columns="method", values="error")


def _against(errors: pd.DataFrame, method: str, base: str) -> Any:
    """How far the error of ``method`` lies above that of ``base``, or None without common seeds."""
    if method not in errors or base not in errors:
        return None
    difference = (errors[method] - errors[base]).dropna()
    return paired(difference) if len(difference) else None


def _claims(final: pd.DataFrame, places: Sequence[tuple[str, float]]) -> Table:
    """Each claim, pair by pair over sets and seeds."""
    claims = [
        ("Meta-learning helps (Tables 11 and 12)", BASE, "Meta-ENum"),
        ("Learning Σ helps", "Meta-ENum, Σ estimated", "Meta-ENum"),
        ("Learning h helps", "Meta-ENum, h fixed", "Meta-ENum"),
        ("The scatter must have its gradient", "Combined, DS constant", BASE),
        ("DS helps (Table 9)", "Combined, no DS", BASE),
        ("h helps (Table 9)", "Combined, no h", BASE),
        ("Meta-ENum is better than logit adjustment", "LA", "Meta-ENum"),
        ("Meta-ENum is better than LDAM-DRW", "LDAM-DRW", "Meta-ENum"),
        ("Meta-ENum is better than KPS", "KPS", "Meta-ENum"),
        ("Meta-ENum is better than class-balanced CE", "CB-CE", "Meta-ENum"),
        ("Meta-ENum is better than cross-entropy", "CE", "Meta-ENum"),
    ]
    rows: list[list[Any]] = []
    for text, without, with_it in claims:
        gains: list[float] = []
        for dataset, ratio in places:
            errors = _errors(final[(final["dataset"] == dataset) & (final["ratio"] == ratio)])
            if without in errors and with_it in errors:
                gains += (errors[without] - errors[with_it]).dropna().tolist()
        if gains:
            found = paired(gains)
            rows.append([text, str(found), found.pairs, found.word("differs", "agrees")])
    caption = (
        "The error without less the error with it, in points: mean over all sets and seeds, 95 % interval."
    )
    return Table(["claim", "gain", "pairs", "here"], rows, caption)


def mean_errors(final: pd.DataFrame) -> pd.DataFrame:
    """A row a set, a column a method that ran on every set: means over the seeds that these share on the set."""
    errors = final.pivot(index=["dataset", "ratio", "seed"], columns="method", values="error")
    sets = ["dataset", "ratio"]
    everywhere = errors.groupby(level=sets, sort=False).count().all()
    return errors.loc[:, everywhere].dropna().groupby(level=sets, sort=False).mean()


def _ranks(final: pd.DataFrame) -> Iterator[Section]:
    """Friedman's test over our own sets, as the paper has it over its data sets."""
    table = mean_errors(final)
    if table.shape[0] < 2 or table.shape[1] < 3:
        return
    found = friedman(table, greater_is_better=False)
    sets = [f"{dataset}, {ratio:g} : 1" for dataset, ratio in table.index]
    rows = [
        [method, f"{rank:.2f}", *(f"{error:.2f}" for error in table[method])]
        for method, rank in found.ranks.sort_values().items()
    ]
    told = "differ" if found.f_p_value < 0.05 else "cannot be told to differ"
    text = (
        f"Over {len(table)} sets, the ranks of the {table.shape[1]} methods that ran on all of them {told}: "
        f"T_F = {found.f_statistic:.2f}, p = {found.f_p_value:.2g} (Friedman's test in the form of Iman and "
        "Davenport). The paper has T_F = 37.52 over six long-tailed sets and 29.07 over four balanced ones."
    )
    caption = (
        "Mean rank over the sets, and top-1 error in percent, mean over the seeds that all of them have."
    )
    yield Section("Ranks over the sets", [Text(text), Table(["method", "rank", *sets], rows, caption)])


def _table(at: pd.DataFrame) -> Table:
    errors = _errors(at)
    rows: list[list[Any]] = []
    for method in sorted(errors, key=lambda name: float(errors[name].mean())):
        mine = at[at["method"] == method]
        columns = [spread(mine[name]) for name in ("error", "head_recall", "tail_recall")]
        found = _against(errors, method, BASE) if method != BASE else None
        beside = "" if found is None else f"{found}, {found.word('better', 'worse')}"
        rows.append([method, len(mine), *columns, beside])
    names = ["method", "seeds", "top-1 error", "head recall", "tail recall", f"against {BASE}"]
    caption = (
        "Percent, mean ± standard deviation over seeds; the difference with the 95 % interval of the pairs."
    )
    return Table(names, rows, caption)


def _offset(final: pd.DataFrame) -> Iterator[Section]:
    """The learned h against p(z|x), set by set."""
    if "offset_curve" not in final:
        return
    kept = final.dropna(subset="offset_curve")
    if not len(kept):
        return
    low, high, shown = 1, 14, (1, 4, 9, 14, 17)
    rows: list[list[Any]] = []
    falling = 0
    for (dataset, ratio), at in kept.groupby(["dataset", "ratio"], sort=False):
        curves = np.array(at["offset_curve"].tolist())
        falls = int((curves[:, low] > curves[:, high]).sum())
        falling += falls
        rows.append(
            [
                f"{dataset}, {ratio:g} : 1",
                f"{falls} of {len(curves)}",
                *(f"{h:.2f}" for h in curves.mean(0)[[*shown]]),
            ]
        )
    text = (
        f"The learned h falls from p(z|x) = {OFFSET_AT[low]:.2f} to {OFFSET_AT[high]:.2f} in {falling} of "
        f"{len(kept)} runs. Where it falls, a class that is unlikely is pushed away further than one that may be "
        "the true label."
    )
    names = ["set", "runs in which it falls", *(f"h at {OFFSET_AT[k]:.2f}" for k in shown)]
    yield Section(
        "What h learns",
        [Text(text), Table(names, rows, "Means over the runs, for a sample that was never forgotten.")],
    )


def _tries(tries: pd.DataFrame) -> Block:
    mean = (
        tries.groupby(["method", "recipe", "head_kind"])["error"].agg(["mean", "count"]).sort_values("mean")
    )
    rows = [
        [method, recipe, head, f"{values['mean']:.2f}", int(values["count"])]
        for (method, recipe, head), values in mean.iterrows()
    ]
    caption = "Percent of 5,000 training images that were not trained on; no draw is among those above."
    return Table(["loss", "optimizer", "head", "error", "seeds"], rows, caption)
