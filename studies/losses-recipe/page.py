"""The page of the study: what wins on fresh draws, what the trials chose, and every try with its number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import Block, Headline, Note, Section, Table

from ..shared.tables import Paired, gains, paired, said_of, spread
from .choosing import FACTORS, chosen_recipes, tried
from .spec import CHOSEN, FINALISTS, TODAY

_NAMES = {"sgd": "SGD", "adamw": "AdamW"}


def page(results: pd.DataFrame, spec: Any) -> Sequence[Section]:
    """The claims first, then the fresh draws where there are such, then what was chosen, then the trials."""
    training = results["training"].fillna("adamw") if "training" in results else "adamw"
    results = results.assign(training=training)
    columns = ["method", *FACTORS]
    recipes = [_recipe(*values) for values in results[columns].itertuples(index=False)]
    results = results.assign(recipe=recipes)
    final, trials = (results[results["judge"] == judge] for judge in ("test", "validation"))
    rows = [*_final_claims(final), *_trial_claims(trials)]
    sections = [
        Section("What holds", [Headline(_said(final, trials)), *_claims(rows)]),
        *_final(final),
        *_chosen(trials),
        *_trials(trials),
    ]
    return [section for section in sections if section.blocks]


def _recipe(method: str, training: str, averaged: bool, mixed: float) -> str:
    """A recipe in words, such as "LA (AdamW, averaged)"."""
    parts = [_NAMES[training], *["averaged"] * bool(averaged), *["mixed"] * bool(mixed)]
    return f"{method} ({', '.join(parts)})"


_TODAY = _recipe(TODAY[0], *TODAY[1])


def _said(final: pd.DataFrame, trials: pd.DataFrame) -> str:
    if not final["recipe"].nunique() > 1:
        losses, sets = trials["method"].nunique(), trials["dataset"].nunique()
        return f"No recipe has been compared on fresh draws yet; {losses} losses were tried, on {sets} of two sets."
    errors = _errors(final)
    best = _best(errors)
    draws = f"over {final['dataset'].nunique()} sets and {final['draw'].nunique()} draws"
    return f"{best} has the least mean error {draws}. {said_of(best, gains(errors, best))}"


def _errors(final: pd.DataFrame) -> pd.DataFrame:
    """Errors by recipe; draws that not all recipes have seen yet are left out where there are whole ones."""
    errors = final.pivot(index=["dataset", "draw"], columns="recipe", values="error")
    whole = errors.dropna()
    return whole if len(whole) else errors


def _best(errors: pd.DataFrame) -> str:
    return str(errors.mean().idxmin())


def _claims(rows: list[list[Any]]) -> Iterator[Block]:
    if rows:
        caption = (
            "The error without less the error with it, in points: mean of the pairs and its 95 % interval."
        )
        yield Table(["claim", "gain", "pairs", "here"], rows, caption)


def _row(claim: str, gain: Paired) -> list[Any]:
    return [claim, str(gain), gain.pairs, gain.word("differs", "agrees")]


def _final_claims(final: pd.DataFrame) -> Iterator[list[Any]]:
    """The best recipe against each other on all draws, and on the sets one by one against that of today."""
    if not final["recipe"].nunique() > 1:
        return
    errors = _errors(final)
    best = _best(errors)
    for other, gain in gains(errors, best).items():
        yield _row(f"{best} is better than {other}", gain)
    if best != _TODAY and _TODAY in errors:
        for dataset, at in errors.groupby(level="dataset", sort=False):
            yield _row(f"{best} is better than today's {_TODAY} on {dataset}", paired(at[_TODAY] - at[best]))


def _trial_claims(trials: pd.DataFrame) -> Iterator[list[Any]]:
    """What a factor does, pair by pair over losses and sets, all else equal."""
    claims = (
        ("AdamW with a normalizing head is better than SGD", "training", "sgd", "adamw"),
        ("Averaged weights help", "averaged", False, True),
        ("Mixed images help", "mixed", 0.0, 0.2),
    )
    for claim, factor, without, with_it in claims:
        same = ["dataset", "draw", "method", *(name for name in FACTORS if name != factor)]
        errors = trials.pivot(index=same, columns=factor, values="error")
        if {without, with_it} <= set(errors):
            gain = (errors[without] - errors[with_it]).dropna()
            if len(gain):
                yield _row(f"{claim} (trials)", paired(gain))


def _final(final: pd.DataFrame) -> Iterator[Section]:
    if not len(final):
        return
    best = _best(_errors(final))
    for dataset, at in final.groupby("dataset", sort=False):
        errors = at.pivot(index="draw", columns="recipe", values="error")
        rows: list[list[Any]] = []
        for recipe in errors.mean().sort_values().index:
            mine = at[at["recipe"] == recipe]
            scores = [spread(mine[name]) for name in ("error", "head_recall", "tail_recall")]
            rows.append(
                [
                    recipe,
                    len(mine),
                    *scores,
                    *(_against(errors, str(recipe), base) for base in (best, _TODAY)),
                ]
            )
        caption = (
            "Percent, mean ± standard deviation over draws; the last columns say how far the error lies above "
            "that of another recipe, with the 95 % interval of the pairs."
        )
        names = ["recipe", "draws", "error", "head recall", "tail recall", f"above {best}", f"above {_TODAY}"]
        if best == _TODAY:
            names, rows = names[:-1], [row[:-1] for row in rows]
        yield Section(f"{dataset} on fresh draws", [Table(names, rows, caption)])


def _against(errors: pd.DataFrame, recipe: str, base: str) -> str:
    if recipe == base or base not in errors:
        return ""
    difference = (errors[recipe] - errors[base]).dropna()
    if not len(difference):
        return ""
    found = paired(difference)
    return f"{found}, {found.word('better', 'worse')}"


def _chosen(trials: pd.DataFrame) -> Iterator[Section]:
    """What each loss's trials choose, the best loss first; and whether the study took just that."""
    if trials["dataset"].nunique() < 2:
        return
    found = tried(trials)
    choice = chosen_recipes(found)
    blocks: list[Block] = []
    if CHOSEN and list(CHOSEN.items()) != list(choice.items()):
        blocks.append(Note("What was judged is not what the trials in this store choose.", level="warning"))
    rows = [
        [
            method,
            _NAMES[training],
            *_words(averaged, mixed),
            at["error"].iloc[0],
            len(at),
            "yes" if place < FINALISTS else "no",
        ]
        for place, (method, (training, averaged, mixed)) in enumerate(choice.items())
        for at in [found[found["method"] == method]]
    ]
    names = ["loss", "optimizer", "averaged weights", "mixed images, α", "error", "trials", "judged"]
    caption = (
        "The best trial of each loss: 100 % less the mean recall of the classes on validation images, mean over "
        "the sets. A loss without a trial on both sets is not in the table."
    )
    blocks.append(Table(names, rows, caption, formats={"error": ".2f"}))
    yield Section("What the trials chose", blocks)


def _words(averaged: bool, mixed: float) -> tuple[str, str]:
    return "yes" if averaged else "no", f"{mixed:g}"


def _trials(trials: pd.DataFrame) -> Iterator[Section]:
    if not len(trials):
        return
    sets = list(dict.fromkeys(trials["dataset"]))
    errors = trials.pivot_table(index=["method", *FACTORS], columns="dataset", values="error")[sets]
    errors = errors.assign(order=errors.mean(axis=1, skipna=False)).sort_values("order")
    rows = [
        [
            method,
            _NAMES[training],
            *_words(averaged, mixed),
            *(None if np.isnan(row[name]) else row[name] for name in sets),
        ]
        for (method, training, averaged, mixed), row in errors.iterrows()
    ]
    caption = (
        "Every trial: 100 % less the mean recall of the classes, on validation images of the draw "
        f"{', '.join(f'{draw:g}' for draw in trials['draw'].unique())}, which is not used again."
    )
    names = ["loss", "optimizer", "averaged weights", "mixed images, α", *sets]
    yield Section("The trials", [Table(names, rows, caption, formats=dict.fromkeys(sets, ".2f"))])
