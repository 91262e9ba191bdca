"""The per-class clock: how much of each class is memorized, at log-spaced moments of the training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from equipoise._core.checks import check_choice, check_fraction, check_integer
from equipoise._core.random import derive_seed
from equipoise.generative.memorization import Neighbors, crossing_time, memorized_fraction, nearest_two
from equipoise.generative.sampling import denoiser_device, sample
from equipoise.generative.schedule import NoiseSchedule
from equipoise.training import Callback

if TYPE_CHECKING:
    from equipoise.training import Run

_Assign = Callable[[Tensor], npt.NDArray[np.int64]]


def log_spaced(last: int, per_decade: int = 5, first: int = 1) -> list[int]:
    """Whole numbers up to ``last``, about ``per_decade`` of them in each factor of ten (the paper takes 5).

    >>> log_spaced(100, per_decade=2)
    [1, 3, 10, 32, 100]
    """
    check_integer("last", last, low=first)
    points = max(2, round(np.log10(last / first) * per_decade) + 1)
    return sorted({round(float(x)) for x in np.geomspace(first, last, points)})


@dataclass(frozen=True)
class Window:
    """From the step at which every class generalizes to the one at which some class is memorized.

    Attributes
    ----------
    opens : float
        The step from which every class generalizes.
    closes : float
        The step at which some class is memorized.
    first_memorized : Any
        The class that is memorized first.

    Examples
    --------
    >>> Window(opens=10, closes=100, first_memorized="cats").is_open
    True
    """

    opens: float
    closes: float
    first_memorized: Any

    @property
    def is_open(self) -> bool:
        """Whether there is a step that is neither too early nor too late."""
        return self.opens < self.closes


@dataclass(frozen=True)
class Look:
    """What one look saw: the samples as the network drew them, their classes and neighbors, a line per class."""

    samples: Tensor
    labels: npt.NDArray[np.int64]
    neighbors: Neighbors
    table: pd.DataFrame


class MemorizationMonitor(Callback):
    """Draws samples at log-spaced epochs and tells how many of each class are copies.

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        The training images as the network sees them.
    codes : array of int of shape (n,)
        Their class codes.
    assign : callable
        Tells the class of samples, such as :class:`~equipoise.generative.assignment.Assigner`.
    schedule : NoiseSchedule
        The noise that the network was trained with.
    marks : list of int
        The epochs to look at.
    n_samples : int
        Samples per look.
    stride : int, optional
        Steps of the sampler; None for all.
    held_out : pair, optional
        Images and codes that training never sees; their denoising error by class tells generalization.
    threshold : float
        The ratio d(nn1)/d(nn2) below which a sample is a copy.
    second : {"any", "class"}
        Which second neighbor.
    stop : {None, "memorized", "all memorized"}
        ``"memorized"`` ends the run when some class's lower bound exceeds ``stop_fraction``, ``"all
        memorized"`` when every class's does.
    stop_fraction : float
        The memorized fraction of ``stop``.
    conditional : bool
        Whether the network is told the class.
    keep : callable, optional
        Called with the step and the :class:`Look`, to keep what was seen.
    """

    def __init__(
        self,
        images: Tensor,
        codes: npt.ArrayLike,
        assign: _Assign,
        schedule: NoiseSchedule,
        marks: list[int],
        *,
        n_samples: int = 200,
        stride: int | None = 50,
        held_out: tuple[Tensor, npt.ArrayLike] | None = None,
        threshold: float = 1 / 3,
        second: str = "any",
        stop: str | None = None,
        stop_fraction: float = 1 / 3,
        conditional: bool = False,
        keep: Callable[[int, Look], None] | None = None,
    ) -> None:
        self.images, self.codes = images, np.asarray(codes, dtype=np.int64)
        self.assign, self.schedule, self.marks = assign, schedule, set(marks)
        self.n_samples = check_integer("n_samples", n_samples, low=2)
        self.stride, self.held_out = stride, held_out
        self.threshold = float(check_fraction("threshold", threshold))
        self.second = check_choice("second", second, ["any", "class"])
        self.stop = check_choice("stop", stop, [None, "memorized", "all memorized"])
        self.stop_fraction = float(check_fraction("stop_fraction", stop_fraction))
        self.conditional, self.keep = conditional, keep
        self.records: list[dict[str, float]] = []

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> bool | None:
        if run.epoch not in self.marks:
            return None
        return bool(run.fabric.broadcast(run.fabric.is_global_zero and self._look_at(run)))

    def _look_at(self, run: Run) -> bool:
        """Keep what is seen, and say whether to stop; of several processes the first one looks."""
        was_training = run.network.training
        run.network.eval()
        seen = self.examine(run.network, derive_seed(run.seed, "monitor", run.epoch))
        run.network.train(was_training)
        step = run.epoch * run.batches
        rows: list[Any] = seen.table.to_dict("records")
        self.records += [{"epoch": run.epoch, "step": step, **row} for row in rows]
        if self.keep is not None:
            self.keep(step, seen)
        over = seen.table["low"] >= self.stop_fraction
        return (self.stop == "memorized" and bool(over.any())) or (
            self.stop == "all memorized" and bool(over.all())
        )

    def look(self, network: Any, seed: int) -> pd.DataFrame:
        """One look: a line per class.

        Parameters
        ----------
        network : nn.Module
            The denoising network, in evaluation mode.
        seed : int
            The seed of the samples.

        Returns
        -------
        DataFrame
            The figures of each class.
        """
        return self.examine(network, seed).table

    def examine(self, network: Any, seed: int) -> Look:
        """Draw samples, tell their classes, find their neighbors.

        Parameters
        ----------
        network : nn.Module
            The denoising network, in evaluation mode.
        seed : int
            The seed of the samples.

        Returns
        -------
        Look
            The samples, their classes and the figures of each class.
        """
        generator = torch.Generator().manual_seed(seed)
        n_classes = int(self.codes.max()) + 1
        asked = torch.arange(self.n_samples) % n_classes if self.conditional else None
        drawn = sample(
            network,
            self.n_samples,
            tuple(self.images.shape[1:]),
            self.schedule,
            generator,
            labels=asked,
            stride=self.stride,
            verbose=False,
        )
        labels = self.assign(drawn) if asked is None else asked.numpy()
        in_class = {"sample_labels": labels, "training_labels": self.codes} if self.second == "class" else {}
        found = nearest_two(drawn.numpy(), self.images.numpy(), **in_class)
        table = memorized_fraction(
            found.memorized(self.threshold), labels, np.arange(n_classes), random_state=seed
        )
        if self.held_out is not None:
            table["held_out_error"] = _denoising_error(network, *self.held_out, self.schedule, n_classes)
        for column, distance in zip(("nearest", "second"), found.distance.T, strict=True):
            table[column] = [_mean(distance[labels == code]) for code in range(n_classes)]
        return Look(drawn, labels, found, table)

    @property
    def table(self) -> pd.DataFrame:
        """All looks, a line per class and look."""
        return pd.DataFrame(self.records)

    def crossing_times(self, threshold: float = 1 / 3) -> dict[int, float]:
        """t_mem of each class in steps: where its memorized fraction reaches the threshold.

        Parameters
        ----------
        threshold : float
            The memorized fraction at which a class counts as memorized.

        Returns
        -------
        dict of int to float
            The step for each class code; ∞ for one that was never memorized.
        """
        return crossing_times(self.table, threshold)

    def window(self, threshold: float = 1 / 3, slack: float = 0.05) -> Window:
        """Between "every class generalizes" and "some class is memorized".

        Parameters
        ----------
        threshold : float
            The memorized fraction at which a class counts as memorized.
        slack : float
            How far above its lowest held-out error a class may be to count as generalizing, as a share of
            it.

        Returns
        -------
        Window
            The steps at which the window opens and closes.
        """
        return window(self.table, threshold, slack)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold.

        Returns
        -------
        dict
            The looks so far.
        """
        return {"records": self.records}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self.records = list(state["records"])


def _mean(values: npt.NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def crossing_times(table: pd.DataFrame, threshold: float = 1 / 3) -> dict[int, float]:
    """t_mem a class from a monitor's table."""
    groups: Any = table.sort_values("step").groupby("label")
    return {
        int(label): crossing_time(group["step"].to_numpy(), group["fraction"].to_numpy(), threshold)
        for label, group in groups
    }


def window(table: pd.DataFrame, threshold: float = 1 / 3, slack: float = 0.05) -> Window:
    """The steps in which every class generalizes and none is memorized yet.

    A class generalizes from the first look at which its held-out error is within ``slack`` of its lowest.
    """
    if "held_out_error" not in table:
        raise ValueError("the window needs held-out images: give the monitor held_out=(images, codes)")
    memorized = crossing_times(table, threshold)
    first = min(memorized, key=lambda label: memorized[label])
    opens = 0.0
    for _, group in table.sort_values("step").groupby("label"):
        error, step = group["held_out_error"].to_numpy(), group["step"].to_numpy()
        good = error <= np.nanmin(error) * (1 + slack)
        opens = max(opens, float(step[good][0]))
    return Window(opens, memorized[first], first if np.isfinite(memorized[first]) else None)


@torch.inference_mode()
def _denoising_error(
    network: Any,
    images: Tensor,
    codes: npt.ArrayLike,
    schedule: NoiseSchedule,
    n_classes: int,
    looks: int = 4,
) -> npt.NDArray[np.float64]:
    """Mean squared error of the predicted noise on given images, a class, at fixed times and noises."""
    labels = torch.as_tensor(np.asarray(codes, dtype=np.int64))
    device = denoiser_device(network)
    generator = torch.Generator().manual_seed(0)
    total = torch.zeros(len(images), dtype=torch.float64)
    for _ in range(looks):
        t = torch.randint(1, schedule.steps + 1, (len(images),), generator=generator)
        noise = torch.randn(images.shape, generator=generator)
        noisy = schedule.add_noise(images, noise, t)
        asked = (labels.to(device),) if getattr(network, "n_classes", 0) else ()
        predicted = network(noisy.to(device), t.to(device), *asked).cpu()
        total += (predicted - noise).square().flatten(1).mean(dim=1).double() / looks
    found = np.full(n_classes, np.nan)
    for label in range(n_classes):
        own = total[labels == label]
        if len(own):
            found[label] = float(own.mean())
    return found
