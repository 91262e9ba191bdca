"""Losses by name: found among the modules of this room, not listed."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Any

import numpy.typing as npt

from equipoise import losses
from equipoise._core.checks import check_choice, check_type
from equipoise.losses._base import Loss


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
    for module in pkgutil.iter_modules(losses.__path__):
        importlib.import_module(f"{losses.__name__}.{module.name}")
    found, waiting = {}, list(Loss.__subclasses__())
    while waiting:
        loss = waiting.pop()
        waiting += loss.__subclasses__()
        if loss.__module__.startswith(f"{losses.__name__}.") and not loss.__name__.startswith("_"):
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
    known = available_losses()
    names = {_key(alias): loss for loss in known.values() for alias in loss.aliases} | known
    if _key(name) not in names:
        check_choice("loss", name, known)
    return names[_key(name)](class_counts, **params)


def _key(name: str) -> str:
    return check_type("loss", name, str).lower().replace("_", "").replace("-", "")
