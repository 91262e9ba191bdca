"""What the equations share: precision, the true class, the reduction."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

_HALF = (torch.float16, torch.bfloat16)


def promote(input: Tensor) -> Tensor:
    """Half-precision logits as float32: exponentials and sums over classes need the digits."""
    return input.float() if input.dtype in _HALF else input


def true_class(values: Tensor, target: Tensor) -> Tensor:
    """values[..., target] along the last axis.

    >>> true_class(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1, 0]))
    tensor([2., 3.])
    """
    return values.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def is_soft(target: Tensor) -> bool:
    """Class probabilities instead of class indices."""
    return target.is_floating_point()


def negative_log_likelihood(input: Tensor, target: Tensor) -> Tensor:
    """−log p(y|x) of each sample, through torch's fused kernel."""
    return F.cross_entropy(input, target.to(input.dtype) if is_soft(target) else target, reduction="none")


def shift_true_(logits: Tensor, target: Tensor, amount: Tensor) -> Tensor:
    """Add ``amount`` to the true logit in place; ``logits`` must be a tensor that was made for this."""
    return logits.scatter_add_(-1, target.unsqueeze(-1), amount.to(logits.dtype).unsqueeze(-1))


def reduce_loss(loss: Tensor, reduction: str = "mean", sample_weight: Tensor | None = None) -> Tensor:
    """Weigh and reduce: the mean divides by the sum of the sample weights, and is 0 for an empty batch.

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
        return loss.sum() / max(loss.numel(), 1)
    total = sample_weight.sum()
    return loss.sum() / torch.where(total > 0, total, torch.ones_like(total))
