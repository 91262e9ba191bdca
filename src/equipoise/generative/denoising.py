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

    def setup(self, run: Run) -> None:
        self._backward = run.fabric.backward

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        clean = batch.inputs
        t = torch.randint(1, self.schedule.steps + 1, (len(clean),), generator=batch.generator)
        noise = torch.randn(clean.shape, generator=batch.generator).to(clean.device)
        noisy = self.schedule.add_noise(clean, noise, t)  # t on the CPU: the schedule has double precision
        optimizer.zero_grad()
        loss = (model(noisy, t.to(clean.device), *self._asked(batch)) - noise).square().mean()
        self._backward(loss)
        optimizer.step()
        return Outcome(loss.detach())

    def _asked(self, batch: Batch) -> tuple[Tensor, ...]:
        if not self.n_classes:
            return ()
        labels = batch.labels()
        if self.label_dropout:
            hidden = torch.rand(len(labels), generator=batch.generator) < self.label_dropout
            labels = labels.masked_fill(hidden.to(labels.device), self.n_classes)
        return (labels,)
