"""Checkpoints: safetensors for the tensors, JSON for the rest; nothing that could run on loading."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from equipoise._core.checks import check_integer, check_type
from equipoise._core.files import DamagedFileError, recover, write_json
from equipoise._core.fingerprint import describe, environment, fingerprint
from equipoise._core.sealed import SEAL, SealedFolder, open_sealed, sealing
from equipoise.training.callbacks import Callback

if TYPE_CHECKING:
    from equipoise.training.loop import Run

FORMAT = 1
_TENSORS, _TREE = "tensors.safetensors", "tree.json"


def pack(value: Any, tensors: dict[str, Tensor], path: str = "state") -> Any:
    """Move the tensors of a nested state into ``tensors``; what is left is JSON.

    >>> found = {}
    >>> pack({0: [torch.ones(2), 1.5]}, found)
    {'dict': [[0, [{'tensor': 'state.0.0'}, 1.5]]]}
    >>> list(found)
    ['state.0.0']
    """
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.ascontiguousarray(value))
    if isinstance(value, Tensor):
        tensors[path] = value.detach().cpu().contiguous().clone()
        return {"tensor": path, **_layout(value)}
    if isinstance(value, dict):
        return {"dict": [[_key(key), pack(item, tensors, f"{path}.{key}")] for key, item in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [pack(item, tensors, f"{path}.{number}") for number, item in enumerate(value)]}
    if isinstance(value, list):
        return [pack(item, tensors, f"{path}.{number}") for number, item in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a checkpoint holds tensors, numbers, strings, lists and dicts; {path} is {value!r}")


_LAYOUTS = {"channels_last": torch.channels_last, "channels_last_3d": torch.channels_last_3d}


def _layout(tensor: Tensor) -> dict[str, str]:
    """The order of the values in memory, if unusual: fused optimizers pair weights and momenta by it."""
    if tensor.is_contiguous():
        return {}
    ranks = {4: "channels_last", 5: "channels_last_3d"}
    name = ranks.get(tensor.ndim)
    return {"layout": name} if name and tensor.is_contiguous(memory_format=_LAYOUTS[name]) else {}


def _key(key: Any) -> Any:
    if isinstance(key, (str, int)):
        return key
    raise TypeError(f"the keys of a checkpoint are strings and integers, got {key!r}")


def unpack(tree: Any, tensors: dict[str, Tensor]) -> Any:
    """The inverse of :func:`pack`."""
    if isinstance(tree, list):
        return [unpack(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "tensor" in tree:
        tensor = tensors[tree["tensor"]]
        return tensor.contiguous(memory_format=_LAYOUTS[tree["layout"]]) if "layout" in tree else tensor
    if "tuple" in tree:
        return tuple(unpack(item, tensors) for item in tree["tuple"])
    return {key: unpack(item, tensors) for key, item in tree["dict"]}


def save_state(folder: str | os.PathLike[str], state: Any) -> None:
    """Write a nested state as a sealed folder, which appears whole or not at all.

    Parameters
    ----------
    folder : path
        Where to write; what is there is replaced.
    state : Any
        Nested dicts and lists of tensors, arrays, numbers and texts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/state", {"weights": torch.ones(2)})
    ...     print(load_state(f"{folder}/state"))
    {'weights': tensor([1., 1.])}
    """
    from safetensors.torch import save

    tensors: dict[str, Tensor] = {}
    tree = pack(state, tensors)
    with sealing(folder) as temporary:
        (temporary / _TENSORS).write_bytes(save(tensors))
        write_json(temporary / _TREE, {"format": FORMAT, "state": tree})


def load_state(folder: str | os.PathLike[str] | SealedFolder) -> Any:
    """Read what :func:`save_state` wrote, or say what is wrong with it.

    Parameters
    ----------
    folder : path
        The folder.

    Returns
    -------
    Any
        The state.

    Raises
    ------
    DamagedFileError
        If a file is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    saved = open_sealed(folder)
    tree = saved.read_json(_TREE)
    if tree.get("format") != FORMAT:
        raise DamagedFileError(f"{saved.path / _TREE} must have format {FORMAT}, got {tree.get('format')!r}")
    try:
        tensors = load(saved.read_bytes(_TENSORS))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DamagedFileError(f"{saved.path / _TENSORS} is not readable: {error}") from error
    with saved.reading(_TREE):
        return unpack(tree["state"], tensors)


def check_finite(weights: dict[str, Tensor]) -> None:
    """Refuse weights that are not numbers: their predictions would not be either.

    Parameters
    ----------
    weights : dict of str to Tensor
        The weights, by name.

    Raises
    ------
    ValueError
        If one is not finite.

    Examples
    --------
    >>> check_finite({"head": torch.tensor([float("nan")])})
    Traceback (most recent call last):
    ...
    ValueError: the weights head must be finite
    """
    for name, weight in check_type("weights", weights, dict).items():
        if not check_type(name, weight, Tensor).isfinite().all():
            raise ValueError(f"the weights {name} must be finite")


class Checkpoint(Callback):
    """Save the run as it goes, and go on from the last save. Belongs last in the list of callbacks.

    A run that was killed at any moment and is started again with the same arguments ends with the same bits.

    Parameters
    ----------
    folder : path
        Where the saves lie, one folder each; made if it does not exist.
    every : int
        Epochs between saves; the last epoch is always saved.
    keep : int
        Saves to keep.
    identity : dict, optional
        JSON values that say what run this is. A save with another identity is refused, not overwritten. One
        from another CPU or other versions is continued with a warning.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every: int = 1,
        keep: int = 1,
        identity: dict[str, Any] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.every, self.keep = check_integer("every", every, low=1), check_integer("keep", keep, low=1)
        self.identity = {} if identity is None else identity

    def saves(self) -> list[Path]:
        """The complete saves, oldest first.

        Returns
        -------
        list of Path
            Their folders.
        """
        return sorted(path for path in self.folder.glob("epoch-*") if (path / SEAL).is_file())

    def on_start(self, run: Run) -> None:
        if run.fabric.is_global_zero and self.folder.is_dir():
            recover(self.folder)
        saves = self.saves()
        if not saves:
            return
        state = load_state(saves[-1])
        for name in sorted({*self.identity, *state["identity"]}):
            was, now = state["identity"].get(name), self.identity.get(name)
            if was != now:
                raise ValueError(
                    f"{self.folder} holds another run: {name} was {was}, is {now}; choose another folder"
                )
        self._compare_environment(state.get("environment", {}))
        run.load_state_dict(state["run"])

    def _compare_environment(self, was: dict[str, str]) -> None:
        now = environment()
        moved = [f"{name} was {was[name]}, is {now.get(name)}" for name in was if was[name] != now.get(name)]
        if moved:
            warnings.warn(
                f"{self.folder} was begun elsewhere ({'; '.join(moved)}): the result may differ from that of an "
                "uninterrupted run",
                UserWarning,
                stacklevel=2,
            )

    def on_epoch_end(self, run: Run, record: dict[str, float]) -> None:
        due = run.epoch % self.every == 0 or run.epoch == run.epochs or run.stop
        if due and run.fabric.is_global_zero:
            target = self.folder / f"epoch-{run.epoch:06d}"
            save_state(
                target,
                {"identity": self.identity, "environment": environment(), "run": run.state_dict()},
            )
            kept = self.saves()[-self.keep :]
            for old in self.folder.glob("epoch-*"):  # also what a kill left half-removed
                if old not in kept:
                    shutil.rmtree(old, ignore_errors=True)
        if due:
            run.fabric.barrier()


_NOT_THE_RUN = {"checkpoint", "verbose", "device", "num_processes", "decision_prior", "random_state"}


def run_identity(estimator: Any, seed: int, **data: Any) -> dict[str, str]:
    """What a checkpoint must agree on with the run that goes on from it: an estimator's settings, seed and data.

    >>> from sklearn.linear_model import LogisticRegression
    >>> run_identity(LogisticRegression(C=2.0), 0, inputs=torch.zeros(3, 2))["C"]
    '2.0'
    """
    settings = estimator.get_params(deep=False).items()
    said = {name: describe(value) for name, value in settings if name not in _NOT_THE_RUN}
    return {**said, "seed": str(seed), "data": fingerprint(data)}
