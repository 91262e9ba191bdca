"""The same row under different labels, or many times under one."""

from __future__ import annotations

import numpy as np
import pandas as pd

from equipoise.datasets.near_copies import describe_near_copies, find_near_copies
from equipoise.diagnosis._contract import Finding, Sample

ORDER = 50
QUESTION = "Are there duplicates, and do they agree on the label?"


def row_hashes(sample: Sample) -> np.ndarray:
    """One number a row, equal for equal rows."""
    if isinstance(sample.X, pd.DataFrame):
        return pd.util.hash_pandas_object(sample.X, index=False).to_numpy()
    if (
        len(sample.X) * sample.X.shape[1] > 50_000_000
    ):  # hashed a column at a time: no copy of the whole table
        total = np.zeros(len(sample.X), dtype=np.uint64)
        for column in range(sample.X.shape[1]):
            part = pd.util.hash_array(np.ascontiguousarray(sample.X[:, column], dtype=np.float64))
            total = total * np.uint64(1000003) + part
        return total
    return pd.util.hash_pandas_object(pd.DataFrame(sample.X), index=False).to_numpy()


def ask(sample: Sample) -> Finding:
    frame = pd.DataFrame({"row": row_hashes(sample), "y": sample.y})
    groups = frame.groupby("row")["y"].agg(["size", "nunique"])
    repeated = groups[groups["size"] > 1]
    conflicting = groups[groups["nunique"] > 1]
    extra = int((repeated["size"] - 1).sum())
    rows_in_conflict = int(conflicting["size"].sum())
    values = {"repeated_rows": extra, "conflicting_rows": rows_in_conflict, "conflicts": len(conflicting)}
    if rows_in_conflict:
        answer = (
            f"{rows_in_conflict:,} rows have a twin with another label ({len(conflicting):,} groups): "
            "no model can get them all right; settle their labels or add the column that tells them apart."
        )
        return Finding("duplicates", QUESTION, answer, "warning", values)
    near = _near_copies(sample) if sample.table.groups is None else None
    if near is not None:
        return near
    if extra:
        answer = (
            f"{extra:,} rows repeat another row with the same label. If they are the same event recorded "
            f"twice, remove "
            "them: copies in both training and test rows make every score too good."
        )
        return Finding(
            "duplicates", QUESTION, answer, "warning" if extra > 0.01 * len(sample.y) else "note", values
        )
    return Finding("duplicates", QUESTION, "No row occurs twice.", "good", values)


def _near_copies(sample: Sample) -> Finding | None:
    groups = find_near_copies(sample.table, random_state=sample.random("near copies"))
    if groups is None:
        return None
    sizes = np.bincount(groups)
    values = {"near_copies": int(sizes[sizes > 1].sum()), "near_copy_groups": int((sizes > 1).sum())}
    answer = describe_near_copies(sample.table, groups)
    return Finding("duplicates", QUESTION, answer, "warning", values)
