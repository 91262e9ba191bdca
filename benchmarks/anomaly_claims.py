"""The numbers of docs/explanation/anomaly.md that no figure or study prints: ``anomaly_claims.py NAME``.

Without a name all parts run, one after the other (a few minutes on one core).
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression

from equipoise.theory.anomaly import (
    advise_training,
    classification_metrics,
    guide_regret,
    intrinsic_fraction,
    optimal_train_fraction,
    sample_training_set,
    solve_saddle,
    tail_or_group,
)

SETTINGS = [
    axis.ravel()
    for axis in np.meshgrid((0.5, 1.1, 2, 4, 8), (0.1, 0.5, 1.0), (-0.6, -1.0, -1.5, -2.5), indexing="ij")
]


def guides() -> None:
    """What of the overlap is lost by following a metric, over 60 settings of α, T and b0."""
    for name in ("balanced_accuracy", "negative_f1", "macro_f1", "f1", "precision"):
        lost = guide_regret(*SETTINGS, name)
        paper = guide_regret(8.0, 0.5, -1.5, name)
        print(
            f"{name:18} median {np.median(lost):.4f}, worst {lost.max():.4f}, at (8, 0.5, -1.5) {float(paper):.4f}"
        )


def peaks() -> None:
    """How often the precision peaks between ρ0 and ρ(b*), and ρ0 against the best share for R and b."""
    own = intrinsic_fraction(SETTINGS[2])
    bias = optimal_train_fraction(*SETTINGS, "bias")
    precision = optimal_train_fraction(*SETTINGS, "precision").train_fraction
    exact = bias.value > -1e-6
    low, high = np.minimum(own, bias.train_fraction), np.maximum(own, bias.train_fraction)
    between = (low <= precision) & (precision <= high) & exact
    print(
        f"precision peaks between ρ0 and ρ(b*) in {between.sum()} of {exact.sum()} settings where b* exists"
    )
    best = optimal_train_fraction(*SETTINGS)
    print(f"ρ0 is worse than ρ(R*) for R in {(best.regret_at_intrinsic > 0).sum()} of {best.value.size}")
    frozen = solve_saddle(SETTINGS[0], 0.0, SETTINGS[2], own)
    print(f"T = 0, ρ = ρ0: |b - b0| at most {np.abs(frozen.bias - SETTINGS[2]).max():.1e}")


def widths() -> None:
    """Contribution 3, less noise and less harm: how wide the peak of balanced accuracy and of R is."""
    noise = np.array([0.0, 0.1, 0.5, 1.0, 2.0])
    for objective in ("overlap", "balanced_accuracy"):
        found = optimal_train_fraction(1.1, noise, -0.6, objective)
        print(objective, dict(zip(noise.tolist(), found.width.round(3).tolist(), strict=True)))


def shares() -> None:
    """Appendix F's conjecture: ρ_train's share of the variance of R, the rest being ρ0's."""
    b0, rho = np.linspace(-5, -1.5, 15)[:, None], np.linspace(0.1, 0.9, 33)
    for alpha in (0.5, 1.1, 3.0, 8.0, 20.0):
        overlap = solve_saddle(alpha, 0.5, b0, rho).overlap
        print(f"α = {alpha:g}: {overlap.mean(axis=0).var() / overlap.var():.2f}")


def stability() -> None:
    """The smallest stability of the replica-symmetric solution over a grid."""
    grid = np.meshgrid(
        np.geomspace(0.1, 100, 10), (0, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2), (0, -0.6, -1.5, -3, -5),
        (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95), indexing="ij",
    )  # fmt: skip
    point = solve_saddle(*grid)
    learned = point.phase != "dummy"
    lowest = point.replica_stability[learned].min()
    print(
        f"{learned.sum()} of {learned.size} points have a learned student; the smallest stability is {lowest:.4f}"
    )


def _tail(count, noise, seed, dim=10, bias=-1.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, dim))
    return X, (X[:, 0] + bias > 0) ^ (rng.random(count) < noise)


def _group(count, noise, seed, shift=3.0, spread=1.0, dim=10, share=0.1):
    rng = np.random.default_rng(seed)
    y = rng.random(count) < share
    X = rng.standard_normal((count, dim)) * np.where(y, spread, 1.0)[:, None]
    X[:, 0] += shift * y
    return X, y ^ (rng.random(count) < noise)


def population(draws: int = 12) -> None:
    """How often tails, noisy tails and groups are told, undecided or mistaken."""
    kinds = {
        "tail": lambda n, s: _tail(n, 0.0, s),
        "tail, 2 % wrong labels": lambda n, s: _tail(n, 0.02, s),
        "tail, 5 % wrong labels": lambda n, s: _tail(n, 0.05, s),
        "group 2 away": lambda n, s: _group(n, 0.0, s, 2.0),
        "group 3 away": lambda n, s: _group(n, 0.0, s),
        "group 3 away, 2 % wrong labels": lambda n, s: _group(n, 0.02, s),
        "group 1.5 away, twice as wide": lambda n, s: _group(n, 0.0, s, 1.5, 2.0),
        "group 3 away, half as wide": lambda n, s: _group(n, 0.0, s, 3.0, 0.5),
    }
    for count in (400, 1000, 3000):
        for name, make in kinds.items():
            said = [tail_or_group(*make(count, seed), random_state=0).verdict for seed in range(draws)]
            print(count, name, {word: said.count(word) for word in ("tail", "undecided", "group")})


def advice(draws: int = 20) -> None:
    """What logistic regression (C = 100) really gains on the model's data, and what the advice says of it."""
    for dim, rows, b0 in ((50, 500, -1.2816), (50, 500, -1.5), (20, 400, -1.5), (50, 200, -0.84)):
        real, said = [], []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            own = sample_training_set(dim, rows, b0, float(ndtr(b0)), rng)
            fresh = sample_training_set(dim, rows, b0, 0.5, rng)
            few = np.flatnonzero(own.labels > 0)
            half = np.concatenate([few, rng.permutation(np.flatnonzero(own.labels < 0))[: len(few)]])
            whole = np.arange(rows)
            scores = [
                _score(data, kept, weight, b0)
                for data, kept, weight in (
                    (own, whole, None), (own, half, None), (own, whole, "balanced"), (fresh, whole, None)
                )
            ]  # fmt: skip
            real.append(np.array(scores[1:]) - scores[0])
            if seed < 4:
                plan = advise_training(own.inputs, own.labels, random_state=0).plan
                said.append([way.gain_at_half for way in (plan.subset, plan.weights, plan.fresh)])
        error = np.std(real, axis=0, ddof=1) / np.sqrt(draws)
        print(
            dim, rows, b0, "real", np.mean(real, axis=0).round(3), "±", error.round(3),
            "advice", np.mean(said, axis=0).round(3), "±", (np.std(said, axis=0, ddof=1) / 2).round(3),
        )  # fmt: skip


def _score(data, kept, weight, b0):
    model = LogisticRegression(C=100, class_weight=weight, max_iter=3000)
    model.fit(data.inputs[kept], data.labels[kept])
    norm = np.linalg.norm(model.coef_)
    scores = classification_metrics(model.coef_[0, 0] / norm, model.intercept_[0] / norm, b0)
    return float(scores.balanced_accuracy)


def spreads(draws: int = 60, dim: int = 20, rows: int = 100) -> None:
    """Groups of unequal spread, tested at equal shares: logistic regression's best share, 95 % interval."""
    asked, fine = np.linspace(0.2, 0.8, 13), np.linspace(0.2, 0.8, 601)
    for spread in (1.0, 2.0, 3.0):
        rng = np.random.default_rng(0)
        scores = np.array([[_two_groups(rng, dim, rows, s, spread) for s in asked] for _ in range(draws)])

        def peak(chosen, scores=scores):
            return fine[np.polyval(np.polyfit(asked, scores[chosen].mean(axis=0), 3), fine).argmax()]

        low, high = np.quantile([peak(rng.integers(0, draws, draws)) for _ in range(300)], (0.025, 0.975))
        print(f"positives {spread:g} times as wide: {peak(slice(None)):.3f} ({low:.3f} to {high:.3f})")


def _two_groups(rng, dim, rows, share, spread):
    """Balanced accuracy, exactly, of logistic regression (C = 100) on groups two units apart."""
    y = np.arange(rows) < round(share * rows)
    X = rng.standard_normal((rows, dim)) * np.where(y, spread, 1.0)[:, None]
    X[:, 0] += np.where(y, 1.0, -1.0)
    model = LogisticRegression(C=100, max_iter=3000).fit(X, y)
    norm = np.linalg.norm(model.coef_)
    along, bias = model.coef_[0, 0] / norm, model.intercept_[0] / norm
    return float(ndtr((along + bias) / spread) + ndtr(along - bias)) / 2


if __name__ == "__main__":
    parts = (guides, peaks, widths, shares, stability, population, advice, spreads)
    for part in parts:
        if len(sys.argv) < 2 or part.__name__ in sys.argv[1:]:
            print(f"# {(part.__doc__ or '').strip()}")
            part()
