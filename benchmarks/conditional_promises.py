"""How often a recall that `tune` promised holds on new rows: python benchmarks/conditional_promises.py [draws]."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier

POSITIVES, NEGATIVES = (
    46,
    529,
)  # with 46 positives the bound has the least slack: exact for one λ, it holds in 95.2 %


def planted(n: int, share: float, seed: int) -> tuple[Any, Any]:
    """Ten columns, of which two tell the classes apart, one of them by its distance from zero."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 10))
    X[:, 0] += 1.5 * y
    X[:, 1] += y * rng.choice([-2, 2], n)
    return X, y


def kept(model: ConditionalClassifier, X: Any, y: Any, draws: int, seed: int) -> int:
    """The number of draws after which nine tenths of all positives are called positive."""
    rare, others = np.flatnonzero(y), np.flatnonzero(y == 0)
    rng, held = np.random.default_rng(seed), 0
    for _ in range(draws):
        rows = np.r_[rng.choice(rare, POSITIVES, replace=False), rng.choice(others, NEGATIVES, replace=False)]
        model.tune(X[rows], y[rows], recall=0.9)
        held += int((model.predict(X[rare]) == 1).mean() >= 0.9)
    return held


def main(draws: int = 100, models: int = 4) -> None:
    base = NeuralClassifier(module_params={"hidden": (32,)}, epochs=25, batch_size=64, lr=0.01, verbose=False)
    held = 0
    for seed in range(models):
        model = ConditionalClassifier("vs", estimator=base, random_state=seed).fit(*planted(1500, 0.08, seed))
        held += kept(model, *planted(25_000, 0.08, 50 + seed), draws, seed)
    total = draws * models
    error = (held / total * (1 - held / total) / total) ** 0.5
    print(f"25 λ, {POSITIVES} positives: kept in {held} of {total} draws ({held / total:.1%} ± {error:.1%})")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
