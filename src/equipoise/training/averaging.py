"""A moving average of the weights, which the network wears between epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from equipoise._core.checks import check_choice, check_in_range
from equipoise.training.callbacks import Callback

if TYPE_CHECKING:
    from equipoise.training.loop import Run


class ExponentialAverage(Callback):
    """Average the weights over the steps or epochs, and evaluate, save and end with the average.

    At the end of an epoch the network's weights are replaced by their average, so that the callbacks behind this
    one (validation, early stopping, checkpoint) see it, and the run ends with it; the next epoch goes on from the
    weights themselves. Belongs first among the callbacks that look at weights.

    Parameters
    ----------
    decay : float
        Share of the old average that a step keeps. The first steps keep less, (1 + n)/(10 + n), so that the
        start is forgotten at once.
    skip : sequence of str
        Beginnings of the names of weights that are not averaged.
    every : {"step", "epoch"}
        When the average moves.

    Notes
    -----
    ``torch.optim.swa_utils.AveragedModel`` with the same rule gives the same bits, but takes 1.8 to 2.8 times as
    long a step, keeps a second copy of the parts that are not averaged, and does not put the average into the
    network between epochs (``benchmarks/library_choices.py``).

    Examples
    --------
    >>> ExponentialAverage(0.99).decay
    0.99
    """

    def __init__(self, decay: float = 0.99, skip: Sequence[str] = (), every: str = "step") -> None:
        self.decay = float(check_in_range("decay", decay, 0, 1, closed="left"))
        self.skip = tuple(skip)
        self.every = check_choice("every", every, ["step", "epoch"])
        self.steps = 0
        self.average: dict[str, Tensor] = {}
        self.own: dict[str, Tensor] | None = None

    def _followed(self, run: Run) -> dict[str, Tensor]:
        return {
            name: value
            for name, value in run.network.state_dict().items()
            if not name.startswith(self.skip or ("\0",))
        }

    def on_start(self, run: Run) -> None:
        self.average = {name: value.detach().clone() for name, value in self._followed(run).items()}

    def on_epoch_start(self, run: Run) -> None:
        if self.own is not None:
            run.network.load_state_dict(self.own, strict=False)
            self.own = None

    def on_step_start(self, run: Run) -> None:
        if run.batch and self.every == "step":  # the weights that the step before this one left
            self._update(run)

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> None:
        self._update(run)
        self.own = {name: value.detach().clone() for name, value in self._followed(run).items()}
        run.network.load_state_dict(self.average, strict=False)

    @torch.no_grad()
    def _update(self, run: Run) -> None:
        self.steps += 1
        kept = min(self.decay, (1 + self.steps) / (10 + self.steps))
        now = self._followed(run)
        floating = [name for name, value in now.items() if value.is_floating_point()]
        if floating:
            torch._foreach_lerp_(
                [self.average[name] for name in floating], [now[name] for name in floating], 1 - kept
            )
        for name in now.keys() - set(floating):
            self.average[name].copy_(now[name])

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold.

        Returns
        -------
        dict
            The average, the network's own weights and the number of updates.
        """
        return {"steps": self.steps, "average": self.average, "own": self.own}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self.steps, self.own = state["steps"], state["own"]
        self.average = state["average"]
