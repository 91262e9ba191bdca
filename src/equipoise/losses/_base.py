"""The shell around an equation: counts as a buffer, checks, ignored rows, sample weights, reduction."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import FloatArray, check_array, check_choice
from equipoise.losses._links import Link
from equipoise.losses.functional.shared import is_soft, promote, reduce_loss

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class LossOptions(TypedDict, total=False):
    """Options that every loss takes, passed on to :class:`Loss`."""

    reduction: str
    ignore_index: int
    validate: bool
    empty_classes: str


def check_class_counts(class_counts: ArrayLike, empty_classes: str = "error") -> FloatArray:
    """Positive counts (or masses) a class; ``empty_classes="floor"`` counts an empty class as one sample."""
    counts = np.atleast_1d(check_array("class_counts", class_counts))
    check_choice("empty_classes", empty_classes, ["error", "floor"])
    if counts.ndim != 1:
        raise ValueError(f"class_counts must be a vector, got shape {counts.shape}")
    bad = counts < 0 if empty_classes == "floor" else counts <= 0
    if bad.any():
        index = int(bad.argmax())
        raise ValueError(f"class_counts must be positive, got {counts[index]:g} for class {index}")
    return np.maximum(counts, 1) if empty_classes == "floor" else counts


class Loss(nn.Module, abc.ABC):
    """A loss on raw logits (n, C, …) and integer targets (n, …).

    Parameters
    ----------
    class_counts : array of shape (C,), optional
        Training samples of each class, kept as a buffer. Losses with a count-based part need it.
    reduction : {"mean", "sum", "none"}
        The mean divides by the sum of the sample weights.
    ignore_index : int
        Targets with this value take no part.
    validate : bool
        Check targets and logits and honor ``ignore_index``. That looks at values, which ``vmap`` and a
        full-graph ``torch.compile`` do not allow: switch it off there.
    empty_classes : {"error", "floor"}
        What to do with a count of zero: refuse it, or take it as one sample.
    """

    requires: ClassVar[frozenset[str]] = frozenset()
    aliases: ClassVar[tuple[str, ...]] = ()
    needs_counts: ClassVar[bool] = False
    soft_targets: ClassVar[bool] = False
    rowwise: ClassVar[frozenset[str]] = frozenset()  # hyper-parameters that may be one value a row
    class_counts: Tensor | None

    def __init__(
        self,
        class_counts: ArrayLike | None = None,
        *,
        reduction: str = "mean",
        ignore_index: int = -100,
        validate: bool = True,
        empty_classes: str = "error",
    ) -> None:
        super().__init__()
        self.reduction = check_choice("reduction", reduction, ["mean", "sum", "none"])
        self.ignore_index = int(ignore_index)
        self.validate = bool(validate)
        self.gathers = True  # a second pass over the same batch (SAM) switches it off
        if class_counts is None:
            if self.needs_counts:
                raise ValueError(f"{type(self).__name__} needs class_counts, got None")
            self.register_buffer("class_counts", None)
        else:
            counts = check_class_counts(class_counts, empty_classes)
            self.register_buffer("class_counts", torch.as_tensor(counts, dtype=torch.float64))

    @abc.abstractmethod
    def per_sample(self, logits: Tensor, target: Tensor, **needs: Tensor) -> Tensor:
        """The loss of each row of ``logits`` (n, C), for targets that were checked."""

    def forward(
        self, input: Tensor, target: Tensor, *, sample_weight: Tensor | None = None, **needs: Tensor
    ) -> Tensor:
        self._check_needs(needs)
        with torch.autocast(input.device.type, enabled=False):
            logits, flat, weight, shape = _flatten(promote(input), target, sample_weight)
            if not self.validate:
                return reduce_loss(self.per_sample(logits, flat, **needs), self.reduction, weight).reshape(
                    shape if self.reduction == "none" else ()
                )
            self._check_shapes(logits, flat)
            kept = self._kept(flat)
            if kept is not None:
                logits, flat = logits[kept], flat[kept]
                weight = None if weight is None else weight[kept]
                needs = {name: v if name == "head_weight" else v[kept] for name, v in needs.items()}
            self._check_targets(flat, logits.shape[-1])
            loss = self.per_sample(logits, flat, **needs)
            self._check_result(loss, logits)
            loss = reduce_loss(loss, self.reduction, weight)
            if self.reduction != "none":
                return loss
            if kept is not None:
                loss = loss.new_zeros(kept.shape).masked_scatter(kept, loss)
            return loss.reshape(shape)

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        """The prior of the posterior that minimizing this loss trains: the data's own unless weights shift
        it.
        """
        return np.asarray(class_prior, dtype=np.float64)

    def link(self) -> Link | None:
        """The exact way from the minimizer's logits to probabilities under :meth:`implied_prior`.

        None where there is no exact one; the softmax of the logits then is the best answer known.
        """
        return None

    def set_rows(self, **values: Tensor) -> None:
        """Give hyper-parameters of ``rowwise`` one value a row of the batches that follow."""
        for name, value in values.items():
            setattr(self, name, value.reshape(-1, 1))

    @property
    def gathering(self) -> bool:
        """Whether this call's batch may enter running statistics."""
        return self.training and self.gathers

    def extra_repr(self) -> str:
        return f"reduction={self.reduction!r}"

    def _check_needs(self, needs: dict[str, Any]) -> None:
        missing = sorted(name for name in self.requires if needs.get(name) is None)
        if missing:
            raise TypeError(
                f"{type(self).__name__} needs the keyword {', '.join(missing)}: see its `requires`"
            )
        unknown = sorted(set(needs) - self.requires)
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no keyword {', '.join(unknown)}")

    def _check_shapes(self, logits: Tensor, target: Tensor) -> None:
        if is_soft(target):
            if not self.soft_targets:
                raise TypeError(f"{type(self).__name__} takes class indices, got {target.dtype} targets")
            if target.shape != logits.shape:
                shapes = f"{tuple(logits.shape)}, got {tuple(target.shape)}"
                raise ValueError(f"soft targets must have the logits' shape {shapes}")
        elif target.shape[0] != logits.shape[0]:
            rows = f"{target.shape[0]} and {logits.shape[0]}"
            raise ValueError(f"target must have as many rows as input, got {rows}")
        counts, n_classes = self.class_counts, logits.shape[-1]
        if counts is not None and counts.numel() != n_classes:
            raise ValueError(f"class_counts has {counts.numel()} classes, but input has {n_classes} columns")

    def _kept(self, target: Tensor) -> Tensor | None:
        if is_soft(target):
            return None
        kept = target != self.ignore_index
        return None if bool(kept.all()) else kept

    def _check_targets(self, target: Tensor, n_classes: int) -> None:
        if is_soft(target) or target.numel() == 0:
            return
        low, high = (int(v) for v in torch.aminmax(target))
        if low < 0 or high >= n_classes:
            raise ValueError(f"target must lie in [0, {n_classes}), got {low if low < 0 else high}")

    def _check_result(self, loss: Tensor, logits: Tensor) -> None:
        """A NaN among the logits shows in its row's loss, so the search through all logits can wait for
        it.
        """
        if bool(torch.isfinite(loss).all()):
            return
        odd = (~torch.isfinite(logits)).nonzero()
        if odd.numel():
            row, column = (int(i) for i in odd[0])
            raise ValueError(f"input must be finite, got {logits[row, column].item()} in row {row}")


def _flatten(
    input: Tensor, target: Tensor, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, torch.Size]:
    """Bring (C,) and (n, C, d1, …) to (n, C); also the shape of one loss a sample."""
    if input.ndim == 0:
        raise ValueError("input must have a class axis, got a scalar")
    axis = 0 if input.ndim == 1 else 1
    logits = input.movedim(axis, -1)
    shape = logits.shape[:-1]
    soft = is_soft(target)
    flat = target.movedim(axis, -1).reshape(-1, input.shape[axis]) if soft else target.reshape(-1)
    if sample_weight is not None:
        sample_weight = sample_weight.reshape(sample_weight.shape + (1,) * (len(shape) - sample_weight.ndim))
        sample_weight = sample_weight.expand(shape).reshape(-1)
    return logits.reshape(-1, input.shape[axis]), flat, sample_weight, shape
