"""Train a diffusion model into a folder, go on with a killed run, and look again at what it saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import nnls

import equipoise
from equipoise._core.checks import (
    FloatArray,
    check_choice,
    check_distribution,
    check_in_range,
    check_integer,
    check_positive,
)
from equipoise._core.progress import track
from equipoise._core.random import derive_seed
from equipoise.datasets.labeled_images import LabeledImages, read_labeled_images
from equipoise.generative.clock import read_clock
from equipoise.generative.ddpm import DDPM
from equipoise.generative.folder import RunFolder
from equipoise.generative.monitor import Look
from equipoise.generative.theory_advice import evening_shares, prescribe, shares_in_words
from equipoise.networks.unet import PRESETS, UNet
from equipoise.training import TrainingDiverged
from equipoise.training.fabric import check_device

Tell = Callable[[str], None]

_DEFAULTS: dict[str, Any] = {
    "preset": "small",
    "conditional": False,
    "steps": 5000,
    "batch_size": 64,
    "looks_per_decade": 5,
    "held_out_fraction": 0.1,
    "stop": None,
    "second": "any",
    "noise_steps": 1000,
    "average": None,
    "label_dropout": 0.0,
    "assigner": "convnet",
    "device": "cpu",
    "precision": "32-true",
    "num_processes": 1,
    "seed": 0,
}
_BY_PRESET: dict[str, dict[str, Any]] = {
    "tiny": {"lr": 1e-3, "n_samples": 200, "stride": 50},
    "small": {"lr": 5e-4, "n_samples": 200, "stride": 50},
    "paper": {"lr": 1e-4, "n_samples": 500, "stride": None},
}
_MAY_CHANGE = ("steps", "device", "num_processes")  # when a run goes on
_READING = ("size", "classes", "limit", "labels")
FEWEST = 8  # images of a class: some to learn, some to hold out, some to tell samples by


def look_steps(steps: int, per_decade: int, first: int = 10) -> list[int]:
    """Log-spaced steps on a grid that does not depend on the end, and the end (without its near neighbor).

    >>> look_steps(100, 3)
    [10, 22, 46, 100]
    """
    check_integer("steps", steps, low=1)
    check_integer("looks_per_decade", per_decade, low=1)
    grid = 10 ** (np.arange(0, 10 * per_decade + 1) / per_decade)
    return sorted({round(x) for x in grid.tolist() if first <= x < 0.9 * steps} | {steps})


def start_run(
    source: str | Path,
    out: str | Path,
    options: Mapping[str, Any],
    *,
    shares: Mapping[str, float] | None = None,
    equalize: str | None = None,
    equalize_by: str | Path | None = None,
    tell: Tell = print,
) -> RunFolder:
    """Begin a run in a new folder and train it to the end.

    ``options`` holds what differs from the defaults and how to read the images. The classes
    are drawn in ``shares``, as the theory prescribes (``equalize``), or so that those of an earlier run would have
    been memorized together (``equalize_by``, its folder).
    """
    if Path(out).exists() and RunFolder.is_run(out):
        raise FileExistsError(
            f"{out} already holds a run: go on with it by --resume, or choose another folder"
        )
    settings = _settings(options)
    reading = {key: options[key] for key in _READING if options.get(key) is not None}
    data = read_labeled_images(source, seed=settings["seed"], **reading)
    _check_data(data, settings["preset"])
    tell(str(data))
    record: dict[str, Any] = {
        "equipoise": equipoise.__version__,
        "settings": settings,
        "reading": {"source": str(source), **{key: _plain(value) for key, value in reading.items()}},
        "data": _description(data),
        "prescription": None,
    }
    if sum(way is not None for way in (shares, equalize, equalize_by)) > 1:
        raise ValueError("the shares come from one place: keep one of --shares, --equalize and --equalize-by")
    if shares is not None:
        settings["class_shares"] = _shares(shares, data)
    if equalize is not None:
        prescription = prescribe(data, equalize, seed=settings["seed"])
        settings["class_shares"] = prescription.shares.tolist()
        record["prescription"] = prescription.record()
        tell(prescription.in_words(data.classes))
    if equalize_by is not None:
        settings["class_shares"] = _evened(RunFolder.open(equalize_by), data).tolist()
        tell(f"Drawn to even out that run: {shares_in_words(data.classes, settings['class_shares'])}.")
    folder = RunFolder.create(out, record, data)
    return _train(folder, data, tell)


def _evened(earlier: RunFolder, data: LabeledImages) -> FloatArray:
    """Shares by which the classes of an earlier run would have been memorized together."""
    if tuple(earlier.names) != tuple(data.classes):
        theirs, ours = (", ".join(names) for names in (earlier.names, data.classes))
        raise ValueError(f"{earlier.path} has the classes {theirs}; these images have {ours}")
    clock = read_clock(earlier.table(), earlier.names)
    times = np.array([estimate.value for estimate in clock.memorized])
    if not np.isfinite(times).all():
        late = ", ".join(
            name for name, time in zip(earlier.names, times, strict=True) if not np.isfinite(time)
        )
        raise ValueError(f"in {earlier.path} {late} was not memorized, so there is no time to even out")
    drawn = earlier.settings["class_shares"]
    return evening_shares(times, data.counts / data.counts.sum() if drawn is None else drawn)


def resume_run(
    out: str | Path,
    options: Mapping[str, Any],
    source: str | Path | None = None,
    *,
    tell: Tell = print,
) -> RunFolder:
    """Go on with a run to the same bits. ``steps`` may grow, device and processes change; ``source`` is checked."""
    folder = RunFolder.open(out)
    for key, now in options.items():
        if now is None or key in ("labels", *_MAY_CHANGE):
            continue
        was = folder.record["reading"].get(key) if key in _READING else folder.settings.get(key)
        if _plain(now) != was and not (key == "stride" and now == 0 and was is None):
            raise ValueError(
                f"{out} holds another run: {key.replace('_', '-')} was {was!r}, is {now!r}; choose another folder"
            )
    data = folder.images() if source is None else _read_again(folder, source)
    longer = options.get("steps")
    if longer is not None and longer < folder.settings["steps"]:
        raise ValueError(f"steps must be at least the {folder.settings['steps']} of {out}, got {longer}")
    changed = {key: options[key] for key in _MAY_CHANGE if options.get(key) is not None}
    if any(folder.settings.get(key) != value for key, value in changed.items()):
        folder.update(settings={**folder.settings, **changed})
    return _train(folder, data, tell)


def look_again(
    out: str | Path,
    source: str | Path | None = None,
    *,
    n_samples: int | None = None,
    stride: int | str | None = "same",
    second: str | None = None,
    tell: Tell = print,
) -> RunFolder:
    """Look again at every checkpoint, with other samples, all reverse steps, or another second neighbor.

    What has been looked at in this way already is not looked at again.
    """
    folder = RunFolder.open(out)
    data = folder.images() if source is None else _read_again(folder, source)
    folder.put_images(data)
    steps = folder.checkpoints()
    if not steps:
        raise ValueError(f"{folder.path} holds no checkpoints yet: let the training reach its first look")
    settings = {**folder.settings}
    settings["n_samples"] = n_samples or settings["n_samples"]
    settings["stride"] = settings["stride"] if stride == "same" else stride
    settings["second"] = second or settings["second"]
    model = _model(settings)
    how = _how(settings)
    due = [step for step in steps if not _seen(folder, step, how)]
    if due:
        watch = model.new_monitor(*_xy(data))
        how["accuracy"] = getattr(model, "assigner_accuracy_", None)
    for step in track(due, "looking"):
        network = folder.load(step).network_
        look = watch.examine(network, derive_seed(settings["seed"], "monitor again", step))
        folder.keep(step, look, model, how)
        tell(_line(step, max(steps), folder.names, look.table))
    return folder


def _settings(options: Mapping[str, Any]) -> dict[str, Any]:
    given = {key: value for key, value in options.items() if value is not None and key not in _READING}
    preset = check_choice("preset", given.get("preset", _DEFAULTS["preset"]), list(PRESETS))
    settings = {**_DEFAULTS, **_BY_PRESET[preset], "class_shares": None, **given}
    if settings["stride"] == 0:  # every reverse step
        settings["stride"] = None
    for key in ("steps", "batch_size", "looks_per_decade", "num_processes"):
        check_integer(key, settings[key], low=1)
    check_integer("seed", settings["seed"], low=0)
    check_integer("samples", settings["n_samples"], low=2)
    if settings["stride"] is not None:
        check_integer("reverse-steps", settings["stride"], low=2)
    check_positive("lr", settings["lr"])
    check_in_range("label-dropout", settings["label_dropout"], 0, 1, closed="left")
    if settings["label_dropout"] and not settings["conditional"]:
        raise ValueError("--label-dropout is for a conditional model: add --conditional")
    if settings["average"] is not None:
        check_in_range("average", settings["average"], 0, 1, closed="left")
    check_in_range("held-out", settings["held_out_fraction"], 0, 0.5)
    check_device(settings["device"])
    return settings


def _model(settings: Mapping[str, Any], **more: Any) -> DDPM:
    own = {key: value for key, value in settings.items() if key != "seed"}
    return DDPM(**own, random_state=settings["seed"], **more)


def _xy(data: LabeledImages) -> tuple[Any, Any]:
    return (data.images[:, 0] if data.images.shape[1] == 1 else data.images), data.labels


def _check_data(data: LabeledImages, preset: str) -> None:
    with torch.device("meta"):
        UNet(data.shape, preset)  # refuses images that are too small for it, before anything is written
    for code, (name, count) in enumerate(zip(data.classes, data.counts, strict=True)):
        if count < FEWEST:
            raise ValueError(f"class {name!r} has {count} images; at least {FEWEST} are needed")
        own = data.images[data.codes == code]
        if (own == own[:1]).all():
            raise ValueError(f"the images of class {name!r} are all the same: no copy of them can be told")


def _description(data: LabeledImages) -> dict[str, Any]:
    return {
        "name": data.name,
        "classes": list(data.classes),
        "counts": data.counts.tolist(),
        "shape": list(data.shape),
        "fingerprint": data.fingerprint,
    }


def _plain(value: Any) -> Any:
    """As JSON will give it back."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (list, tuple)):
        return list(value)
    return str(value) if isinstance(value, Path) else value


def _shares(shares: Mapping[str, float], data: LabeledImages) -> list[float]:
    for name in shares:
        check_choice("shares", name, data.classes)
    missing = [name for name in data.classes if name not in shares]
    if missing:
        raise ValueError(f"shares must name every class, {missing[0]!r} is missing")
    wanted = [float(shares[name]) for name in data.classes]
    return check_distribution("shares", wanted, tolerance=1e-3).tolist()


def _read_again(folder: RunFolder, source: str | Path) -> LabeledImages:
    reading = {key: value for key, value in folder.record["reading"].items() if key != "source"}
    data = read_labeled_images(source, seed=folder.settings["seed"], **reading)
    folder.check_data(data, str(source))
    return data


def _how(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: settings[key] for key in ("n_samples", "stride", "second")}


def _seen(folder: RunFolder, step: int, how: Mapping[str, Any]) -> bool:
    if step not in folder.look_steps():
        return False
    was = folder.look(step).how
    return all(was.get(key) == value for key, value in how.items())


def _train(folder: RunFolder, data: LabeledImages, tell: Tell) -> RunFolder:
    settings = folder.settings
    looks = look_steps(settings["steps"], settings["looks_per_decade"])
    teller = _Teller(folder, looks, tell)
    model = _model(settings, checkpoint=folder.state, looks=looks, keep=teller)
    teller.model = model
    try:
        model.fit(*_xy(data))
    except TrainingDiverged as error:
        raise ValueError(f"{error}: start anew with a smaller --lr than {settings['lr']:g}") from None
    return folder


class _Teller:
    """Keeps each look and its network in the folder, and says how far the run is."""

    model: DDPM

    def __init__(self, folder: RunFolder, looks: list[int], tell: Tell) -> None:
        self.folder, self.settings, self.looks, self.tell = folder, folder.settings, looks, tell
        self.seen: list[tuple[float, int]] = []

    def __call__(self, step: int, look: Look) -> None:
        how = {**_how(self.settings), "accuracy": getattr(self.model, "assigner_accuracy_", None)}
        self.model.save(self.folder.checkpoint(step))
        self.folder.keep(step, look, self.model, how)
        last = max(step, self.settings["steps"])
        line = _line(step, last, self.folder.names, look.table)
        self.seen.append((time.monotonic(), step))
        if step < last and len(self.seen) > 2:
            line += f"; about {_duration(self._left(step))} left"
        self.tell(line)

    def _left(self, step: int) -> float:
        """Seconds to the end, from what steps and looks have taken so far."""
        took = np.diff(np.array(self.seen), axis=0)
        rates, _ = nnls(np.column_stack([took[:, 1], np.ones(len(took))]), took[:, 0])
        looks = sum(1 for mark in self.looks if mark > step)
        return float(rates @ [self.settings["steps"] - step, looks])


def _line(step: int, last: int, names: tuple[str, ...], table: pd.DataFrame) -> str:
    shares = zip(table["label"].tolist(), table["n"].tolist(), table["fraction"].tolist(), strict=True)
    copies = ", ".join(
        f"{names[code]} {share:.0%}" if n else f"{names[code]} none drawn" for code, n, share in shares
    )
    return f"step {step:,} of {last:,}: copies {copies}"


def _duration(seconds: float) -> str:
    """A time as people say it.

    >>> _duration(59.0), _duration(600.0), _duration(9000.0)
    ('59 s', '10 min', '2.5 h')
    """
    if seconds < 99:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
