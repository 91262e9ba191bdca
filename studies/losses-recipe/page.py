"""The page of the study: every try with its number, and what the chosen recipes do on fresh draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from equipoise.report import Headline, Section, Table

from ..shared.tables import gains, said_of, spread
from .spec import TODAY


def page(results: pd.DataFrame, spec: Any) -> Sequence[Section]:
    """The fresh draws first, where there are such; then the trials."""
    final, trials = (results[results["judge"] == judge] for judge in ("test", "validation"))
    sections = [*_final(final), *_trials(trials)]
    if sections:
        head = Headline(_said(final, trials))
        sections[0] = Section(sections[0].title, [head, *sections[0].blocks])
    return sections


def _said(final: pd.DataFrame, trials: pd.DataFrame) -> str:
    if not final["method"].nunique() > 1:
        losses, draws = trials["method"].nunique(), trials["draw"].nunique()
        on = "one draw" if draws == 1 else f"{draws} draws"
        return f"No recipe has been judged on fresh draws yet; {losses} losses were tried on {on}."
    errors = _errors(final)
    best = str(errors.mean().idxmin())
    return f"{best} has the least mean error. {said_of(best, gains(errors, best))}"


def _errors(final: pd.DataFrame) -> pd.DataFrame:
    return final.pivot(index=["dataset", "draw"], columns="method", values="error")


def _final(final: pd.DataFrame) -> Iterator[Section]:
    for dataset, at in final.groupby("dataset", sort=False):
        errors = _errors(at)
        found = gains(errors, TODAY) if TODAY in errors else {}
        rows: list[list[Any]] = []
        for method in errors.mean().sort_values().index:
            mine = at[at["method"] == method]
            above = found.get(str(method))
            against = "" if above is None else f"{above}, {above.word('better', 'worse')}"
            rows.append([method, *(spread(mine[name]) for name in ("error", "tail_recall")), against])
        caption = (
            "Percent, mean ± standard deviation over draws; the last column has the 95 % interval of the pairs "
            f"({TODAY} is the recipe of today)."
        )
        names = ["recipe", "error", "tail recall", f"error above that of {TODAY}"]
        yield Section(f"{dataset} on fresh draws", [Table(names, rows, caption)])


def _trials(trials: pd.DataFrame) -> Iterator[Section]:
    if not len(trials):
        return
    keys = ["dataset", "method", "averaged", "mixed"]
    found = trials.groupby(keys, sort=False)["error"].agg(["mean", "count"]).reset_index()
    rows = [
        [
            row["dataset"],
            row["method"],
            "yes" if row["averaged"] else "no",
            f"{row['mixed']:g}",
            row["mean"],
            row["count"],
        ]
        for _, row in found.sort_values(["dataset", "mean"]).iterrows()
    ]
    caption = "100 % less the mean recall of the classes, on validation images; no draw is used again."
    names = ["data", "loss", "averaged weights", "mixed images, α", "error", "draws"]
    yield Section("The trials", [Table(names, rows, caption, formats={"error": ".2f"})])
