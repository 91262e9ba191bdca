"""The same row under different labels, or many times under one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from equipoise.datasets.near_copies import describe_near_copies, find_near_copies
from equipoise.diagnosis._contract import Answer, Sample

ORDER = 50
QUESTION = "Are there duplicates, and do they agree on the label?"


def row_hashes(sample: Sample) -> np.ndarray:
    """One number per row, equal for equal rows."""
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


def ask(sample: Sample) -> Answer:
    """Rows that occur twice, rows whose twin has another label, and near-copies."""
    frame = pd.DataFrame({"row": row_hashes(sample), "y": sample.y})
    groups = frame.groupby("row")["y"].agg(["size", "nunique"])
    repeated = groups[groups["size"] > 1]
    conflicting = groups[groups["nunique"] > 1]
    values: dict[str, Any] = {
        "repeated_rows": int((repeated["size"] - 1).sum()),
        "conflicting_rows": int(conflicting["size"].sum()),
        "conflicts": len(conflicting),
    }
    if values["conflicts"]:
        return Answer("warning", values)
    if sample.table.groups is None:
        near = find_near_copies(sample.table, random_state=sample.random("near copies"))
        if near is not None:
            sizes = np.bincount(near)
            values |= {"near_copies": int(sizes[sizes > 1].sum()), "near_copy_groups": int((sizes > 1).sum())}
            return Answer("warning", values, {"described": describe_near_copies(sample.table, near)})
    few = values["repeated_rows"] <= 0.01 * len(sample.y)
    return Answer("good" if not values["repeated_rows"] else "note" if few else "warning", values)
