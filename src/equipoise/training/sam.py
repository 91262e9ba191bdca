"""Sharpness-aware minimization as a step."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from equipoise._core.checks import check_in_range
from equipoise.training.data import Batch
from equipoise.training.steps import LossOfBatch, Outcome, PlainStep

if TYPE_CHECKING:
    from equipoise.training.loop import Run


class SAMStep:
    """Descend by the gradient at θ + ρ·g/‖g‖, the worst point nearby (Lieberman et al., Eq 5).

    A batch takes two passes. Batch-norm statistics and the statistics of losses come from the first pass
    only; clipping acts on the gradient of the second, which makes the update. In several processes both
    gradients are those of the whole batch.

    Parameters
    ----------
    loss : nn.Module
        As for :class:`~equipoise.training.PlainStep`.
    rho : float
        Radius ρ of the neighborhood; 0 is the plain step.
    clip : float, optional
        Largest norm of the gradient that updates.

    References
    ----------
    Foret et al.: Sharpness-Aware Minimization for Efficiently Improving Generalization, ICLR 2021.

    Examples
    --------
    >>> step = SAMStep(nn.CrossEntropyLoss(), rho=0.05)
    >>> net = nn.Linear(2, 2)
    >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    >>> batch = Batch(torch.eye(2), torch.tensor([0, 1]), None, torch.arange(2), torch.Generator())
    >>> first, second = step(net, sgd, batch).loss, step(net, sgd, batch).loss
    >>> bool(second < first)
    True
    """

    def __init__(self, loss: nn.Module, rho: float = 0.1, clip: float | None = None) -> None:
        self.rho = float(check_in_range("rho", rho, 0))
        self.loss = loss
        self._plain = PlainStep(loss, clip)
        self._loss_of = LossOfBatch(loss)

    def setup(self, run: Run) -> None:
        """Get ready for a run; the loop calls it once.

        Parameters
        ----------
        run : Run
            The run.
        """
        self._plain.setup(run)

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        optimizer.zero_grad()
        loss, logits = self._loss_of(model, batch)
        self._plain.backward(loss * batch.share)
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        with climbed(parameters, self.rho), statistics_kept(model, self.loss):
            optimizer.zero_grad()
            again, _ = self._loss_of(model, batch)
            self._plain.backward(again * batch.share)
        self._plain.update(model, optimizer)
        with torch.no_grad():
            accuracy = (logits.argmax(dim=1) == batch.labels()).float().mean()
        return Outcome(loss.detach(), {"accuracy": accuracy, "sharpness": (again - loss).detach()})

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """An epoch begins; the loop calls it.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        epochs : int
            How many there are.
        """
        self._plain.start_epoch(epoch, epochs)

    def end_epoch(self) -> None:
        """An epoch has ended; the loop calls it."""
        self._plain.end_epoch()

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold.

        Returns
        -------
        dict
            The state of the loss.
        """
        return self._plain.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self._plain.load_state_dict(state)


@contextlib.contextmanager
def climbed(parameters: Iterable[Tensor], rho: float) -> Iterator[None]:
    """Inside, the parameters stand at θ + ρ·g/‖g‖; afterwards they are what they were, to the bit."""
    moved = list(parameters)
    with torch.no_grad():
        home = [p.clone() for p in moved]
        gradients = [p.grad for p in moved if p.grad is not None]
        norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))
        scale = rho / norm.clamp_min(torch.finfo(norm.dtype).tiny)
        for p, g in zip(moved, gradients, strict=True):
            p.add_(g * scale.to(g.dtype))
    try:
        yield
    finally:
        with torch.no_grad():
            for p, old in zip(moved, home, strict=True):
                p.copy_(old)


@contextlib.contextmanager
def statistics_kept(model: nn.Module, loss: nn.Module) -> Iterator[None]:
    """Inside, batch norms use the batch but do not remember it, and neither does the loss."""
    silenced: list[tuple[nn.Module, str]] = [
        (module, "track_running_stats")
        for module in model.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    ]
    if getattr(loss, "gathers", False):
        silenced.append((loss, "gathers"))
    for module, switch in silenced:
        setattr(module, switch, False)
    try:
        yield
    finally:
        for module, switch in silenced:
            setattr(module, switch, True)
