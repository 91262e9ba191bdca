"""The shell around an equation: counts as a buffer, checks, ignored rows, sample weights, reduction."""

from __future__ import annotations

import abc
import math
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import FloatArray, check_array, check_choice
from equipoise.losses._links import Link
from equipoise.losses.functional.shared import is_soft, promote, reduce_loss

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

T = TypeVar("T")

_BATCHES_BEFORE_WARNING = 100


class LossOptions(TypedDict, total=False):
    """Options that every loss takes, passed on to :class:`Loss`."""

    reduction: str
    ignore_index: int
    validate: bool
    empty_classes: str


def check_class_counts(class_counts: ArrayLike, empty_classes: str = "error") -> FloatArray:
    """Positive counts (or masses) of the classes, in the order of their codes.

    ``empty_classes="floor"`` counts an empty class as one sample. A mapping, such as a ``Counter`` of the
    targets, must have the keys 0 … C − 1.
    """
    if isinstance(class_counts, Mapping):
        keys = sorted(class_counts)
        if keys != list(range(len(keys))):
            raise ValueError(f"class_counts as a mapping must have the keys 0 … C − 1, got {keys[:5]} …")
        class_counts = [class_counts[key] for key in keys]
    if np.ndim(class_counts) == 0:
        raise TypeError(
            f"class_counts must hold a count for each class, got {class_counts!r}; "
            "give the loss's other parameters by name"
        )
    counts = check_array("class_counts", class_counts)
    check_choice("empty_classes", empty_classes, ["error", "floor"])
    if counts.ndim != 1:
        raise ValueError(f"class_counts must be a vector, got shape {counts.shape}")
    bad = counts < 0 if empty_classes == "floor" else counts <= 0
    if bad.any():
        index = int(bad.argmax())
        raise ValueError(f"class_counts must be positive, got {counts[index]:g} for class {index}")
    return np.maximum(counts, 1) if empty_classes == "floor" else counts


def counts_buffer(counts: FloatArray) -> Tensor:
    """Whole counts as integers, which neither half precision nor a device without float64 can spoil."""
    whole = bool(np.all(counts == np.round(counts)))
    return torch.as_tensor(counts, dtype=torch.int64 if whole else torch.float32)


class Loss(nn.Module, abc.ABC):
    """A loss on raw logits (n, C, …) and integer targets (n, …).

    Parameters
    ----------
    class_counts : array of shape (C,) or mapping, optional
        Training samples of each class, kept as a buffer. Losses with a count-based part need it.
    reduction : {"mean", "sum", "none"}
        The mean divides by the sum of the sample weights.
    ignore_index : int
        Targets with this value take no part.
    validate : bool
        Look at the values of targets and losses in every batch, to say what is wrong with them. Compiled
        code and ``torch.func`` transforms cannot look, and do without by themselves; there, and with
        ``validate=False``, ignored rows weigh nothing, but the statistics of a loss that keeps some see
        them as class 0: drop such rows before.
    empty_classes : {"error", "floor"}
        What to do with a count of zero: refuse it, or take it as one sample.
    """

    requires: ClassVar[frozenset[str]] = frozenset()
    aliases: ClassVar[tuple[str, ...]] = ()
    needs_counts: ClassVar[bool] = False
    soft_targets: ClassVar[bool] = False
    follows_epochs: ClassVar[bool] = False  # whether start_epoch and end_epoch matter
    rowwise: ClassVar[frozenset[str]] = frozenset()  # hyper-parameters that may be one value a row
    kernel_checks: ClassVar[bool] = False  # torch refuses wrong targets before ``compute`` keeps anything
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
        self._batches_without_epoch = 0
        self._attached: _Attached | None = None
        self._n_classes: int | None = None  # of the counts, without asking the buffer
        self._made: tuple[Any, ...] = (None, None, None, None)
        if class_counts is None:
            if self.needs_counts:
                raise ValueError(f"{type(self).__name__} needs class_counts, got None")
            self.register_buffer("class_counts", None)
        else:
            counts = check_class_counts(class_counts, empty_classes)
            self._n_classes = counts.size
            self.register_buffer("class_counts", counts_buffer(counts))

    @abc.abstractmethod
    def compute(self, logits: Tensor, target: Tensor, reduction: str, **needs: Tensor) -> Tensor:
        """The loss of ``logits`` (n, C) for targets that were checked, reduced as asked.

        Parameters
        ----------
        logits : Tensor of shape (n, C)
            Raw logits, in float32 or wider.
        target : Tensor
            Classes of shape (n,), or soft targets of shape (n, C) if the loss takes them.
        reduction : {"mean", "sum", "none"}
            How to reduce the samples' losses.
        **needs : Tensor
            What the class attribute ``requires`` names, such as ``features`` and ``head_weight``.

        Returns
        -------
        Tensor
            The loss: a scalar, or one value per sample for ``"none"``.
        """

    def forward(
        self, input: Tensor, target: Tensor, *, sample_weight: Tensor | None = None, **needs: Tensor
    ) -> Tensor:
        """The loss of raw logits for their targets.

        Parameters
        ----------
        input : Tensor of shape (n, C, …)
            Raw logits.
        target : Tensor of shape (n, …)
            Classes; soft targets have the logits' shape, where the loss takes them.
        sample_weight : Tensor, optional
            The weight of each sample.
        **needs : Tensor
            What the class attribute ``requires`` names, unless the loss was attached to a network.

        Returns
        -------
        Tensor
            The loss, reduced as ``reduction`` says.

        Raises
        ------
        TypeError
            If a keyword that the loss requires is missing.
        ValueError
            If shapes do not fit, or targets are out of range.
        """
        device = "cpu" if input.is_cpu else input.device.type  # quicker than to ask for the device
        if torch.is_autocast_enabled(device):
            with torch.autocast(device, enabled=False):
                return self.forward(input, target, sample_weight=sample_weight, **needs)
        if needs.keys() != self.requires:
            if self._attached is not None:
                needs = {**self._attached.offers(self.requires), **needs}
            self._check_needs(needs)
        if sample_weight is None and self._is_plain(input, target):
            try:
                loss = self.compute(promote(input), target, self.reduction, **needs)
            except IndexError:  # of a target that is ignored, or wrong
                return self._forward_any(input, target, sample_weight, needs)
            self._check_result(loss, input)
            return loss
        return self._forward_any(input, target, sample_weight, needs)

    def _is_plain(self, input: Tensor, target: Tensor) -> bool:
        """Whether a batch needs the equation alone: checked logits (n, C), classes that all exist and take part."""
        if not self.validate or untouchable(input) or input.ndim != 2 or target.dtype != torch.int64:
            return False
        n, n_classes = input.shape
        if not n or target.shape != (n,) or self._n_classes not in (None, n_classes):
            return False
        if self.kernel_checks and input.is_cpu and not 0 <= self.ignore_index < n_classes:
            return True
        return self._all_take_part(target, n_classes)

    def _forward_any(
        self, input: Tensor, target: Tensor, weight: Tensor | None, needs: dict[str, Tensor]
    ) -> Tensor:
        """For any shape, soft targets, weights, ignored rows, and values that must not be looked at."""
        logits, flat, weight, shape = _flatten(promote(input), target, weight)
        self._check_shapes(logits, flat)
        kept: Tensor | None = None
        looks = self.validate and not untouchable(logits)
        if not looks:
            flat, weight = _weigh_ignored(flat, weight, self.ignore_index)
        elif is_soft(flat):
            _check_soft(flat)
        else:
            kept = self._kept(flat, logits.shape[-1])
        if kept is not None:
            logits, flat = logits[kept], flat[kept]
            weight = None if weight is None else weight[kept]
            needs = {name: v if name == "head_weight" else v[kept] for name, v in needs.items()}
        if weight is None:
            loss = self.compute(logits, flat, self.reduction, **needs)
        else:
            loss = reduce_loss(self.compute(logits, flat, "none", **needs), self.reduction, weight)
        if looks:
            self._check_result(loss, logits)
        if self.reduction != "none":
            return loss
        if kept is not None:
            loss = loss.new_zeros(kept.shape).masked_scatter(kept, loss)
        return loss.reshape(shape)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Loss:
        """Weights and statistics stay in float32 when a model is cast to half: there they would overflow."""
        kept = [(m, name, b) for m in self.modules() for name, b in m._buffers.items() if b is not None]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for module, name, buffer in kept:
            moved = module._buffers[name]
            if moved is not None and moved.dtype != promote(moved).dtype:
                module._buffers[name] = buffer.to(moved.device, promote(buffer).dtype)
        return self

    def attach(self, network: nn.Module) -> Loss:
        """Take what the loss ``requires`` from a network from now on, so that ``loss(logits, target)`` is enough.

        Parameters
        ----------
        network : nn.Module
            Its layer ``head``, or else its last linear layer, is watched: what goes in are the features.

        Returns
        -------
        Loss
            The loss itself.

        Notes
        -----
        A copy of network and loss together is attached as they are. A loss that is copied alone, as by
        ``sklearn.base.clone``, must be attached to its own network.

        Examples
        --------
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> from equipoise.losses import NENumLoss
        >>> loss = NENumLoss([90, 9, 1]).attach(net)
        >>> loss(net(torch.zeros(5, 4)), torch.arange(5) % 3).ndim
        0
        """
        head = getattr(network, "head", None)
        if not isinstance(head, nn.Linear):
            head = next((m for m in reversed(list(network.modules())) if isinstance(m, nn.Linear)), None)
        if head is None:
            raise TypeError(
                f"the network must end in a linear layer, got {type(network).__name__} without one"
            )
        self._attached = _Attached(head)
        return self

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """Epoch number ``epoch``, from 0, of ``epochs`` begins. The training loop calls it.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        epochs : int
            How many there are.
        """
        self._batches_without_epoch = -1

    def end_epoch(self) -> None:
        """An epoch has ended. The training loop calls it."""

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        """The prior of the posterior that minimizing this loss trains.

        It is the data's own unless weights or shifts of the logits change it.

        Parameters
        ----------
        class_prior : array of shape (C,)
            The class shares of the training data.

        Returns
        -------
        array of shape (C,)
            The class shares under which the trained posterior is right.
        """
        return np.asarray(class_prior, dtype=np.float64)

    def link(self) -> Link | None:
        """The exact way from the minimizer's logits to probabilities under :meth:`implied_prior`.

        None where there is no exact one; the softmax of the logits then is the best answer known.

        Returns
        -------
        Link or None
            The link.
        """
        return None

    def probabilities(self, logits: Tensor, class_prior: npt.ArrayLike | None = None) -> Tensor:
        """Class probabilities from logits that were trained by this loss.

        The prior that the loss trains to is exchanged for the data's own, and where the loss has an exact link from
        logits to probabilities, that is taken instead of the softmax. It is what skorch calls a
        ``predict_nonlinearity``.

        Parameters
        ----------
        logits : Tensor of shape (n, C)
            Raw logits.
        class_prior : array of shape (C,), optional
            Of the data, and of the answer; the shares of ``class_counts`` by default. Without either the
            answer is under the prior that the loss trains to.

        Returns
        -------
        Tensor of shape (n, C)
            The probabilities.

        Examples
        --------
        >>> from equipoise.losses import LogitAdjustedLoss
        >>> LogitAdjustedLoss([9, 1]).probabilities(torch.zeros(1, 2))
        tensor([[0.9000, 0.1000]])
        """
        link = self.link()
        if link is None:
            log_p = torch.log_softmax(promote(logits), dim=-1)
        else:
            log_p = torch.as_tensor(link(logits.detach().cpu().numpy())).to(promote(logits))
        if class_prior is None and self.class_counts is not None:
            counts = self.class_counts.double().cpu().numpy()
            class_prior = counts / counts.sum()
        if class_prior is None:
            return log_p.exp()
        prior = np.asarray(class_prior, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(prior > 0, np.log(prior) - np.log(self.implied_prior(prior)), -np.inf)
        return torch.softmax(log_p + torch.as_tensor(shift).to(log_p), dim=-1)

    def set_rows(self, **values: Tensor) -> None:
        """Give hyper-parameters of ``rowwise`` one value a row of the batches that follow.

        Parameters
        ----------
        **values : Tensor
            One value per row for each named hyper-parameter.
        """
        for name, value in values.items():
            setattr(self, name, value.reshape(-1, 1))

    def gathering(self, logits: Tensor) -> bool:
        """Whether this call's batch may enter running statistics.

        Parameters
        ----------
        logits : Tensor
            The batch's logits.

        Returns
        -------
        bool
            Whether it may: only in training, and not in a second pass over the same batch or under a
            transform.
        """
        gathers = self.training and self.gathers and not _transformed(logits)
        if gathers and self.follows_epochs and self._batches_without_epoch >= 0:
            self._miss_epochs()
        return gathers

    def made_once(self, make: Callable[..., T], source: Tensor, *settings: Any) -> T:
        """What ``make(source, *settings)`` returns, made anew only if the buffer or a setting has changed.

        A small batch's loss costs no more than a few calls of torch, so that constants are worth keeping.
        Nothing is kept under a transform, in compiled code, and for settings that are tensors, one value a row.

        Parameters
        ----------
        make : callable
            ``make(source, *settings)``.
        source : Tensor
            A buffer of the loss.
        *settings : Any
            Hyper-parameters and the like.

        Returns
        -------
        Any
            What ``make`` returned.
        """
        if untouchable(source) or source.is_inference() or any(isinstance(s, Tensor) for s in settings):
            return make(source, *settings)
        kept, version, under, made = self._made
        if kept is not source or version != source._version or under != settings:
            made = make(source, *settings)
            self._made = (source, source._version, settings, made)
        return cast("T", made)

    def extra_repr(self) -> str:
        """The settings that ``repr`` shows.

        Returns
        -------
        str
            The settings.
        """
        return f"reduction={self.reduction!r}"

    def _miss_epochs(self) -> None:
        self._batches_without_epoch += 1
        if self._batches_without_epoch == _BATCHES_BEFORE_WARNING and not torch.compiler.is_compiling():
            warnings.warn(
                f"{type(self).__name__} changes from epoch to epoch, but was not told of any: call "
                "loss.start_epoch(epoch, epochs) and loss.end_epoch() around each",
                UserWarning,
                stacklevel=7,
            )

    def _check_needs(self, needs: dict[str, Any]) -> None:
        missing = sorted(name for name in self.requires if needs.get(name) is None)
        if missing:
            raise TypeError(
                f"{type(self).__name__} needs the keyword {', '.join(missing)}: see its `requires`, or let it "
                "look by itself with loss.attach(network)"
            )
        unknown = sorted(set(needs) - self.requires)
        if unknown:
            raise TypeError(f"{type(self).__name__} takes no keyword {', '.join(unknown)}")

    def _check_shapes(self, logits: Tensor, target: Tensor) -> None:
        if is_soft(target):
            if not self.soft_targets or target.shape != logits.shape:
                self._refuse_floats(logits, target)
        elif target.shape[0] != logits.shape[0]:
            rows = f"{target.shape[0]} and {logits.shape[0]}"
            hint = "; one logit a sample is not enough, give one a class" if logits.shape[0] == 1 else ""
            raise ValueError(f"target must have as many rows as input, got {rows}{hint}")
        known, n_classes = self._n_classes, logits.shape[-1]
        if known not in (None, n_classes):
            raise ValueError(f"class_counts has {known} classes, but input has {n_classes} columns")

    def _refuse_floats(self, logits: Tensor, target: Tensor) -> None:
        if not self.soft_targets:
            raise TypeError(f"{type(self).__name__} takes class indices, got {target.dtype} targets")
        raise ValueError(
            f"soft targets must have the logits' shape {tuple(logits.shape)}, got {tuple(target.shape)}; "
            "class indices must be integers"
        )

    def _kept(self, target: Tensor, n_classes: int) -> Tensor | None:
        """The rows that take part, None for all; targets out of range are refused."""
        if not target.numel() or self._all_take_part(target, n_classes):
            return None
        kept = target != self.ignore_index
        rest = target[kept]
        low, high = (int(v) for v in torch.aminmax(rest)) if rest.numel() else (0, 0)
        if low < 0 or high >= n_classes:
            hint = "; give one logit a class, two for a binary problem" if n_classes == 1 else ""
            raise ValueError(f"target must lie in [0, {n_classes}), got {low if low < 0 else high}{hint}")
        return kept

    def _all_take_part(self, target: Tensor, n_classes: int) -> bool:
        least, most = torch.aminmax(target)
        low, high = least.item(), most.item()
        return low >= 0 and high < n_classes and not low <= self.ignore_index <= high

    def _check_result(self, loss: Tensor, logits: Tensor) -> None:
        """A NaN among the logits shows in the loss, so the search through all logits can wait for it."""
        if math.isfinite((loss if loss.ndim == 0 else loss.sum()).item()):
            return
        odd = (~torch.isfinite(logits)).nonzero()
        if odd.numel():
            row, column = (int(i) for i in odd[0])
            raise ValueError(f"input must be finite, got {logits[row, column].item()} in row {row}")


class _Attached:
    """A linear head that is watched: its weight, and what last went into it.

    A copy offers nothing until its head has run: a loss that was copied without its network has a head to itself.
    """

    def __init__(self, head: nn.Linear) -> None:
        self._head = head
        self._features: Tensor | None = None
        self._copied = False
        head.register_forward_pre_hook(self._watch)

    def __getstate__(self) -> dict[str, Any]:
        return {"_head": self._head, "_features": None, "_copied": True}

    def _watch(self, module: nn.Module, args: tuple[Any, ...]) -> None:
        self._features, self._copied = args[0], False

    def offers(self, requires: frozenset[str]) -> dict[str, Tensor]:
        if self._copied:
            return {}
        found = {"head_weight": self._head.weight, "features": self._features}
        return {name: value for name, value in found.items() if name in requires and value is not None}


def _transformed(tensor: Tensor) -> bool:
    """Whether vmap or grad of torch.func is at work on the tensor; there is no public way to ask."""
    return not torch.compiler.is_compiling() and torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def untouchable(tensor: Tensor) -> bool:
    """Whether code may not depend on the tensor's values: compiled code and torch.func transforms."""
    return torch.compiler.is_compiling() or _transformed(tensor)


def _weigh_ignored(target: Tensor, weight: Tensor | None, ignore_index: int) -> tuple[Tensor, Tensor | None]:
    """Ignored rows as class 0 with weight 0: the same shapes for any values."""
    if is_soft(target):
        return target, weight
    kept = target != ignore_index
    given = torch.ones_like(target, dtype=torch.float32) if weight is None else weight
    return torch.where(kept, target, 0), given * kept.to(given.dtype)


def _check_soft(target: Tensor) -> None:
    if not target.numel():
        return
    worst = float((target.sum(-1) - 1).abs().max())
    if not worst <= max(1e-3, 8 * torch.finfo(target.dtype).eps):
        raise ValueError(
            f"soft targets must sum to one over the classes, got a sum that is off by {worst:.3g}; several "
            "labels a sample (multi-label) need a binary loss for each class"
        )


def _flatten(
    input: Tensor, target: Tensor, sample_weight: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None, torch.Size]:
    """Bring (C,) and (n, C, d1, …) to (n, C); also the shape of one loss a sample."""
    if input.ndim == 0:
        raise ValueError("input must have a class axis, got a scalar")
    axis = 0 if input.ndim == 1 else 1
    logits = input.movedim(axis, -1)
    shape = logits.shape[:-1]
    soft = is_soft(target) and target.ndim == input.ndim
    flat = target.movedim(axis, -1).reshape(-1, input.shape[axis]) if soft else target.reshape(-1)
    if sample_weight is not None:
        sample_weight = sample_weight.reshape(sample_weight.shape + (1,) * (len(shape) - sample_weight.ndim))
        sample_weight = sample_weight.expand(shape).reshape(-1)
    return logits.reshape(-1, input.shape[axis]), flat, sample_weight, shape
