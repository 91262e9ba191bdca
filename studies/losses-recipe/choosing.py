"""What the trials choose; the study and its page share it.

``python studies/losses-recipe/choosing.py`` prints, from the study's own store, what belongs into ``spec.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FACTORS = ["training", "averaged", "mixed"]
Factors = tuple[str, bool, float]
PLAIN = (False, 0.0)
"""Neither averaged weights nor mixed images: the first round."""


def tried(results: pd.DataFrame) -> pd.DataFrame:
    """Each trial that ran on every set, with its mean error over them, least error first."""
    at = results[results["judge"] == "validation"]
    training = at["training"].fillna("adamw") if "training" in at else "adamw"
    at = at.assign(training=training)
    found = at.groupby(["method", *FACTORS])["error"].agg(["mean", "count"]).reset_index()
    found = found[found["count"] == found["count"].max()].rename(columns={"mean": "error"})
    return found.drop(columns="count").sort_values(["error", "method", *FACTORS], ignore_index=True)


def chosen_training(trials: pd.DataFrame) -> dict[str, str]:
    """For each loss the optimizer and head with the least error, of the first round's trials."""
    first = trials[(trials["averaged"] == PLAIN[0]) & (trials["mixed"] == PLAIN[1])]
    return dict(first.drop_duplicates("method").set_index("method")["training"])


def chosen_recipes(trials: pd.DataFrame) -> dict[str, Factors]:
    """For each loss the recipe with the least error, of both rounds' trials; the best loss first."""
    rows = trials.drop_duplicates("method").itertuples()
    return {str(row.method): (str(row.training), bool(row.averaged), float(row.mixed)) for row in rows}


if __name__ == "__main__":
    from pprint import pprint

    from equipoise.studies.store import Store

    with Store(Path(__file__).with_name("results.sqlite"), read_only=True) as store:
        TRIALS = tried(store.frame("losses-recipe"))
    for name, value in (("TRAINING", chosen_training(TRIALS)), ("CHOSEN", chosen_recipes(TRIALS))):
        print(name, "=", end=" ")
        pprint(value, sort_dicts=False)
