"""Losses that weigh samples: a factor in front of −log p(y|x), or a function of p(y|x)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise._core.checks import check_type
from equipoise.losses.functional.shared import (
    cast,
    cross_entropy_of,
    is_soft,
    negative_log_likelihood,
    promote,
    reduce_loss,
    weighted_mean,
)


def cross_entropy(
    input: Tensor, target: Tensor, *, class_weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """−w_y log p(y|x). As in ``torch``, the mean of the weighted loss divides by the sum of the weights.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor
        Classes of shape (n,), or soft targets of shape (n, C).
    class_weight : Tensor of shape (C,), optional
        w, one weight per class.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    logits = promote(input)
    if class_weight is not None:
        class_weight = class_weight.to(logits.dtype)
    target = target.to(logits.dtype) if is_soft(target) else target
    return F.cross_entropy(logits, target, weight=class_weight, reduction=reduction)


def _focus(log_p: Tensor, phi: float | Tensor) -> Tensor:
    if isinstance(phi, float) and phi == 2:
        doubt = torch.expm1(log_p)
        return doubt * doubt  # whose gradient is cheaper than that of a power
    # The floor keeps the slope of (1−p)^φ finite where p rounds to 1 and φ < 1; the loss is 0 there anyway.
    return (-torch.expm1(log_p)).clamp_min(torch.finfo(log_p.dtype).tiny) ** phi


def focal_loss(
    input: Tensor,
    target: Tensor,
    *,
    phi: float | Tensor = 2.0,
    alpha: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """−α_y (1 − p_y)^φ log p_y with the softmax p (Lin et al. 2017; Lieberman et al., Eq 2).

    ``alpha`` holds one weight per class. A soft target t gives Σ_c t_c·ℓ(c).

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor
        Classes of shape (n,), or soft targets of shape (n, C).
    phi : float or Tensor
        φ, the focus; 0 is cross-entropy.
    alpha : Tensor of shape (C,), optional
        α, one weight per class.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(focal_loss(z, y, phi=0.0), F.cross_entropy(z, y))
    tensor(True)
    """
    logits = promote(input)
    if is_soft(target):
        log_p = F.log_softmax(logits, dim=-1)
        each = -_focus(log_p, phi) * log_p * target.to(log_p.dtype)
        weighted = each if alpha is None else each * alpha.to(each.dtype)
        return reduce_loss(weighted.sum(-1), reduction)
    surprise = negative_log_likelihood(logits, target)
    weight = _focus(-surprise, phi)
    if alpha is not None:
        weight = weight * cast(alpha, weight).index_select(0, target)
    return weighted_mean(weight, surprise, reduction)


def sigmoid_focal_loss(
    input: Tensor,
    target: Tensor,
    *,
    phi: float | Tensor = 2.0,
    alpha: float | Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Binary focal loss of one logit per sample: α_+ = α, α_− = 1 − α (Lieberman et al., Eq 2).

    Both p and 1 − p come from ``logsigmoid``, so the hardest positive (logit −10⁴) costs 10⁴, not 0.
    ``target`` holds 0/1 or probabilities of the positive class.

    Parameters
    ----------
    input : Tensor
        One raw logit per sample.
    target : Tensor
        0, 1, or probabilities of the positive class, in the shape of ``input``.
    phi : float or Tensor
        φ, the focus; 0 is cross-entropy.
    alpha : float or Tensor, optional
        α, the weight of the positive class; by default neither class is weighted.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> sigmoid_focal_loss(torch.tensor([-1e4]), torch.tensor([1]))
    tensor(10000.)
    """
    logits = promote(input)
    share = check_type("target", target, Tensor).to(logits.dtype)
    log_p, log_q = F.logsigmoid(logits), F.logsigmoid(-logits)
    positive = -torch.exp(phi * log_q) * log_p
    negative = -torch.exp(phi * log_p) * log_q
    if alpha is not None:
        positive, negative = alpha * positive, (1 - alpha) * negative
    return reduce_loss(share * positive + (1 - share) * negative, reduction)


def class_balanced_loss(
    input: Tensor,
    target: Tensor,
    class_weight: Tensor,
    *,
    phi: float | Tensor = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """(1−β)/(1−β^n_y) in front of cross-entropy (φ = 0) or of the focal loss (Cui et al. 2019; Wu & Li, Eq
    1).

    ``class_weight`` comes from :func:`equipoise.theory.effective_number.effective_number_weights`. The mean
    divides by the number of samples, not by the sum of the weights: a batch of tail samples keeps its weight.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor
        Classes of shape (n,), or soft targets of shape (n, C).
    class_weight : Tensor of shape (C,)
        One weight per class.
    phi : float or Tensor
        φ, the focus; 0 is cross-entropy.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(class_balanced_loss(z, y, torch.ones(2)), F.cross_entropy(z, y))
    tensor(True)
    """
    logits = promote(input)
    if isinstance(phi, (int, float)) and phi == 0:
        if reduction == "mean":
            class_weight, reduction = class_weight / max(logits.shape[0], 1), "sum"
        return cross_entropy_of(logits, target, reduction, cast(class_weight, logits))
    return focal_loss(logits, target, phi=phi, alpha=class_weight, reduction=reduction)


def lq_loss(input: Tensor, target: Tensor, *, q: float = 0.4, reduction: str = "mean") -> Tensor:
    """(1 − p_y^q)/q: cross-entropy for q → 0, the mean absolute error at q = 1 (Zhang & Sabuncu 2018).

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor
        Classes of shape (n,), or soft targets of shape (n, C).
    q : float
        q in [0, 1].
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> lq_loss(torch.zeros(1, 4), torch.tensor([0]), q=1.0)
    tensor(0.7500)
    """
    logits = promote(input)
    if q == 0:
        return reduce_loss(negative_log_likelihood(logits, target), reduction)
    if is_soft(target):
        each = -torch.expm1(q * F.log_softmax(logits, dim=-1)) / q
        return reduce_loss((each * target.to(each.dtype)).sum(-1), reduction)
    return reduce_loss(-torch.expm1(-q * negative_log_likelihood(logits, target)) / q, reduction)


def disturb_target(target: Tensor, n_classes: int, uniform: Tensor, draw: Tensor, *, rate: float) -> Tensor:
    """With probability ``rate`` a label drawn uniformly from all classes (Xie et al. 2016).

    ``uniform`` and ``draw`` are uniform numbers in [0, 1): whether to disturb, and to which class.

    Parameters
    ----------
    target : Tensor of shape (n,)
        The classes.
    n_classes : int
        The number of classes.
    uniform : Tensor of shape (n,)
        Decides whether a label is redrawn.
    draw : Tensor of shape (n,)
        Decides which class it becomes.
    rate : float
        The probability that a label is redrawn.

    Returns
    -------
    Tensor of shape (n,)
        The classes, some of them redrawn.

    Examples
    --------
    >>> disturb_target(torch.tensor([0, 0]), 4, torch.zeros(2), torch.tensor([0.0, 0.8]), rate=0.5)
    tensor([0, 3])
    """
    for name, value in {"target": target, "uniform": uniform, "draw": draw}.items():
        check_type(name, value, Tensor)
    other = (draw * n_classes).long().clamp_max(n_classes - 1)
    return torch.where(uniform < rate, other, target)


def center_loss(
    input: Tensor,
    target: Tensor,
    features: Tensor,
    centers: Tensor,
    *,
    strength: float = 0.01,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy + λ‖f(x) − c_y‖² (Wen et al. 2016; Wu & Li §5.2).

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    features : Tensor of shape (n, d)
        f(x), the network's features.
    centers : Tensor of shape (C, d)
        The center c of each class.
    strength : float
        λ.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> center_loss(torch.zeros(1, 2), torch.tensor([1]), torch.ones(1, 2), torch.zeros(2, 2), strength=1.0)
    tensor(2.6931)
    """
    distance = (promote(features) - centers.to(promote(features).dtype)[target]).square().sum(-1)
    return reduce_loss(negative_log_likelihood(promote(input), target) + strength * distance, reduction)


def nenum_offset(
    surprise: Tensor,
    mean_probability: Tensor,
    *,
    offset: str = "robust",
    r: float = 2.0,
    threshold: float = 0.2,
    floor: float = 1e-4,
) -> Tensor:
    """g(x, y): how much a sample is offset by other classes, from surprise −log p(y|x).

    ``"robust"`` is Eq 19: (1 − p)^r if p ≥ threshold, else (1 − p̄(y))^r with the class mean, as such a
    sample may be mislabeled. ``"focal"`` is (1 − p)^r (Eq 28, NENum−), ``"none"`` is 1 (Eq 29, NENum−−), and
    ``"inverse"`` the literal 1/p of Eq 17, with p no smaller than ``floor``.

    Parameters
    ----------
    surprise : Tensor of shape (n,)
        −log p(y|x).
    mean_probability : Tensor of shape (n,)
        p̄(y) of each sample's class.
    offset : {"robust", "focal", "none", "inverse"}
        The form of g.
    r : float
        The exponent of g.
    threshold : float
        The probability below which a sample counts as doubtful.
    floor : float
        The least p of ``"inverse"``.

    Returns
    -------
    Tensor of shape (n,)
        g, a constant of the gradient.

    Examples
    --------
    >>> p = torch.tensor([0.9, 0.1])
    >>> nenum_offset(-p.log(), torch.tensor([0.5, 0.5]))
    tensor([0.0100, 0.2500])
    """
    surprise = check_type("surprise", surprise, Tensor).detach()
    if offset == "none":
        return torch.ones_like(surprise)
    if offset == "inverse":
        return torch.exp(-surprise).clamp_min(floor).reciprocal()
    doubt = torch.expm1(surprise.neg())  # p − 1
    if offset == "robust":
        doubt = torch.where(doubt >= threshold - 1, doubt, cast(mean_probability, doubt) - 1)
    elif offset != "focal":
        raise ValueError(f"offset must be one of 'robust', 'focal', 'none', 'inverse', got {offset!r}")
    return doubt.square() if r == 2 else doubt.neg() ** r


def nenum_loss(
    input: Tensor,
    target: Tensor,
    class_factor: Tensor,
    mean_probability: Tensor,
    *,
    offset: str = "robust",
    r: float = 2.0,
    threshold: float = 0.2,
    floor: float = 1e-4,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy with the sample weights DS̄_y·(1−β)/(1−β^n_y)·g(x, y) (Wu & Li, Eqs 18 and 19).

    ``class_factor`` is the product of the first two, normalized to sum to the number of classes, and
    ``mean_probability`` the class mean p̄(y), both of shape (C,). No gradient runs through the weights.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    class_factor : Tensor of shape (C,)
        The class part of the weights.
    mean_probability : Tensor of shape (C,)
        p̄(y), the mean probability of the true class over the samples of each class.
    offset : {"robust", "focal", "none", "inverse"}
        The form of g.
    r : float
        The exponent of g.
    threshold : float
        The probability below which a sample counts as doubtful.
    floor : float
        The least p of ``"inverse"``.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(nenum_loss(z, y, torch.ones(2), torch.ones(2), offset="none"), F.cross_entropy(z, y))
    tensor(True)
    """
    surprise = negative_log_likelihood(promote(input), target)
    weight = class_factor.to(surprise.dtype)[target] * nenum_offset(
        surprise, mean_probability[target], offset=offset, r=r, threshold=threshold, floor=floor
    )
    return weighted_mean(weight, surprise, reduction)
