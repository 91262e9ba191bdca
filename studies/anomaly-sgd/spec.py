"""SGD on a sigmoid perceptron against the solvable model: the paper's Figs 14 (left) and 15."""

from __future__ import annotations

from typing import Any

from equipoise.studies.spec import Spec


def run_cell(
    figure: str,
    dim: int,
    samples_per_dim: float,
    teacher_bias: float,
    train_fraction: float,
    learning_rate: float,
    batch_size: int,
    epochs: int,
    seed: int,
    scale: str = "unit",
) -> dict[str, Any]:
    from equipoise.theory.anomaly import train_sigmoid_perceptron
    from equipoise.theory.anomaly.metrics import area_under_curve

    run = train_sigmoid_perceptron(
        samples_per_dim,
        teacher_bias,
        train_fraction,
        dim=dim,
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=epochs,
        scale=scale,
        random_state=seed,
    )
    scores = run.metrics(0.5)
    return {
        "effective_temperature": learning_rate / batch_size,
        "overlap": run.overlap,
        "bias": run.bias,
        "balanced_accuracy": float(scores.balanced_accuracy),
        "recall": float(scores.recall),
        "precision": float(scores.precision),
        "f1": float(scores.f1),
        "auc": float(area_under_curve(run.overlap, teacher_bias)),
        "train_error": run.train_error,
        "final_loss": float(run.loss_curve[-1]),
        "settled": run.settled,
    }


_MODEL = {"dim": 5000, "samples_per_dim": 2.0, "teacher_bias": -0.6}
_FRACTIONS = (0.2, 0.35, 0.45, 0.5, 0.55, 0.65, 0.8)
_ALL_FRACTIONS = tuple(round(0.05 * k, 2) for k in range(1, 20))
_EPOCHS = {2000: 200, 200: 60, 20: 25, 10: 16, 5: 12, 2: 8, 1: 6}
_SCALES = {"unit": (0.05, 80), "equation-1": (0.5, 800)}
"""The learning rate and the epochs that settle at N = 300 with batches of 20, for each scale of w."""


def cells(
    seeds: int = 2,
    temperature_seeds: int = 1,
    small_seeds: int = 20,
    fractions: tuple[float, ...] = (),
    small_dim: int = 300,
    **fixed: Any,
) -> Any:
    """N = 5000 with few seeds in the scale ‖w‖ = 1, and N = 300 with many seeds in both scales."""
    model = {**_MODEL, **fixed}
    for fraction in fractions or _FRACTIONS:
        for rate, epochs in ((0.05, 20), (0.5, 8)):
            for seed in range(seeds):
                yield _cell("14", model, fraction, rate, 20, epochs, seed)
    for fraction in (0.3, 0.5, 0.7):
        for batch_size, epochs in _EPOCHS.items():
            for seed in range(temperature_seeds):
                yield _cell("15", model, fraction, 0.05, batch_size, epochs, seed)
    small = {**model, "dim": small_dim}
    for scale, (rate, epochs) in _SCALES.items():
        for fraction in fractions or _FRACTIONS:
            for seed in range(small_seeds):
                yield _cell("14", small, fraction, rate, 20, epochs, seed, scale=scale)
        for seed in range(min(small_seeds, 4)):  # does the overlap depend on N?
            yield _cell("N", {**model, "dim": 4 * small_dim}, 0.5, rate, 20, epochs, seed, scale=scale)
    for fraction in (0.3, 0.5, 0.7):
        for batch_size in (600, 200, 50, 20, 10, 5, 2, 1):
            for seed in range(min(small_seeds, 5)):
                yield _cell("15", small, fraction, 20.0, batch_size, 40, seed, scale="equation-1")


def _cell(
    figure: str,
    model: dict[str, Any],
    fraction: float,
    rate: float,
    batch: int,
    epochs: int,
    seed: int,
    **scale: str,
) -> dict[str, Any]:
    return {
        "figure": figure,
        **model,
        "train_fraction": fraction,
        "learning_rate": rate,
        "batch_size": batch,
        "epochs": epochs,
        "seed": seed,
        **scale,
    }


SPEC = Spec(
    name="anomaly-sgd",
    title="SGD on a sigmoid perceptron: the training fraction and the noise",
    reference="Pezzicoli et al., appendix G.1, Figs 14 (left) and 15",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "seeds": 1,
            "temperature_seeds": 1,
            "fractions": (0.5,),
            "dim": 200,
            "small_seeds": 1,
            "small_dim": 40,
        },
        "small": {},
        "paper": {"seeds": 40, "temperature_seeds": 40, "fractions": _ALL_FRACTIONS},
    },
    paper={
        "Fig 14 left": "N = 5000, α = 2, b0 = -0.6, lr 0.5, batch 20, 40 re-samplings: a maximum at ρ* ≠ ½",
        "Fig 15": "lr 0.05, batches of 2000 to 1: a low-noise plateau, then a fall of a_bal above T*",
    },
    differs=(
        "Two seeds at N = 5000, twenty at N = 300, in place of 40 at N = 5000. The paper does not say how the "
        "field is scaled. With ‖w‖ = 1 and h = w·S + b the noise is N·lr/BS, lr 0.5 and batch 20 is deep in the "
        "noisy regime at N = 5000, and Fig 14 is also run at lr 0.05. With Eq 1, h = w·S/√N + b and ‖w‖ = √N, "
        "the noise is lr/BS whatever N is. Both are run. Scores are exact given overlap and bias instead of "
        "counted on a test set."
    ),
)
