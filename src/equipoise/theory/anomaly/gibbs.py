"""The Gibbs measure of the spherical perceptron, sampled without rejection: the theory's own experiment.

The student (w, b) has probability ∝ exp(-E/T) with E its number of training errors, each counted with its
class's weight, w uniform on the sphere and b uniform on an interval (Eqs 25-29). Along a great circle through
w every field is a cosine of the angle, so E is piecewise constant with at most 2P breakpoints, and along b it
has P. Both conditionals are therefore drawn exactly: an interval with probability ∝ length·exp(-E/T), then a
uniform point in it, in O(P log P).

The paper integrates b over all reals, where the dummy classifiers have infinite weight at any finite N. The
interval [-bias_limit, bias_limit] makes the measure proper; it does not matter for N → ∞.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_fraction,
    check_in_range,
    check_integer,
    check_positive,
)
from equipoise._core.progress import Progress
from equipoise._core.random import RandomState, as_generator
from equipoise.theory.anomaly.sampling import sample_training_set


@dataclass(frozen=True)
class GibbsRun:
    """Averages over datasets of a sampled student, with standard errors, and how well the chains have mixed.

    ``samples`` and ``positives`` are the training set's, which whole numbers keep from being exactly α·N and ρ·P;
    compare with the theory at ``samples / dim`` and ``positives / samples``. ``self_overlap`` is the overlap of two
    students of the same training set, one started at the teacher and one at random. ``r_hat`` is the split R-hat of
    overlap and bias over these two starts and the halves of their chains, its median over training sets.

    Attributes
    ----------
    dim : int
        N.
    samples : int
        P, the rows of each training set.
    positives : int
        How many of them are positive.
    overlap : float
        R, the overlap of student and teacher.
    self_overlap : float
        q, the overlap of two students.
    bias : float
        b.
    train_error : float
        The share of training samples that the student gets wrong.
    standard_error : dict of str to float
        The standard error of each of these means.
    r_hat : dict of str to float
        The split R-hat of overlap and bias; near 1 where the chains have mixed.
    """

    dim: int
    samples: int
    positives: int
    overlap: float
    self_overlap: float
    bias: float
    train_error: float
    standard_error: dict[str, float]
    r_hat: dict[str, float]


def sample_gibbs(
    samples_per_dim: float,
    temperature: float,
    teacher_bias: float,
    train_fraction: float,
    *,
    dim: int = 100,
    datasets: int = 32,
    sweeps: int = 60,
    positive_weight: float = 1.0,
    negative_weight: float = 1.0,
    learn_bias: bool = True,
    bias_limit: float | None = None,
    random_state: RandomState = None,
) -> GibbsRun:
    """Sample students of many training sets, two from each, and average over the second half of the sweeps.

    Parameters
    ----------
    samples_per_dim, temperature, teacher_bias, train_fraction, positive_weight, negative_weight : float
        The model's parameters as in :func:`solve_saddle`.
    dim, datasets, sweeps : int
        N, the number of training sets, and the moves: a sweep is ``dim`` moves of w and as many of b.
    learn_bias : bool
        Whether b moves, or stays at the teacher's.
    bias_limit : float, optional
        b stays within ± this; |b0| + 3 unless given.
    random_state : int, generator or None
        The source of the training sets and the moves.

    Returns
    -------
    GibbsRun
        The averages with their errors.

    References
    ----------
    Pezzicoli et al., Eqs 25-29; the moves along great circles are this library's.

    Examples
    --------
    >>> run = sample_gibbs(2.0, 0.5, -0.5, 0.5, dim=20, datasets=8, sweeps=20, random_state=0)
    >>> 0 < run.overlap < 1
    True
    """
    alpha = float(check_positive("samples_per_dim", samples_per_dim))
    noise = float(check_in_range("temperature", temperature, 0.0))
    b0 = float(check_in_range("teacher_bias", teacher_bias, -30, 30))
    rho = float(check_fraction("train_fraction", train_fraction))
    weights = [
        float(check_positive(name, value))
        for name, value in (("positive_weight", positive_weight), ("negative_weight", negative_weight))
    ]
    check_integer("dim", dim, 2)
    check_integer("datasets", datasets, 2)
    check_integer("sweeps", sweeps, 8)
    limit = float(check_positive("bias_limit", abs(b0) + 3.0 if bias_limit is None else bias_limit))
    generator = as_generator(random_state)
    sets = [
        sample_training_set(dim, round(alpha * dim), b0, rho, generator, np.float32) for _ in range(datasets)
    ]
    labels = sets[0].labels
    cost = np.where(labels > 0, *weights)
    chains = _Chains(np.stack([one.inputs for one in sets]), labels, cost, noise, b0, limit, generator)
    trace = np.empty((sweeps, 4, datasets, 2))
    with Progress(sweeps, "Gibbs sweeps") as bar:
        for sweep in range(sweeps):
            for _ in range(dim):
                chains.move_weight()
                if learn_bias:
                    chains.move_bias()
            trace[sweep] = chains.measure()
            bar.advance()
    return _summary(trace[sweeps // 2 :], (dim, len(labels), int((labels > 0).sum())))


class _Chains:
    """Two chains on each training set, all moved together. Arrays are (datasets, 2, ...)."""

    def __init__(
        self,
        inputs: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
        labels: FloatArray,
        cost: FloatArray,
        temperature: float,
        teacher_bias: float,
        bias_limit: float,
        generator: np.random.Generator,
    ) -> None:
        count, _, dim = inputs.shape
        self.inputs = np.ascontiguousarray(inputs.transpose(0, 2, 1))  # (datasets, dims, samples)
        self.labels, self.cost = labels, cost
        self.temperature, self.limit, self.generator = temperature, bias_limit, generator
        weight = generator.standard_normal((count, 2, dim)).astype(np.float32)
        weight[:, 0] = np.eye(1, dim)  # the first chain starts at the teacher, the second anywhere
        self.weight = weight / np.linalg.norm(weight, axis=-1, keepdims=True)
        self.bias = np.full((count, 2), teacher_bias)
        self.field = self.weight @ self.inputs

    def _wrong(self) -> npt.NDArray[np.bool_]:
        return np.asarray((self.field + self.bias[..., None]) * self.labels < 0)

    def move_weight(self) -> None:
        """Draw the angle on a random great circle through w from its exact conditional."""
        direction = self.generator.standard_normal(self.weight.shape, dtype=np.float32)
        direction -= (direction * self.weight).sum(axis=-1, keepdims=True) * self.weight
        direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
        across = direction @ self.inputs
        radius, phase = np.hypot(self.field, across), np.arctan2(across, self.field)
        reach = -self.bias[..., None] / radius
        crosses = np.abs(reach) < 1.0
        half = np.arccos(np.clip(reach, -1.0, 1.0))  # the field exceeds -b within this angle of its phase
        enter, leave = np.mod(phase - half, 2 * np.pi), np.mod(phase + half, 2 * np.pi)
        change = np.where(crosses, self.labels * self.cost, 0.0)
        angle = _draw(
            np.concatenate([enter, leave], axis=-1),
            np.concatenate([-change, change], axis=-1),
            self._wrong() @ self.cost,
            (0.0, 2 * np.pi),
            self.temperature,
            self.generator,
        )[..., None]
        cosine, sine = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
        self.weight = cosine * self.weight + sine * direction
        norm = np.linalg.norm(self.weight, axis=-1, keepdims=True)
        self.weight, self.field = self.weight / norm, (cosine * self.field + sine * across) / norm

    def move_bias(self) -> None:
        """Draw b from its exact conditional on [-limit, limit]."""
        steps = np.clip(-self.field, -self.limit, self.limit)
        lowest = ((self.field > self.limit) != (self.labels > 0)) @ self.cost
        change = np.where(np.abs(self.field) < self.limit, -self.labels * self.cost, 0.0)
        self.bias = _draw(
            steps,
            change,
            lowest,
            (-self.limit, self.limit),
            self.temperature,
            self.generator,
        )

    def measure(self) -> FloatArray:
        """Overlap, bias, share of errors, and the overlap of the two students, (4, datasets, 2)."""
        self.field = self.weight @ self.inputs  # what rounding has gathered is dropped
        between = np.repeat((self.weight[:, 0] * self.weight[:, 1]).sum(axis=-1)[:, None], 2, axis=1)
        error = self._wrong().mean(axis=-1)
        return np.array([self.weight[..., 0], self.bias, error, between], dtype=np.float64)


def _draw(
    positions: FloatArray,
    changes: FloatArray,
    energy: FloatArray,
    span: tuple[float, float],
    temperature: float,
    generator: np.random.Generator,
) -> FloatArray:
    """A point of ``span`` with density ∝ exp(-E/T), E starting at ``energy`` and changing at ``positions``."""
    order = np.argsort(positions, axis=-1)
    edges = np.take_along_axis(positions, order, axis=-1).astype(np.float64)
    ends = np.broadcast_to(np.asarray(span), (*edges.shape[:-1], 2))
    edges = np.concatenate([ends[..., :1], edges, ends[..., 1:]], axis=-1)
    length = np.maximum(np.diff(edges, axis=-1), 0.0)
    steps = np.cumsum(np.take_along_axis(changes, order, axis=-1), axis=-1)
    level = np.concatenate([energy[..., None], energy[..., None] + steps], axis=-1)
    level -= np.where(length > 0, level, np.inf).min(axis=-1, keepdims=True)
    weight = length * (np.exp(-level / temperature) if temperature > 0 else level < 1e-9)
    mass = np.cumsum(weight, axis=-1)
    target = generator.random(mass.shape[:-1]) * mass[..., -1]
    pick = np.minimum((mass <= target[..., None]).sum(axis=-1), mass.shape[-1] - 1)[..., None]
    low = np.take_along_axis(edges, pick, axis=-1)[..., 0]
    width = np.take_along_axis(length, pick, axis=-1)[..., 0]
    return low + width * generator.random(low.shape)


@dataclass(frozen=True)
class LargeSystem:
    """What sampled means tend to as N → ∞, its standard error, and the coefficient of 1/N.

    Attributes
    ----------
    limit : float
        The limit.
    standard_error : float
        Its standard error.
    correction : float
        The coefficient of 1/N.
    """

    limit: float
    standard_error: float
    correction: float


def extrapolate(dims: npt.ArrayLike, means: npt.ArrayLike, errors: npt.ArrayLike) -> LargeSystem:
    """Fit ``limit + correction / N`` to means at several N by least squares weighted with their errors.

    Parameters
    ----------
    dims : array of shape (n,)
        The dimensions N.
    means : array of shape (n,)
        The mean at each of them.
    errors : array of shape (n,)
        The standard error of each mean.

    Returns
    -------
    LargeSystem
        The fit.

    Examples
    --------
    >>> found = extrapolate([20, 40], [0.55, 0.525], [0.01, 0.01])
    >>> round(found.limit, 6), round(found.correction, 6), round(found.standard_error, 4)
    (0.5, 1.0, 0.0224)
    """
    sizes, values = check_positive("dims", dims), check_array("means", means)
    spread = check_positive("errors", errors)
    if not sizes.shape == values.shape == spread.shape == (sizes.size,):
        raise ValueError(
            "dims, means and errors must be vectors of one length, got shapes "
            f"{sizes.shape}, {values.shape} and {spread.shape}"
        )
    if len(np.unique(sizes)) < 2:
        raise ValueError(f"dims: an extrapolation needs two different sizes, got {sizes.tolist()}")
    design = np.stack([np.ones_like(sizes), 1 / sizes], axis=1) / spread[:, None]
    covariance = np.linalg.inv(design.T @ design)
    limit, correction = covariance @ design.T @ (values / spread)
    return LargeSystem(float(limit), float(np.sqrt(covariance[0, 0])), float(correction))


def split_r_hat(trace: FloatArray) -> FloatArray:
    """Split R-hat of traces (time, ..., chains) over chains and halves (Gelman et al. 2013, section 11.4).

    >>> float(split_r_hat(np.random.default_rng(0).standard_normal((4000, 2))).round(2))
    1.0
    """
    half = len(trace) // 2
    pieces = np.concatenate([trace[:half], trace[half : 2 * half]], axis=-1)
    within = pieces.var(axis=0, ddof=1).mean(axis=-1)
    between = half * pieces.mean(axis=0).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.sqrt((half - 1) / half + between / (half * within))
    return np.where(between == 0, 1.0, ratio)


def _summary(trace: FloatArray, sizes: tuple[int, int, int]) -> GibbsRun:
    names = ("overlap", "bias", "train_error", "self_overlap")
    means = trace.mean(axis=(0, 3))  # (4, datasets)
    errors = means.std(axis=1, ddof=1) / np.sqrt(means.shape[1])
    mixed = {name: float(np.median(split_r_hat(trace[:, k]))) for k, name in enumerate(names[:2])}
    value = dict(zip(names, means.mean(axis=1).tolist(), strict=True))
    return GibbsRun(
        *sizes, **value, standard_error=dict(zip(names, errors.tolist(), strict=True)), r_hat=mixed
    )
