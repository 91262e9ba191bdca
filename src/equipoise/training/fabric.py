"""Device, precision and processes: Lightning Fabric, or nothing in between where one process needs nothing."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import torch
from torch import Tensor, nn

from equipoise._core.checks import check_integer


class OneProcess:
    """What the training loop asks of Fabric, for one process in full precision.

    Fabric's wrappers around model and optimizer cost half as much again as a step of a small network, and
    importing it takes seconds; here the model is the model.
    """

    world_size, global_rank, is_global_zero, precision = 1, 0, True, "32-true"

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def setup(self, model: nn.Module, optimizer: Any) -> tuple[nn.Module, Any]:
        return self.setup_module(model), optimizer

    def setup_module(self, model: nn.Module) -> nn.Module:
        return model.to(self.device)

    def backward(self, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]

    def clip_gradients(self, model: nn.Module, optimizer: Any, *, max_norm: float) -> Tensor:
        return nn.utils.clip_grad_norm_(model.parameters(), max_norm, error_if_nonfinite=True)

    def all_reduce(self, value: Tensor, reduce_op: str = "mean") -> Tensor:
        return value

    def broadcast(self, value: Any) -> Any:
        return value

    def autocast(self) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()

    def barrier(self) -> None:
        """There is nobody to wait for."""


def check_device(device: str) -> None:
    """Raise a ValueError if the device is one that this machine does not have."""
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(device, True):
        raise ValueError(f"device {device!r} is not available here; 'auto' takes the best that there is")


def make_fabric(
    device: str = "cpu", precision: str = "32-true", num_processes: int = 1, num_nodes: int = 1
) -> Any:
    """A Fabric, or a :class:`OneProcess` where that is enough.

    Parameters
    ----------
    device : str
        Fabric's accelerator: ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"auto"``.
    precision : str
        Such as ``"32-true"``, ``"bf16-mixed"``, ``"16-mixed"``, ``"64-true"``.
    num_processes : int
        Processes on this machine. More than one are started by spawning, unless a launcher such as
        ``torchrun`` has already done it.
    num_nodes : int
        Machines, when a launcher started the processes.

    Returns
    -------
    Fabric or OneProcess
        What moves models and data, and adds up gradients over processes.

    Examples
    --------
    >>> make_fabric().world_size
    1
    """
    check_integer("num_processes", num_processes, low=1)
    check_integer("num_nodes", num_nodes, low=1)
    check_device(device)
    if num_processes * num_nodes == 1 and precision == "32-true" and device in ("cpu", "auto"):
        best = torch.accelerator.current_accelerator(check_available=True) if device == "auto" else None
        return OneProcess(torch.device("cpu") if best is None else best)
    from lightning_fabric import Fabric

    strategy = "auto"
    if num_processes * num_nodes > 1:
        strategy = "ddp" if "LOCAL_RANK" in os.environ else "ddp_spawn"
    wanted: Any = precision
    return Fabric(
        accelerator=device, devices=num_processes, num_nodes=num_nodes, precision=wanted, strategy=strategy
    )


def unwrapped(model: Any, fabric: Any) -> nn.Module:
    """The model without what Fabric wrapped around it."""
    return model if fabric is None or isinstance(fabric, OneProcess) else model.module
