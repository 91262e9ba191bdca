"""Stochastic gradient descent on a sigmoid perceptron taught by a threshold teacher (appendix G.1, Figs 14-15).

The student's output is σ(h) of its field h, the loss ½(σ(h) - label)² with labels 0 and 1, averaged over the
mini-batch; after every step w is scaled back to its sphere. The paper does not say how w is scaled, and the
noise depends on that. With Eq 1, h = w·S/√N + b and ‖w‖ = √N, the noise is lr/BS whatever N is. With ‖w‖ = 1
and h = w·S + b (G.1: "the weights' norm constrained to be O(1)") the gradient is √N times larger and w √N
times shorter: the noise is N·lr/BS, and only this scale puts the batches of Fig 15 on both sides of the
crossover.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from equipoise._core.checks import (
    FloatArray,
    check_choice,
    check_fraction,
    check_in_range,
    check_integer,
    check_positive,
)
from equipoise._core.random import RandomState, as_generator
from equipoise.theory.anomaly.metrics import Metrics, classification_metrics
from equipoise.theory.anomaly.sampling import TrainingSet, sample_training_set

SCALES = ("equation-1", "unit")


@dataclass(frozen=True)
class SgdRun:
    """The end of training: means over the last quarter of the epochs, and the curve of the training loss.

    Attributes
    ----------
    overlap : float
        R, the overlap of student and teacher.
    bias : float
        b, in units in which the student's field has unit variance.
    teacher_bias : float
        b0.
    train_error : float
        The share of training samples that the student gets wrong.
    loss_curve : array of shape (epochs,)
        The training loss of each epoch.
    settled : bool
        Whether the loss changed by under a percent between the last two quarters.
    """

    overlap: float
    bias: float
    teacher_bias: float
    train_error: float
    loss_curve: FloatArray
    settled: bool  # the loss changed by under a percent between the last two quarters

    def metrics(self, test_fraction: float = 0.5) -> Metrics:
        """The scores on fresh data, exact given overlap and bias: no test set has to be drawn.

        Parameters
        ----------
        test_fraction : float
            ρ_test, the share of positives in the test set.

        Returns
        -------
        Metrics
            The scores.
        """
        return classification_metrics(self.overlap, self.bias, self.teacher_bias, test_fraction)


def train_sigmoid_perceptron(
    samples_per_dim: float,
    teacher_bias: float,
    train_fraction: float,
    *,
    dim: int = 5000,
    learning_rate: float = 0.5,
    batch_size: int = 20,
    epochs: int = 60,
    scale: str = "equation-1",
    random_state: RandomState = None,
) -> SgdRun:
    """Train until the end of ``epochs`` and report the student's overlap with the teacher and its bias.

    Parameters
    ----------
    samples_per_dim, teacher_bias, train_fraction : float
        α, b0 and ρ as in :func:`solve_saddle`.
    dim : int
        N.
    learning_rate : float
        lr.
    batch_size : int
        BS.
    epochs : int
        The passes over the training set.
    scale : str
        ``"equation-1"`` (h = w·S/√N + b, ‖w‖ = √N: the noise is lr/BS) or ``"unit"`` (h = w·S + b, ‖w‖ = 1: the
        noise is N·lr/BS).
    random_state : int, generator or None
        The source of the data and the batches.

    Returns
    -------
    SgdRun
        The end of training.

    References
    ----------
    Pezzicoli et al., Eq 1 and appendix G.1.

    Examples
    --------
    >>> run = train_sigmoid_perceptron(4.0, -0.6, 0.5, dim=100, learning_rate=5.0, epochs=20, random_state=0)
    >>> run.overlap > 0.5
    True
    """
    alpha = float(check_positive("samples_per_dim", samples_per_dim))
    b0 = float(check_in_range("teacher_bias", teacher_bias, -30, 30))
    rho = float(check_fraction("train_fraction", train_fraction))
    rate = float(check_positive("learning_rate", learning_rate))
    check_integer("dim", dim, 2)
    check_integer("batch_size", batch_size, 1)
    check_integer("epochs", epochs, 4)
    slower = dim if check_choice("scale", scale, SCALES) == "equation-1" else 1
    generator = as_generator(random_state)
    data = sample_training_set(dim, max(round(alpha * dim), 2), b0, rho, generator, np.float32)
    weight = generator.standard_normal(dim, dtype=np.float32)
    weight /= np.linalg.norm(weight)
    history = np.empty((epochs, 3))
    loss = np.empty(epochs)
    bias = 0.0
    for epoch in range(epochs):
        weight, bias, loss[epoch] = _epoch(data, weight, bias, rate, slower, batch_size, generator)
        wrong = np.mean((data.inputs @ weight + bias > 0) != (data.labels > 0))
        history[epoch] = weight[0], bias, wrong
    quarter = max(epochs // 4, 1)
    overlap, bias, error = history[-quarter:].mean(axis=0)
    last, before = loss[-quarter:].mean(), loss[-2 * quarter : -quarter].mean()
    settled = bool(abs(last - before) < 0.01 * before)
    return SgdRun(float(np.clip(overlap, -0.999999, 0.999999)), float(bias), b0, float(error), loss, settled)


def _epoch(
    data: TrainingSet,
    weight: np.ndarray[tuple[int], np.dtype[np.float32]],
    bias: float,
    rate: float,
    slower: int,
    batch_size: int,
    generator: np.random.Generator,
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float32]], float, float]:
    """One pass in a fresh order; returns the new state and the mean loss seen on the way.

    ``weight`` is the direction w/‖w‖ in both scales. In Eq 1's, h = w·S/√N changes w by lr·S/√N, hence w/√N by
    lr·S/N: the direction moves N times slower than with ‖w‖ = 1, the bias does not.
    """
    count, total = len(data.labels), 0.0
    targets = (data.labels > 0).astype(np.float32)
    order = generator.permutation(count)
    for at in range(0, count, batch_size):
        rows = order[at : at + batch_size]
        inputs = data.inputs[rows] if batch_size < count else data.inputs
        goal = targets[rows] if batch_size < count else targets
        output = 1.0 / (1.0 + np.exp(-(inputs @ weight + np.float32(bias))))
        miss = output - goal
        pull = miss * output * (1.0 - output) * np.float32(rate / len(goal))
        total += 0.5 * float(miss @ miss)
        weight = weight - (pull @ inputs) / np.float32(slower)
        weight /= np.linalg.norm(weight)
        bias -= float(pull.sum())
    return weight, bias, total / count
