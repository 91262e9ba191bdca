"""Typical students of a teacher with rare positives: the replica-symmetric saddle point, solved in bulk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_fraction, check_in_range, check_positive
from equipoise._core.solution import ConvergenceError, ConvergenceWarning, Status
from equipoise.theory.anomaly._branch import BLOCK, Branch, solve_given_bias, solve_learned_bias
from equipoise.theory.anomaly._equations import (
    Setting,
    dummy_is_stable,
    log_partition_and_error,
    replica_stability,
)
from equipoise.theory.anomaly._integrals import State, state_of
from equipoise.theory.anomaly.metrics import Metrics, classification_metrics

_LARGEST_BIAS = 30.0  # beyond it the rare class has a probability under 1e-197


@dataclass(frozen=True)
class SaddlePoint:
    """Order parameters of the typical student; every field broadcast to one shape.

    Attributes
    ----------
    samples_per_dim : array
        α.
    temperature : array
        T.
    teacher_bias : array
        b0.
    train_fraction : array
        ρ.
    positive_weight : array
        w₊.
    negative_weight : array
        w₋.
    overlap, self_overlap, bias : ndarray
        R, q and b of Eqs 71-75.
    overlap_conjugate, self_overlap_conjugate : ndarray
        R̂ and q̂.
    train_error : ndarray
        Eq 80, the share of training samples the student gets wrong.
    log_partition, free_energy : ndarray
        -βF per dimension (Eq 54) and F = -T·(-βF). At T = 0 the first is the log-volume of the students
        without error and the second their energy, 0.
    dummy_log_partition : ndarray
        -βF of the classifier that always names one class, the cheaper of the two: -βα·min(ρw₊, (1-ρ)w₋).
    replica_stability : ndarray
        Positive where the replica-symmetric solution is stable (de Almeida and Thouless): one minus the energy's
        share of the replicon eigenvalue. Where it is negative the values are an approximation. 1 for a dummy.
    converged, residual, steps, status : ndarray
        Whether, how well, after how many Newton steps, and why the solver stopped. ``residual`` is the
        largest relative violation of Eqs 73-75; a dummy has none (nan) and status ``no_solution``.
    phase : ndarray of str
        ``"learned"``: the student follows the teacher, and this is the equilibrium. ``"metastable"``: such a
        student exists and is returned, but the dummy classifier has the lower free energy. ``"dummy"``: no
        student that follows the teacher is stationary; R = q = 0 and b = ∓∞ are the dummy's values.
    """

    samples_per_dim: FloatArray
    temperature: FloatArray
    teacher_bias: FloatArray
    train_fraction: FloatArray
    positive_weight: FloatArray
    negative_weight: FloatArray
    overlap: FloatArray
    self_overlap: FloatArray
    bias: FloatArray
    overlap_conjugate: FloatArray
    self_overlap_conjugate: FloatArray
    train_error: FloatArray
    log_partition: FloatArray
    free_energy: FloatArray
    dummy_log_partition: FloatArray
    replica_stability: FloatArray
    residual: FloatArray
    steps: npt.NDArray[np.int64]
    converged: npt.NDArray[np.bool_]
    status: npt.NDArray[np.str_]
    phase: npt.NDArray[np.str_]

    def metrics(self, test_fraction: npt.ArrayLike = 0.5) -> Metrics:
        """Recall, specificity and what follows from them on a test set with this share of positives.

        Parameters
        ----------
        test_fraction : array-like
            ρ_test, the share of positives in the test set.

        Returns
        -------
        Metrics
            The scores.
        """
        return classification_metrics(self.overlap, self.bias, self.teacher_bias, test_fraction)

    def raise_if_failed(self) -> SaddlePoint:
        """Raise if any point did not converge for another reason than being in the dummy phase.

        Returns
        -------
        SaddlePoint
            The same point, if all is well.

        Raises
        ------
        ConvergenceError
            If a point did not converge.
        """
        failed = ~self.converged & (self.phase != "dummy")
        if failed.any():
            raise ConvergenceError(_sentence(self, failed))
        return self


def _sentence(point: SaddlePoint, failed: npt.NDArray[np.bool_]) -> str:
    where = np.unravel_index(int(failed.argmax()), failed.shape)
    names = ("samples_per_dim", "temperature", "teacher_bias", "train_fraction")
    setting = ", ".join(f"{name} {getattr(point, name)[where]:g}" for name in names)
    return (
        f"{int(failed.sum())} of {failed.size} saddle points did not converge, the first at {setting} "
        f"({point.status[where]}, residual {point.residual[where]:.2g})"
    )


def solve_saddle(
    samples_per_dim: npt.ArrayLike,
    temperature: npt.ArrayLike,
    teacher_bias: npt.ArrayLike,
    train_fraction: npt.ArrayLike,
    *,
    positive_weight: npt.ArrayLike = 1.0,
    negative_weight: npt.ArrayLike = 1.0,
    learn_bias: bool = True,
    student_bias: npt.ArrayLike | None = None,
) -> SaddlePoint:
    """Solve the saddle-point equations of the teacher-student spherical perceptron under class imbalance.

    All arguments broadcast. Newton's method with the exact Jacobian starts at ρ = ½ for every distinct
    (α, T, b0), moves from there to each ρ, and where one move does not reach it, follows the branch in
    logit ρ with an adaptive step until it arrives or the branch ends.

    Parameters
    ----------
    samples_per_dim : array-like
        α = P/N, training samples per dimension, positive.
    temperature : array-like
        T, the noise of the learning, at least 0.
    teacher_bias : array-like
        b0; negative means that the positive class is the rare one (its share is Φ(b0)). Positive values are
        the mirror image: (b0, ρ, b) → (-b0, 1-ρ, -b).
    train_fraction : array-like
        ρ, the share of positives in the training set, in (0, 1).
    positive_weight, negative_weight : array-like, default=1
        w₊ and w₋: how often an error of each class counts in the energy. :func:`balanced_weights` gives the usual
        choice, ½/ρ and ½/(1-ρ). Weights are not a change of ρ: they multiply the cost of the errors that are made,
        so they act like re-sampling only in part, and at T = 0, where no errors are made, not at all.
    learn_bias : bool, default=True
        Learn b with the weights (Eqs 71-75), or know it, b = b0 (appendix E).
    student_bias : array-like, optional
        Hold b at this value instead: the free energy as a function of the bias.

    Returns
    -------
    SaddlePoint
        The order parameters, in the broadcast shape, each with its phase and status.

    References
    ----------
    Pezzicoli, Ros, Landes & Baity-Jesi, "Class Imbalance in Anomaly Detection: Learning from an Exactly
    Solvable Model", Eqs 71-75 and appendices C to E.

    Examples
    --------
    >>> s = solve_saddle(samples_per_dim=1.1, temperature=0.5, teacher_bias=-0.6, train_fraction=[0.02, 0.5])
    >>> s.overlap.round(4), s.phase.tolist()
    (array([0.    , 0.4217]), ['dummy', 'learned'])
    >>> float(s.metrics(test_fraction=0.5).recall[1].round(4))
    0.6468
    """
    arguments = Setting(
        check_positive("samples_per_dim", samples_per_dim),
        check_in_range("temperature", temperature, 0.0),
        check_in_range("teacher_bias", teacher_bias, -_LARGEST_BIAS, _LARGEST_BIAS),
        check_fraction("train_fraction", train_fraction),
        check_positive("positive_weight", positive_weight),
        check_positive("negative_weight", negative_weight),
    )
    shape = np.broadcast_shapes(
        *(values.shape for values in arguments), np.shape(0.0 if student_bias is None else student_bias)
    )
    setting = Setting(*(np.broadcast_to(values, shape).ravel() for values in arguments))
    if student_bias is not None:
        held = np.broadcast_to(
            check_in_range("student_bias", student_bias, -_LARGEST_BIAS, _LARGEST_BIAS), shape
        )
        branch = solve_given_bias(setting, held.ravel())
    else:
        branch = (
            solve_learned_bias(setting) if learn_bias else solve_given_bias(setting, setting.teacher_bias)
        )
    point = _assemble(setting, branch, learn_bias and student_bias is None)
    point = SaddlePoint(*(getattr(point, field.name).reshape(shape) for field in fields(SaddlePoint)))
    failed = ~point.converged & (point.phase != "dummy")
    if failed.any():
        warnings.warn(_sentence(point, failed), ConvergenceWarning, stacklevel=2)
    return point


def balanced_weights(train_fraction: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The weights ½/ρ and ½/(1-ρ) that give both classes the same total cost, with a mean of one.

    Parameters
    ----------
    train_fraction : array-like
        ρ.

    Returns
    -------
    array
        w₊.
    array
        w₋.

    Examples
    --------
    >>> [float(w) for w in balanced_weights(0.2)]
    [2.5, 0.625]
    """
    rho = check_fraction("train_fraction", train_fraction)
    return 0.5 / rho, 0.5 / (1 - rho)


def _assemble(setting: Setting, branch: Branch, learn_bias: bool) -> SaddlePoint:
    """Name the phases, and give the dummy its own values."""
    alpha, noise, rho = setting.samples_per_dim, setting.temperature, setting.train_fraction
    ended, state = ~branch.converged, state_of(*branch.x)
    cheap, dear = setting.weighted_shares
    with np.errstate(divide="ignore", over="ignore"):
        dummy = -alpha * np.minimum(cheap, dear) / noise
    log_partition, error, stability = _in_blocks(state, setting)
    is_dummy = ended & dummy_is_stable(setting) & learn_bias & (noise > 0)
    phase = np.where((log_partition >= dummy) | (not learn_bias), "learned", "metastable")
    status = np.full(rho.shape, Status.CONVERGED.value, dtype="<U12")
    status[is_dummy], status[ended & ~is_dummy] = Status.NO_SOLUTION.value, Status.STALLED.value

    def unless_dummy(values: FloatArray, otherwise: FloatArray | float) -> FloatArray:
        return np.where(is_dummy, otherwise, values)

    log_partition = unless_dummy(log_partition, dummy)
    return SaddlePoint(
        *setting,
        overlap=unless_dummy(state.overlap, 0.0),
        self_overlap=unless_dummy(state.q, 0.0),
        bias=unless_dummy(state.bias, np.where(cheap < dear, -np.inf, np.inf)),
        overlap_conjugate=unless_dummy(state.r_hat, 0.0),
        self_overlap_conjugate=unless_dummy(state.q_hat, 0.0),
        train_error=unless_dummy(error, np.where(cheap < dear, rho, 1 - rho)),
        log_partition=log_partition,
        free_energy=-noise * log_partition,
        dummy_log_partition=dummy,
        replica_stability=unless_dummy(stability, 1.0),
        residual=unless_dummy(branch.residual, np.nan),
        steps=branch.steps,
        converged=~ended,
        status=status,
        phase=np.where(is_dummy, "dummy", phase),
    )


def _in_blocks(state: State, setting: Setting) -> tuple[FloatArray, FloatArray, FloatArray]:
    """-βF, the train error and the stability at every point."""
    found = []
    with np.errstate(all="ignore"):
        for at in range(0, state.q.size, BLOCK):
            part = slice(at, at + BLOCK)
            here, there = State(*(values[part] for values in state)), setting.take(part)
            found.append((*log_partition_and_error(here, there), replica_stability(here, there)))
    log_partition, error, stability = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return log_partition, error, stability
