"""Small data for samplers."""

from __future__ import annotations

import numpy as np
import pandas as pd


def blobs(sizes=(120, 40, 15), d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(2.0 * c, 1, size=(n, d)) for c, n in enumerate(sizes)])
    return X, np.repeat(np.arange(len(sizes)), sizes)


def mixed(n=120, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(size=n),
            "visits": pd.array(rng.integers(0, 9, n), dtype="Int64"),
            "city": pd.Categorical(rng.choice(["Bern", "Oslo", "<b>Rome</b>"], n)),
            "member": pd.array(rng.random(n) < 0.5, dtype="boolean"),
            "grade": rng.choice(["a", "b"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    y = pd.Series(np.where(np.arange(n) < 20, "fraud", "fine"), name="kind")
    return frame, y
