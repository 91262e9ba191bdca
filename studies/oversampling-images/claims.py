"""What the paper says of images, beside our paired differences: agrees, differs, or cannot be told."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from equipoise.report import Table

from ..shared.tables import Paired, counted, gain, paired
from .printed import LATENTS, PARTS, printed

TESTS = ("balanced", "imbalanced")
NAMES = {"acsa": "ACSA", "macro_f1": "macro F1", "auprc": "AUPRC-OVA"}
SIMILAR = 1.0
"""Points by which results that agree, or that the paper calls similar, may lie apart."""

_WHOLE = {"ours, no decoder": "ours, learned mixer"}
"""Table 4's rows that have the mixer; the others draw their weights uniformly."""


def above(dataset: str, mine: pd.DataFrame, rivals: tuple[str, ...]) -> Iterator[list[object]]:
    """The paper's lead over each rival that it has, ours, and whether ours has the same sign.

    The paper's GAMO is the classifier that plays in it; one that learns from its images stands in for it.
    """
    played = "one-stage GAMO" in set(mine["method"])
    for rival in (name for name in rivals if not (played and name == "GAMO")):
        for test in TESTS:
            known = [printed(dataset, test, name).get("acsa") for name in ("ours", rival)]
            found = gain(mine, f"{test}_acsa", "ours", rival)
            if None in known or found is None:
                continue
            lead = known[0] - known[1]  # type: ignore[operator]
            claim = f"ACSA {lead:+.2f} over {rival} ({test})"
            yield [dataset, claim, str(found), found.pairs, found.beside(lead)]


def levels(dataset: str, mine: pd.DataFrame) -> Iterator[list[object]]:
    """The paper's own numbers of the method, and whether our interval holds them."""
    own = mine[mine["method"] == "ours"]
    for test in TESTS if len(own) else ():
        for measure, known in printed(dataset, test, "ours").items():
            if measure not in NAMES:
                continue  # the macro G-mean of a balanced test set is a function of ACSA
            scores = own[f"{test}_{measure}"]
            apart = paired(scores - known)
            shown = f"{scores.mean():.2f}" + (f" ± {apart.half_width:.2f}" if len(scores) > 1 else "")
            verdict = "differs" if apart.told else _similar(apart)
            yield [dataset, f"{NAMES[measure]} {known:.2f} ({test})", shown, len(scores), verdict]


def of_parts(dataset: str, mine: pd.DataFrame) -> Iterator[list[object]]:
    """Tables 4 and 5 and Fig 3: what a part changes, and what hardly matters."""
    for method in mine["method"].unique():
        found = None if method == "ours" else gain(mine, "balanced_acsa", method, "ours")
        if found is None:
            continue
        if method in PARTS:
            change = PARTS[method] - PARTS[_WHOLE.get(method, "ours")]
            claim = f"{method}: {change:+.2f} on CIFAR-10 (Table 4)"
            yield [dataset, claim, str(found), found.pairs, found.beside(change)]
        elif method.startswith(("ours, t =", "ours, m =")):
            where = "Fig 3" if "t =" in method else "Table 5"
            known = LATENTS.get(dataset, {}).get(method)
            claim = f"{method}: similar ({where}{'' if known is None else f', {known:.2f}'})"
            yield [dataset, claim, str(found), found.pairs, _similar(found)]


def _similar(found: Paired) -> str:
    if abs(found.mean) + found.half_width <= SIMILAR:
        return "agrees"
    return "differs" if abs(found.mean) - found.half_width > SIMILAR else "cannot tell"


def table(rows: list[list[object]]) -> Table:
    """The claims, each with our number and its 95 % interval over seeds."""
    return Table(
        ["data", "the paper", "ours", "seeds", "verdict"],
        rows,
        "The paper's claim, our number with its 95 % interval over seeds, pair by pair (Student's t), and whether "
        "both have one sign beyond the interval, whatever the size. A level differs where the interval leaves the "
        f"printed one out, and agrees where all of it is similar, that is within {SIMILAR:g} point. One seed has "
        "no interval and no verdict. Rows without mixes keep balanced batches; whether Table 4's does is not said.",
    )


def sentence(dataset: str, how: str, rows: list[list[object]], mine: pd.DataFrame) -> str:
    """How many of the paper's leads were found again on a data set, and what of ours is balanced batches' alone."""
    found = {word: [row for row in rows if row[-1] == word] for word in ("agrees", "differs", "cannot tell")}
    told = {word: counted(len(some), word) for word, some in found.items() if some}
    if "differs" in told:
        told["differs"] += f" ({', '.join(str(row[1]).split(' over ')[1] for row in found['differs'])})"
    said = f"{dataset}, {how}: of {len(rows)} leads that the paper prints, {'; '.join(told.values())}."
    alone = gain(mine, "balanced_acsa", "ours", "balanced batches")
    if alone is None:
        return said
    seeds = f"{alone.pairs} seed{'s' * (alone.pairs > 1)}"
    return f"{said} Ours less balanced batches alone: {alone} points of ACSA ({seeds})."
