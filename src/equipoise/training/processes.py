"""Rows and sums across processes; in a single one nothing happens."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, distributed

from equipoise.training.checkpoint import load_state, save_state


def launched(fabric: Any, work: Callable[[Any, Any], dict[str, Any]], job: Any) -> dict[str, Any]:
    """The state ``work(fabric, job)``, made here or in the processes that the fabric starts.

    From those it comes as a file: the pipe that carries what a process returns is read only when all have
    ended, and holds 64 KB.
    """
    if fabric.world_size == 1:
        return work(fabric, job)
    with tempfile.TemporaryDirectory() as folder:
        state: dict[str, Any] = load_state(fabric.launch(_there, work, job, folder))
    return state


def _there(fabric: Any, work: Callable[[Any, Any], dict[str, Any]], job: Any, folder: str) -> str:
    state = work(fabric, job)
    target = os.path.join(folder, str(fabric.global_rank))
    save_state(target, state)
    return target


def several_processes() -> bool:
    return distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1


def gather_rows(*tensors: Tensor) -> tuple[list[Tensor], slice]:
    """The rows of all processes, in the order of their ranks, and where one's own stand.

    Processes may hold different numbers of rows.

    >>> gather_rows(torch.zeros(3, 2))[1]
    slice(0, 3, None)
    """
    n = len(tensors[0])
    if not several_processes():
        return list(tensors), slice(0, n)
    world, rank = distributed.get_world_size(), distributed.get_rank()
    sizes = [torch.zeros(1, dtype=torch.long, device=tensors[0].device) for _ in range(world)]
    distributed.all_gather(sizes, torch.full_like(sizes[0], n))
    counts = [int(size) for size in sizes]
    whole = []
    for tensor in tensors:
        padded = tensor.new_zeros(max(counts), *tensor.shape[1:])
        padded[:n] = tensor
        parts = [torch.empty_like(padded) for _ in range(world)]
        distributed.all_gather(parts, padded)
        whole.append(torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)]))
    start = sum(counts[:rank])
    return whole, slice(start, start + n)


def sum_over_processes(tensors: Sequence[Tensor]) -> None:
    """Add up in place, all tensors in one message."""
    if not several_processes() or not tensors:
        return
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    distributed.all_reduce(flat)
    for tensor, part in zip(tensors, torch.split(flat, [t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))
