"""What the theory advises for images: the order in which classes will be memorized, and shares that even it out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.checks import FloatArray, check_positive
from equipoise._core.solution import ConvergenceWarning
from equipoise.datasets.labeled_images import LabeledImages
from equipoise.datasets.reading import read_table
from equipoise.theory.diffusion import (
    ClassMixture,
    PredictedOrder,
    RandomFeatures,
    equalizing_weights,
    predict_order,
    unit_scale,
)
from equipoise.theory.diffusion.prediction import (
    DIFFUSION_TIME,
    DIMENSION,
    FEATURES_PER_DIM,
    SAMPLES_PER_DIM,
    THRESHOLD,
)


def describe(data: LabeledImages) -> ClassMixture:
    """All that the theory needs to know of the images, in the units of the paper's descriptors."""
    return ClassMixture.from_data(data.images, data.labels, preprocess=unit_scale)


def standardized_table(path: str, target: str) -> tuple[FloatArray, npt.NDArray[Any], str]:
    """The numbers of a table as models of tables see them, every column with mean 0 and variance 1.

    Returns
    -------
    rows, labels, and a sentence about what was read
    """
    table = read_table(path, target)
    frame = pd.DataFrame(table.X)
    numbers = frame.loc[:, [kind == "number" for kind in table.kinds]].astype(np.float64)
    whole = numbers.notna().all(axis=1)
    rows = numbers[whole]
    spread = rows.std()
    rows = rows.loc[:, spread > 0]
    if rows.shape[1] < 2:
        raise ValueError(f"{path} must have at least two columns of numbers that vary, got {rows.shape[1]}")
    labels = np.array([str(name) for name in table.classes])[table.y[whole.to_numpy()]]
    about = f"{len(rows):,} rows of {rows.shape[1]} columns of numbers, each with mean 0 and variance 1"
    dropped = len(frame) - len(rows)
    about += f"; {dropped:,} rows with missing numbers were left out" if dropped else ""
    about = " ".join([f"{about}.", *table.notes])
    return ((rows - rows.mean()) / rows.std()).to_numpy(), labels, about


def shares_in_words(names: Sequence[str], shares: npt.ArrayLike) -> str:
    """
    >>> shares_in_words(["bag", "coat"], [0.25, 0.75])
    'bag 25.0%, coat 75.0%'
    """
    return ", ".join(f"{name} {share:.1%}" for name, share in zip(names, np.asarray(shares), strict=True))


@dataclass(frozen=True)
class Prescription:
    """Shares that the theory prescribes, and what it expects of them."""

    quantity: str
    shares: FloatArray
    equal: bool
    gain: tuple[float, float]
    cost: tuple[float, float]

    def record(self) -> dict[str, Any]:
        return {
            "quantity": self.quantity,
            "shares": self.shares.tolist(),
            "equal": self.equal,
            "gain": list(self.gain),
            "cost": list(self.cost),
        }

    def in_words(self, names: tuple[str, ...]) -> str:
        shares = shares_in_words(names, self.shares)
        this, other = "memorization", "generalization"
        if self.quantity == "generalization":
            this, other = other, this
        reach = "evens out" if self.equal else "comes nearest to evening out"
        return (
            f"By the theory, drawing {shares} {reach} the {this} times: the latest over the earliest goes from "
            f"{self.gain[0]:.2f} to {self.gain[1]:.2f} (that of the {other} times from {self.cost[0]:.2f} to "
            f"{self.cost[1]:.2f})."
        )


def prescribe(
    data: LabeledImages, quantity: str = "memorization", *, dimension: int = 32, seed: int = 0
) -> Prescription:
    """Shares in which to draw these very images, so that the classes are memorized, or generalize, together.

    The model has the paper's ratios of features and samples to dimensions. The search compares many shares on
    common draws, for which a smaller ``dimension`` than the paper's is enough.

    Parameters
    ----------
    data : LabeledImages
        The images.
    quantity : {"memorization", "generalization"}
        Which times to make equal.
    dimension : int
        N of the model.
    seed : int
        The seed of the model's draws.

    Returns
    -------
    Prescription
        The shares, and what the theory expects of them.
    """
    model = RandomFeatures(describe(data), DIFFUSION_TIME, FEATURES_PER_DIM, SAMPLES_PER_DIM)
    size = max(dimension, len(data.classes) + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said in words instead
        found = equalizing_weights(
            model, quantity, dimension=size, redraw=True, threshold=THRESHOLD, random_state=seed
        )
    value = found.value
    return Prescription(quantity, value.weights, found.converged, value.gain, value.cost)


def evening_shares(times: npt.ArrayLike, shares: npt.ArrayLike) -> FloatArray:
    """Shares that would have evened out the times of a run in which the classes were drawn in ``shares``.

    An image drawn twice as often is memorized in about half the steps, so each class's share goes with its time.

    Parameters
    ----------
    times : array of shape (classes,)
        The steps until each class was memorized.
    shares : array of shape (classes,)
        How often each class was drawn in that run.

    Returns
    -------
    array of shape (classes,)
        The shares, which sum to 1.

    Examples
    --------
    >>> evening_shares([1500, 500], [0.5, 0.5])
    array([0.75, 0.25])
    """
    known = np.atleast_1d(check_positive("times", times)) * check_positive("shares", shares)
    return np.asarray(known / known.sum())


def predict(
    data: LabeledImages,
    shares: npt.ArrayLike | None = None,
    *,
    dimension: int = DIMENSION,
    n_bootstrap: int = 20,
    seed: int = 0,
    verbose: bool | None = None,
) -> PredictedOrder:
    """The predicted order of memorization, with the classes drawn in the shares of the training."""
    return predict_order(
        data.images,
        data.labels,
        drawn=shares,
        dimension=max(dimension, len(data.classes) + 2),
        n_bootstrap=n_bootstrap,
        random_state=seed,
        verbose=verbose,
    )
