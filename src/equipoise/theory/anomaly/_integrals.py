"""The one-dimensional integrals behind the saddle-point equations, and their exact derivatives.

Pezzicoli, Ros, Landes & Baity-Jesi, "Class Imbalance in Anomaly Detection: Learning from an Exactly Solvable
Model", Eqs 61-63 and 73-75 and 80.

Every double integral over (y, t) there is a mean over one class of a function of the student's field. Let y
be the teacher's field (y > -b0 in the positive class), and x = t√(q-R²) - yR, so that u = (x - b)/√(1-q). The
pair (x, y) is Gaussian with Var x = q, Var y = 1, Cov = -R. Integrating y out first leaves, with
s = x/√q ~ N(0, 1), κ = R/√q and z = (κs - b0)/√(1-κ²),

    M[G] = 1/c ∫Ds H(z) G(u)                      the mean of G over the class,
    B[G] = 1/c ∫Ds φ(z)/√(1-κ²) G(u)              the mean over its boundary y = -b0, times φ(b0)/c.

The negative class is the positive class of the mirrored problem (b0 → -b0, b → -b): one function serves both.
Derivatives follow from the heat equation for Gaussian means (Price's theorem), with G' = dG/du:

    ∂M/∂R = -B[G']/√(1-q)                         ∂B/∂R = b0·B[G']/√(1-q) - R·B[G'']/(1-q)
    ∂M/∂q = (M[G''] + M[uG'])/(2(1-q))            ∂B/∂q = (B[G''] + B[uG'])/(2(1-q))
    ∂M/∂b = -M[G']/√(1-q)                         ∂B/∂b = -B[G']/√(1-q)

With g(u) = φ(u)/(A + H(u)), A = 1/(e^β - 1), one has g' = g(g - u): no further special function is needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from equipoise._core.checks import FloatArray

_ORDER = 10  # Gauss-Legendre nodes a panel
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
_REACH = 11.0  # Gaussians are cut where they fall below e^(-60)

# Panel borders around each feature of the integrand, in units of the feature's own width.
_AROUND_FIELD = np.array([-7.0, -4.0, -1.5, 1.0, 3.5, 7.0, 14.0, 40.0])  # u = 0: the student's hyperplane
_AROUND_CUTOFF = np.array([-4.0, -1.8, -0.6, 0.6, 1.8, 4.0, 9.0])  # H(u) = A: where an error is given up
_AROUND_TEACHER = np.array([-5.0, -2.0, 0.0, 2.0, 5.0])  # z = 0: the teacher's hyperplane
_AROUND_CLASS = np.array([-45.0, -20.0, -9.0, -4.5, -2.0, 0.0, 2.0, 4.5])  # the class's own spread

_SQRT_HALF = np.sqrt(0.5)
_SQRT_2PI = np.sqrt(2 * np.pi)


def log_odds_of_error(temperature: FloatArray) -> FloatArray:
    """log A = -log(e^β - 1) for β = 1/T; minus infinity at T = 0."""
    with np.errstate(divide="ignore", over="ignore"):
        beta = 1.0 / temperature
        return np.asarray(-beta - np.log(-np.expm1(-beta)))


def _field_ratio(u: FloatArray, log_a: FloatArray) -> FloatArray:
    """g(u) = φ(u)/(A + H(u)), without overflow for any u and any temperature."""
    with np.errstate(over="ignore"):
        return 1.0 / (_SQRT_2PI * np.exp(log_a + 0.5 * u * u) + np.sqrt(np.pi / 2) * erfcx(u * _SQRT_HALF))


class State(NamedTuple):
    """Order parameters and what follows from them; each of shape (points,)."""

    r_hat: FloatArray
    q_hat: FloatArray
    bias: FloatArray
    gap: FloatArray  # 1 - q
    q: FloatArray
    overlap: FloatArray  # R
    cosine: FloatArray  # κ = R/√q
    sine: FloatArray  # √(1-κ²)


def state_of(log_r_hat: FloatArray, log_q_hat: FloatArray, bias: FloatArray) -> State:
    """Eqs 71-72 solved for q and R: with Q = q̂ + R̂², 1-q = 2/(1+√(1+4Q)), R = R̂(1-q)."""
    r_hat, q_hat = np.exp(log_r_hat), np.exp(log_q_hat)
    total = q_hat + r_hat**2
    gap = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 * total))
    root = np.sqrt(total)
    return State(
        r_hat, q_hat, bias, gap, total * gap**2, r_hat * gap, r_hat / root, np.exp(0.5 * log_q_hat) / root
    )


class ClassQuadrature(NamedTuple):
    """Quadrature for one class of each point; each of shape (points, nodes)."""

    u: FloatArray
    inside: FloatArray  # weights of M
    boundary: FloatArray  # weights of B


def _class_spread(teacher_bias: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of y given y > -b0."""
    hazard = _field_ratio(-teacher_bias, np.full_like(teacher_bias, -np.inf))
    return hazard, np.sqrt(np.maximum(1.0 + hazard * (-teacher_bias - hazard), 1e-3))


def _class_nodes(state: State, teacher_bias: FloatArray, log_a: FloatArray) -> ClassQuadrature:
    """Gauss-Legendre panels between borders that follow every feature of the integrand.

    The features are the class's spread, the teacher's hyperplane (width √(1-κ²)/κ in s), the student's
    (width √((1-q)/q)), and the field beyond which an error is given up, H(u) = A, where g turns from u to 0
    within π/u. All of them sharpen as q → 1 and T → 0, and the panels with them.
    """
    b0 = teacher_bias[:, None]
    bias, gap, cosine, sine = (x[:, None] for x in (state.bias, state.gap, state.cosine, state.sine))
    root_q, root_gap = np.sqrt(state.q)[:, None], np.sqrt(gap)
    width, center = root_gap / root_q, bias / root_q
    low = -cosine * np.sqrt(np.maximum(-b0, 0.0) ** 2 + _REACH**2) - _REACH * sine
    low = np.maximum(low, center - width * (_REACH + np.abs(center) * width / (1.0 + width**2)))
    high = np.minimum(cosine * b0 + _REACH * sine, _REACH)
    cutoff = -ndtri(np.exp(np.minimum(log_a, np.log(0.3))))[:, None]
    cutoff = np.where(np.isfinite(cutoff), cutoff, np.sqrt(-2.0 * np.clip(log_a, -1e8, 0.0))[:, None])
    mean, spread = (x[:, None] for x in _class_spread(teacher_bias))
    spread = np.sqrt((cosine * spread) ** 2 + sine**2)
    borders = np.concatenate(
        [
            low,
            center + width * _AROUND_FIELD,
            center + width * (cutoff + _AROUND_CUTOFF * np.pi / np.maximum(cutoff, 2.0)),
            (b0 + sine * _AROUND_TEACHER) / cosine,
            -cosine * mean + spread * _AROUND_CLASS,
            high,
        ],
        axis=1,
    )
    borders = np.sort(np.clip(borders, low, np.maximum(high, low)), axis=1)
    half = 0.5 * np.diff(borders, axis=1)
    middle = borders[:, :-1] + half
    used = int(
        (half > 0).sum(axis=1).max()
    )  # panels outside the range have no length: leave most of them out
    if used < half.shape[1]:
        order = np.argsort(half, axis=1)[:, -used:]
        half, middle = np.take_along_axis(half, order, axis=1), np.take_along_axis(middle, order, axis=1)
    s = (middle[:, :, None] + half[:, :, None] * _NODES).reshape(len(b0), -1)
    weight = (half[:, :, None] * _WEIGHTS).reshape(len(b0), -1)
    z = (cosine * s - b0) / sine
    weight *= np.exp(-0.5 * s * s) / (_SQRT_2PI * ndtr(b0))
    boundary = weight * np.exp(-0.5 * z * z) / (_SQRT_2PI * sine)
    return ClassQuadrature((root_q * s - bias) / root_gap, weight * ndtr(-z), boundary)


class Moments(NamedTuple):
    """The three integrals of a class and their gradients with respect to (q, R, b)."""

    square: FloatArray  # M[g²], in q̂ (Eq 74)
    mean: FloatArray  # M[g], in the bias equation (Eq 75)
    edge: FloatArray  # B[g], in R̂ (Eq 73)
    d_square: FloatArray  # (3, points)
    d_mean: FloatArray
    d_edge: FloatArray
    bend: FloatArray  # M[g'²], in the stability of replica symmetry


def class_moments(state: State, teacher_bias: FloatArray, log_a: FloatArray) -> Moments:
    u, inside, boundary = _class_nodes(state, teacher_bias, log_a)
    g = _field_ratio(u, log_a[:, None])
    slope = g - u
    first = g * slope  # g'
    second = first * slope + g * (first - 1.0)  # g''
    gap, root = state.gap, np.sqrt(state.gap)

    def m(values: FloatArray) -> FloatArray:
        return np.einsum("ij,ij->i", inside, values)

    def e(values: FloatArray) -> FloatArray:
        return np.einsum("ij,ij->i", boundary, values)

    square_1, square_2 = 2 * g * first, 2 * (first * first + g * second)
    edge_1, edge_2 = e(first), e(second)
    d_square = [m(square_2 + u * square_1) / (2 * gap), -e(square_1) / root, -m(square_1) / root]
    d_mean = [m(second + u * first) / (2 * gap), -edge_1 / root, -m(first) / root]
    d_edge = [
        (edge_2 + e(u * first)) / (2 * gap),
        teacher_bias * edge_1 / root - state.overlap * edge_2 / gap,
        -edge_1 / root,
    ]
    gradients = (np.array(d_square), np.array(d_mean), np.array(d_edge))
    return Moments(m(g * g), m(g), e(g), *gradients, m(first * first))


def class_energy(
    state: State, teacher_bias: FloatArray, log_a: FloatArray, beta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """M[log(e^(-β) + (1 - e^(-β))H(u))], minus G_r of Eq 62, and the class's train error (Eq 80)."""
    u, inside, _ = _class_nodes(state, teacher_bias, log_a)
    with np.errstate(divide="ignore"):
        kept = np.log(-np.expm1(-beta))[:, None]
    log_z = np.logaddexp(-beta[:, None], kept + log_ndtr(-u))
    error = np.exp(log_ndtr(u) - beta[:, None] - log_z)
    return np.einsum("ij,ij->i", inside, log_z), np.einsum("ij,ij->i", inside, error)
