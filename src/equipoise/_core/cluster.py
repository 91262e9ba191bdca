"""A connection to a Dask cluster."""

from __future__ import annotations

import logging
from typing import Any

from equipoise._core.extras import optional

_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")


class EngineError(ConnectionError):
    """A cluster that is not there, or no more."""


def cluster_address(engine: str) -> str | None:
    """The scheduler's address in ``dask://host:port`` or ``tcp://host:port``; ``None`` for ``local``.

    >>> cluster_address("dask://10.0.0.1:8786"), cluster_address("local")
    ('tcp://10.0.0.1:8786', None)
    """
    scheme, separator, rest = engine.partition("://")
    if engine == "local":
        return None
    if separator and rest and scheme in ("dask", *_SCHEMES):
        return f"tcp://{rest}" if scheme == "dask" else engine
    raise ValueError(
        f"engine must be 'local' or the address of a Dask cluster (tcp://host:port), got {engine!r}"
    )


def distributed() -> Any:
    """The module, or a sentence that says how to install it."""
    return optional("distributed", "a Dask engine needs distributed")


def connect(address: str, timeout: float = 10.0) -> Any:
    """A client of the cluster, which has at least one worker.

    Raises
    ------
    EngineError
        If no cluster answers at the address, or it has no workers.
    """
    # a lost connection is said in our own sentence; the client would print its traceback as well
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = distributed().Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise EngineError(f"no Dask cluster answers at {address}") from error
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        client.close()
        raise EngineError(f"the Dask cluster at {address} has no workers") from error
    return client
