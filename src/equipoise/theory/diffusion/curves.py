"""Learning curves: gradient descent in closed form, for every class and any list of training times.

Training the readout A is linear. With U = Ψ diag(λ) Ψᵀ and B = VᵀΨ, after k steps of size η (Eqs 21, 25)

    A = −Δ^{-1/2} (B ⊙ f) Ψᵀ,    f_q = (1 − (1 − 2η̃λ_q)^k)/λ_q,   η̃ = ηΔ/N,   τ = k·η̃

(gradient flow: f = (1 − e^{-2λτ})/λ), so the train error is 1 + 1/N Σ_q ‖B_q‖²(λf² − 2f) and a class's test
error 1 + 1/N [Tr(aŨ_c aᵀ) − 2 Tr(Ṽ_cᵀ aᵀ)] with a = (B ⊙ f)Ψᵀ (Eqs 131–133). As functions of λ the f at
hundreds of times span few dimensions; the test errors are formed for a basis of them, to nine digits, and
cost less than the diagonalization however many times are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_positive
from equipoise.theory.diffusion.instances import (
    Decomposition,
    Model,
    Population,
    draw,
    equivalent_decomposition,
    populations,
    true_decomposition,
)
from equipoise.theory.diffusion.times import crossing_times, jackknife, local_minima, minimum_times

DEFAULT_STEP = 5e-5  # η̃ = ηΔ_t/N of all experiments (Appendix I.1)
_DEFAULT_EPOCHS = 2_000_000
_RANK = 1e-9


def default_times(n_times: int = 600) -> FloatArray:
    """600 log-spaced times over 2·10⁶ epochs of step 5·10⁻⁵ (Appendix I.1)."""
    epochs = np.unique(np.round(np.geomspace(1, _DEFAULT_EPOCHS, n_times)))
    return DEFAULT_STEP * epochs


@dataclass(frozen=True)
class LearningCurves:
    """Errors against training time, as means over instances with their spread (standard deviation).

    Attributes
    ----------
    times : array of shape (T,)
        The training times τ.
    train_runs : array of shape (n_instances, T)
        The train errors (Eq 3).
    test_runs : array of shape (n_instances, C, T)
        The test errors of each class (Eq 14).
    weights : array of shape (C,)
        b_c.
    spread : array of shape (C,)
        Γ_c.
    noise_variance : float
        Δ_t.
    classes : tuple
        The names of the classes.
    threshold : float
        The test error at which a class counts as memorized, 1 in Eq 15.
    """

    times: FloatArray
    train_runs: FloatArray
    test_runs: FloatArray
    weights: FloatArray
    spread: FloatArray
    noise_variance: float
    classes: tuple[object, ...]
    threshold: float = 1.0

    @property
    def train(self) -> FloatArray:
        """The train error, averaged over instances."""
        return self.train_runs.mean(axis=0)

    @property
    def train_spread(self) -> FloatArray:
        """The standard deviation of the train error over instances."""
        return _deviation(self.train_runs)

    @property
    def test(self) -> FloatArray:
        """Σ_c b_c E_test⁽ᶜ⁾."""
        return self.weights @ self.test_per_class

    @property
    def test_spread(self) -> FloatArray:
        """The standard deviation of the test error over instances."""
        return _deviation(np.einsum("c,ict->it", self.weights, self.test_runs))

    @property
    def test_per_class(self) -> FloatArray:
        """The test error of each class, averaged over instances."""
        return self.test_runs.mean(axis=0)

    @property
    def test_per_class_spread(self) -> FloatArray:
        """The standard deviation of each class's test error over instances."""
        return _deviation(self.test_runs)

    @property
    def score_error_per_class(self) -> FloatArray:
        """Mean squared error of the score, 1/Γ_c² + (E_test⁽ᶜ⁾ − 1)/Δ (Eq 146).

        Exact against the score of the class itself; it is that of the mixture where classes do not overlap.
        """
        return 1 / self.spread[:, None] ** 2 + (self.test_per_class - 1) / self.noise_variance

    @property
    def generalization_time(self) -> FloatArray:
        """τ_g⁽ᶜ⁾, where each class's mean test error is lowest (Eq 15)."""
        return minimum_times(self.times, self.test_per_class)

    @property
    def generalization_minima(self) -> list[list[tuple[float, float]]]:
        """Times and depths of all minima of each class's mean test error.

        Where two of them are almost equally deep, τ_g⁽ᶜ⁾ jumps from one to the other and says little.
        """
        return local_minima(self.times, self.test_per_class)

    @property
    def memorization_time(self) -> FloatArray:
        """τ_m⁽ᶜ⁾, where the test error is back at ``threshold``; nan if that is after the last time."""
        return crossing_times(self.times, self.test_per_class, self.threshold)

    @property
    def generalization_time_error(self) -> FloatArray:
        """Standard error of the generalization times, by jackknife over instances."""
        return jackknife(self.test_runs, lambda mean: minimum_times(self.times, mean))

    @property
    def memorization_time_error(self) -> FloatArray:
        """The standard error of each class's memorization time, by the jackknife over instances."""
        return jackknife(self.test_runs, lambda mean: crossing_times(self.times, mean, self.threshold))

    @property
    def generalization_gap(self) -> FloatArray:
        """τ_g⁽ⁱ⁾ − τ_g⁽ʲ⁾ for all pairs of classes."""
        return np.subtract.outer(self.generalization_time, self.generalization_time)

    @property
    def memorization_gap(self) -> FloatArray:
        """τ_m⁽ⁱ⁾ − τ_m⁽ʲ⁾ for all pairs of classes."""
        return np.subtract.outer(self.memorization_time, self.memorization_time)

    def with_test_errors(self, test_runs: FloatArray) -> LearningCurves:
        """The same model with other test errors, (n, C, T), such as those of some of the instances.

        Parameters
        ----------
        test_runs : array of shape (n, C, T)
            The test errors.

        Returns
        -------
        LearningCurves
            The curves with these.
        """
        return replace(self, test_runs=test_runs)

    def with_threshold(self, threshold: float) -> LearningCurves:
        """The same curves with another memorization threshold.

        Parameters
        ----------
        threshold : float
            The test error at which a class counts as memorized.

        Returns
        -------
        LearningCurves
            The curves with this threshold.
        """
        return replace(self, threshold=float(check_positive("threshold", threshold)))


def check_shares(shares: npt.ArrayLike, n_classes: int) -> FloatArray:
    """Positive shares of the classes, scaled to sum to one."""
    known = np.atleast_1d(check_positive("shares", shares)).astype(np.float64)
    if known.shape != (n_classes,):
        raise ValueError(f"shares must have one value for each of {n_classes} classes, got {known.size}")
    return np.asarray(known / known.sum())


def instance_errors(
    model: Model,
    dimension: int,
    tau: FloatArray,
    seed: int,
    matrices: str,
    step: float | None,
    sample_shares: FloatArray | None,
) -> tuple[FloatArray, FloatArray]:
    """Train error and test error of each class at the training times, of one instance of the model."""
    instance = draw(model, dimension, seed, sample_shares)
    equivalent = matrices == "equivalent"
    decompose = equivalent_decomposition if equivalent else true_decomposition
    decomposition = decompose(model, instance)
    f = response(decomposition.eigenvalues, tau, step)
    train = train_error(decomposition, f)
    basis, mixing = _compress(decomposition, f)
    vectors = decomposition.vectors
    del decomposition, f
    classes = populations(model, instance, equivalent=equivalent)
    if 2 * vectors.shape[1] < vectors.shape[0]:  # few modes: bring the populations to them
        return train, _class_errors(basis, mixing, (population.within(vectors) for population in classes))
    return train, _class_errors(basis @ vectors.T, mixing, classes)


def response(eigenvalues: FloatArray, times: FloatArray, step: float | None) -> FloatArray:
    """f_q(τ), how far each mode's readout has come, times 1/λ_q: (K, T)."""
    lam = eigenvalues[:, None]
    if step is None:
        grown = -np.expm1(-2 * lam * times)
    else:
        largest = float(eigenvalues.max())
        if step * largest >= 1:
            raise ValueError(
                f"step must be below 1/λ_max = {1 / largest:.3g} for descent to converge, got {step:g}"
            )
        rate = np.abs(1 - 2 * step * lam)
        exponent = np.where(
            step * lam < 0.25, np.log1p(-np.minimum(2 * step * lam, 0.5)), np.log(rate + 1e-300)
        )
        k = np.round(times / step)
        alternating = np.where((2 * step * lam > 1) & (k % 2 == 1), -1.0, 1.0)
        power = k * exponent
        grown = np.where(alternating > 0, -np.expm1(power), 1 + np.exp(power))
    tiny = lam < 1e-14
    return np.where(tiny, 2 * times, grown / np.where(tiny, 1.0, lam))


def train_error(decomposition: Decomposition, f: FloatArray) -> FloatArray:
    """1 + 1/N Σ_q ‖B_q‖² (λ_q f_q² − 2 f_q) (Eq 133 with the exact U)."""
    n = decomposition.target.shape[0]
    power = np.einsum("nq,nq->q", decomposition.target, decomposition.target) / n
    return 1 + power @ (decomposition.eigenvalues[:, None] * f**2 - 2 * f)


def _compress(decomposition: Decomposition, f: FloatArray) -> tuple[FloatArray, FloatArray]:
    """a(τ) = Σ_k a_k y_k(τ): returns the readouts a_kΨ (r, N, K) and the mixing y (r, T)."""
    power = np.linalg.norm(decomposition.target, axis=0)  # ‖a‖² = Σ_q ‖B_q‖² f_q²: its own norm
    left, size, right = np.linalg.svd(power[:, None] * f, full_matrices=False)
    keep = size > _RANK * size[0]
    unit = decomposition.target / np.where(power > 0, power, 1.0)
    return unit[None] * (left[:, keep] * size[keep]).T[:, None, :], right[keep]


def _class_errors(basis: FloatArray, mixing: FloatArray, classes: Iterable[Population]) -> FloatArray:
    """Each class's test error, 1 + 1/N [Tr(aŨ_c aᵀ) − 2 Tr(Ṽ_cᵀ aᵀ)]: (C, T)."""
    rank, n, p = basis.shape
    rows = basis.reshape(rank * n, p)
    errors = []
    for population in classes:
        projected = (rows @ population.factor).reshape(rank, -1)
        quadratic = projected @ projected.T + _weighted_gram(basis, population.diagonal)
        if population.rest is not None:
            cast: Any = rows.astype(population.rest.dtype, copy=False)
            quadratic += cast.reshape(rank, n * p) @ (cast @ population.rest).reshape(rank, n * p).T
        linear = basis.reshape(rank, n * p) @ population.readout.T.ravel()
        square = np.einsum("kt,kl,lt->t", mixing, quadratic, mixing, optimize=True)
        errors.append(1 + (square - 2 * linear @ mixing) / n)
    return np.array(errors)


def _weighted_gram(basis: FloatArray, diagonal: FloatArray) -> FloatArray:
    """Σ_{jp} d_p a_kjp a_ljp, (r, r), one dimension j at a time."""
    total = np.zeros((len(basis),) * 2)
    for j in range(basis.shape[1]):
        total += (basis[:, j] * diagonal) @ basis[:, j].T
    return total


def _deviation(runs: FloatArray) -> FloatArray:
    """Standard deviation over instances; nan for a single one."""
    if len(runs) < 2:
        return np.full(runs.shape[1:], np.nan)
    return runs.std(axis=0, ddof=1)
