"""One family of losses for imbalanced classification.

Each is a shell around an equation in :mod:`equipoise.losses.functional`. All take ``forward(input, target)``
with raw logits and integer targets; what else they want (``features``, ``head_weight``) is named by
``requires``. Importing this package does not import torch.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from equipoise._core.extras import import_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from equipoise.losses._base import Loss as Loss
    from equipoise.losses._learned import LearnedLoss as LearnedLoss
    from equipoise.losses.adjustment import LogitAdjustedLoss as LogitAdjustedLoss
    from equipoise.losses.adjustment import VSLoss as VSLoss
    from equipoise.losses.center import CenterLoss as CenterLoss
    from equipoise.losses.class_balanced import ClassBalancedLoss as ClassBalancedLoss
    from equipoise.losses.combined import CombinedLoss as CombinedLoss
    from equipoise.losses.cross_entropy import CrossEntropyLoss as CrossEntropyLoss
    from equipoise.losses.cross_entropy import WeightedCrossEntropyLoss as WeightedCrossEntropyLoss
    from equipoise.losses.focal import FocalLoss as FocalLoss
    from equipoise.losses.isda import ISDALoss as ISDALoss
    from equipoise.losses.lpl import LPLLoss as LPLLoss
    from equipoise.losses.margin import KPSLoss as KPSLoss
    from equipoise.losses.margin import LargeMarginLoss as LargeMarginLoss
    from equipoise.losses.margin import LDAMLoss as LDAMLoss
    from equipoise.losses.meta_enum import MetaENumLoss as MetaENumLoss
    from equipoise.losses.meta_weight_net import MetaWeightNetLoss as MetaWeightNetLoss
    from equipoise.losses.metasaug import MetaSAugLoss as MetaSAugLoss
    from equipoise.losses.nenum import NENumLoss as NENumLoss
    from equipoise.losses.poly import PolyLoss as PolyLoss
    from equipoise.losses.robust import DisturbLabelLoss as DisturbLabelLoss
    from equipoise.losses.robust import LqLoss as LqLoss

_MODULES = {
    "CenterLoss": "center",
    "ClassBalancedLoss": "class_balanced",
    "CombinedLoss": "combined",
    "CrossEntropyLoss": "cross_entropy",
    "DisturbLabelLoss": "robust",
    "FocalLoss": "focal",
    "ISDALoss": "isda",
    "KPSLoss": "margin",
    "LDAMLoss": "margin",
    "LPLLoss": "lpl",
    "LearnedLoss": "_learned",
    "LargeMarginLoss": "margin",
    "LogitAdjustedLoss": "adjustment",
    "Loss": "_base",
    "LqLoss": "robust",
    "MetaENumLoss": "meta_enum",
    "MetaSAugLoss": "metasaug",
    "MetaWeightNetLoss": "meta_weight_net",
    "NENumLoss": "nenum",
    "PolyLoss": "poly",
    "VSLoss": "adjustment",
    "WeightedCrossEntropyLoss": "cross_entropy",
}

__all__ = ["available_losses", "functional", "get_loss", *_MODULES]


def available_losses() -> dict[str, type[Loss]]:
    """Every loss by its name: the class's name without ``Loss``, in lower case. Found, not listed.

    Returns
    -------
    dict of str to type
        The classes, by name, sorted.

    Examples
    --------
    >>> sorted(available_losses())[:3]
    ['center', 'classbalanced', 'combined']
    """
    return dict(_found())


@functools.cache
def _found() -> dict[str, type[Loss]]:
    from equipoise.losses._base import Loss

    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    found, waiting = {}, list(Loss.__subclasses__())
    while waiting:
        loss = waiting.pop()
        waiting += loss.__subclasses__()
        if loss.__module__.startswith(f"{__name__}.") and not loss.__name__.startswith("_"):
            found[_key(loss.__name__.removesuffix("Loss"))] = loss
    return dict(sorted(found.items()))


def get_loss(name: str, class_counts: npt.ArrayLike | None = None, **params: Any) -> Loss:
    """A loss by name: ``"nenum"``, ``"class_balanced"``, ``"ce"``; case, ``_`` and ``-`` do not matter.

    Parameters
    ----------
    name : str
        A loss's name or one of its aliases.
    class_counts : array of shape (C,), optional
        Training samples of each class; losses with a count-based part need them.
    **params : Any
        Parameters of the loss.

    Returns
    -------
    Loss
        The loss.

    Raises
    ------
    ValueError
        If there is no loss of that name.

    Examples
    --------
    >>> get_loss("logit_adjusted", class_counts=[90, 10], tau=0.5)
    LogitAdjustedLoss(tau=0.5, reduction='mean')
    >>> get_loss("hinge")
    Traceback (most recent call last):
    ...
    ValueError: loss must be one of 'center', 'classbalanced', ..., got 'hinge'
    """
    from equipoise._core.checks import check_choice

    losses = available_losses()
    names = {_key(alias): loss for loss in losses.values() for alias in loss.aliases} | losses
    if _key(name) not in names:
        check_choice("loss", name, losses)
    return names[_key(name)](class_counts, **params)


def _key(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def __getattr__(name: str) -> Any:
    if name == "functional":
        return importlib.import_module(f"{__name__}.functional")
    if name in _MODULES:
        return import_name(f"{__name__}.{_MODULES[name]}", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
