"""The theory's word on images: in which order the classes will be memorized, and which shares even it out."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_positive
from equipoise._core.solution import ConvergenceWarning
from equipoise.datasets.labeled_images import LabeledImages
from equipoise.theory.diffusion import (
    GaussianMixture,
    PredictedOrder,
    RandomFeatures,
    equalizing_weights,
    predict_order,
)

_THRESHOLD = 1.2  # the test error at which a class counts as memorized, as in the paper's main text


def as_seen(data: LabeledImages) -> npt.NDArray[np.float64]:
    """The images as the network sees them: the mean image taken off, unit scale (App. J.1)."""
    pixels = data.images.reshape(len(data.images), -1).astype(np.float64)
    return np.asarray((pixels - pixels.mean(axis=0)) / (pixels.std() or 1.0))


def describe(data: LabeledImages) -> GaussianMixture:
    """All that the theory needs to know of the images."""
    return GaussianMixture.from_data(as_seen(data), data.labels)


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
        this, other = "memorisation", "generalisation"
        if self.quantity == "generalization":
            this, other = other, this
        reach = "evens out" if self.equal else "comes nearest to evening out"
        return (
            f"By the theory, drawing {shares} {reach} the {this} times: the latest over the earliest goes from "
            f"{self.gain[0]:.2f} to {self.gain[1]:.2f} (that of the {other} times from {self.cost[0]:.2f} to "
            f"{self.cost[1]:.2f})."
        )


def prescribe(data: LabeledImages, quantity: str = "memorization", *, seed: int = 0) -> Prescription:
    """Shares in which to draw these very images, so that the classes are memorized, or generalize, together."""
    model = RandomFeatures(describe(data), diffusion_time=0.01, features_per_dim=40, samples_per_dim=10)
    dimension = max(16, len(data.classes) + 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # said in words instead
        found = equalizing_weights(
            model, quantity, dimension=dimension, redraw=True, threshold=_THRESHOLD, random_state=seed
        )
    value = found.value
    return Prescription(quantity, value.weights, found.converged, value.gain, value.cost)


def evening_shares(times: npt.ArrayLike, shares: npt.ArrayLike) -> FloatArray:
    """Shares that would have evened out the times of a run in which the classes were drawn in ``shares``.

    An image drawn twice as often is memorized in about half the steps, so each class's share goes with its time.

    Parameters
    ----------
    times : steps until each class was memorized
    shares : how often each class was drawn in that run

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
    n_bootstrap: int = 20,
    seed: int = 0,
    verbose: bool | None = None,
) -> PredictedOrder:
    """The predicted order of memorization, with the classes drawn in the shares of the training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return predict_order(
            as_seen(data),
            data.labels,
            drawn=shares,
            threshold=_THRESHOLD,
            dimension=max(16, len(data.classes) + 2),
            n_bootstrap=n_bootstrap,
            random_state=seed,
            verbose=verbose,
        )
