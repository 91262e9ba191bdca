"""One step of training: predict the noise that was added."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from equipoise._core.checks import check_in_range
from equipoise.generative.schedule import NoiseSchedule
from equipoise.training import Batch, Outcome

if TYPE_CHECKING:
    from equipoise.training import Run


class DenoisingStep:
    """Predict the noise that was added at a random time (Ho et al. 2020, Algorithm 1).

    Parameters
    ----------
    schedule : NoiseSchedule
        How much noise each time has.
    n_classes : int
        Classes that the network is told; 0 for none.
    label_dropout : float
        Share of the labels that are replaced by the code ``n_classes``, "no class" (Ho and Salimans 2022).
    """

    def __init__(self, schedule: NoiseSchedule, n_classes: int = 0, label_dropout: float = 0.0) -> None:
        self.schedule, self.n_classes = schedule, n_classes
        self.label_dropout = float(check_in_range("label_dropout", label_dropout, 0, 1, closed="left"))
        self._backward: Callable[[Tensor], Any] = Tensor.backward
        self._rank, self._world = 0, 1

    def setup(self, run: Run) -> None:
        self._backward = run.fabric.backward
        self._rank, self._world = run.fabric.global_rank, run.fabric.world_size

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        clean = batch.inputs
        # What is drawn for the whole batch is shared as its rows are: several processes train as one does.
        whole = round(len(clean) * self._world / batch.share)
        mine = slice(self._rank, None, self._world)
        t = torch.randint(1, self.schedule.steps + 1, (whole,), generator=batch.generator)[mine]
        noise = torch.randn((whole, *clean.shape[1:]), generator=batch.generator)[mine].to(clean.device)
        noisy = self.schedule.add_noise(clean, noise, t)  # t on the CPU: the schedule has double precision
        hidden = torch.rand(whole, generator=batch.generator)[mine] if self.label_dropout else None
        optimizer.zero_grad()
        loss = (model(noisy, t.to(clean.device), *self._asked(batch, hidden)) - noise).square().mean()
        self._backward(loss * batch.share if batch.share != 1.0 else loss)
        optimizer.step()
        return Outcome(loss.detach())

    def _asked(self, batch: Batch, hidden: Tensor | None) -> tuple[Tensor, ...]:
        if not self.n_classes:
            return ()
        labels = batch.labels()
        if hidden is not None:
            labels = labels.masked_fill((hidden < self.label_dropout).to(labels.device), self.n_classes)
        return (labels,)
