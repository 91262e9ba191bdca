"""The theory's training ratio: which share of rare rows to train on, and what deviating costs."""

from __future__ import annotations

import numpy as np

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.report import COLORS, PALETTE, Figure, new_figure, scatter
from equipoise.theory.anomaly import solve_saddle, teacher_bias

ORDER = 100
QUESTION = "Which share of rare rows should training see?"
TEMPERATURE = 0.5  # the noise of learning that the paper's figures are drawn at
MOST = 3000
GRID = np.linspace(0.02, 0.98, 49)


def effective_dimension(X: np.ndarray) -> float:
    """The participation ratio of the covariance's eigenvalues: how many directions the rows really use."""
    spectrum = np.linalg.eigvalsh(np.atleast_2d(np.cov(X.T)))
    spectrum = np.clip(spectrum, 0, None)
    return float(spectrum.sum() ** 2 / max((spectrum**2).sum(), 1e-12))


def ask(sample: Sample) -> Finding:
    """Balanced accuracy and overlap of the solvable model at the data's own share, size and dimension."""
    share = float(sample.counts[sample.rare] / sample.counts.sum())
    share = float(np.clip(share, 1e-4, 0.5 - 1e-6))
    rows = sample.rows(MOST, "ratio", least=200)
    dimension = max(effective_dimension(sample.encoded(rows)), 1.0)
    # At a fixed number of rows in training; twice the rare rows is what a balanced set can have.
    alpha = float(np.clip(2 * sample.counts[sample.rare] / dimension, 0.2, 200))
    point = solve_saddle(alpha, TEMPERATURE, float(teacher_bias(share)), np.append(GRID, max(share, 0.005)))
    accuracy = np.nan_to_num(point.metrics(0.5).balanced_accuracy, nan=0.5)
    overlap = point.overlap
    best = int(accuracy[:-1].argmax())
    flat = GRID[accuracy[:-1] >= accuracy[best] - 0.01]
    loss_half = float(accuracy[best] - np.interp(0.5, GRID, accuracy[:-1]))
    loss_own = float(accuracy[best] - accuracy[-1])
    answer = (
        f"For data like these (share {share:.2%}, {alpha:.1f} training rows a dimension) the solvable "
        f"model of anomaly "
        f"detection puts the best share at {GRID[best]:.2f}, and anything from {flat.min():.2f} to "
        f"{flat.max():.2f} within "
        f"0.01 of it; training at equal shares would cost {loss_half:.3f} of balanced accuracy, at the data's own "
        f"share {loss_own:.3f}."
    )
    lines = [
        scatter(x=GRID, y=np.round(accuracy[:-1], 4), mode="lines", name="balanced accuracy",
                   line={"color": COLORS["accent"], "width": 2.5},
                   hovertemplate="share %{x:.2f}<br>balanced accuracy %{y:.3f}<extra></extra>"),
        scatter(x=GRID, y=np.round(overlap[:-1], 4), mode="lines", name="overlap R(ρ) with the truth",
                   line={"color": PALETTE[2], "width": 2, "dash": "dash"},
                   hovertemplate="share %{x:.2f}<br>overlap %{y:.3f}<extra></extra>"),
        scatter(x=[share], y=[accuracy[-1]], mode="markers", name="your data",
                   marker={"color": COLORS["minority"], "size": 12},
                   hovertemplate=f"your share {share:.3f}<br>balanced accuracy %{{y:.3f}}<extra></extra>"),
        scatter(x=[GRID[best]], y=[accuracy[best]], mode="markers", name="best",
                   marker={"color": COLORS["accent"], "size": 12, "symbol": "star"},
                   hovertemplate="best share %{x:.2f}<br>balanced accuracy %{y:.3f}<extra></extra>"),
    ]  # fmt: skip
    figure = new_figure(*lines, x="share of rare rows in training, ρ", y="in the solvable model")
    values = {
        "share": share, "samples_per_dim": alpha, "dimension": dimension, "best": float(GRID[best]),
        "good_range": (float(flat.min()), float(flat.max())), "loss_at_half": loss_half, "loss_at_own": loss_own,
    }  # fmt: skip
    caption = (
        "Pezzicoli, Ros, Landes & Baity-Jesi: a perceptron that learns a hyperplane cut into one "
        "Gaussian population, at "
        "temperature 0.5. A model of the tail case: trust it as far as the data are of that kind."
    )
    block = Figure(figure, caption, "Theory: performance against the share of rare rows in training.", 340)
    return Finding("training_ratio", QUESTION, answer, "note", values, [block])
