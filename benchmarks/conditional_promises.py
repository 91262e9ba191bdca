"""How often a recall that `tune` promised holds on new rows: python benchmarks/conditional_promises.py [draws].

Every λ is asked once for a large set of rows. Draws of 46 positives from it are then tuned on, in numpy: by the
rule of `tune` (λ with the best average precision) and by the best precision at the promised threshold. A few
draws are also given to `tune` itself, which must choose the same λ.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
from scipy import stats

from equipoise.classifiers import ConditionalClassifier, NeuralClassifier

LEVEL, POSITIVES, NEGATIVES = 0.9, 46, 529  # with 46 positives the bound has little slack


def planted(n: int, share: float, seed: int) -> tuple[Any, Any]:
    """Ten columns, of which two tell the classes apart, one of them by its distance from zero."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    X = rng.normal(size=(n, 10))
    X[:, 0] += 1.5 * y
    X[:, 1] += y * rng.choice([-2, 2], n)
    return X, y


def promised_place() -> tuple[int, float]:
    """The place of the threshold among the sorted positives, and how sure it is for one λ."""
    k = np.arange(1, POSITIVES + 1)
    sure = np.asarray(stats.beta.cdf(1 - LEVEL, k, POSITIVES - k + 1))
    place = int(np.flatnonzero(sure >= 0.95)[-1])
    return place, float(sure[place])


def main(draws: int = 1500, models: int = 4, checked: int = 3) -> None:
    base = NeuralClassifier(module_params={"hidden": (32,)}, epochs=25, batch_size=64, lr=0.01, verbose=False)
    place, sure = promised_place()
    kept: dict[str, list[bool]] = {}
    for seed in range(models):
        model = ConditionalClassifier("vs", estimator=base, film_scaled=True, random_state=seed)
        model.fit(*planted(1500, 0.08, seed))
        X, y = planted(20_000, 0.08, 50 + seed)
        laws = model.distribution_
        axes = (np.linspace(law.low, law.high, 5) for law in laws.values())
        grid = [dict(zip(laws, map(float, values), strict=True)) for values in itertools.product(*axes)]
        scores = model.predict_proba(X, grid)[:, :, 1]
        rare, others = np.flatnonzero(y), np.flatnonzero(y == 0)
        everyone, rng = np.sort(scores[:, rare], axis=1), np.random.default_rng(1000 + seed)
        for draw in range(draws):
            rows = np.r_[
                rng.choice(rare, POSITIVES, replace=False), rng.choice(others, NEGATIVES, replace=False)
            ]
            order = np.argsort(scores[:, rows], axis=1)
            positive = order < POSITIVES
            alarms = NEGATIVES - np.cumsum(~positive, axis=1)[positive].reshape(len(grid), -1)
            hits = POSITIVES - np.arange(POSITIVES)
            precision = hits / (hits + alarms)
            sorted_scores = np.take_along_axis(scores[:, rows], order, axis=1)[positive]
            cuts = sorted_scores.reshape(len(grid), -1)[:, place]
            chosen = {
                "average precision": int(precision.mean(axis=1).argmax()),
                "precision at the threshold": int(precision[:, place].argmax()),
                "no choice, one λ": len(grid) // 2,
            }
            for name, one in chosen.items():
                recall = 1 - np.searchsorted(everyone[one], cuts[one]) / len(rare)
                kept.setdefault(name, []).append(bool(recall >= LEVEL))
            if draw < checked:
                found = model.tune(X[rows], y[rows], recall=LEVEL)
                assert found.params == grid[chosen["average precision"]], "tune chooses as this script does"
    print(f"{POSITIVES} positives, 25 λ, {models} models, {draws} draws each; for one λ {sure:.1%} is exact")
    for name, held in kept.items():
        share = np.mean(held)
        print(f"λ by {name}: kept in {share:.1%} ± {(share * (1 - share) / len(held)) ** 0.5:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
