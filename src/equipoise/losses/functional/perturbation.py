"""Losses that perturb logits: −log softmax_y of logits that were scaled, shifted or both."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise._core.checks import check_type
from equipoise.losses.functional.scatter import class_spread
from equipoise.losses.functional.shared import (
    cast,
    class_rows,
    cross_entropy_of,
    promote,
    reduce_loss,
    shift_true,
    shift_true_,
    true_class,
)
from equipoise.losses.functional.weighting import class_balanced_loss


def logit_adjusted_loss(
    input: Tensor, target: Tensor, log_prior: Tensor, *, tau: float | Tensor = 1.0, reduction: str = "mean"
) -> Tensor:
    """Cross-entropy of z_c + τ log π_c (Menon et al. 2021, with the sign of that paper).

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor
        Classes of shape (n,), or soft targets of shape (n, C).
    log_prior : Tensor of shape (C,)
        log π, the logarithm of the class shares.
    tau : float or Tensor
        τ, the strength of the adjustment; a tensor of shape (n, 1) gives one value per row.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    References
    ----------
    Menon et al.: Long-tail learning via logit adjustment, ICLR 2021, Eq 10.

    Examples
    --------
    >>> z, y, prior = torch.tensor([[1.0, 0.0]]), torch.tensor([0]), torch.tensor([0.9, 0.1])
    >>> torch.isclose(logit_adjusted_loss(z, y, prior.log(), tau=0.0), F.cross_entropy(z, y))
    tensor(True)
    """
    logits = promote(input)
    log_prior = cast(log_prior, logits)
    shift = torch.add(logits, log_prior, alpha=tau) if isinstance(tau, float) else logits + tau * log_prior
    return cross_entropy_of(shift, target, reduction)


def vs_loss(
    input: Tensor,
    target: Tensor,
    log_prior: Tensor,
    *,
    gamma: float | Tensor = 0.2,
    tau: float | Tensor = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """Vector-scaling loss: cross-entropy of Δ_c z_c + τ log π_c, Δ_c = (n_c/n_max)^γ (Kini et al. 2021).

    Lieberman et al., Eqs 3, 21 and 22. γ = τ = 0 is cross-entropy; γ = 0 is logit adjustment.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor
        Classes of shape (n,), or soft targets of shape (n, C).
    log_prior : Tensor of shape (C,)
        log π, the logarithm of the class shares.
    gamma : float or Tensor
        γ, the exponent of the scales; a tensor of shape (n, 1) gives one value per row.
    tau : float or Tensor
        τ, the strength of the adjustment; a tensor of shape (n, 1) gives one value per row.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y, prior = torch.tensor([[1.0, 0.0]]), torch.tensor([0]), torch.tensor([0.9, 0.1])
    >>> torch.isclose(vs_loss(z, y, prior.log(), gamma=0.0, tau=0.0), F.cross_entropy(z, y))
    tensor(True)
    """
    logits = promote(input)
    return affine_loss(logits, target, *vs_terms(cast(log_prior, logits), gamma, tau), reduction=reduction)


def vs_terms(log_prior: Tensor, gamma: float | Tensor, tau: float | Tensor) -> tuple[Tensor, Tensor]:
    """Δ and τ log π, by which :func:`vs_loss` scales and shifts the logits."""
    return torch.exp(gamma * (log_prior - log_prior.max())), tau * log_prior


def affine_loss(logits: Tensor, target: Tensor, scale: Tensor, shift: Tensor, *, reduction: str) -> Tensor:
    """Cross-entropy of logits that were scaled and shifted by class."""
    return cross_entropy_of(torch.addcmul(shift, logits, scale), target, reduction)


def binary_vs_loss(
    input: Tensor,
    target: Tensor,
    imbalance_ratio: float | Tensor,
    *,
    gamma: float | Tensor = 0.2,
    tau: float | Tensor = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """The binary form log(1 + e^{±η}), η = z₊/β^γ − (z₋ + τ log β) (Lieberman et al., Eq 4).

    ``input`` holds (z₋, z₊) in its last axis and ``imbalance_ratio`` is β = n₋/n₊.

    Parameters
    ----------
    input : Tensor of shape (…, 2)
        (z₋, z₊), raw logits.
    target : Tensor of shape (…,)
        0, 1, or probabilities of the positive class.
    imbalance_ratio : float or Tensor
        β = n₋/n₊.
    gamma : float or Tensor
        γ, the exponent of the scales; a tensor of shape (n, 1) gives one value per row.
    tau : float or Tensor
        τ, the strength of the adjustment; a tensor of shape (n, 1) gives one value per row.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y, prior = torch.tensor([[0.3, 1.0]]), torch.tensor([1]), torch.tensor([0.9, 0.1])
    >>> torch.isclose(binary_vs_loss(z, y, 9.0), vs_loss(z, y, prior.log()))
    tensor(True)
    """
    logits = promote(input)
    ratio = torch.as_tensor(imbalance_ratio, dtype=logits.dtype, device=logits.device)
    eta = logits[..., 1] / ratio**gamma - (logits[..., 0] + tau * torch.log(ratio))
    share = target.to(logits.dtype)
    return reduce_loss(share * F.softplus(-eta) + (1 - share) * F.softplus(eta), reduction)


def ldam_loss(
    input: Tensor, target: Tensor, margins: Tensor, *, scale: float = 30.0, reduction: str = "mean"
) -> Tensor:
    """Cross-entropy of z_c − s·m_y·[c = y] with margins m ∝ n^(−1/4) (Cao et al. 2019).

    The logits are z = s·cos, from a head that normalizes features and weights
    (:class:`equipoise.networks.CosineLinear`), so that this is s·(cos_c − m_y·[c = y]).

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    margins : Tensor of shape (C,)
        m, one a class.
    scale : float
        s.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(ldam_loss(z, y, torch.zeros(2)), F.cross_entropy(z, y))
    tensor(True)
    """
    return margin_loss(promote(input), target, margins * -scale, reduction=reduction)


def margin_loss(
    logits: Tensor, target: Tensor, shift: Tensor, class_scales: Tensor | None = None, *, reduction: str
) -> Tensor:
    """Cross-entropy of logits that were scaled by class, if asked for, and shifted in the true class."""
    if class_scales is None:
        moved = shift_true(logits, target, shift)
    else:
        moved = shift_true_(logits * cast(class_scales, logits), target, shift)
    return cross_entropy_of(moved, target, reduction)


def kps_loss(
    input: Tensor,
    target: Tensor,
    class_scales: Tensor,
    margins: Tensor,
    *,
    scale: float = 15.0,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of k_c z_c − s·m_y·[c = y], key-point-sensitive scales and margins (Li, Cheung & Hu
    2023).

    As for :func:`ldam_loss`, the logits are z = s·cos.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    class_scales : Tensor of shape (C,)
        k, one a class.
    margins : Tensor of shape (C,)
        m, one a class.
    scale : float
        s.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(kps_loss(z, y, torch.ones(2), torch.zeros(2)), F.cross_entropy(z, y))
    tensor(True)
    """
    return margin_loss(promote(input), target, margins * -scale, class_scales, reduction=reduction)


def _class_gradient(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Unit vectors along each class's summed gradient softmax − onehot, and the row each sample finds its
    own in.

    The table never exceeds the batch: see :func:`~equipoise.losses.functional.shared.class_rows`.
    """
    row, owner = class_rows(target, logits.shape[1])
    gradient = shift_true_(F.softmax(logits, dim=-1), target, logits.new_full(logits.shape[1:], -1.0))
    table = logits.new_zeros(owner.shape[0], logits.shape[1]).index_add_(0, row, gradient)
    return F.normalize(table, dim=-1), row


def _class_step(logits: Tensor, target: Tensor, length: Tensor) -> Tensor:
    direction, row = _class_gradient(logits, target)
    return direction.index_select(0, row).mul_(length.unsqueeze(-1))


@torch.no_grad()
def lpl_perturbation(
    logits: Tensor, target: Tensor, bounds: Tensor, step_size: float | None = None, steps: int | None = None
) -> Tensor:
    """The perturbation δ_y of each sample's logits, one a class, of length at most |bound_y|.

    It climbs the class's mean loss if the bound is positive (tail: positive augmentation) and descends if negative
    (head). One normalized step of the bound's length, or, with ``step_size`` α, steps of length α until the bound,
    each along the gradient at the perturbed logits. ``steps`` is how many the largest bound needs; without it the
    bounds are looked at, which a full-graph ``torch.compile`` does not allow.

    Parameters
    ----------
    logits : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    bounds : Tensor of shape (C,)
        The length of each class's perturbation, negative for classes to hold back.
    step_size : float, optional
        α, the length of a step; by default one step goes the whole way.
    steps : int, optional
        The number of steps that the largest bound needs; by default it is computed.

    Returns
    -------
    Tensor of shape (n, C)
        The perturbation of each sample.

    Examples
    --------
    >>> shift = lpl_perturbation(torch.zeros(1, 2), torch.tensor([1]), torch.tensor([-1.0, 2.0]))
    >>> torch.isclose(shift.norm(), torch.tensor(2.0))
    tensor(True)
    """
    for name, value in {"logits": logits, "target": target, "bounds": bounds}.items():
        check_type(name, value, Tensor)
    bound = bounds.to(logits.dtype)[target]
    if step_size is None:
        return _class_step(logits, target, bound)
    if steps is None:
        steps = math.ceil(float(bounds.abs().max()) / step_size)
    shift = torch.zeros_like(logits)
    for step in range(steps):
        length = (bound.abs() - step * step_size).clamp(0, step_size) * bound.sign()
        shift = shift + _class_step(logits + shift, target, length)
    return shift


def prediction_bounds(logits: Tensor, target: Tensor, bound: float, spread: float) -> Tensor:
    """Bounds for data whose classes are equally frequent: what is predicted badly is augmented (Li et al. 2022).

    With p̄_c the batch's mean of p(c|x) over class c and τ the mean of these, the bound is ε + Δε|τ − p̄_c| over the
    largest of these on the same side, positive where p̄_c < τ and negative where p̄_c > τ; 0 for an absent class.

    Parameters
    ----------
    logits : Tensor of shape (n, C)
        The logits of a batch.
    target : Tensor of int of shape (n,)
        The class codes.
    bound : float
        ε, the least size of a bound.
    spread : float
        Δε, by how much the largest bound exceeds it.

    Returns
    -------
    Tensor of shape (C,)
        The bound of each class.

    Examples
    --------
    >>> prediction_bounds(torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1]), bound=0.4, spread=0.1)
    tensor([-0.5000,  0.5000])
    """
    check_type("target", target, Tensor)
    p = true_class(F.softmax(check_type("logits", logits, Tensor), dim=-1), target)
    zero = torch.zeros_like(logits[0])
    count = zero.index_add(0, target, torch.ones_like(p))
    mean = zero.index_add(0, target, p) / count.clamp_min(1)
    border = mean.sum() / (count > 0).sum()
    short = torch.where(count > 0, border - mean, zero)
    largest = torch.where(short > 0, short.max(), -short.min()).clamp_min(torch.finfo(p.dtype).tiny)
    return short.sign() * (bound + spread * short.abs() / largest)


def lpl_loss(
    input: Tensor,
    target: Tensor,
    bounds: Tensor,
    *,
    step_size: float | None = None,
    steps: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of logits under a class-level perturbation (Li, Su, Wu & Zhang 2022).

    ``bounds`` (C,) is positive for classes to augment and negative for classes to hold back. The perturbation is a
    constant of the gradient; see :func:`lpl_perturbation`.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    bounds : Tensor of shape (C,)
        The length of each class's perturbation, negative for classes to hold back.
    step_size : float, optional
        α, the length of a step; by default one step goes the whole way.
    steps : int, optional
        The number of steps that the largest bound needs; by default it is computed.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(lpl_loss(z, y, torch.zeros(2)), F.cross_entropy(z, y))
    tensor(True)
    """
    logits = promote(input)
    shift = lpl_perturbation(logits.detach(), target, bounds, step_size, steps)
    return cross_entropy_of(shift.add_(logits), target, reduction)


def isda_loss(
    input: Tensor,
    target: Tensor,
    head_weight: Tensor,
    covariance: Tensor,
    *,
    strength: float = 0.5,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of z_c + ½λ (ω_c − ω_y)ᵀΣ_y(ω_c − ω_y): infinitely many feature augmentations (Wang et
    al. 2021).

    ``covariance`` is (C, d, d), or (C, d) for diagonal matrices. The gradient runs through the head's
    weights.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    head_weight : Tensor of shape (C, d)
        ω, the weights of the network's linear head.
    covariance : Tensor of shape (C, d, d) or (C, d)
        Σ of each class, full or its diagonal.
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
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(isda_loss(z, y, torch.eye(2), torch.zeros(2, 2)), F.cross_entropy(z, y))
    tensor(True)
    """
    logits = promote(input)
    quadratic, _ = class_spread(head_weight, covariance, target)
    return cross_entropy_of(logits + 0.5 * strength * quadratic, target, reduction)


def combined_loss(
    input: Tensor,
    target: Tensor,
    class_weight: Tensor,
    *,
    offset: Tensor | float,
    scatter: Tensor | float,
    tau1: float | Tensor = 1.0,
    tau2: float | Tensor = 1.0,
    reduction: str = "mean",
) -> Tensor:
    """Class weight times cross-entropy of z_c + τ₁ h(x, c) + τ₂ DS_{y,c} (Wu & Li, Eq 20).

    ``offset`` is h and ``scatter`` DS_{y,c}, numbers or (n, C): see :func:`data_scatter`. Both are taken as zero at
    the true class, as Eq 22 implies. The gradient runs through both.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    class_weight : Tensor of shape (C,)
        One weight per class.
    offset : Tensor of shape (n, C) or float
        h(x, c).
    scatter : Tensor of shape (n, C) or float
        DS_{y,c}.
    tau1 : float or Tensor
        τ₁.
    tau2 : float or Tensor
        τ₂.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(combined_loss(z, y, torch.ones(2), offset=0.0, scatter=0.0), F.cross_entropy(z, y))
    tensor(True)
    """
    logits, own = promote(input), target.unsqueeze(-1)
    if isinstance(offset, float) and isinstance(tau1, float):
        # What is added to all other logits may as well be taken from the true one.
        shift, there = tau2 * scatter, -tau1 * offset
    else:
        shift, there = tau1 * offset + tau2 * scatter, 0.0
    if not isinstance(shift, Tensor):
        shift = torch.zeros_like(logits)
    moved = logits + shift.to(logits.dtype).scatter(-1, own, there)
    return class_balanced_loss(moved, target, class_weight, reduction=reduction)


def _psi(cosine: Tensor, margin: int) -> Tensor:
    """ψ(θ) = (−1)^k cos(mθ) − 2k on kπ/m ≤ θ ≤ (k+1)π/m, monotone in θ (Liu et al. 2016, Eq 6).

    cos(mθ) is the Chebyshev polynomial T_m(cos θ), so no arccos with its infinite slope is needed.
    """
    before, chebyshev = torch.ones_like(cosine), cosine
    for _ in range(margin - 1):
        before, chebyshev = chebyshev, 2 * cosine * chebyshev - before
    k = torch.zeros_like(cosine)
    for turn in range(1, margin):
        k = k + (cosine < math.cos(turn * math.pi / margin)).to(cosine.dtype)
    return (1 - 2 * (k % 2)) * chebyshev - 2 * k


def large_margin_loss(
    input: Tensor,
    target: Tensor,
    features: Tensor,
    head_weight: Tensor,
    *,
    margin: float = 2,
    form: str = "multiplicative",
    blend: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy with the true logit ‖ω_y‖‖f‖cos θ replaced by ‖ω_y‖‖f‖ψ(θ) (Liu et al. 2016).

    ``"multiplicative"`` is that paper's ψ with a whole margin m ≥ 1; ``"additive"`` is cos θ − m. ``blend``
    λ averages ψ with cos θ in the proportion 1 : λ. A bias in the head is left as it is.

    Parameters
    ----------
    input : Tensor of shape (n, C)
        Raw logits.
    target : Tensor of shape (n,)
        The classes y.
    features : Tensor of shape (n, d)
        f, what goes into the network's linear head.
    head_weight : Tensor of shape (C, d)
        ω, the weights of the network's linear head.
    margin : float
        m.
    form : {"multiplicative", "additive"}
        The kind of ψ.
    blend : float
        λ.
    reduction : {"mean", "sum", "none"}
        How to reduce the samples' losses.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> z, y = torch.tensor([[1.0, 0.0]]), torch.tensor([0])
    >>> torch.isclose(large_margin_loss(z, y, torch.ones(1, 2), torch.eye(2), margin=1), F.cross_entropy(z, y))
    tensor(True)
    """
    logits, f, w = promote(input), promote(features), promote(head_weight)[target]
    size = f.norm(dim=-1) * w.norm(dim=-1)
    cosine = ((f * w).sum(-1) / size.clamp_min(1e-12)).clamp(-1, 1)
    psi = _psi(cosine, int(margin)) if form == "multiplicative" else cosine - margin
    change = size * (psi - cosine) / (1 + blend)
    moved = logits.scatter(-1, target.unsqueeze(-1), (true_class(logits, target) + change).unsqueeze(-1))
    return cross_entropy_of(moved, target, reduction)
