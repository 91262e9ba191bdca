"""The folder of a diffusion run: what it is, its images, its checkpoints and what each look saw.

``run.json`` settings and a description of the data · ``images.npz`` the training images · ``state/`` from which a
killed run goes on · ``checkpoints/step-N/`` what :meth:`DDPM.load` reads · ``looks/step-N.npz``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.files import (
    DamagedFileError,
    read_checked_json,
    replacing,
    replacing_folder,
    write_checked_json,
)
from equipoise.datasets.home import load_npz
from equipoise.datasets.labeled_images import LabeledImages

if TYPE_CHECKING:
    from equipoise.generative.ddpm import DDPM
    from equipoise.generative.monitor import Look

KIND = "equipoise diffusion run"
FORMAT = 1
SHOWN = 12  # samples of a class that are kept as pictures at each look


@dataclass(frozen=True)
class SavedLook:
    """One look as the folder keeps it; ``table`` counts all samples, the pictures are some of each class."""

    step: int
    table: pd.DataFrame
    samples: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int64]
    index: npt.NDArray[np.int64]
    distance: npt.NDArray[np.float64]
    how: dict[str, Any]


class RunFolder:
    """A diffusion run on disk; ``title`` is a name for pages on which the folder's own would not tell it apart.

    Parameters
    ----------
    path : path
        The folder.
    record : dict
        What ``run.json`` holds: the settings and a description of the images.
    """

    title: str = ""

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path, self.record = path, record

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], record: Mapping[str, Any], data: LabeledImages
    ) -> RunFolder:
        """A new run; a folder that holds anything is refused.

        Parameters
        ----------
        path : path
            The folder.
        record : mapping
            The settings of the run and a description of its images.
        data : LabeledImages
            The images.

        Returns
        -------
        RunFolder
            The run.

        Raises
        ------
        FileExistsError
            If the folder holds anything.
        """
        target = Path(path)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileExistsError(f"{target} already exists and is not an empty folder: choose another")
        whole = {"kind": KIND, "format": FORMAT, **record}
        with replacing_folder(target) as temporary:
            _write_images(temporary / "images.npz", data)
            write_checked_json(temporary / "run.json", whole)
        return cls(target, whole)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> RunFolder:
        """An existing run, or say what is wrong with the folder.

        Parameters
        ----------
        path : path
            The folder.

        Returns
        -------
        RunFolder
            The run.

        Raises
        ------
        FileNotFoundError
            If there is no run.
        """
        source = Path(path)
        if not source.is_dir():
            raise FileNotFoundError(f"no such folder: {source}")
        if not (source / "run.json").is_file():
            raise FileNotFoundError(f"{source} holds no diffusion run: there is no run.json in it")
        record = read_checked_json(source / "run.json")
        if record.get("kind") != KIND or record.get("format") != FORMAT:
            raise DamagedFileError(
                f"{source / 'run.json'} does not describe a diffusion run of format {FORMAT}"
            )
        return cls(source, record)

    @staticmethod
    def is_run(path: str | os.PathLike[str]) -> bool:
        """Whether a folder holds a diffusion run.

        Parameters
        ----------
        path : path
            The folder.

        Returns
        -------
        bool
            Whether it does.
        """
        return (Path(path) / "run.json").is_file()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the model."""
        settings: dict[str, Any] = self.record["settings"]
        return settings

    @property
    def names(self) -> tuple[str, ...]:
        """The classes, in the order of their codes."""
        return tuple(self.record["data"]["classes"])

    @property
    def name(self) -> str:
        """What pages call the run."""
        return self.title or self.path.resolve().name

    @property
    def state(self) -> Path:
        """The folder from which a killed training goes on."""
        return self.path / "state"

    def update(self, **changes: Any) -> None:
        """Change the record.

        Parameters
        ----------
        **changes : Any
            Entries of the record.
        """
        self.record = {**self.record, **changes}
        write_checked_json(self.path / "run.json", self.record)

    def images(self) -> LabeledImages:
        """The images of the run, exactly those it was started with.

        Returns
        -------
        LabeledImages
            The images.

        Raises
        ------
        FileNotFoundError
            If they were taken out of the folder.
        """
        source = self.path / "images.npz"
        if not source.is_file():
            raise FileNotFoundError(
                f"{source} is missing: `equipoise diffusion monitor {self.path} DATA` puts it back"
            )
        arrays = load_npz(source, "images", "codes")
        described = self.record["data"]
        data = LabeledImages(
            np.asarray(arrays["images"], dtype=np.float32),
            np.asarray(arrays["codes"], dtype=np.int64),
            self.names,
            described["name"],
        )
        self.check_data(data, str(source))
        return data

    def check_data(self, data: LabeledImages, where: str) -> None:
        """Refuse images that are not those of this run, and say in what they differ.

        Parameters
        ----------
        data : LabeledImages
            The images.
        where : str
            What to call the place that the images came from.

        Raises
        ------
        ValueError
            If they are other images.
        """
        was = self.record["data"]
        if data.fingerprint == was["fingerprint"]:
            return
        for what, now, then in (
            ("the classes were", list(data.classes), was["classes"]),
            ("the size was", list(data.shape), was["shape"]),
            ("the counts were", data.counts.tolist(), was["counts"]),
        ):
            if now != then:
                raise ValueError(
                    f"{self.path} holds a run on other images than {where}: {what} {then}, now {now}"
                )
        raise ValueError(
            f"{self.path} holds a run on other images than {where}: as many, but with other pixels"
        )

    def put_images(self, data: LabeledImages) -> None:
        """Write the images of the run, if they are missing.

        Parameters
        ----------
        data : LabeledImages
            The images.
        """
        if not (self.path / "images.npz").is_file():
            _write_images(self.path / "images.npz", data)

    def checkpoint(self, step: int) -> Path:
        """Where the network of a step is.

        Parameters
        ----------
        step : int
            The training step.

        Returns
        -------
        Path
            Its folder.
        """
        return self.path / "checkpoints" / f"step-{step:07d}"

    def checkpoints(self) -> dict[int, Path]:
        """The saved networks by step.

        Returns
        -------
        dict of int to Path
            The folder of each step.
        """
        found = sorted((self.path / "checkpoints").glob("step-*"))
        return {int(path.name.removeprefix("step-")): path for path in found}

    def load(self, step: int) -> DDPM:
        """The network of a step, refused if it is not one of this run's.

        Parameters
        ----------
        step : int
            The training step.

        Returns
        -------
        DDPM
            The model.

        Raises
        ------
        ValueError
            If it is not one of this run.
        """
        from equipoise.generative.ddpm import DDPM

        model = DDPM.load(self.checkpoint(step))
        described = self.record["data"]
        for what, now, then in (
            ("the classes", model.classes_.tolist(), list(self.names)),
            ("the size", list(model.mean_.shape), described["shape"]),
            ("the network", model.preset, self.settings["preset"]),
            ("conditional", model.conditional, self.settings["conditional"]),
        ):
            if now != then:
                raise ValueError(
                    f"{self.checkpoint(step)} is a checkpoint of another model than {self.path}: "
                    f"{what} should be {then}, got {now}"
                )
        return model

    def keep(self, step: int, look: Look, model: DDPM, how: dict[str, Any]) -> None:
        """Write what a look saw: all figures, and the first few samples of each class as pictures.

        Parameters
        ----------
        step : int
            The training step.
        look : Look
            What was seen.
        model : DDPM
            The model, whose network is saved beside.
        how : dict
            How the look was made.
        """
        few = np.concatenate(
            [np.flatnonzero(look.labels == code)[:SHOWN] for code in range(len(self.names))]
        ).astype(np.int64)
        samples = look.samples[few].numpy() * model.scale_ + model.mean_
        columns: dict[str, Any] = {f"table_{name}": column.to_numpy() for name, column in look.table.items()}
        target = self.path / "looks" / f"step-{step:07d}.npz"
        with replacing(target) as temporary, temporary.open("wb") as file:
            np.savez_compressed(
                file,
                samples=samples.astype(np.float32),
                codes=look.labels[few],
                index=look.neighbors.index[few],
                distance=look.neighbors.distance[few],
                how=np.array(json.dumps(how, sort_keys=True)),
                **columns,
            )

    def look(self, step: int) -> SavedLook:
        """What a look saw.

        Parameters
        ----------
        step : int
            The training step.

        Returns
        -------
        SavedLook
            The figures and a few samples.
        """
        arrays: dict[str, Any] = load_npz(self.path / "looks" / f"step-{step:07d}.npz")
        columns = {k.removeprefix("table_"): v for k, v in arrays.items() if k.startswith("table_")}
        return SavedLook(
            step,
            pd.DataFrame({"step": step, **columns}),
            arrays["samples"],
            arrays["codes"],
            arrays["index"],
            arrays["distance"],
            json.loads(str(arrays["how"])),
        )

    def look_steps(self) -> list[int]:
        """The steps at which there was a look.

        Returns
        -------
        list of int
            The steps, in order.
        """
        return [
            int(path.stem.removeprefix("step-")) for path in sorted((self.path / "looks").glob("step-*.npz"))
        ]

    def table(self) -> pd.DataFrame:
        """All looks, a line per class and look.

        Returns
        -------
        DataFrame
            The figures of every class at every look.

        Raises
        ------
        ValueError
            If there was no look yet.
        """
        steps = self.look_steps()
        if not steps:
            raise ValueError(f"{self.path} holds no looks yet: let the training reach its first one")
        return pd.concat([self.look(step).table for step in steps], ignore_index=True)


def _write_images(path: Path, data: LabeledImages) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, images=data.images, codes=data.codes, classes=np.array(data.classes))
