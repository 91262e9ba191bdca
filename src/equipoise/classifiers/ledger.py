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
from equipoise.losses._links import Link


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


def posterior_scores(
    logits: npt.NDArray[np.floating], link: Link | None, prior: Any, *, data: FloatArray, trained: FloatArray
) -> FloatArray:
    """Scores whose softmax is the posterior under a prior.

    The network's raw answer for ``"train"``, which is what the loss was made to decide by; else the loss's exact
    link (:meth:`equipoise.losses.Loss.link`), if it has one, moved from the prior it was trained to.
    """
    wanted = resolve_prior(prior, data=data, trained=trained)
    if isinstance(prior, str) and prior == "train":
        return np.asarray(logits, dtype=np.float64)
    return shift_logits(logits if link is None else link(logits), trained, wanted)


def softmax(scores: FloatArray) -> FloatArray:
    """Rows that sum to one."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def sampled_prior(
    class_mass: FloatArray, *, shares: FloatArray | None, counts: FloatArray, class_weight: Any
) -> FloatArray:
    """The class shares that the loss saw: sample weights, the sampler and class weights.

    Parameters
    ----------
    class_mass : array
        Sums of the sample weights in each class.
    shares : array or None
        The class shares of a sampler's epoch; None for every sample once.
    counts : array
        Samples in each class.
    class_weight : array or None
        A weight per class.
    """
    mass = np.asarray(class_mass, dtype=np.float64)
    if shares is not None:
        mass = shares * np.divide(mass, counts, out=np.zeros_like(mass), where=counts > 0)
    if class_weight is not None:
        mass = mass * np.asarray(class_weight, dtype=np.float64)
    if mass.sum() <= 0:
        raise ValueError(f"the weights leave no class with training mass, got {mass.tolist()}")
    return np.asarray(mass / mass.sum())


def implied_prior(loss: Any, sampled: FloatArray) -> FloatArray:
    """The prior that a loss trains its posterior to: its ``implied_prior`` of what it saw, if it has one."""
    implied = getattr(loss, "implied_prior", None)
    prior = np.asarray(implied(sampled) if callable(implied) else sampled, dtype=np.float64)
    return np.asarray(prior / prior.sum())
