"""Drift: do the later rows come from where the earlier ones came from?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from equipoise._core.checks import FloatArray, IntArray
from equipoise.datasets.schema import MISSING
from equipoise.diagnosis._contract import Answer, Sample

ORDER = 65
USUAL_SECONDS = 1.5
QUESTION = "Do the later rows look like the earlier ones?"
MOST = 6000
_BLOCKS = 5  # of either half, in the order of time
_LEAST_ROWS = 100
_NAMED = 5
_SURE_OF_SHARES = 0.975  # both tests together are then wrong about one table without drift in twenty, at most
_CLEAR = 0.55  # an AUC above this for sure is worth a warning


def applies(sample: Sample) -> bool:
    """Only a table whose rows have a time can drift."""
    return sample.table.time is not None


def time_blocks(time: FloatArray, rng: np.random.Generator) -> IntArray:
    """The block of each row in the order of time: as many in the earlier half as in the later one.

    The halves meet between two moments, as near the middle row as rows of one moment allow.

    >>> blocks = time_blocks(np.array([1.0, 1, 2, 2, 2, 3, 3, 4, 4, 5, 5]), np.random.default_rng(0))
    >>> np.bincount(blocks)
    array([1, 1, 1, 1, 1, 2, 1, 1, 1, 1])
    """
    moments, counts = np.unique(time, return_counts=True)
    if len(moments) < 2:
        raise ValueError("all rows have the same time")
    before = np.cumsum(counts)[:-1]
    cut = moments[int(np.abs(before - len(time) / 2).argmin()) + 1]
    blocks = np.empty(len(time), dtype=np.int64)
    for half, start in ((np.flatnonzero(time < cut), 0), (np.flatnonzero(time >= cut), _BLOCKS)):
        order = half[np.lexsort([rng.random(len(half)), time[half]])]
        blocks[order] = start + np.arange(len(half)) * _BLOCKS // len(half)
    return blocks


def ask(sample: Sample) -> Answer:
    """How well a forest tells late rows from early ones, in blocks of time that it did not see; what moved most.

    Rows that are near in time may be alike without any drift. Each fold therefore leaves out one block of the
    earlier half and the one that lies as far into the later half, and the interval is over the folds, which share
    training rows (Nadeau & Bengio 2003). The share of the rarest class is followed over the blocks by
    a straight line. Either alone is wrong about one table without drift in forty, nominally.
    """
    if sample.table.time is None:
        raise ValueError("it needs the time of each row: name a column with --time")
    if len(sample.y) < _LEAST_ROWS:
        raise ValueError(f"it needs at least {_LEAST_ROWS} rows, got {len(sample.y)}")
    rng = sample.random("drift")
    rows = np.sort(rng.permutation(len(sample.y))[:MOST])
    blocks = time_blocks(sample.table.time[rows], rng)
    auc, low, high = _told_apart(sample.encoded(rows), blocks, sample.seed)
    shares, change, change_low, change_high = _rare_shares(sample, rng)
    moved = sorted(_columns(sample, rows, blocks >= _BLOCKS), key=lambda column: -abs(column["auc"] - 0.5))
    drifts, turns = low > 0.5, change_low > 0 or change_high < 0
    values = {
        "auc": auc,
        "auc_interval": [low, high],
        "columns": moved[:_NAMED],
        "share_early": float(shares[:_BLOCKS].mean()),
        "share_late": float(shares[_BLOCKS:].mean()),
        "share_change": change,
        "share_change_interval": [change_low, change_high],
        "drifts": bool(drifts),
        "share_moves": bool(turns),
    }
    return Answer(
        "warning" if low > _CLEAR or turns else "note" if drifts else "good", values, {"shares": shares}
    )


def _told_apart(X: FloatArray, blocks: IntArray, seed: int) -> tuple[float, float, float]:
    """The AUC of late against early rows in held-out blocks, with its 95 % interval."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.metrics import roc_auc_score

    late = blocks >= _BLOCKS
    found = []
    for fold in range(_BLOCKS):
        out = blocks % _BLOCKS == fold
        forest = ExtraTreesClassifier(
            100, min_samples_leaf=5, class_weight="balanced", random_state=seed % 2**31
        )
        forest.fit(X[~out], late[~out])
        found.append(roc_auc_score(late[out], forest.predict_proba(X[out])[:, 1]))
    reach = stats.t.ppf(0.975, _BLOCKS - 1) * np.std(found, ddof=1) * np.sqrt(1 / _BLOCKS + 1 / (_BLOCKS - 1))
    mean = float(np.mean(found))
    return mean, max(mean - float(reach), 0.0), min(mean + float(reach), 1.0)


def _rare_shares(sample: Sample, rng: np.random.Generator) -> tuple[FloatArray, float, float, float]:
    """The share of the rarest class in each block of time, and by how much it changed, with its 97.5 % interval."""
    assert sample.table.time is not None
    blocks = time_blocks(sample.table.time, rng)
    seen = np.bincount(sample.y, minlength=len(sample.counts))
    weight = (sample.counts / np.maximum(seen, 1))[sample.y]  # of a sample: how many rows each stands for
    total = np.bincount(blocks, weights=weight, minlength=2 * _BLOCKS)
    shares = np.bincount(blocks, weights=weight * (sample.y == sample.rare), minlength=2 * _BLOCKS) / total
    line = stats.linregress(np.arange(2 * _BLOCKS), shares)
    change = _BLOCKS * float(line.slope)  # from the middle of one half to that of the other
    reach = _BLOCKS * float(line.stderr * stats.t.ppf(0.5 + _SURE_OF_SHARES / 2, 2 * _BLOCKS - 2))
    return shares, change, change - reach, change + reach


def _columns(sample: Sample, rows: IntArray, late: np.ndarray) -> list[dict[str, Any]]:
    """How well each column alone tells late rows from early ones, and its usual value in either."""
    from sklearn.metrics import roc_auc_score

    found = []
    part = sample.table.rows(rows)
    for place, (name, kind) in enumerate(zip(sample.names, sample.table.kinds, strict=True)):
        values = pd.Series(part[name].to_numpy() if isinstance(part, pd.DataFrame) else part[:, place])
        known = values.notna() if kind in ("number", "date") else values != MISSING
        halves = (values[known & ~late], values[known & late])
        told: dict[str, Any] = {
            "name": name,
            "kind": kind,
            "missing": [float((~known)[~late].mean()), float((~known)[late].mean())],
        }
        gaps = float(roc_auc_score(late, ~known))
        if kind in ("number", "date"):
            both = all(len(half) for half in halves)
            own = float(roc_auc_score(late[known], values[known])) if both else 0.5
            told |= {"early": _middle(halves[0]), "late": _middle(halves[1])}
        else:
            early, after = (half.value_counts(normalize=True) for half in halves)
            gap = after.sub(early, fill_value=0.0)
            most = gap.abs().idxmax() if len(gap) else MISSING
            own = 0.5 + 0.25 * float(gap.abs().sum())  # of the share that moved, the AUC of telling by it
            told |= {"value": most, "early": float(early.get(most, 0.0)), "late": float(after.get(most, 0.0))}
        by_gaps = abs(gaps - 0.5) > abs(own - 0.5)
        found.append({**told, "auc": gaps if by_gaps else own, "by_gaps": by_gaps})
    return found


def _middle(values: pd.Series[Any]) -> float | None:
    return float(values.median()) if len(values) else None
