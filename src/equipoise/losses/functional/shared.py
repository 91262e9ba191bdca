"""What the equations share: precision, the true class, the reduction."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise._core.checks import check_type

_HALF = (torch.float16, torch.bfloat16)
_NO_CLASS = -(1 << 62)  # an ignore_index that no target has


def promote(input: Tensor) -> Tensor:
    """Half-precision logits as float32: exponentials and sums over classes need the digits.

    Parameters
    ----------
    input : Tensor
        Logits, features or weights.

    Returns
    -------
    Tensor
        The same values; a tensor that is not of half precision is returned as it is.
    """
    check_type("input", input, Tensor)
    return input.float() if input.dtype in _HALF else input


def cast(values: Tensor, like: Tensor) -> Tensor:
    """Constants in the precision of other values. To ask first is quicker than torch's conversion to the same.

    >>> cast(torch.ones(2), torch.zeros(2, dtype=torch.float64)).dtype
    torch.float64
    """
    return values if values.dtype == like.dtype else values.to(like.dtype)


def true_class(values: Tensor, target: Tensor) -> Tensor:
    """values[..., target] along the last axis.

    Parameters
    ----------
    values : Tensor of shape (…, C)
        One value per class.
    target : Tensor of shape (…,)
        The classes.

    Returns
    -------
    Tensor of shape (…,)
        The value of each target's class.

    Examples
    --------
    >>> true_class(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0]))
    tensor([2., 3.])
    """
    return values.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def is_soft(target: Tensor) -> bool:
    """Class probabilities instead of class indices."""
    return check_type("target", target, Tensor).is_floating_point()


def negative_log_likelihood(input: Tensor, target: Tensor) -> Tensor:
    """−log p(y|x) of each sample, through torch's fused kernel."""
    return cross_entropy_of(input, target, "none")


def cross_entropy_of(
    logits: Tensor, target: Tensor, reduction: str, class_weight: Tensor | None = None
) -> Tensor:
    """Cross-entropy of logits that a loss has moved, reduced in torch's fused kernel.

    An empty batch has 0, where torch's mean is NaN. On a CPU the kernel raises an IndexError for a target that
    is no class, −100 like any other.
    """
    if is_soft(target):
        target = target.to(logits.dtype)
    if not logits.shape[0] and reduction == "mean":
        reduction = "sum"
    return F.cross_entropy(logits, target, class_weight, ignore_index=_NO_CLASS, reduction=reduction)


def weighted_mean(weight: Tensor, loss: Tensor, reduction: str) -> Tensor:
    """The weights times the losses, reduced.

    A mean is one product: each operation that a gradient runs through costs as much as a small loss's own.

    >>> weighted_mean(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0]), "mean")
    tensor(4.)
    """
    if reduction == "mean" and loss.ndim == 1 and loss.shape[0]:
        return torch.dot(weight / loss.shape[0], loss)
    return reduce_loss(weight * loss, reduction)


def shift_true(logits: Tensor, target: Tensor, shift: Tensor) -> Tensor:
    """Add the shift of its class to each true logit.

    The shifts are one a class, or a diagonal matrix of them: with few classes it is quicker to add its rows.

    >>> shift_true(torch.zeros(2, 2), torch.tensor([1, 1]), torch.tensor([1.0, 5.0]))
    tensor([[0., 5.],
            [0., 5.]])
    """
    mine = cast(shift, logits).index_select(0, target)
    if mine.ndim == logits.ndim:
        return logits + mine
    return logits.scatter_add(-1, target.unsqueeze(-1), mine.unsqueeze(-1))


def shift_true_(logits: Tensor, target: Tensor, shift: Tensor) -> Tensor:
    """The same in place; ``logits`` must be a tensor that was made for this."""
    mine = cast(shift, logits).index_select(0, target)
    if mine.ndim == logits.ndim:
        return logits.add_(mine)
    return logits.scatter_add_(-1, target.unsqueeze(-1), mine.unsqueeze(-1))


def class_rows(target: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Where each sample finds its class in a table of at most as many rows as there are samples.

    Rows are classes if there are no more of them than samples; otherwise they are samples, and a class has
    the row of its first one. Also returns the class of each row.

    >>> class_rows(torch.tensor([7, 3, 7]), 10)
    (tensor([0, 1, 0]), tensor([7, 3, 7]))
    """
    n = target.shape[0]
    if n_classes <= n:
        return target, torch.arange(n_classes, device=target.device)
    order = torch.arange(n, device=target.device)
    first = torch.full((n_classes,), n, device=target.device).scatter_reduce(0, target, order, "amin")
    return first[target], target


def reduce_loss(loss: Tensor, reduction: str = "mean", sample_weight: Tensor | None = None) -> Tensor:
    """Weigh and reduce: the mean divides by the sum of the sample weights, and is 0 for an empty batch.

    Parameters
    ----------
    loss : Tensor of shape (n,)
        The samples' losses.
    reduction : {"mean", "sum", "none"}
        How to reduce them.
    sample_weight : Tensor of shape (n,), optional
        The weight of each sample.

    Returns
    -------
    Tensor
        The loss: a scalar, or one value per sample for ``"none"``.

    Examples
    --------
    >>> reduce_loss(torch.tensor([1.0, 3.0]), "mean", torch.tensor([3.0, 1.0]))
    tensor(1.5000)
    """
    if sample_weight is not None:
        sample_weight = sample_weight.to(loss.dtype)
        loss = loss * sample_weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction != "mean":
        raise ValueError(f"reduction must be one of 'mean', 'sum', 'none', got {reduction!r}")
    if sample_weight is None:
        return loss.mean() if loss.numel() else loss.sum()
    total = sample_weight.sum()
    return loss.sum() / torch.where(total > 0, total, torch.ones_like(total))
