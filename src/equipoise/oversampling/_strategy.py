"""How many rows of each class to make: imbalanced-learn's ``sampling_strategy``, rounded and never truncated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from imblearn.utils import check_sampling_strategy

from equipoise._core.checks import check_choice, check_integer

_WORDS = ("auto", "minority", "not minority", "not majority", "all", "theory")
Strategy: TypeAlias = "str | float | Mapping[Any, int] | Callable[[Any], Mapping[Any, int]]"


def resolve_strategy(strategy: Strategy, X: npt.NDArray[Any], y: npt.NDArray[Any]) -> dict[Any, int]:
    """The number of new rows per class, by imbalanced-learn's rules.

    ``"theory"`` asks :mod:`equipoise.theory.anomaly` which class weights are best for this very table of two
    classes, and makes as many rows as give the rare class that share. A float is the wanted
    minority-to-majority ratio of a binary problem; the count is rounded where imbalanced-learn cuts it off.

    >>> import numpy as np
    >>> resolve_strategy(0.5, np.zeros((15, 1)), np.array([0] * 11 + [1] * 4))
    {np.int64(1): 2}
    """
    if isinstance(strategy, str) and strategy == "theory":
        from equipoise.theory.anomaly import theory_sampling_strategy

        strategy = theory_sampling_strategy(X)
    if isinstance(strategy, float):
        check_sampling_strategy(1.0, y, "over-sampling")  # refuses what is not binary, in its own words
        return _from_ratio(strategy, y)
    if isinstance(strategy, Mapping):
        _refuse_removal(strategy, y)
    elif isinstance(strategy, str):
        check_choice("sampling_strategy", strategy, _WORDS)
    elif not callable(strategy):
        raise TypeError(f"sampling_strategy must be a word, a ratio, a dict or a function, got {strategy!r}")
    return dict(check_sampling_strategy(strategy, y, "over-sampling"))


def round_half_up(value: float) -> int:
    """The nearest whole number, halves upwards."""
    return math.floor(value + 0.5)


def _from_ratio(ratio: float, y: npt.NDArray[Any]) -> dict[Any, int]:
    if not 0 < ratio <= 1:
        raise ValueError(f"sampling_strategy as a float must lie in (0, 1], got {ratio}")
    classes, counts = np.unique(y, return_counts=True)
    minority = int(counts.argmin())
    wanted = round_half_up(ratio * int(counts.max()))
    if wanted < counts[minority]:
        raise ValueError(
            f"sampling_strategy={ratio} asks for {wanted} rows of class {classes[minority]!r}, which has "
            f"{counts[minority]} already; over-sampling never removes rows: raise the ratio"
        )
    return {classes[minority]: wanted - int(counts[minority])}


def _refuse_removal(strategy: Mapping[Any, int], y: npt.NDArray[Any]) -> None:
    classes, counts = np.unique(y, return_counts=True)
    for label, count in zip(classes, counts, strict=True):
        wanted = strategy.get(label, count)
        check_integer(f"sampling_strategy of class {label}", wanted)
        if wanted < count:
            raise ValueError(
                f"sampling_strategy asks for {wanted} rows of class {label}, which has {count} already; "
                "over-sampling never removes rows"
            )
