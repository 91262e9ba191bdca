"""How much memory there is, so that a file that declares more is refused before it is read."""

from __future__ import annotations

import math
import os
from pathlib import Path

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")
_CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> int | None:
    """Bytes that this process may still take, or ``None`` where the system does not say."""
    limits = [n for n in (_system_memory(), _container_memory()) if n is not None]
    return min(limits, default=None)


def refuse_if_too_large(source: str | os.PathLike[str], declared: int) -> None:
    """Refuse a file whose contents would not fit into the memory that is left.

    Parameters
    ----------
    source
        The file, for the message.
    declared
        Bytes that its header declares.

    Raises
    ------
    ValueError
        If there are fewer bytes left.
    """
    available = available_memory()
    if available is not None and declared > available:
        raise ValueError(
            f"{source} declares {spoken_size(declared)} of data and {spoken_size(available)} of memory are free: "
            "take fewer rows or columns, or a machine with more memory"
        )


def spoken_size(size: int) -> str:
    """A number of bytes for people.

    >>> spoken_size(1_500_000)
    '1.5 MB'
    """
    power = min(int(math.log10(max(size, 1))) // 3, len(_UNITS) - 1)
    return f"{size / 1000**power:,.{min(power, 1)}f} {_UNITS[power]}"


def _system_memory() -> int | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None


def _container_memory() -> int | None:
    try:
        limit, used = ((_CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return max(int(limit) - int(used), 0)
    except (OSError, ValueError):  # no such limit
        return None
