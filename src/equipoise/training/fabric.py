"""Device, precision and processes, by Lightning Fabric."""

from __future__ import annotations

import os
from typing import Any

from equipoise._core.checks import check_integer


def make_fabric(
    device: str = "cpu", precision: str = "32-true", num_processes: int = 1, num_nodes: int = 1
) -> Any:
    """A Fabric.

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

    >>> make_fabric().world_size
    1
    """
    from lightning_fabric import Fabric

    check_integer("num_processes", num_processes, low=1)
    check_integer("num_nodes", num_nodes, low=1)
    strategy = "auto"
    if num_processes * num_nodes > 1:
        strategy = "ddp" if "LOCAL_RANK" in os.environ else "ddp_spawn"
    wanted: Any = precision
    return Fabric(
        accelerator=device, devices=num_processes, num_nodes=num_nodes, precision=wanted, strategy=strategy
    )
