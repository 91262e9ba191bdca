"""The one training loop. It owns the counters, the order of the data and the callbacks; the method is a step.

All randomness of a run is a function of its seed, the epoch and the number of the batch: the order of the
data, what augmentation draws, and torch's own generator (dropout), which is seeded before every step and
given back as it was when the run ends. Counters are therefore all the random state that a checkpoint needs.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from equipoise._core.checks import check_integer, check_type
from equipoise._core.progress import Progress
from equipoise._core.random import derive_seed
from equipoise.training.callbacks import Callback
from equipoise.training.data import Batch, TensorData
from equipoise.training.fabric import make_fabric, unwrapped
from equipoise.training.samplers import Sampler, Shuffle
from equipoise.training.steps import Outcome, Step, call_if_there

_Augment = Callable[[Tensor, torch.Generator], Tensor]


class TrainingDiverged(RuntimeError):
    """The loss stopped being a number."""


@dataclass
class Run:
    """One training run: what is trained, and how far it has got.

    Attributes
    ----------
    model : nn.Module
        The network as the fabric wrapped it.
    optimizer : Optimizer
        The optimizer as the fabric wrapped it; None for a step that has its own.
    step : Step
        What makes an update of a batch.
    data : TensorData
        The training data.
    fabric : Fabric or OneProcess
        Devices and processes.
    epochs : int
        How many epochs the run has.
    batch_size : int
        The rows of a batch, over all processes.
    seed : int
        The seed that all randomness of the run derives from.
    sampler : Sampler
        Which rows an epoch visits, in which order.
    augment : callable, optional
        ``augment(inputs, generator)`` on every batch.
    callbacks : sequence of Callback
        Called at their moments, in order.
    class_weight : Tensor or None
        Multiplies the samples' weights; callbacks may change it between epochs.
    epoch : int
        Epochs finished; while one is under way, its number from 0.
    batch, batches : int
        The number of the batch under way, and how many an epoch has.
    stop : bool
        Set when a step or a callback asked to stop; no further step is made.
    history : list of dict
        One record per epoch: the means of what the steps returned and what callbacks added.
    """

    model: Any
    optimizer: Any
    step: Step
    data: TensorData
    fabric: Any
    epochs: int
    batch_size: int
    seed: int
    sampler: Sampler
    augment: _Augment | None = None
    callbacks: Sequence[Callback] = ()
    class_weight: Tensor | None = None
    epoch: int = 0
    batch: int = 0
    batches: int = 0
    stop: bool = False
    history: list[dict[str, float]] = field(default_factory=list)

    @property
    def network(self) -> nn.Module:
        """The model without what Fabric wrapped around it."""
        return unwrapped(self.model, self.fabric)

    @property
    def position(self) -> float:
        """Epochs done, with the fraction of the one under way."""
        return self.epoch + (self.batch / self.batches if self.batches else 0.0)

    def generator(self, *path: object) -> torch.Generator:
        """A generator for a named part of the run, equal in all processes.

        Parameters
        ----------
        *path : object
            The name of the part, in pieces.

        Returns
        -------
        torch.Generator
            The generator, seeded by the run's seed and the name.
        """
        return torch.Generator().manual_seed(derive_seed(self.seed, *path))

    def state_dict(self) -> dict[str, Any]:
        """All that a checkpoint at the end of an epoch must hold.

        Returns
        -------
        dict
            The state.
        """
        return {
            "epoch": self.epoch,
            "stop": self.stop,
            "history": self.history,
            "model": self.network.state_dict(),
            "optimizer": None if self.optimizer is None else self.optimizer.state_dict(),
            "step": call_if_there(self.step, "state_dict"),
            "callbacks": [call_if_there(callback, "state_dict") for callback in self.callbacks],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self.epoch, self.stop, self.history = state["epoch"], state["stop"], state["history"]
        self.network.load_state_dict(state["model"])
        if self.optimizer is not None:
            self.optimizer.load_state_dict(state["optimizer"])
        if state["step"] is not None:
            call_if_there(self.step, "load_state_dict", state["step"])
        for callback, saved in zip(self.callbacks, state["callbacks"], strict=True):
            if saved is not None:
                call_if_there(callback, "load_state_dict", saved)


def fit(
    model: nn.Module,
    step: Step,
    data: TensorData,
    *,
    optimizer: torch.optim.Optimizer | None = None,
    epochs: int,
    batch_size: int = 128,
    seed: int = 0,
    sampler: Sampler | None = None,
    augment: _Augment | None = None,
    class_weight: Tensor | None = None,
    callbacks: Sequence[Callback] = (),
    fabric: Any = None,
    verbose: bool | None = None,
) -> Run:
    """Train a model by a step.

    Parameters
    ----------
    model : nn.Module
        Trained in place.
    step : callable
        ``outcome = step(model, optimizer, batch)``; see :mod:`equipoise.training.steps`.
    data : TensorData
        Inputs, targets and weights in memory.
    optimizer : torch optimizer, optional
        For the model; a step that owns all its optimizers needs none.
    epochs, batch_size : int
        An epoch is cut into batches of equal size (± 1), none larger than ``batch_size``; in several
        processes this is the size of the whole batch, which they share.
    seed : int
        All randomness of the run follows from it. Globals are left as they were.
    sampler : Sampler, optional
        Which rows an epoch visits; all of them once by default.
    augment : callable, optional
        ``augment(inputs, generator)``.
    class_weight : Tensor, optional
        A weight per class.
    callbacks : sequence of Callback
        Called in this order; put a checkpoint last.
    fabric : lightning_fabric.Fabric, optional
        Device, precision and processes.
    verbose : bool, optional
        Show a progress bar; by default where somebody is looking.

    Returns
    -------
    Run
        With ``history``, and ``epoch`` the number of epochs done.

    Examples
    --------
    >>> from equipoise.training import PlainStep
    >>> net, data = nn.Linear(2, 2), TensorData(torch.eye(2), torch.tensor([0, 1]))
    >>> sgd = torch.optim.SGD(net.parameters(), lr=1)
    >>> run = fit(net, PlainStep(nn.CrossEntropyLoss()), data, optimizer=sgd, epochs=5)
    >>> [record["epoch"] for record in run.history]
    [1, 2, 3, 4, 5]
    """
    check_type("model", model, nn.Module)
    check_type("data", data, TensorData)
    if augment is not None and not callable(augment):
        raise TypeError(f"augment must be a function of inputs and a generator, got {augment!r}")
    fabric = make_fabric() if fabric is None else fabric
    run = Run(
        model,
        optimizer,
        step,
        data.to(fabric.device),
        fabric,
        check_integer("epochs", epochs, low=0),
        check_integer("batch_size", batch_size, low=1),
        check_integer("seed", seed, low=0),
        Shuffle(len(data)) if sampler is None else sampler,
        augment,
        tuple(callbacks),
        class_weight,
    )
    with _own_randomness(fabric.device):
        _set_up(run)
        shown = verbose if fabric.is_global_zero else False
        with Progress(run.epochs, "training", shown) as bar:
            bar.advance(run.epoch)
            while run.epoch < run.epochs and not run.stop:
                record = _epoch(run)
                bar.advance(note=f"loss {record['loss']:.4g}")
        for callback in run.callbacks:
            callback.on_end(run)
    return run


@contextlib.contextmanager
def _own_randomness(device: torch.device) -> Iterator[None]:
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        yield


def _seed_torch(run: Run, *path: object) -> None:
    """Each process its own stream. (``torch.manual_seed`` takes a hundred times as long.)"""
    seed = derive_seed(run.seed, run.fabric.global_rank, *path)
    torch.default_generator.manual_seed(seed)
    if run.fabric.device.type == "cuda":
        torch.cuda.manual_seed(seed)


def _set_up(run: Run) -> None:
    _seed_torch(run, "setup")
    if run.optimizer is None:
        run.model = run.fabric.setup_module(run.model)
    else:
        run.model, run.optimizer = run.fabric.setup(run.model, run.optimizer)
        for group in run.optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
    call_if_there(run.step, "setup", run)
    for callback in run.callbacks:
        callback.on_start(run)


def _epoch(run: Run) -> dict[str, float]:
    run.model.train()
    call_if_there(run.step, "start_epoch", run.epoch, run.epochs)
    for callback in run.callbacks:
        callback.on_epoch_start(run)
    order = run.sampler.order(run.generator("order", run.epoch))
    world = run.fabric.world_size
    run.batches = math.ceil(len(order) / run.batch_size)
    if len(order) < run.batches * world:
        raise ValueError(
            f"batch_size must be at least the number of processes, {world}, got {run.batch_size}"
        )
    means = _Means(run.fabric)
    for number, rows in enumerate(order.tensor_split(run.batches)):
        run.batch = number
        _seed_torch(run, "step", run.epoch, run.batch)
        for callback in run.callbacks:
            callback.on_step_start(run)
        batch = _take(run, rows)
        outcome = run.step(run.model, run.optimizer, batch)
        means.add(outcome, len(batch), batch.share * len(rows) / world)
        run.stop = run.stop or outcome.stop
        if run.stop:
            break
    call_if_there(run.step, "end_epoch")
    return _end_of_epoch(run, means)


def _end_of_epoch(run: Run, means: _Means) -> dict[str, float]:
    run.epoch, run.batch = run.epoch + 1, 0
    record: dict[str, float] = {"epoch": run.epoch, **means.values()}
    if not math.isfinite(record["loss"]):
        raise TrainingDiverged(
            f"the loss became {record['loss']} in epoch {run.epoch}; a lower learning rate or clip may help"
        )
    if run.optimizer is not None:
        record["lr"] = run.optimizer.param_groups[0]["lr"]
    run.history.append(record)
    for callback in run.callbacks:
        run.stop = bool(callback.on_epoch_end(run, record)) or run.stop
    return record


def _take(run: Run, rows: Tensor) -> Batch:
    """This process's part of a batch."""
    data, device = run.data, run.fabric.device
    alone = run.fabric.world_size == 1
    mine = (rows if alone else rows[run.fabric.global_rank :: run.fabric.world_size]).to(device)
    inputs, targets, weight = _rows(data.inputs, mine), _rows(data.targets, mine), _rows(data.weight, mine)
    if run.class_weight is not None and targets is not None:
        of_class = run.class_weight.to(device)[targets]
        weight = of_class if weight is None else weight * of_class
    generator = functools.partial(run.generator, "batch", run.epoch, run.batch)
    if run.augment is not None:
        inputs = run.augment(inputs, run.generator("augment", run.epoch, run.batch, run.fabric.global_rank))
    share = 1.0 if alone else _share(run, rows, weight)
    return Batch(inputs, targets, weight, mine, generator, share)


def _rows(part: Any, rows: Tensor) -> Any:
    """Some rows of a tensor, in half the time of indexing; or of inputs that are read when asked for."""
    if part is None:
        return None
    return part.index_select(0, rows) if isinstance(part, Tensor) else part[rows]


def _share(run: Run, rows: Tensor, weight: Tensor | None) -> float:
    world, rank = run.fabric.world_size, run.fabric.global_rank
    if weight is None:
        return len(rows[rank::world]) * world / len(rows)
    whole = run.fabric.all_reduce(weight.sum(), reduce_op="sum")
    return float(weight.sum() * world / whole.clamp_min(torch.finfo(whole.dtype).tiny))


class _Means:
    """Means over an epoch's rows; numbers are added up, and leave the device, once, at the end."""

    def __init__(self, fabric: Any) -> None:
        self._fabric = fabric
        self._terms: dict[str, list[Tensor]] = {}
        self._rows: list[float] = []
        self._shares: list[float] = []

    def add(self, outcome: Outcome, rows: int, share: float) -> None:
        """``share`` is what this process's mean loss counts in the whole batch's, in rows."""
        self._rows.append(rows)
        self._shares.append(share)
        for name, value in (("loss", outcome.loss), *outcome.metrics.items()):
            # A metric may begin late in an epoch; its mean is over all rows, as if it had been 0 before.
            self._terms.setdefault(name, []).append(value.detach())

    def values(self) -> dict[str, float]:
        sums = []
        for name, terms in self._terms.items():
            counted = self._shares if name == "loss" else self._rows
            weights = torch.tensor(counted[len(counted) - len(terms) :], dtype=torch.float64)
            values = torch.stack(terms).double()
            sums.append((values * weights.to(values.device)).sum())
        rows = torch.tensor(float(sum(self._rows)), dtype=torch.float64, device=sums[0].device)
        total = self._fabric.all_reduce(torch.stack([*sums, rows]), reduce_op="sum").tolist()
        return {name: value / total[-1] for name, value in zip(self._terms, total, strict=False)}


@torch.inference_mode()
def predict(model: nn.Module, inputs: Tensor, *, batch_size: int = 1024) -> Tensor:
    """The model's outputs in evaluation mode, on the CPU, block by block.

    Inputs go to where the model's parameters are, and floating ones into their precision.

    Parameters
    ----------
    model : nn.Module
        The network.
    inputs : Tensor of shape (n, …)
        The inputs.
    batch_size : int
        The rows of a block.

    Returns
    -------
    Tensor of shape (n, …)
        The outputs.

    Examples
    --------
    >>> predict(nn.Linear(2, 3), torch.zeros(5, 2), batch_size=2).shape
    torch.Size([5, 3])
    """
    if not hasattr(inputs, "split") or not hasattr(inputs, "is_floating_point"):  # streamed inputs have both
        raise TypeError(f"inputs must be a Tensor, got {inputs!r:.60}")
    was_training = check_type("model", model, nn.Module).training
    model.eval()
    weight = next(model.parameters(), inputs)
    dtype = weight.dtype if inputs.is_floating_point() else inputs.dtype
    try:
        blocks: Any = inputs.split(batch_size)  # type: ignore[no-untyped-call]
        return torch.cat([model(block.to(weight.device, dtype)).cpu() for block in blocks])
    finally:
        model.train(was_training)
