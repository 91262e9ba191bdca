"""A method is a step: ``outcome = step(model, optimizer, batch)``.

A step may be a plain function. If it is an object, the loop also calls, where they exist:

``setup(run)``
    once before the first epoch, to make its own modules and optimizers through ``run.fabric``;
``start_epoch(epoch, epochs)`` and ``end_epoch()``
    around every epoch;
``state_dict()`` and ``load_state_dict(state)``
    for checkpoints: nested dicts and lists of tensors, numbers and strings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor, nn

from equipoise._core.checks import check_choice, check_positive
from equipoise.networks import logits_and_features
from equipoise.training.data import Batch

if TYPE_CHECKING:
    from equipoise.training.loop import Run


@dataclass(slots=True)
class Outcome:
    """What a step has to say: its mean loss, other means for the history, and whether to stop.

    Attributes
    ----------
    loss : Tensor
        The mean loss of the batch.
    metrics : mapping of str to Tensor
        Other means for the history.
    stop : bool
        Whether to end the run.
    """

    loss: Tensor
    metrics: Mapping[str, Tensor] = field(default_factory=dict)
    stop: bool = False


class Step(Protocol):
    """Anything that can be called like this."""

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome: ...


def call_if_there(thing: object, name: str, *args: Any) -> Any:
    method = getattr(thing, name, None)
    return method(*args) if callable(method) else None


class LossOfBatch:
    """A loss of the family, given exactly what it asks for (``requires``), as a mean over the batch.

    Any callable ``loss(input, target)`` with ``reduction`` works too; then a weight needs ``sample_weight``.

    Parameters
    ----------
    loss : nn.Module
        The loss.
    """

    def __init__(self, loss: nn.Module) -> None:
        self.loss = loss
        self.requires: frozenset[str] = frozenset(getattr(loss, "requires", ()))
        unknown = self.requires - {"features", "head_weight", "index"}
        if unknown:
            raise ValueError(f"the loss requires {sorted(unknown)}, which the loop does not know")

    def __call__(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """The loss and the logits."""
        needs: dict[str, Tensor] = {}
        if "features" in self.requires:
            logits, needs["features"] = logits_and_features(model, batch.inputs)
        else:
            logits = model(batch.inputs)
        if "head_weight" in self.requires:
            needs["head_weight"] = model.head.weight
        if "index" in self.requires:
            needs["index"] = batch.index
        if batch.weight is not None:
            needs["sample_weight"] = batch.weight
        return self.loss(logits, batch.labels(), **needs), logits


class PlainStep:
    """Forward, loss, backward, update.

    Parameters
    ----------
    loss : nn.Module
        ``loss(logits, targets, sample_weight=…, **needs)``.
    clip : float, optional
        Largest norm of the gradient.

    Examples
    --------
    >>> step = PlainStep(nn.CrossEntropyLoss())
    >>> net = nn.Linear(2, 2)
    >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> batch = Batch(torch.eye(2), torch.tensor([0, 1]), None, torch.arange(2), torch.Generator())
    >>> first, second = step(net, sgd, batch).loss, step(net, sgd, batch).loss
    >>> bool(second < first)
    True
    """

    def __init__(self, loss: nn.Module, clip: float | None = None) -> None:
        self.loss = loss
        self.clip = None if clip is None else float(check_positive("clip", clip))
        self._loss_of = LossOfBatch(loss)
        self._run: Run | None = None

    def setup(self, run: Run) -> None:
        """Get ready for a run; the loop calls it once.

        Parameters
        ----------
        run : Run
            The run.
        """
        self._run = run
        self.loss.to(run.fabric.device)

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        optimizer.zero_grad()
        loss, logits = self._loss_of(model, batch)
        self.backward(loss * batch.share if batch.share != 1.0 else loss)
        self.update(model, optimizer)
        accuracy = (logits.argmax(dim=1) == batch.labels()).mean(dtype=torch.float32)
        return Outcome(loss.detach(), {"accuracy": accuracy})

    def backward(self, loss: Tensor) -> None:
        """Compute gradients, through the run's fabric if there is one.

        Parameters
        ----------
        loss : Tensor
            The mean loss of the batch.
        """
        if self._run is None:
            loss.backward()  # type: ignore[no-untyped-call]
        else:
            self._run.fabric.backward(loss)

    def update(self, model: Any, optimizer: Any) -> None:
        """Clip the gradients, if asked for, and let the optimizer make its step.

        Parameters
        ----------
        model : nn.Module
            The network.
        optimizer : Optimizer
            Its optimizer.
        """
        if self.clip is not None:
            if self._run is None:
                nn.utils.clip_grad_norm_(model.parameters(), self.clip)
            else:
                self._run.fabric.clip_gradients(model, optimizer, max_norm=self.clip)
        optimizer.step()

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """An epoch begins; the loop calls it.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        epochs : int
            How many there are.
        """
        call_if_there(self.loss, "start_epoch", epoch, epochs)

    def end_epoch(self) -> None:
        """An epoch has ended; the loop calls it."""
        call_if_there(self.loss, "end_epoch")

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold.

        Returns
        -------
        dict
            The state of the loss.
        """
        return {"loss": self.loss.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self.loss.load_state_dict(state["loss"])


def _sam(loss: nn.Module, **params: Any) -> Step:
    from equipoise.training.sam import SAMStep

    return SAMStep(loss, **params)


STEPS: dict[str, Callable[..., Step]] = {"plain": PlainStep, "sam": _sam}
"""Factories ``factory(loss, **params)`` by name; a new step adds its line here."""


def build_step(step: str | Callable[..., Step], loss: nn.Module, **params: Any) -> Step:
    """A step by name, or from a factory ``factory(loss, **params)``.

    Parameters
    ----------
    step : str or callable
        A name of ``STEPS`` or a factory.
    loss : nn.Module
        The loss.
    **params : Any
        Parameters of the step.

    Returns
    -------
    Step
        The step.

    Raises
    ------
    ValueError
        If the name is not known.

    Examples
    --------
    >>> from equipoise.losses import CrossEntropyLoss
    >>> type(build_step("plain", CrossEntropyLoss())).__name__
    'PlainStep'
    """
    if isinstance(step, str):
        check_choice("step", step, STEPS)
        return STEPS[step](loss, **params)
    if not callable(step):
        raise TypeError(f"step must be a name or a factory, got {step!r}")
    return step(loss, **params)
