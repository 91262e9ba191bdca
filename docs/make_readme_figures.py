"""Fill the README's figures against peers from the store of the study ``advisor-peers``.

Run: python docs/make_readme_figures.py
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from equipoise.studies import Store

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "studies" / "advisor-peers"
BEGIN, END = "<!-- advisor-peers: made by docs/make_readme_figures.py -->", "<!-- end of advisor-peers -->"
METRICS = {
    "average_precision": 1,
    "balanced_accuracy": 1,
    "brier": -1,
    "cost": -1,
}  # and whether more is better
NAMES = {
    "lightgbm": "LightGBM",
    "lightgbm-unbalance": "LightGBM, `is_unbalance`",
    "histogram-boosting": "histogram boosting",
    "balanced-forest": "balanced random forest",
    "flaml": "FLAML, the same minute",
}


def read_store() -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The cells with a minute's budget, and the tables that were looked at while the advisor was written."""
    with Store(STUDY / "results.sqlite", read_only=True) as store:
        frame = store.frame(STUDY.name)
    return frame[frame["budget"] == 60.0], runpy.run_path(str(STUDY / "spec.py"))["LOOKED_AT"]


def gap(means: pd.DataFrame, peer: str, sign: int) -> tuple[str, int]:
    """By how much the advisor is better than a peer: the mean over tables with its paired 95 % interval."""
    gaps = sign * (means["advisor"] - means[peer]).dropna().to_numpy()
    if len(gaps) < 2:
        return "–", len(gaps)
    reach = stats.t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{gaps.mean():+.3f} ({gaps.mean() - reach:+.3f} to {gaps.mean() + reach:+.3f})", len(gaps)


def make_block(frame: pd.DataFrame) -> str:
    """The Markdown between the markers: one line a peer, splits of a table averaged first."""
    head = ["", *[metric.replace("_", " ") for metric in METRICS], "tables", "splits"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for peer, name in NAMES.items():
        cells, tables, splits = [], 0, 0
        for metric, sign in METRICS.items():
            pairs = frame.pivot_table(index=["dataset", "split"], columns="method", values=metric)
            if not {"advisor", peer} <= set(pairs.columns):
                cells.append("–")
                continue
            both = pairs[["advisor", peer]].dropna()
            means, splits = both.groupby(level="dataset").mean(), len(both)
            text, tables = gap(means, peer, sign)
            cells.append(text)
        lines.append(f"| {name} | {' | '.join(cells)} | {tables} | {splits} |")
    return "\n".join(lines)


def fill(text: str, block: str) -> str:
    """The text with what stands between the markers exchanged."""
    pattern = re.escape(BEGIN) + r".*?" + re.escape(END)
    if not re.search(pattern, text, re.DOTALL):
        raise ValueError(f"no place for the figures: {BEGIN!r} is missing")
    return re.sub(pattern, lambda _: f"{BEGIN}\n{block}\n{END}", text, flags=re.DOTALL)


def main() -> None:
    frame, looked_at = read_store()
    readme = ROOT / "README.md"
    block = make_block(frame[~frame["dataset"].isin(looked_at)])
    readme.write_text(fill(readme.read_text(encoding="utf-8"), block), encoding="utf-8")
    print(block)


if __name__ == "__main__":
    main()
