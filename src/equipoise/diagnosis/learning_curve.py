"""How much more minority data would help: a learning curve and its extrapolation."""

from __future__ import annotations

import numpy as np
from scipy.optimize import curve_fit
from sklearn.metrics import balanced_accuracy_score

from equipoise._core.checks import FloatArray
from equipoise.diagnosis._contract import Answer, Sample

ORDER = 90
USUAL_SECONDS = 4
QUESTION = "Would more rare rows help?"
MOST = 4000
FRACTIONS = (0.2, 0.35, 0.5, 0.7, 1.0)
REPEATS = 6


def power_law(n: FloatArray, best: float, gap: float, rate: float) -> FloatArray:
    """best − gap·n^−rate: what learning curves look like once they have begun."""
    return np.asarray(best - gap * n**-rate)


def _curve_points(X: FloatArray, y: np.ndarray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Rare rows in training, and the balanced accuracy on held-out rows, for every repeat and fraction."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedShuffleSplit

    seed = int(rng.integers(2**31))
    sizes, scores = [], []
    for train, test in StratifiedShuffleSplit(REPEATS, test_size=0.3, random_state=seed).split(X, y):
        mine, others = rng.permutation(train[y[train] == 1]), train[y[train] == 0]
        for fraction in FRACTIONS:
            n = max(2, round(fraction * len(mine)))
            rows = np.concatenate([mine[:n], others])
            model = LogisticRegression(C=0.1, class_weight="balanced", max_iter=200).fit(X[rows], y[rows])
            sizes.append(n)
            scores.append(balanced_accuracy_score(y[test], model.predict(X[test])))
    return np.array(sizes, dtype=float), np.array(scores)


def extrapolate(
    sizes: FloatArray, scores: FloatArray, at: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The fitted curve and a 95 % bootstrap band at ``at``; no fit passes 1 or falls."""

    def fit(n: FloatArray, s: FloatArray) -> FloatArray:
        start = (min(0.99, s.max() + 0.02), max(s.max() - s.min(), 0.01) * n.min() ** 0.5, 0.5)
        bounds = ([0.3, 0.0, 0.05], [1.0, 20.0, 2.0])
        found, _ = curve_fit(
            power_law, n, s, p0=np.clip(start, bounds[0], bounds[1]), bounds=bounds, maxfev=2000
        )
        return power_law(at, *found)

    curves = []
    for _ in range(100):
        pick = rng.integers(len(sizes), size=len(sizes))
        if len(np.unique(sizes[pick])) >= 3:
            curves.append(fit(sizes[pick], scores[pick]))
    low, high = np.quantile(curves, [0.025, 0.975], axis=0)
    return fit(sizes, scores), low, high


def ask(sample: Sample) -> Answer:
    """The curve of a linear model's balanced accuracy, and what twice the rare rows would bring."""
    rows = sample.rows(MOST, "curve", least=400)
    X, y = sample.encoded(rows), (sample.y[rows] == sample.rare).astype(np.int64)
    if y.sum() < 15:
        raise ValueError("it needs at least 15 rows of the rarest class")
    rng = sample.random("curve")
    sizes, scores = _curve_points(X, y, rng)
    now = float(sizes.max())
    at: FloatArray = np.unique(np.round(np.geomspace(sizes.min(), 4 * now, 30))).astype(np.float64)
    middle, low, high = extrapolate(sizes, scores, at, rng)
    here, twice = (float(v) for v in np.interp([now, 2 * now], at, middle))
    gain = [float(np.interp(2 * now, at, band) - here) for band in (low, high)]
    pays = "yes" if twice - here > 0.02 and gain[0] > 0 else "no" if gain[1] < 0.02 else "not sure"
    values = {"now": here, "doubled": twice, "gain_interval": gain, "rows": now, "pays": pays}
    shown = {"sizes": sizes, "scores": scores, "at": at, "middle": middle, "low": low, "high": high}
    return Answer("warning" if pays == "yes" else "note", values, shown)
