"""Everything that Equipoise saves, as pairs of functions: write version 0 or 1 to a place, and read its answer."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from equipoise._core.files import replacing_together, write_checked_json
from equipoise._core.sealed import SEAL, _entry, open_sealed, sealing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0.5).astype(int)
IMAGES = RNG.normal(size=(12, 8, 8)).astype(np.float32)
NAMES = ("a", "b", "c")
QUICK = "logistic"  # the treatment of the advisor that is saved most often
RETUNED = {"cost": {"fp": 1, "fn": 2}}


@dataclass(frozen=True)
class Format:
    """``save(place, version)`` writes; ``answer(place)`` reads, and is equal for equal saves only."""

    save: Callable[[Path, int], None]
    answer: Callable[[Path], str]


def digest(*values: Any) -> str:
    found = hashlib.sha256()
    for value in values:
        found.update(
            np.ascontiguousarray(value).tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
        )
    return found.hexdigest()


def seal_again(folder: Path) -> None:
    """As one would who makes up a folder."""
    for seal in sorted(folder.rglob(SEAL), key=lambda path: -len(path.parts)):
        inside = seal.parent
        names = [p for p in inside.rglob("*") if p.is_file() and p != seal]
        entries = {p.relative_to(inside).as_posix(): _entry(p.read_bytes()) for p in names}
        write_checked_json(seal, {"format": 1, "files": entries})


@functools.cache
def fitted(kind: str, version: int) -> Any:
    from equipoise.classifiers import (
        AutoencoderClassifier,
        ConditionalClassifier,
        MetaClassifier,
        NeuralClassifier,
    )
    from equipoise.generative import DDPM

    network = NeuralClassifier(module_params={"hidden": (4,)}, epochs=2, random_state=version)
    if kind == "classifier":
        return network.fit(X, Y)
    if kind == "meta":
        return MetaClassifier("mwn", estimator=network, meta_set=3, random_state=version).fit(X, Y)
    if kind == "autoencoder":
        return AutoencoderClassifier(latent=2, epochs=1, random_state=version).fit(X, Y)
    if kind == "conditional":
        return ConditionalClassifier(loss="vs", estimator=network, random_state=version).fit(X, Y)
    return DDPM(preset="tiny", steps=2, noise_steps=8, n_samples=2, random_state=version).fit(IMAGES)


def _classifier(kind: str) -> Format:
    def answer(place: Path) -> str:
        loaded = type(fitted(kind, 0)).load(place)
        return digest(loaded.predict_proba(X))

    return Format(lambda place, version: fitted(kind, version).save(place), answer)


def _diffusion_answer(place: Path) -> str:
    from equipoise.generative import DDPM

    return digest(DDPM.load(place).sample(2, random_state=0))


@functools.cache
def advisor(treatments: str, version: int) -> Any:
    """A real advisor, fitted once in a session of tests; version 1 is version 0 with other costs."""
    import equipoise
    from equipoise.advisor import Advisor

    place = Path(os.environ["EQUIPOISE_ATTACK"]) / treatments
    if version:
        return advisor(treatments, 0).retuned(**RETUNED)
    if not place.is_dir():
        names = treatments.split("+")
        Advisor(cost={"fp": 1, "fn": 20}, treatments=names, trials=0, budget=600, n_jobs=1).fit(X, Y).save(
            place
        )
    return equipoise.load(place)


def advisor_answer(place: Path) -> str:
    import equipoise

    loaded = equipoise.load(place)
    return digest(
        loaded.predict_proba(X), loaded.predict(X), loaded.decision_, loaded.held_out_, loaded.info_
    )


def _advisor(treatments: str) -> Format:
    return Format(lambda place, version: advisor(treatments, version).save(place), advisor_answer)


def _retune(place: Path, version: int) -> None:
    """Version 1 is made by the command, in the place of version 0."""
    if not version:
        advisor(QUICK, 0).save(place)
        return
    from equipoise.cli import main

    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        assert main(["retune", str(place), "--in-place", "--cost", "fp=1,fn=2"]) == 0


def _report(place: Path, version: int) -> None:
    """The files of a report, written by its own function; only what the page says is made up."""
    from equipoise.advisor import page, reasons, writing
    from equipoise.report import Report, Section, Text

    page.build_report = lambda *about: Report(f"Version {version}", [Section("One", [Text("text")])])
    reasons.find_reasons = lambda *about: None
    table: Any = SimpleNamespace(image_shape=None)
    writing.write_fitted(advisor(QUICK, version), table, place, diagnosis=table)


def _report_answer(place: Path) -> str:
    answer = advisor_answer(place / "model")
    pages = [(place / f"report.{kind}").read_bytes() for kind in ("html", "md", "json")]
    return digest(answer, *pages)


def _store(place: Path, version: int) -> None:
    """A study of two cells, or of four."""
    from equipoise.studies import Spec, run_study

    spec = Spec(
        name="study", title="A study", run_cell=_cell, grid={"index": list(range(4 if version else 2))}
    )
    run_study(spec, place / "s.sqlite", jobs=1, resume=True, verbose=False)


def _cell(index: int) -> dict[str, Any]:
    return {"mean": np.random.default_rng(index).normal(size=9).mean(), "index squared": index**2}


def _store_file_answer(place: Path) -> str:
    """All that the store says."""
    from equipoise.studies import Store

    with Store(place / "s.sqlite", read_only=True) as store:
        return digest(store.studies(), list(store.records("study")), store.statuses(["x"]))


def _store_answer(place: Path) -> str:
    """The first two cells, which are never lost; cells that are there besides must be right."""
    from equipoise.studies import Store

    with Store(place / "s.sqlite", read_only=True) as store:
        done = [r for r in store.records("study") if r["status"] == "done"]
    results = {record["settings"]["index"]: record["result"] for record in done}
    assert all(result == _cell(index) for index, result in results.items())
    return digest(results[0], results[1])


def _save_folder(place: Path, version: int) -> None:
    """The least that can be sealed."""
    with sealing(place) as temporary:
        for name in NAMES:
            (temporary / name).write_text(str(version))


def _folder_answer(place: Path) -> str:
    """The version, or both if two saves are mixed."""
    saved = open_sealed(place)
    return " and ".join(sorted({saved.read_bytes(name).decode("latin-1") for name in NAMES}))


def _save_together(place: Path, version: int) -> None:
    with replacing_together(place) as bundle:
        (bundle / "page").write_text(str(version))
        _save_folder(bundle / "model", version)


def _together_answer(place: Path) -> str:
    return f"{_folder_answer(place / 'model')}, {(place / 'page').read_text()}"


def _save_run(place: Path, version: int) -> None:
    from equipoise.datasets import LabeledImages
    from equipoise.generative import training_runs
    from equipoise.generative.folder import RunFolder

    if RunFolder.is_run(place):
        RunFolder.open(place).update(version=version)
        return
    data = LabeledImages(IMAGES[:, None], np.zeros(len(IMAGES), dtype=np.int64), ("one",), "images")
    RunFolder.create(
        place, {"version": version, "data": training_runs._description(data), "settings": {}}, data
    )


def _run_answer(place: Path) -> str:
    from equipoise.generative.folder import RunFolder

    folder = RunFolder.open(place)
    return digest(json.dumps(folder.record, sort_keys=True), folder.images().images)


FORMATS = {
    "sealed folder": Format(_save_folder, _folder_answer),
    "page and folder": Format(_save_together, _together_answer),
    "classifier": _classifier("classifier"),
    "meta": _classifier("meta"),
    "conditional": _classifier("conditional"),
    "diffusion": Format(lambda place, version: fitted("diffusion", version).save(place), _diffusion_answer),
    "diffusion run": Format(_save_run, _run_answer),
    "autoencoder": _classifier("autoencoder"),
    "advisor": _advisor("lightgbm+logistic"),
    "advisor with CatBoost": _advisor("catboost"),
    "advisor with forests": _advisor("extra-trees"),
    "advisor with a network": _advisor("network-logit-adjusted"),
    "advisor with an auto-encoder": _advisor("latent-mixing"),
    "logistic advisor": _advisor(QUICK),
    "retune": Format(_retune, advisor_answer),
    "report": Format(_report, _report_answer),
    "store": Format(_store, _store_answer),
    "store file": Format(_store, _store_file_answer),
}
