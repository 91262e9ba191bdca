"""From logits that minimize a loss to class probabilities, exactly and without validation rows.

A loss ℓ is minimized, at every x, where Σ_y q_y ∂ℓ(z, y)/∂z = 0 with q the true class probabilities. Solved for
q this is the link from the logits z to q:

- cross-entropy of scaled logits, softmax(k∘z): q = softmax(k∘z);
- a function ℓ(p_y) of the softmax p: q_c ∝ −1/ℓ′(p_c), which for the focal loss is h(p_c) with
  h(v) = v/((1 − v)^φ − φ(1 − v)^(φ−1) v ln v), and for (1 − p^a)/a is p_c^(1−a);
- a margin taken from the true logit (LDAM, KPS): q is the stationary distribution of the matrix whose row y is
  the softmax under label y, and that has the closed form q_c ∝ p_c·(1 − p_c·(1 − e^(−m_c))).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp

from equipoise._core.checks import FloatArray


@dataclass(frozen=True)
class Link:
    """The exact way from logits to log-probabilities under the prior ``loss.implied_prior(class_prior)``.

    Attributes
    ----------
    scales : tuple of float
        Factors k of the logits, one a class; empty for none.
    focus : float
        φ of the focal loss.
    power : float
        q of the L_q loss, below 1.
    margins : tuple of float
        What the loss takes from the true logit, one a class; empty for none.

    References
    ----------
    Charoenphakdee, Vongkulbhisal, Chairatanakul & Sugiyama (2021), On focal loss for class-posterior probability
    estimation, Theorem 11.

    Examples
    --------
    >>> np.exp(Link(focus=2.0)([[0.0, 2.0]])).round(3)
    array([[0.005, 0.995]])
    """

    scales: tuple[float, ...] = ()
    focus: float = 0.0
    power: float = 0.0
    margins: tuple[float, ...] = ()

    def __call__(self, logits: npt.ArrayLike) -> FloatArray:
        """Log-probabilities, rows (n, C)."""
        z = np.asarray(logits, dtype=np.float64)
        log_p = log_softmax(z * self.scales if self.scales else z, axis=1)
        if self.focus:
            log_p = log_p - _log_focal_slope(log_p, self.focus)
        if self.power:
            log_p = (1 - self.power) * log_p
        if self.margins:
            log_p = log_p + np.log1p(np.exp(log_p) * np.expm1(-np.asarray(self.margins)))
        return np.asarray(log_softmax(log_p, axis=1))

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it; ``Link.from_dict`` is the way back."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Link:
        return cls(tuple(saved["scales"]), saved["focus"], saved["power"], tuple(saved["margins"]))


def _log_focal_slope(log_p: FloatArray, phi: float) -> FloatArray:
    """log of (1 − p)^φ − φ(1 − p)^(φ−1) p ln p, without loss of digits at p near 0 and 1."""
    log_rest = _log_one_minus(log_p)
    rest = np.exp(log_rest)
    surprise = np.where(rest < 0.5, -np.log1p(-np.minimum(rest, 0.5)), -log_p)
    ratio = np.divide(surprise, rest, out=np.ones_like(rest), where=rest > 0)  # −ln p/(1 − p), 1 at p = 1
    return np.asarray(phi * log_rest + np.log1p(phi * np.exp(log_p) * ratio))


def _log_one_minus(log_p: FloatArray) -> FloatArray:
    """log(1 − p_c); for the likeliest class as the log of the sum of the others."""
    largest = np.arange(log_p.shape[1]) == log_p.argmax(axis=1)[:, None]
    others = logsumexp(np.where(largest, -np.inf, log_p), axis=1, keepdims=True)
    return np.where(largest, others, np.log1p(-np.exp(np.where(largest, -1.0, log_p))))
