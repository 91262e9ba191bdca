"""Distributions to draw a loss's hyper-parameters from (Lieberman et al., Appendix D)."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from equipoise._core.checks import FloatArray, check_array, check_choice, check_in_range, check_positive


class Distribution(Protocol):
    """A distribution on [low, high], known by its quantiles."""

    @property
    def low(self) -> float:
        """The lower end of the range."""

    @property
    def high(self) -> float:
        """The upper end of the range."""

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """The probability density.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The density at each value.
        """

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """The cumulative distribution.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The probability of no more than each value.
        """

    def quantile(self, u: npt.ArrayLike) -> FloatArray:
        """The inverse of the cumulative distribution.

        Parameters
        ----------
        u : array-like
            Probabilities from 0 to 1.

        Returns
        -------
        array
            The value below which the distribution has each probability.
        """


@dataclass(frozen=True)
class Linear:
    """A density that is linear on [low, high], with the value ``height`` at ``high``.

    The value at ``low`` follows from unit area: h_a = 2/(b − a) − h_b, so 0 ≤ h_b ≤ 2/(b − a) is required.
    (The L(1, 3, 2) of the paper's Table 2 is no density: it would be −1 at its lower end. What the authors' sampler
    draws from it is :meth:`as_sampled`.)

    Attributes
    ----------
    low : float
        The lower end.
    high : float
        The upper end.
    height : float
        The density at ``high``.

    Examples
    --------
    >>> Linear(0, 3, 0).quantile([0, 0.75, 1])
    array([0. , 1.5, 3. ])
    >>> Linear(1, 3, 2)
    Traceback (most recent call last):
    ...
    ValueError: height must lie in [0, 1] for a density on [1, 3], got 2
    """

    low: float
    high: float
    height: float

    def __post_init__(self) -> None:
        _check_interval(self.low, self.high)
        largest = 2 / (self.high - self.low)
        if not -1e-12 <= check_array("height", self.height) <= largest * (1 + 1e-2):
            raise ValueError(
                f"height must lie in [0, {largest:g}] for a density on [{self.low:g}, {self.high:g}], "
                f"got {self.height:g}"
            )

    @classmethod
    def as_sampled(cls, low: float, high: float, height: float) -> Linear:
        """What the formula of the inverse distribution draws, also where L(low, high, height) is no density.

        Where the height at ``low``, h_a = 2/(b − a) − h_b, is negative, the formula's values begin at
        a − 2h_a(b − a)/(h_b − h_a) and are linearly distributed from there.

        Parameters
        ----------
        low : float
            The lower end.
        high : float
            The upper end.
        height : float
            h_b.

        Returns
        -------
        Linear
            The distribution that is drawn from.

        Examples
        --------
        >>> law = Linear.as_sampled(1, 3, 2)
        >>> round(law.low, 4), law.high, law.height
        (2.3333, 3, 2)
        """
        start = 2 / (high - low) - height
        return cls(low if start >= 0 else low - 2 * start * (high - low) / (height - start), high, height)

    @property
    def height_low(self) -> float:
        """The density at ``low``."""
        return max(0.0, 2 / (self.high - self.low) - self.height)

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """The probability density.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The density at each value.
        """
        x = check_array("x", x)
        t = (x - self.low) / (self.high - self.low)
        height = self.height_low + (self._height_high - self.height_low) * t
        return np.where((t >= 0) & (t <= 1), height, 0.0)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """The cumulative distribution.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The probability of no more than each value.
        """
        width = self.high - self.low
        t = np.clip((check_array("x", x) - self.low) / width, 0, 1)
        return width * (self.height_low * t + (self._height_high - self.height_low) * t**2 / 2)

    def quantile(self, u: npt.ArrayLike) -> FloatArray:
        """The inverse of the cumulative distribution, stable where the slope vanishes.

        With t = (x − a)/(b − a): (h_b − h_a)·t²/2 + h_a·t = u/(b − a), solved for t in the form that does not
        divide by the slope.

        Parameters
        ----------
        u : array-like
            Probabilities from 0 to 1.

        Returns
        -------
        array
            The value below which the distribution has each probability.
        """
        share = check_in_range("u", u, 0, 1)
        width = self.high - self.low
        start, slope = width * self.height_low, width * (self._height_high - self.height_low)
        root = np.sqrt(np.maximum(start**2 + 2 * slope * share, 0.0))
        t = np.divide(2 * share, start + root, out=np.zeros_like(share), where=start + root > 0)
        return np.asarray(self.low + width * np.clip(t, 0, 1))

    @property
    def _height_high(self) -> float:
        return 2 / (self.high - self.low) - self.height_low  # equal to height, but for the rounding of 0.33


@dataclass(frozen=True)
class Uniform:
    """Uniform on [low, high].

    Attributes
    ----------
    low : float
        The lower end.
    high : float
        The upper end.

    Examples
    --------
    >>> Uniform(0, 2).quantile(0.25)
    array(0.5)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_interval(self.low, self.high)

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """The probability density.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The density at each value.
        """
        x = check_array("x", x)
        return np.where((x >= self.low) & (x <= self.high), 1 / (self.high - self.low), 0.0)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """The cumulative distribution.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The probability of no more than each value.
        """
        return np.clip((check_array("x", x) - self.low) / (self.high - self.low), 0, 1)

    def quantile(self, u: npt.ArrayLike) -> FloatArray:
        """The inverse of the cumulative distribution.

        Parameters
        ----------
        u : array-like
            Probabilities from 0 to 1.

        Returns
        -------
        array
            The value below which the distribution has each probability.
        """
        return np.asarray(self.low + (self.high - self.low) * check_in_range("u", u, 0, 1))


@dataclass(frozen=True)
class LogUniform:
    """Uniform in the logarithm on [low, high].

    Attributes
    ----------
    low : float
        The lower end.
    high : float
        The upper end.

    Examples
    --------
    >>> LogUniform(1, 100).quantile(0.5).round(9)
    np.float64(10.0)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        check_positive("low", self.low)
        _check_interval(self.low, self.high)

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """The probability density.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The density at each value.
        """
        x = check_array("x", x)
        inside = (x >= self.low) & (x <= self.high)
        return np.where(inside, 1 / (np.where(inside, x, 1.0) * math.log(self.high / self.low)), 0.0)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """The cumulative distribution.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The probability of no more than each value.
        """
        within = np.clip(check_array("x", x), self.low, self.high)
        return np.asarray(np.log(within / self.low) / math.log(self.high / self.low))

    def quantile(self, u: npt.ArrayLike) -> FloatArray:
        """The inverse of the cumulative distribution.

        Parameters
        ----------
        u : array-like
            Probabilities from 0 to 1.

        Returns
        -------
        array
            The value below which the distribution has each probability.
        """
        return np.asarray(self.low * (self.high / self.low) ** check_in_range("u", u, 0, 1))


@dataclass(frozen=True)
class Point:
    """Always the same value: the hyper-parameter is fixed.

    Attributes
    ----------
    value : float
        The value.

    Examples
    --------
    >>> Point(2.0).quantile([0.1, 0.9])
    array([2., 2.])
    """

    value: float

    def __post_init__(self) -> None:
        check_array("value", self.value)

    @property
    def low(self) -> float:
        """The value."""
        return self.value

    @property
    def high(self) -> float:
        """The value."""
        return self.value

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """Infinite at the value, 0 elsewhere.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The density at each value.
        """
        return np.where(check_array("x", x) == self.value, np.inf, 0.0)

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """The cumulative distribution.

        Parameters
        ----------
        x : array-like
            Values of the hyper-parameter.

        Returns
        -------
        array
            The probability of no more than each value.
        """
        return np.where(check_array("x", x) >= self.value, 1.0, 0.0)

    def quantile(self, u: npt.ArrayLike) -> FloatArray:
        """The value, whatever the probability.

        Parameters
        ----------
        u : array-like
            Probabilities from 0 to 1.

        Returns
        -------
        array
            The value, once for each probability.
        """
        return np.full(np.shape(u), float(self.value))


_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Linear, Uniform, LogUniform, Point)}


def draw(distribution: Distribution, generator: torch.Generator, size: int | None = None) -> FloatArray:
    """One value, or ``size`` of them.

    >>> 0 <= float(draw(Uniform(0, 1), torch.Generator().manual_seed(0))) <= 1
    True
    """
    uniform = torch.rand((1 if size is None else size,), generator=generator, dtype=torch.float64).numpy()
    values = distribution.quantile(uniform)
    return values[0] if size is None else values


def to_dict(distribution: Distribution) -> dict[str, Any]:
    """As JSON can hold it.

    >>> from_dict(to_dict(Point(1.0)))
    Point(value=1.0)
    """
    return {"kind": type(distribution).__name__, **asdict(distribution)}  # type: ignore[call-overload]


def from_dict(saved: dict[str, Any]) -> Distribution:
    values = dict(saved)
    kind = check_choice("kind", values.pop("kind"), _KINDS)
    return _KINDS[kind](**values)


def check_distributions(distribution: Any) -> dict[str, Distribution]:
    """A non-empty dict from hyper-parameter names to distributions; a number stands for a point mass."""
    if not isinstance(distribution, dict) or not distribution:
        raise TypeError(
            f"distribution must be a dict from hyper-parameters to distributions, got {distribution!r}"
        )
    checked = {}
    for name, value in distribution.items():
        if isinstance(value, (int, float)):
            value = Point(float(value))
        if not callable(getattr(value, "quantile", None)):
            raise TypeError(
                f"distribution[{name!r}] must be Linear, Uniform, LogUniform or Point, got {value!r}"
            )
        checked[str(name)] = value
    return checked


def _check_interval(low: float, high: float) -> None:
    check_array("low", low)
    check_array("high", high)
    if not low < high:
        raise ValueError(f"low must be below high, got {low:g} and {high:g}")
