"""The class counts that the papers use, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from equipoise._core.checks import IntArray, check_choice
from equipoise.datasets.imbalance import exponential_counts

Split = Literal["train", "balanced_test", "imbalanced_test"]

_MONDAL = "Mondal et al., Minority Oversampling via Class-Preserving Regularized Auto-Encoders, Table {}"
_WU = "Wu & Li, Revisiting the Effective Number Theory, section 5.1: {} images"
_LIEBERMAN = "Lieberman et al., Training over a Distribution of Hyperparameters, Table 12"


@dataclass(frozen=True)
class Profile:
    """Class counts of a published experiment, from class 0 on. Empty where the paper has no such split.

    Attributes
    ----------
    source : str
        The paper and its table.
    train : tuple of int
        The counts of the training set.
    balanced_test : tuple of int
        The counts of the balanced test set.
    imbalanced_test : tuple of int
        The counts of the imbalanced test set.
    """

    source: str
    train: tuple[int, ...]
    balanced_test: tuple[int, ...] = ()
    imbalanced_test: tuple[int, ...] = ()


def _exponential(head: int, n_classes: int, ratio: float) -> tuple[int, ...]:
    return tuple(exponential_counts(head, n_classes, ratio).tolist())


def _mondal() -> dict[str, Profile]:
    """Tables 7 to 9. The tables of 100 classes are exponential profiles of ratio 10, entry by entry."""
    ten = {
        "balanced_test": (800,) * 10,
        "imbalanced_test": (1000, 500, 250, 187, 125, 87, 50, 25, 15, 10),
    }
    gray = Profile(_MONDAL.format(7), (4000, 2000, 1000, 750, 500, 350, 200, 100, 60, 40), **ten)
    color = Profile(_MONDAL.format(7), (4500, 2000, 1000, 800, 600, 500, 400, 250, 150, 80), **ten)
    return {
        "mnist-mondal": gray,
        "fashion-mnist-mondal": gray,
        "svhn-mondal": color,
        "cifar10-mondal": color,
        "celeba-mondal": Profile(
            _MONDAL.format(7), (9000, 4500, 1000, 500, 160), (1000,) * 5, (1000, 500, 111, 55, 17)
        ),
        "cifar100-mondal": Profile(
            _MONDAL.format(8), _exponential(500, 100, 10), (80,) * 100, _exponential(100, 100, 10)
        ),
        "imagenet100-mondal": Profile(
            _MONDAL.format(9), _exponential(1300, 100, 10), (50,) * 100, _exponential(50, 100, 10)
        ),
    }


def _long_tail() -> dict[str, Profile]:
    """CIFAR-LT. Wu & Li set samples aside first: heads of 4990 and 499 give their sizes exactly.

    Their size of CIFAR-100 at 100:1, printed as 19829, is 10829.
    """
    profiles = {}
    for classes, full, left, test in ((10, 5000, 4990, 1000), (100, 500, 499, 100)):
        for ratio in (10, 50, 100, 200):
            source = f"Cui et al. 2019, Class-Balanced Loss, section 4.1: exponential, ratio {ratio}"
            profiles[f"cifar{classes}-lt-{ratio}"] = Profile(
                source, _exponential(full, classes, ratio), (test,) * classes
            )
        for ratio in (10, 100):
            counts = _exponential(left, classes, ratio)
            profiles[f"cifar{classes}-lt-{ratio}-wu"] = Profile(
                _WU.format(sum(counts)), counts, (test,) * classes
            )
    return profiles


def _binary() -> dict[str, Profile]:
    """Majority first. Only the number of minority samples in training depends on β.

    The printed row of Dogs vs. Cats (1500, 150, 75 of 11500) contradicts its own β; here it is 11500/β.
    Animal/vehicle, which the text uses and the table omits, has 30000 animals.
    """
    table = {
        "cifar10-pair": (5000, (500, 50, 25), (1000, 1000)),
        "cifar10-animal-vehicle": (30000, (3000, 300, 150), (6000, 4000)),
        "cifar100-household": (2500, (250, 25, 13), (500, 500)),
        "dogs-cats": (11500, (1150, 115, 58), (1000, 1000)),
        "melanoma": (41051, (4105, 410, 205), (12300, 1035)),
        "aptos": (1444, (144, 14, 7), (361, 370)),
    }
    return {
        f"{name}-beta{beta}": Profile(_LIEBERMAN, (majority, minority), test)
        for name, (majority, minorities, test) in table.items()
        for beta, minority in zip((10, 100, 200), minorities, strict=True)
    }


PROFILES: Mapping[str, Profile] = MappingProxyType(_mondal() | _long_tail() | _binary())
"""Every named profile; the keys are the names that `class_counts` takes."""


def class_counts(name: str, split: Split = "train") -> IntArray:
    """Class counts of a published experiment, ready for ``make_imbalanced(X, y, counts=…)``.

    ``"cifar10-lt-100"`` is the common CIFAR-10-LT; a last part names a paper's own version.

    Parameters
    ----------
    name : str
        One of ``PROFILES``.
    split : {"train", "balanced_test", "imbalanced_test"}
        Which of the paper's sets.

    Returns
    -------
    array of int
        The counts, from class 0 on.

    Raises
    ------
    ValueError
        If the paper has no such split.

    Examples
    --------
    >>> class_counts("mnist-mondal")
    array([4000, 2000, 1000,  750,  500,  350,  200,  100,   60,   40])
    >>> int(class_counts("cifar100-lt-100-wu").sum())
    10829
    >>> class_counts("cifar10-pair-beta100")
    array([5000,   50])
    """
    profile = PROFILES[check_choice("name", name, PROFILES)]
    check_choice("split", split, ["train", "balanced_test", "imbalanced_test"])
    counts: tuple[int, ...] = getattr(profile, split)
    if not counts:
        raise ValueError(f"split: {name!r} has no {split!r}, only its training set was made imbalanced")
    return np.array(counts, dtype=np.int64)
