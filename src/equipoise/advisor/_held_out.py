"""Held-out rows of a fitted advisor, and its recommended model as it answers for rows that it was not fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.random import as_generator, derive_seed
from equipoise.advisor._advisor import Advisor
from equipoise.datasets.thinning import thin


class HeldOutModel:
    """The recommended model as it answers for rows that it was not fitted to."""

    def __init__(self, advisor: Advisor) -> None:
        self.bags, self.stack, self.encoders = advisor.judges_, advisor.stack_, advisor.encoders_
        self.n_classes = len(advisor.data_prior_)

    def proba(self, X: Any, block: IntArray) -> FloatArray:
        """Probabilities at the data's class shares, each row by the models of its own fold."""
        views = {view: self.encoders[view].transform(X) for view in {b.treatment.view for b in self.bags}}
        members = np.empty((len(self.bags), len(block), self.n_classes))
        for fold in np.unique(block):
            mine = block == fold
            for i, bag in enumerate(self.bags):
                members[i, mine] = bag.models[fold].log_proba(views[bag.treatment.view][mine])
        return self.stack.proba(members)


class RowSample:
    """Some of the held-out rows, and how many rows of the data each stands for."""

    def __init__(self, advisor: Advisor, kept: IntArray) -> None:
        self.advisor, self.kept, self.table = advisor, kept, advisor.compared_
        self.block, self.y = advisor.block_[kept], advisor.truth_[kept]
        self.X = self.table.rows(advisor.judged_[kept])
        seen = np.bincount(self.y, minlength=len(advisor.data_prior_))
        weight = (advisor.data_prior_ / np.maximum(seen, 1))[self.y]
        self.weight: FloatArray = weight / weight.sum()

    @classmethod
    def of(cls, advisor: Advisor, most: int, seed: int) -> RowSample:
        """At most so many rows, all of the rare classes first."""
        every = np.arange(len(advisor.truth_))
        return cls(advisor, thin(advisor.truth_, every, most, derive_seed(seed, "reasons") % 2**31))

    def fewer(self, n: int, seed: int) -> RowSample:
        """At most ``n`` of these rows."""
        if n >= len(self):
            return self
        rng = as_generator(derive_seed(seed, "fewer"))
        return RowSample(self.advisor, np.sort(rng.choice(self.kept, n, replace=False)))

    def __len__(self) -> int:
        return len(self.y)


def with_values(X: Any, place: int, values: Any) -> Any:
    """The rows with other values in one column."""
    if isinstance(X, pd.DataFrame):
        return X.assign(**{str(X.columns[place]): values})
    changed = X.copy()
    changed[:, place] = values
    return changed


def column_of(X: Any, place: int) -> Any:
    return X.iloc[:, place].to_numpy() if isinstance(X, pd.DataFrame) else X[:, place]


def joined(parts: list[Any]) -> Any:
    return pd.concat(parts) if isinstance(parts[0], pd.DataFrame) else np.concatenate(parts)
