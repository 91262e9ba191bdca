"""Newton's method along the branch of students that follow the teacher, for many points at once.

Every point starts from the solution at ρ = ½ with equal class weights, where the dummy classifier is never
the better one. Almost always one run of Newton from there reaches the point; where it does not, the branch is
followed in logit ρ and the logarithms of the weights with an adaptive step until it arrives or ends. The sign
of the Jacobian's determinant tells a fold that was passed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray
from equipoise.theory.anomaly._equations import Setting, log_partition_and_error, residual_and_jacobian
from equipoise.theory.anomaly._integrals import state_of

BLOCK = 192  # points solved together: bounds the memory (about 20 MB) whatever the grid
_TARGET = 1e-11  # Newton goes on until here; what is promised is _PROMISE
_PROMISE = 1e-9
_LONGEST_MOVE = 1.0  # of a Newton step, in log R̂, log q̂ and b
_STEPS = 16
_PLAIN = 20
_SHORTEST = 1.0 / 48  # continuation gives up when its step falls below this share of the way in logit ρ

Index = npt.NDArray[np.int64]


@dataclass
class Branch:
    """States (3, points) in (log R̂, log q̂, b), and how Newton fared there."""

    x: FloatArray
    residual: FloatArray
    steps: npt.NDArray[np.int64]
    sign: FloatArray  # of the Jacobian's determinant

    @property
    def converged(self) -> npt.NDArray[np.bool_]:
        return self.residual <= _PROMISE


def _newton(
    x: FloatArray, setting: Setting, given_bias: FloatArray | None = None, most: int = _STEPS
) -> Branch:
    """Damped Newton steps on every point of a block until it converges or fails."""
    count = x.shape[1]
    found = Branch(x.copy(), np.full(count, np.inf), np.zeros(count, dtype=np.int64), np.zeros(count))
    active = np.arange(count)
    for _ in range(most):
        with np.errstate(all="ignore"):
            held = None if given_bias is None else given_bias[active]
            residual, jacobian = residual_and_jacobian(found.x[:, active], setting.take(active), held)
        size = np.abs(residual).max(axis=0)
        finite = np.isfinite(size) & np.isfinite(jacobian).all(axis=(0, 1))
        found.residual[active] = np.where(finite, size, np.inf)
        found.steps[active] += 1
        rows = np.where(finite, jacobian, np.eye(3)[:, :, None])
        normal = np.cross(rows[1], rows[2], axis=0)  # Cramer's rule: no exception for a singular Jacobian
        determinant = np.einsum("ij,ij->j", rows[0], normal)
        found.sign[active] = np.sign(determinant)
        go = finite & (size > _TARGET) & (determinant != 0)
        if not go.any():
            break
        rows, residual, active = rows[:, :, go], residual[:, go], active[go]
        cofactors = (normal[:, go], np.cross(rows[2], rows[0], axis=0), np.cross(rows[0], rows[1], axis=0))
        move = sum(c * r for c, r in zip(cofactors, residual, strict=True)) / determinant[go]
        found.x[:, active] -= move * np.minimum(1.0, _LONGEST_MOVE / np.abs(move).max(axis=0))
    return found


def _anchor(setting: Setting) -> Branch:
    """The branch at ρ = ½ without weights, from a bias that grows with the data."""
    alpha, b0 = setting.samples_per_dim, setting.teacher_bias
    half = 0.5 * np.log(alpha)
    x = np.array([half, half, 0.5 * b0 * alpha / (1.0 + alpha)])
    return _newton(x, _on_the_way(setting, np.zeros_like(alpha)), most=2 * _STEPS)


def _on_the_way(setting: Setting, part: FloatArray) -> Setting:
    """The setting a part of the way from (ρ = ½, no weights) to the point: in logit ρ and log weights.

    A balanced point, ρ·w₊ = (1-ρ)·w₋, is reached along balanced ones.
    """
    rho = setting.train_fraction
    logit = np.log(rho) - np.log1p(-rho)
    return setting._replace(
        train_fraction=1.0 / (1.0 + np.exp(-part * logit)),
        positive_weight=setting.positive_weight**part,
        negative_weight=setting.negative_weight**part,
    )


def _in_blocks(solve: Callable[[Setting, slice], Branch], setting: Setting) -> Branch:
    parts = [slice(at, at + BLOCK) for at in range(0, setting.train_fraction.size, BLOCK)]
    found = [solve(setting.take(part), part) for part in parts]
    return Branch(
        np.concatenate([part.x for part in found], axis=1),
        *(np.concatenate([getattr(part, name) for part in found]) for name in ("residual", "steps", "sign")),
    )


def _families(setting: Setting) -> tuple[Setting, Index]:
    """One setting for each way that points share, and which of them each point belongs to.

    Points that differ in ρ alone share a way; one with class weights has its own.
    """
    weighted = (setting.positive_weight != 1) | (setting.negative_weight != 1)
    keys = np.array([*setting[:3], np.where(weighted, setting.train_fraction, 0.5), *setting[4:]])
    families, which = np.unique(keys, axis=1, return_inverse=True)
    return Setting(*families), which.ravel()


def solve_learned_bias(setting: Setting) -> Branch:
    """The learned branch at every point; where it does not reach ρ the residual is infinite."""
    families, which = _families(setting)
    anchor = _in_blocks(lambda part, _: _anchor(part), families)
    found = _in_blocks(lambda part, index: _newton(anchor.x[:, which[index]], part), setting)
    lost = np.flatnonzero(~found.converged | (found.sign != anchor.sign[which]))
    found.residual[lost] = np.inf
    distance = np.abs(np.log(setting.train_fraction) - np.log1p(-setting.train_fraction))
    way = 2 * which + (setting.train_fraction > 0.5)  # to one side of ρ = ½
    last_x, last_distance = np.repeat(anchor.x, 2, axis=1), np.full(2 * anchor.steps.size, -1.0)
    while lost.size:
        # The way to a point leads through the nearer ones: one that is not reached answers for all beyond it.
        lost = lost[np.argsort(distance[lost], kind="stable")]
        ways, first = np.unique(way[lost], return_index=True)
        nearest = lost[first]
        far, near = distance[nearest], last_distance[ways]
        done = np.where(far > near, np.maximum(near, 0.0) / np.maximum(far, 1e-9), 1.0)
        again = _in_blocks(
            lambda part, index, ways=ways, done=done: _follow(  # type: ignore[misc]
                last_x[:, ways[index]], anchor.sign[ways[index] // 2], part, done[index]
            ),
            setting.take(nearest),
        )
        found.x[:, nearest], found.residual[nearest], found.sign[nearest] = (
            again.x,
            again.residual,
            again.sign,
        )
        found.steps[nearest] += again.steps
        last_x[:, ways], last_distance[ways] = again.x, far
        lost = lost[~np.isin(lost, nearest) & ~np.isin(way[lost], ways[~again.converged])]
    return found


def _follow(x: FloatArray, sign: FloatArray, setting: Setting, done: FloatArray) -> Branch:
    """Continue the branch from where that part of the way is done, each point with its own adaptive step.

    A point whose branch ends on the way (a fold, or b running away to the dummy) keeps an infinite residual.
    """
    count = x.shape[1]
    found = Branch(x.copy(), np.full(count, np.inf), np.zeros(count, dtype=np.int64), sign.copy())
    done, stride = done.copy(), np.full(count, 0.5)
    active = np.arange(count)
    while active.size:
        goal = np.minimum(1.0, done[active] + stride[active])
        step = _newton(found.x[:, active], _on_the_way(setting.take(active), goal), most=8)
        found.steps[active] += step.steps
        good = step.converged & (step.sign == sign[active])
        arrived = active[good]
        found.x[:, arrived], done[arrived] = step.x[:, good], goal[good]
        found.residual[arrived] = np.where(goal[good] == 1.0, step.residual[good], np.inf)
        stride[active] *= np.where(good, 1.5, 0.5)
        active = active[(done[active] < 1.0) & (stride[active] >= _SHORTEST)]
    return found


def solve_given_bias(setting: Setting, bias: FloatArray) -> Branch:
    """The equilibrium at a given bias: the better of what grows from no data and what shrinks from the teacher.

    A student that ignores the teacher and one that follows him can coexist.
    """

    def better_of_two(part: Setting, index: slice) -> Branch:
        found = []
        for start in (-15.0, 4.0):
            x = np.array([np.full_like(part.teacher_bias, start)] * 2 + [bias[index]])
            with np.errstate(all="ignore"):
                for _step in range(_PLAIN):  # the plain iteration of Eqs 71-74
                    x = x - residual_and_jacobian(x, part, bias[index])[0]
                branch = _newton(x, part, bias[index], 2 * _STEPS)
                value = log_partition_and_error(state_of(*branch.x), part)[0]
            found.append((branch, np.where(branch.converged, value, -np.inf)))
        (low, low_value), (high, high_value) = found
        pick = high_value > low_value
        return Branch(
            np.where(pick, high.x, low.x),
            np.where(pick, high.residual, low.residual),
            low.steps + high.steps + 2 * _PLAIN,
            np.where(pick, high.sign, low.sign),
        )

    return _in_blocks(better_of_two, setting)
