"""The prior ledger: what class prior a classifier was trained to, and its posteriors under another one.

A sampler, a class weight or a logit adjustment changes the prior that the posterior is trained to. The ledger
writes down that prior, so that probabilities can be given for the prior that holds (the data's, by default):
p(c|x) ∝ p_train(c|x)·π_c/π_train,c (Saerens, Latinne & Decaestecker 2002, Eq 2.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, check_choice, check_distribution


def resolve_prior(prior: Any, *, data: FloatArray, trained: FloatArray) -> FloatArray:
    """``"data"``, ``"train"`` or an array of one probability a class, as an array.

    >>> resolve_prior("data", data=np.array([0.9, 0.1]), trained=np.array([0.5, 0.5]))
    array([0.9, 0.1])
    """
    if isinstance(prior, str):
        check_choice("prior", prior, ["data", "train"])
        return data if prior == "data" else trained
    wanted = check_distribution("prior", prior)
    if len(wanted) != len(data):
        raise ValueError(f"prior must have a probability for each of {len(data)} classes, got {len(wanted)}")
    return wanted


def shift_logits(logits: npt.NDArray[np.floating], trained: FloatArray, wanted: FloatArray) -> FloatArray:
    """Add log(wanted/trained), the same rule in logits: exact where a probability would round to 0 or 1.

    A class that training gave no mass cannot be brought back: it stays at −∞.
    """
    scores = np.asarray(logits, dtype=np.float64)
    if np.array_equal(trained, wanted):
        return scores
    with np.errstate(divide="ignore"):
        shift = np.log(wanted) - np.log(np.where(trained > 0, trained, 1.0))
    return np.asarray(scores + np.where(trained > 0, shift, -np.inf))


def softmax(scores: FloatArray) -> FloatArray:
    """Rows that sum to one."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def trained_prior(
    class_mass: FloatArray, *, shares: FloatArray | None, counts: FloatArray, class_weight: Any, loss: Any
) -> FloatArray:
    """The prior that training aims at.

    Parameters
    ----------
    class_mass : array
        Sums of the sample weights in each class.
    shares : array or None
        The class shares of a sampler's epoch; None for every sample once.
    counts : array
        Samples in each class.
    class_weight : array or None
        A weight a class.
    loss : object
        Its ``implied_prior(class_prior)``, if it has one, gives what its posterior is trained to.
    """
    mass = np.asarray(class_mass, dtype=np.float64)
    if shares is not None:
        mass = shares * np.divide(mass, counts, out=np.zeros_like(mass), where=counts > 0)
    if class_weight is not None:
        mass = mass * np.asarray(class_weight, dtype=np.float64)
    if mass.sum() <= 0:
        raise ValueError(f"the weights leave no class with training mass, got {mass.tolist()}")
    prior = mass / mass.sum()
    implied = getattr(loss, "implied_prior", None)
    if callable(implied):
        prior = np.asarray(implied(prior), dtype=np.float64)
    return np.asarray(prior / prior.sum())
