"""Everything that Equipoise saves, as pairs of functions: write version 0 or 1 to a place, and read its answer."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from equipoise._core.files import replacing_together, write_json, write_text
from equipoise._core.sealed import open_sealed, sealing

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0.5).astype(int)
IMAGES = RNG.normal(size=(12, 8, 8)).astype(np.float32)


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


@functools.cache
def fitted(kind: str, version: int) -> Any:
    if kind == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(4, random_state=version).fit(X, Y)
    from equipoise.classifiers import ConditionalClassifier, MetaClassifier, NeuralClassifier
    from equipoise.generative import DDPM

    network = NeuralClassifier(module_params={"hidden": (4,)}, epochs=2, random_state=version)
    if kind == "classifier":
        return network.fit(X, Y)
    if kind == "meta":
        return MetaClassifier("mwn", estimator=network, meta_set=3, random_state=version).fit(X, Y)
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


def _save_pipeline(place: Path, version: int) -> None:
    import skops.io

    with sealing(place) as temporary:
        skops.io.dump(fitted("forest", version), temporary / "pipeline.skops")
        np.savez_compressed(temporary / "operating.npz", held_out=X + version, truth=Y)
        write_json(temporary / "model.json", {"version": version})


def _pipeline_answer(place: Path) -> str:
    import skops.io

    from equipoise.advisor._safe_trees import check_tree_safety

    saved = open_sealed(place)
    with saved.reading("model.json"):
        version = saved.read_json("model.json")["version"]
    arrays = saved.read_arrays("operating.npz", "held_out", "truth")
    with saved.reading("pipeline.skops"):
        loaded = skops.io.loads(
            saved.read_bytes("pipeline.skops"), trusted=["sklearn.tree._tree.Tree", "numpy.dtype"]
        )
        check_tree_safety(loaded)
        return digest(version, arrays["held_out"], arrays["truth"], loaded.predict_proba(X))


def _save_together(place: Path, version: int) -> None:
    with replacing_together(place) as temporary:
        write_text(temporary / "report.html", f"<p>{version}</p>")
        _save_pipeline(temporary / "model", version)


def _together_answer(place: Path) -> str:
    answer = _pipeline_answer(place / "model")
    version = json.loads((place / "model" / "model.json").read_text())["version"]
    assert (place / "report.html").read_text() == f"<p>{version}</p>"
    return answer


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
    "classifier": _classifier("classifier"),
    "meta": _classifier("meta"),
    "conditional": _classifier("conditional"),
    "diffusion": Format(lambda place, version: fitted("diffusion", version).save(place), _diffusion_answer),
    "diffusion run": Format(_save_run, _run_answer),
    "pipeline": Format(_save_pipeline, _pipeline_answer),
    "report and model": Format(_save_together, _together_answer),
}
