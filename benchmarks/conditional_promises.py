"""How often a recall that `tune` promised holds on new rows: python benchmarks/conditional_promises.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier


def planted(n: int, share: float, seed: int) -> tuple[Any, Any]:
    """Ten columns, of which two tell the classes apart, one of them by its distance from zero."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 10))
    X[:, 0] += 1.5 * y
    X[:, 1] += y * rng.choice([-2, 2], n)
    return X, y


def kept(model: ConditionalClassifier, X: Any, y: Any, grid: Any, positives: int, draws: int) -> float:
    """The share of draws after which nine tenths of all positives are called positive."""
    rare, others = np.flatnonzero(y), np.flatnonzero(y == 0)
    rng, held = np.random.default_rng(0), 0
    for _ in range(draws):
        rows = np.r_[rng.choice(rare, positives, replace=False), rng.choice(others, 500, replace=False)]
        model.tune(X[rows], y[rows], recall=0.9, params=grid)
        held += (model.predict(X[rare]) == 1).mean() >= 0.9
    return held / draws


def main() -> None:
    base = NeuralClassifier(module_params={"hidden": (32,)}, epochs=25, batch_size=64, lr=0.01)
    model = ConditionalClassifier("vs", estimator=base, random_state=0, film_scaled=True)
    model.fit(*planted(1500, 0.08, 0))
    X, y = planted(40_000, 0.08, 3)
    six = {"gamma": [0.0, 0.2], "tau": [0.0, 1.5, 3.0]}
    for name, grid in (("6 λ", six), ("25 λ", None)):
        print(f"{name}, 45 positives: kept in {kept(model, X, y, grid, 45, 100):.0%} of 100 draws")


if __name__ == "__main__":
    main()
