"""What a run may be told between steps and epochs. Stopping is a returned value."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from equipoise._core.checks import check_choice, check_in_range, check_integer, check_positive
from equipoise.training.data import TensorData
from equipoise.training.samplers import ClassSampler

if TYPE_CHECKING:
    from equipoise.training.loop import Run


class Callback:
    """Does nothing; say only what you need. One with state adds ``state_dict`` and ``load_state_dict``."""

    def on_start(self, run: Run) -> None:
        """Before the first epoch, when model, optimizer and step are set up.

        Parameters
        ----------
        run : Run
            The run.
        """

    def on_epoch_start(self, run: Run) -> None:
        """Before the first batch of an epoch.

        Parameters
        ----------
        run : Run
            The run.
        """

    def on_step_start(self, run: Run) -> None:
        """Before every step.

        Parameters
        ----------
        run : Run
            The run.
        """

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> bool | None:
        """After an epoch. May add to the record; ``True`` asks to stop.

        Parameters
        ----------
        run : Run
            The run.
        record : dict of str to float
            The epoch's means, to which a callback may add.

        Returns
        -------
        bool or None
            True to stop the run.
        """

    def on_end(self, run: Run) -> None:
        """When the run is over.

        Parameters
        ----------
        run : Run
            The run.
        """


Schedule = Callable[[float], float]
"""From the part of the run that is done, in [0, 1), to a factor of the learning rate."""


def constant(done: float) -> float:
    return 1.0


def cosine(done: float) -> float:
    """Half a cosine from 1 to 0."""
    return 0.5 * (1 + math.cos(math.pi * done))


def linear(done: float) -> float:
    return 1.0 - done


def drops(milestones: Sequence[float] = (0.8, 0.9), factor: float = 0.1) -> Schedule:
    """Multiply by ``factor`` at each of the milestones, parts of the run.

    Parameters
    ----------
    milestones : sequence of float
        Parts of the run, from 0 to 1.
    factor : float
        What the learning rate is multiplied by.

    Returns
    -------
    callable
        A schedule for :class:`LearningRate`: the part done to the factor so far.

    Examples
    --------
    >>> schedule = drops((0.5,), 0.1)
    >>> schedule(0.49), schedule(0.5)
    (1.0, 0.1)
    """
    check_in_range("milestones", list(milestones), 0, 1)
    return lambda done: float(factor) ** sum(done >= at for at in milestones)


_SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "linear": linear,
    "drops": drops(),
}


class LearningRate(Callback):
    """Sets the learning rate before every step: a linear warm-up, then a schedule.

    Parameters
    ----------
    schedule : {"constant", "cosine", "linear", "drops"} or callable
        From the part of the run that is done to a factor.
    warmup : float
        Epochs over which the rate grows to its full value.

    Examples
    --------
    >>> from equipoise.classifiers import NeuralClassifier
    >>> clf = NeuralClassifier(epochs=50, schedule=LearningRate("cosine", warmup=5))
    """

    def __init__(self, schedule: str | Schedule = "constant", warmup: float = 0.0) -> None:
        if isinstance(schedule, str):
            check_choice("schedule", schedule, _SCHEDULES)
            schedule = _SCHEDULES[schedule]
        self.schedule = schedule
        self.warmup = float(check_in_range("warmup", warmup, 0))

    def on_step_start(self, run: Run) -> None:
        position = run.position
        factor = self.schedule(position / run.epochs)
        if position < self.warmup:
            factor *= (position + 1 / run.batches) / (self.warmup + 1 / run.batches)
        for group in run.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor


class DeferredReweighting(Callback):
    """No class weights until ``start`` of the run, then these (DRW of Cao et al. 2019, section 3.3).

    Parameters
    ----------
    class_weight : "balanced", array-like or callable
        A weight per class; ``"balanced"`` weighs by 1/count, a callable makes weights from the counts.
    start : float
        Part of the run without weights.

    Notes
    -----
    The weights of the last epoch are the run's ``class_weight`` in the end, and so go into the prior ledger.

    Examples
    --------
    >>> from equipoise.classifiers import NeuralClassifier
    >>> clf = NeuralClassifier(loss="ldam", callbacks=[DeferredReweighting("balanced", start=0.8)])
    """

    def __init__(self, class_weight: Any = "balanced", start: float = 0.8) -> None:
        if isinstance(class_weight, str):
            check_choice("class_weight", class_weight, ["balanced"])
        self.class_weight = class_weight
        self.start = float(check_in_range("start", start, 0, 1))
        self._weights: Tensor | None = None

    def on_start(self, run: Run) -> None:
        counts = torch.bincount(run.data.labels().cpu()).double().numpy()
        if isinstance(self.class_weight, str):
            weights = np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)
        else:
            weights = self.class_weight(counts) if callable(self.class_weight) else self.class_weight
        checked = check_in_range("class_weight", weights, 0)
        if checked.shape != counts.shape:
            raise ValueError(f"class_weight must have {len(counts)} weights, got shape {checked.shape}")
        self._weights = torch.as_tensor(checked * len(counts) / checked.sum(), dtype=torch.float32)

    def on_epoch_start(self, run: Run) -> None:
        self._weigh(run, run.epoch)

    def on_end(self, run: Run) -> None:
        self._weigh(run, run.epoch - 1)  # a finished run that was only loaded had no epoch to start

    def _weigh(self, run: Run, epoch: int) -> None:
        run.class_weight = self._weights if epoch >= self.start * run.epochs else None


class BalancedFineTuning(Callback):
    """Two stages: the data as they are, then balanced classes at a lower learning rate (Cui et al. 2018).

    Parameters
    ----------
    start : float
        Part of the run that the first stage takes.
    lr_factor : float
        What the learning rate is multiplied by in the second stage.
    per_class : int, optional
        Fine-tune on a fixed subset with at most so many rows per class; without it all rows may be drawn, each
        class equally often. Epochs keep their length.

    Examples
    --------
    >>> from equipoise.classifiers import NeuralClassifier
    >>> clf = NeuralClassifier(callbacks=[BalancedFineTuning(start=0.9)])
    """

    def __init__(self, start: float = 0.8, lr_factor: float = 0.1, per_class: int | None = None) -> None:
        self.start = float(check_in_range("start", start, 0, 1))
        self.lr_factor = float(check_positive("lr_factor", lr_factor))
        self.per_class = None if per_class is None else check_integer("per_class", per_class, low=1)

    def on_epoch_start(self, run: Run) -> None:
        first = math.ceil(self.start * run.epochs)
        if run.epoch < first:
            return
        if run.epoch == first:  # later ones find the lower rate in the optimizer's saved state
            for group in run.optimizer.param_groups:
                group["initial_lr"] *= self.lr_factor
                group["lr"] = group["initial_lr"]
        run.sampler = self._balanced(run)

    def on_start(self, run: Run) -> None:
        run.data.labels()

    def on_end(self, run: Run) -> None:
        if run.epoch > math.ceil(self.start * run.epochs):  # also where a finished run was only loaded
            run.sampler = self._balanced(run)

    def _balanced(self, run: Run) -> ClassSampler:
        targets = run.data.labels().cpu().clone()
        present = torch.bincount(targets) > 0
        if self.per_class is not None:
            generator = run.generator("fine-tuning")
            for code in present.nonzero().flatten().tolist():
                rows = torch.nonzero(targets == code).flatten()
                left_out = rows[torch.randperm(len(rows), generator=generator)[self.per_class :]]
                targets[left_out] = -1
        return ClassSampler(targets, (present.double() / present.sum()).numpy())


class Validation(Callback):
    """Adds ``val_loss``, ``val_accuracy`` and ``val_balanced_accuracy`` to the record of every epoch.

    Parameters
    ----------
    data : TensorData
        Held out from training; its weights count in the loss.
    loss : callable, optional
        ``loss(logits, targets)``, a value per row; cross-entropy by default.
    """

    def __init__(self, data: TensorData, loss: Callable[[Tensor, Tensor], Tensor] | None = None) -> None:
        self.data = data
        self.loss = nn.CrossEntropyLoss(reduction="none") if loss is None else loss

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> None:
        from equipoise.training.loop import predict

        logits = predict(run.network, self.data.inputs).float()
        targets = self.data.labels().cpu()
        weight = torch.ones(len(targets)) if self.data.weight is None else self.data.weight.cpu()
        hit = (logits.argmax(dim=1) == targets).double()
        of_class = torch.bincount(targets)
        recall = torch.bincount(targets, weights=hit)[of_class > 0] / of_class[of_class > 0]
        record["val_loss"] = float((self.loss(logits, targets) * weight).sum() / weight.sum())
        record["val_accuracy"] = float(hit.mean())
        record["val_balanced_accuracy"] = float(recall.mean())


class EarlyStopping(Callback):
    """Stop when a column of the history has not improved for some epochs; then take the best weights back.

    Parameters
    ----------
    monitor : str
        Column of the history. It should fall if its name ends in ``loss``, and rise otherwise.
    patience : int
        Epochs without improvement.
    min_delta : float
        Smaller improvements do not count.
    restore_best : bool
        End with the weights of the best epoch.

    Examples
    --------
    >>> from equipoise.classifiers import NeuralClassifier
    >>> clf = NeuralClassifier(early_stopping=EarlyStopping(patience=5), validation_fraction=0.2)
    """

    def __init__(
        self, monitor: str = "val_loss", patience: int = 10, min_delta: float = 0.0, restore_best: bool = True
    ) -> None:
        self.monitor, self.restore_best = monitor, restore_best
        self.patience = check_integer("patience", patience, low=1)
        self.min_delta = float(check_in_range("min_delta", min_delta, 0))
        self.best, self.best_epoch = -math.inf, 0
        self.weights: dict[str, Tensor] | None = None

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> bool:
        check_choice("monitor", self.monitor, record)
        value = record[self.monitor] * (-1 if self.monitor.endswith("loss") else 1)
        if value > self.best + self.min_delta:
            self.best, self.best_epoch = value, run.epoch
            if self.restore_best:
                self.weights = copy.deepcopy(run.network.state_dict())
        return run.epoch - self.best_epoch >= self.patience

    def on_end(self, run: Run) -> None:
        if self.weights is not None:
            run.network.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold.

        Returns
        -------
        dict
            The best value, its epoch and its weights.
        """
        return {"best": self.best, "best_epoch": self.best_epoch, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self.best, self.best_epoch, self.weights = state["best"], state["best_epoch"], state["weights"]


class Deadline(Callback):
    """Stop at a moment, even in the middle of an epoch; the weights are those of the last step.

    Parameters
    ----------
    moment : float
        A time of :func:`time.monotonic`.

    Examples
    --------
    >>> import time
    >>> from equipoise.training import PlainStep, TensorData, fit
    >>> net, data = nn.Linear(2, 2), TensorData(torch.eye(2), torch.tensor([0, 1]))
    >>> step, sgd = PlainStep(nn.CrossEntropyLoss()), torch.optim.SGD(net.parameters(), lr=1)
    >>> fit(net, step, data, optimizer=sgd, epochs=5, callbacks=[Deadline(time.monotonic())]).epoch
    1
    """

    def __init__(self, moment: float) -> None:
        self.moment = float(moment)

    def on_step_start(self, run: Run) -> None:
        run.stop = run.stop or time.monotonic() > self.moment
