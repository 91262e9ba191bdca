"""Loss-conditional training as a step around any other step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from equipoise._core.checks import FloatArray
from equipoise.training.data import Batch
from equipoise.training.distributions import Distribution, draw
from equipoise.training.steps import Outcome, Step, build_step, call_if_there

if TYPE_CHECKING:
    from equipoise.training.loop import Run

_LossFactory = Callable[..., nn.Module]


class ConditionedLoss(nn.Module):
    """A loss whose hyper-parameters are set anew for every batch.

    Parameters
    ----------
    factory : callable
        ``factory(**params)`` makes the loss for one λ. It must keep nothing from batch to batch: losses with
        running statistics or needs of their own (features, head weights) are refused.
    **params : float
        The λ that a network answers at where none is told: that of :meth:`implied_prior` and :meth:`link`.
    """

    requires: frozenset[str] = frozenset()

    def __init__(self, factory: _LossFactory, **params: float) -> None:
        super().__init__()
        self.factory, self.default = factory, params
        self.current = factory(**params)
        needs: frozenset[str] = getattr(self.current, "requires", frozenset())
        if needs or len(list(self.current.parameters())):
            raise ValueError(
                f"{type(self.current).__name__} cannot be conditioned: it keeps statistics or needs {sorted(needs)}"
            )
        self.rowwise: frozenset[str] = frozenset(getattr(self.current, "rowwise", ()))

    def set(self, **params: float) -> None:
        """One λ for the whole batch.

        Parameters
        ----------
        **params : float
            λ.
        """
        device = next(iter(self.current.buffers()), torch.empty(0)).device
        self.current = self.factory(**params).to(device)

    def set_rows(self, means: dict[str, float], rows: dict[str, Tensor]) -> None:
        """One λ per row, for losses that can (``rowwise``).

        Parameters
        ----------
        means : dict of str to float
            λ where the loss takes one value.
        rows : dict of str to Tensor
            One value per row for each hyper-parameter.

        Raises
        ------
        ValueError
            If the loss cannot take one value per row.
        """
        unable = sorted(set(rows) - self.rowwise)
        if unable:
            raise ValueError(f"{type(self.current).__name__} takes no value a row for {', '.join(unable)}")
        self.set(**means)
        self.current.set_rows(**rows)  # type: ignore[operator]

    def implied_prior(self, class_prior: npt.ArrayLike) -> FloatArray:
        """The prior of the posterior that is trained at the default λ.

        Parameters
        ----------
        class_prior : array of shape (C,)
            The class shares of the training data.

        Returns
        -------
        array of shape (C,)
            The class shares under which the trained posterior is right.
        """
        implied = getattr(self.factory(**self.default), "implied_prior", None)
        return np.asarray(class_prior if implied is None else implied(class_prior), dtype=np.float64)

    def link(self) -> Any:
        """The exact link at the default λ, if the loss has one.

        Returns
        -------
        Link or None
            The link.
        """
        find = getattr(self.factory(**self.default), "link", None)
        return None if find is None else find()

    def forward(self, input: Tensor, target: Tensor, *, sample_weight: Tensor | None = None) -> Tensor:
        """The loss under the λ that was set last.

        Parameters
        ----------
        input : Tensor of shape (n, C)
            Raw logits.
        target : Tensor of shape (n,)
            The classes.
        sample_weight : Tensor of shape (n,), optional
            The weight of each sample.

        Returns
        -------
        Tensor
            The loss.
        """
        loss: Tensor = (
            self.current(input, target)
            if sample_weight is None
            else self.current(input, target, sample_weight=sample_weight)
        )
        return loss


class ConditionalStep:
    """Draw λ, tell the network and the loss, then do what the inner step does (Lieberman et al., Eq 7).

    Parameters
    ----------
    loss : ConditionedLoss
        The loss, which is told each λ.
    distribution : dict
        A distribution for each hyper-parameter; λ has their order.
    step : str or factory
        The inner step, such as ``"plain"`` or ``"sam"``.
    per_sample : bool
        Draw one λ per row rather than one per batch.
    **step_params : Any
        For the inner step.
    """

    def __init__(
        self,
        loss: ConditionedLoss,
        distribution: dict[str, Distribution],
        step: str | Callable[..., Step] = "plain",
        per_sample: bool = False,
        **step_params: Any,
    ) -> None:
        self.loss = loss
        self.distribution = distribution
        self.per_sample = per_sample
        self.inner = build_step(step, loss, **step_params)

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        size = len(batch) if self.per_sample else None
        values = {name: draw(law, batch.generator, size) for name, law in self.distribution.items()}
        device = batch.inputs.device
        stacked = np.stack([np.asarray(value) for value in values.values()], axis=-1)
        params = torch.as_tensor(stacked, dtype=torch.float32, device=device)
        if self.per_sample:
            rows = {name: params[:, column] for column, name in enumerate(values)}
            self.loss.set_rows({name: float(v.mean()) for name, v in values.items()}, rows)
        else:
            self.loss.set(**{name: float(value) for name, value in values.items()})
        told: Any = (batch.inputs, params)
        return self.inner(model, optimizer, replace(batch, inputs=told))

    def setup(self, run: Run) -> None:
        """Get ready for a run; the loop calls it once.

        Parameters
        ----------
        run : Run
            The run.
        """
        call_if_there(self.inner, "setup", run)

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """An epoch begins; the loop calls it.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        epochs : int
            How many there are.
        """
        call_if_there(self.inner, "start_epoch", epoch, epochs)

    def end_epoch(self) -> None:
        """An epoch has ended; the loop calls it."""
        call_if_there(self.inner, "end_epoch")


@dataclass(frozen=True)
class FamilyLoss:
    """``factory(**params)`` for a loss of the family, with some hyper-parameters fixed; travels to processes.

    Attributes
    ----------
    name : str
        The name of the loss.
    class_counts : tuple of float
        Training samples of each class.
    fixed : dict
        Hyper-parameters that stay as they are.

    Examples
    --------
    >>> FamilyLoss("vs", (9, 1), {"gamma": 0.1})(tau=2.0)
    VSLoss(gamma=0.1, tau=2.0, reduction='mean')
    """

    name: str
    class_counts: tuple[float, ...]
    fixed: dict[str, Any] = field(default_factory=dict)

    def __call__(self, **params: float) -> nn.Module:
        from equipoise.losses import get_loss

        try:
            return get_loss(self.name, self.class_counts, **{**self.fixed, **params})
        except TypeError as error:
            raise ValueError(f"loss {self.name!r} takes no such hyper-parameters: {error}") from error
