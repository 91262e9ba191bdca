"""Randomness is an argument. Nobody seeds globals; the same seed gives the same bits."""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np

RandomState: TypeAlias = "int | np.integer | np.random.Generator | np.random.RandomState | None"

_LARGEST_SEED = 2**31 - 1  # fits scikit-learn's and torch's seeds alike


def as_generator(random_state: RandomState = None) -> np.random.Generator:
    """A ``numpy.random.Generator`` from whatever scikit-learn users pass as ``random_state``.

    A legacy ``RandomState`` is drawn from once, so repeated calls differ as its users expect.

    >>> as_generator(3).integers(10) == as_generator(3).integers(10)
    np.True_
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(_LARGEST_SEED))
    if random_state is not None and (
        isinstance(random_state, bool) or not isinstance(random_state, (int, np.integer))
    ):
        raise TypeError(f"random_state must be None, an integer or a generator, got {random_state!r}")
    return np.random.default_rng(random_state)


def draw_seed(random_state: RandomState = None) -> int:
    """One integer seed for a library that takes integers (torch, scikit-learn).

    An integer is returned as it is, so that a run can be repeated from what was recorded.
    """
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return int(random_state)
    return int(as_generator(random_state).integers(_LARGEST_SEED))


def derive_seed(seed: int, *path: object) -> int:
    """A seed for a named part of a run: a pure function of ``seed`` and ``path``, independent between paths.

    >>> derive_seed(0, "fold", 1) == derive_seed(0, "fold", 1) != derive_seed(0, "fold", 2)
    True
    """
    digest = hashlib.blake2b(repr((seed, *path)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % _LARGEST_SEED
