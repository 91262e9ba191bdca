"""From finished cells to comparisons: which column is what, means and spreads, ties by test, ranks."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.metrics import METRICS
from equipoise.metrics.significance import correlated_t

REPEATS = ("seed", "fold")
_HIDDEN = ("folds", "inner_folds", "trials", "tune_metric", "max_rows", "metrics", "trial_scores")
_LOSSES = ("loss", "error", "brier", "cost", "distance", "fid", "mae", "mse", "deviation")
_GAINS = (
    "accuracy", "acsa", "auc", "precision", "recall", "sensitivity", "specificity", "f1", "g_mean", "gmean",
    "coverage", "density", "score",
)  # fmt: skip
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Layout:
    """Which settings of a study say what is compared, on what, and how often."""

    method: pd.Series[Any]
    block: pd.Series[Any]
    metrics: tuple[str, ...]
    curves: tuple[str, ...]
    folds: int
    """How many folds share their training data; 0 if repeats are independent."""


def read_layout(frame: pd.DataFrame, settings: Sequence[str], metrics: Sequence[str] = ()) -> Layout:
    """Tell methods from data sets from repeats.

    The method is the setting of that name (with its learner where several are), or the first setting that
    varies; the blocks are the combinations of the other settings that vary, repeats apart.
    """
    varying = [
        name for name in settings
        if name not in REPEATS and name not in _HIDDEN and frame[name].map(repr).nunique() > 1
    ]  # fmt: skip
    of_method: list[str] = [name for name in ("method", "learner", "parameters") if name in varying]
    if not of_method:
        free = [name for name in varying if name != "dataset"]
        of_method = free[:1] or (["method"] if "method" in frame else [])
    of_block = [name for name in varying if name not in of_method] or (
        ["dataset"] if "dataset" in frame else []
    )
    results = [name for name in frame.columns if name not in settings and name not in _HIDDEN]
    numeric = [name for name in results if _is_scores(frame[name], name)]
    curves = [name for name in results if _is_curve(frame[name])]
    chosen = [name for name in metrics if name in frame and frame[name].notna().any()] or numeric
    folds = int(frame["fold"].nunique()) if "fold" in frame else 0
    return Layout(
        _label(frame, of_method), _label(frame, of_block), tuple(chosen), tuple(curves), folds if folds > 1 else 0
    )  # fmt: skip


def _label(frame: pd.DataFrame, names: Sequence[str]) -> pd.Series[Any]:
    if not names:
        return pd.Series("all", index=frame.index)

    def text(row: Any) -> str:
        return ", ".join(_short(name, row[name], len(names)) for name in names if _says(row[name]))

    return frame[list(names)].apply(text, axis=1)


def _says(value: Any) -> bool:
    return value != "own" and not (isinstance(value, float) and np.isnan(value))


def _short(name: str, value: Any, how_many: int) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    plain = isinstance(value, str) or (how_many == 1 and not isinstance(value, numbers.Number))
    return str(value) if plain else f"{name} {value}"


def _is_scores(column: pd.Series[Any], name: str) -> bool:
    measured = str(name).startswith("cell_") or str(name).endswith("_seconds")
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return bool(not measured and numeric and column.notna().any())


def _is_curve(column: pd.Series[Any]) -> bool:
    def one(value: Any) -> bool:
        return isinstance(value, list) and len(value) > 1 and all(isinstance(x, (int, float)) for x in value)

    return bool(column.map(one).any())


def direction(metric: str) -> int:
    """+1 if more is better, −1 if less is, 0 if the name does not tell: then nobody is called best.

    >>> direction("auc"), direction("log_loss"), direction("test_error"), direction("overlap")
    (1, -1, -1, 0)
    """
    base = metric.partition("(")[0].lower()
    if base in METRICS:
        return METRICS[base].sign
    if any(word in base for word in _LOSSES):
        return -1
    return int(any(word in base for word in _GAINS))


@dataclass(frozen=True)
class Scores:
    """One metric of a study: a row a block, a column per method, in order of appearance."""

    metric: str
    mean: pd.DataFrame
    spread: pd.DataFrame
    best: pd.DataFrame
    tied: pd.DataFrame
    repeats: int

    @property
    def complete(self) -> pd.DataFrame:
        """The blocks on which every method has a score, for tests over blocks."""
        return self.mean.dropna(axis=0, how="any")


def score(frame: pd.DataFrame, layout: Layout, metric: str) -> Scores:
    """Means, standard deviations, the best method of each block, and those that a test cannot tell from it."""
    repeat_names = [name for name in REPEATS if name in frame]
    table = pd.DataFrame(
        {"method": layout.method, "block": layout.block, "value": frame[metric].astype(float)}
    )
    table["repeat"] = frame[repeat_names].apply(tuple, axis=1) if repeat_names else 0
    methods, blocks = list(dict.fromkeys(layout.method)), list(dict.fromkeys(layout.block))
    groups = table.groupby(["block", "method"], sort=False)["value"]
    mean = groups.mean().unstack("method").reindex(index=blocks, columns=methods)
    spread = groups.std(ddof=1).unstack("method").reindex(index=blocks, columns=methods)
    sign = direction(metric)
    best = (sign * mean).eq((sign * mean).max(axis=1), axis=0) & (sign != 0)
    tied = pd.DataFrame(False, index=blocks, columns=methods)
    for row, block in enumerate(blocks if sign else []):
        part = table[table["block"] == block]
        wide = sign * part.pivot_table(index="repeat", columns="method", values="value", sort=False)
        leader = methods[int(best.to_numpy()[row].argmax())]
        for column, method in enumerate(methods):
            if method in wide and leader in wide and not best.iat[row, column]:
                tied.iat[row, column] = _ties(wide[leader], wide[method], layout.folds)
    return Scores(metric, mean, spread, best, tied, int(table["repeat"].nunique()))


def _ties(leader: pd.Series[float], other: pd.Series[float], folds: int) -> bool:
    """Whether a paired test at 95 % fails to put the leader first.

    Folds of one cross-validation share training data: Nadeau & Bengio's correlated t-test. Independent
    repeats: the paired t-test. One repeat: nothing can be told, so nothing is called a tie.
    """
    pairs = pd.concat([leader, other], axis=1, keys=["a", "b"]).dropna()
    gap = (pairs["a"] - pairs["b"]).to_numpy()
    if len(gap) < 2:
        return False
    if np.ptp(gap) <= 1e-9 * np.abs(gap).max():  # the same difference everywhere: no test needed
        return not gap.any()
    if folds and len(gap) % folds == 0:
        better = correlated_t(pairs["a"], pairs["b"], rope=0.0, runs=len(gap) // folds).first
        return better < _CONFIDENCE
    return bool(stats.ttest_rel(pairs["a"], pairs["b"], alternative="greater").pvalue > 1 - _CONFIDENCE)


def format_score(scores: Scores, block: Any, method: Any) -> str:
    """``mean ± sd`` with ★ for the best and ≈ for what a test cannot tell from it."""
    value, spread = scores.mean.loc[block, method], scores.spread.loc[block, method]
    if np.isnan(value):
        return "–"
    largest = float(np.nanmax(np.abs(scores.mean.to_numpy())))
    digits = 3 if largest < 10 else 2 if largest < 100 else 1
    text = f"{value:.{digits}f}" + ("" if np.isnan(spread) else f" ± {spread:.{digits}f}")
    if scores.best.loc[block, method]:
        return f"{text} ★"
    return f"{text} ≈" if scores.tied.loc[block, method] else text
