"""Running means and covariances of each class's features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from equipoise._core.checks import check_choice
from equipoise.losses._statistics import LazyBuffers
from equipoise.losses.functional.shared import class_rows

_FULL_UP_TO = 1 << 22
"""Numbers that full covariances, and the products with them, may take before ``"auto"`` keeps diagonals."""

_ONE_PRODUCT = 64  # classes up to which one call gives all second moments


def check_covariance(covariance: str) -> str:
    return check_choice("covariance", covariance, ["auto", "full", "diagonal"])


class RunningCovariance(nn.Module):
    """Class means and covariances of features, gathered batch by batch (Chan, Golub & LeVeque 1983).

    All shapes are static, so that it can be compiled.

    Parameters
    ----------
    n_classes, n_features : int
    covariance : {"full", "diagonal", "auto"}
        C·d² numbers or C·d; ``"auto"`` takes full matrices while they are small.
    memory : Tensor of shape (C,), optional
        The most samples that a class remembers, so that what an old network gave fades; all by default.
    like : Tensor, optional
        Whose device and type the statistics have.
    """

    memory: Tensor | None
    count: Tensor
    mean: Tensor
    sigma: Tensor

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        covariance: str = "full",
        memory: Tensor | None = None,
        like: Tensor | None = None,
    ) -> None:
        super().__init__()
        if check_covariance(covariance) == "auto":
            fits = n_classes * n_features * max(n_classes, n_features) <= _FULL_UP_TO
            covariance = "full" if fits else "diagonal"
        shape = (n_classes, n_features) + ((n_features,) if covariance == "full" else ())
        like = torch.zeros(()) if like is None else like
        memory = None if memory is None else memory.to(like.device)
        self.register_buffer("memory", memory, persistent=False)
        self.register_buffer("count", like.new_zeros(n_classes, dtype=torch.int64))
        self.register_buffer("mean", like.new_zeros(n_classes, n_features))
        self.register_buffer("sigma", like.new_zeros(shape))

    def update(self, features: Tensor, target: Tensor) -> None:
        """Merge a batch."""
        with torch.no_grad():
            _merge_batch_(self.count, self.mean, self.sigma, features, target, self.memory)


def _merge_batch_(
    count: Tensor, mean: Tensor, sigma: Tensor, features: Tensor, target: Tensor, memory: Tensor | None
) -> None:
    """Take a batch into statistics in place: second moments about the old mean add up; then the mean moves.

    A class without samples in the batch keeps its numbers to the bit: its share of the old is exactly one.
    """
    row, owner = class_rows(target, count.numel())
    every = owner.numel() == count.numel()  # the table's rows are the classes
    counted, center, spread = (count, mean, sigma) if every else (count[owner], mean[owner], sigma[owner])
    old = counted if memory is None else torch.minimum(counted, memory[owner].to(counted.dtype))
    total = old.index_add(0, row, torch.ones_like(row))
    divisor = total.clamp_min(1).to(mean.dtype).unsqueeze(1)
    kept = old.to(mean.dtype).unsqueeze(1) / divisor
    shifted = features.to(mean.dtype) - center[row]
    shift = torch.zeros_like(center).index_add_(0, row, shifted).div_(divisor)
    if sigma.ndim == 2:
        moment = torch.zeros_like(center).index_add_(0, row, shifted.square())
        updated = moment.div_(divisor).addcmul_(spread, kept).sub_(shift.square()).clamp_min_(0)
    else:
        moment = _second_moments(shifted, row, owner.numel())
        updated = moment.div_(divisor.unsqueeze(2)).addcmul_(spread, kept.unsqueeze(2))
        updated = updated.baddbmm_(shift.unsqueeze(2), shift.unsqueeze(1), alpha=-1)
    if every:
        sigma.copy_(updated)
        mean.add_(shift)
        count.copy_(total)
    else:  # samples of one class write the same numbers to the same place
        sigma.index_copy_(0, target, updated[row])
        mean.index_copy_(0, target, (center + shift)[row])
        count.index_copy_(0, target, total[row])


def _second_moments(x: Tensor, row: Tensor, size: int) -> Tensor:
    """Σ x xᵀ over the samples of each row of a table."""
    n, d = x.shape
    if n and size <= _ONE_PRODUCT and x.device.type == "cpu" and not torch.compiler.is_compiling():
        padded = _by_row(x, row, size)
        return torch.bmm(padded.mT, padded)
    if size <= _ONE_PRODUCT:
        mine = torch.zeros(size, 1, n, dtype=x.dtype, device=x.device).scatter_(0, row.view(1, 1, n), 1.0)
        return ((mine * x.T).reshape(size * d, n) @ x).view(size, d, d)
    moments = x.new_zeros(size, d, d)
    block = max(1, _FULL_UP_TO // d**2)
    for rows, some in zip(torch.split(row, block), torch.split(x, block), strict=True):
        moments.index_add_(0, rows, some.unsqueeze(2) * some.unsqueeze(1))
    return moments


def _by_row(x: Tensor, row: Tensor, size: int) -> Tensor:
    """The samples of each row of a table side by side, (size, most of a row, d), filled up with zeros."""
    order, sizes = torch.argsort(row, stable=True), torch.bincount(row, minlength=size)
    most, owner = int(sizes.max()), row[order]
    place = (owner * most).add_(torch.arange(row.shape[0])).sub_((sizes.cumsum(0) - sizes)[owner])
    return x.new_zeros(size * most, x.shape[1]).index_copy_(0, place, x[order]).view(size, most, -1)


class KeepsCovariance(LazyBuffers):
    """Running statistics of a loss, made when the first batch shows how wide the features are."""

    count: Tensor | None
    mean: Tensor | None
    sigma: Tensor | None
    covariance: str

    def keep_covariance(self, covariance: str) -> None:
        """Make the buffers of the running statistics.

        Parameters
        ----------
        covariance : {"auto", "full", "diagonal"}
            Whether to keep full matrices or their diagonals.
        """
        self.covariance = check_covariance(covariance)
        for name in ("count", "mean", "sigma"):
            self.register_buffer(name, None)

    def running_covariance(
        self, features: Tensor, target: Tensor, n_classes: int, *, gather: bool, memory: Tensor | None = None
    ) -> Tensor:
        """Σ of each class, with this batch in it if ``gather``.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            The batch's features.
        target : Tensor of shape (n,)
            Its classes.
        n_classes : int
            The number of classes C.
        gather : bool
            Whether the batch enters the statistics.
        memory : Tensor of shape (C,), optional
            How many samples each class remembers; by default all.

        Returns
        -------
        Tensor of shape (C, d, d) or (C, d)
            The covariances.
        """
        if self.count is None or self.mean is None or self.sigma is None:
            made = RunningCovariance(n_classes, features.shape[1], self.covariance, like=features)
            self.count, self.mean, self.sigma = made.count, made.mean, made.sigma
        if gather:
            with torch.no_grad():
                _merge_batch_(self.count, self.mean, self.sigma, features, target, memory)
        return self.sigma
