"""The model folder: a pipeline without pickle, and all that is needed to use it rightly.

``model.json`` records versions, columns, dtypes, classes, priors, the threshold and the data's fingerprint;
``pipeline.skops`` holds the fitted steps; ``operating.npz`` the out-of-fold predictions that a threshold can be
chosen on again without training.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import equipoise
from equipoise._core.checks import FloatArray, IntArray, check_distribution
from equipoise._core.files import read_json, replacing_folder, write_json
from equipoise._core.priors import correct_prior
from equipoise.advisor.compare.decisions import decide, threshold_of
from equipoise.datasets.schema import Schema

FORMAT = 1
PACKAGES = ("equipoise", "numpy", "scipy", "scikit-learn", "imbalanced-learn", "pandas", "skops", "torch")
#: Types outside skops' own list of safe ones that the treatments' pipelines are made of. They hold data only.
TRUSTED = frozenset({
    "equipoise.advisor.treatments._binning.QuantileBins",
    "imblearn.ensemble._forest.BalancedRandomForestClassifier",
    "imblearn.pipeline.Pipeline",
    "imblearn.under_sampling._prototype_selection._random_under_sampler.RandomUnderSampler",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
})  # fmt: skip


@dataclass(frozen=True)
class FittedModel:
    """A fitted pipeline with its columns, classes, priors and decision.

    Attributes
    ----------
    pipeline
        Gives probabilities under ``trained_prior``.
    weights
        Decision weights on probabilities at ``prior``: class = argmax p·w.
    prior, trained_prior
        The prior that predictions are corrected to, and the one the pipeline was trained to.
    held_out, truth
        Out-of-fold probabilities at the training data's prior ``data_prior``, and the true codes.
    """

    pipeline: Any
    schema: Schema
    classes: tuple[Any, ...]
    weights: FloatArray
    prior: FloatArray
    trained_prior: FloatArray
    data_prior: FloatArray
    held_out: FloatArray
    truth: IntArray
    info: dict[str, Any]

    @property
    def threshold(self) -> float | None:
        """The binary threshold on the positive class's probability."""
        return threshold_of(self.weights) if len(self.classes) == 2 else None

    def predict_proba(self, table: pd.DataFrame | npt.NDArray[Any]) -> FloatArray:
        """Probabilities at ``prior`` for a table whose columns fit."""
        X = self.schema.convert(table)
        raw = np.zeros((len(X), len(self.classes)))
        raw[:, self.pipeline.classes_] = self.pipeline.predict_proba(X)
        return correct_prior(raw, self.trained_prior, self.prior)

    def predict(self, table: pd.DataFrame | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Labels, by the model's own threshold."""
        codes = decide(self.predict_proba(table), self.weights)
        return np.array(self.classes, dtype=object)[codes]

    def with_decision(self, weights: FloatArray, prior: FloatArray, **why: Any) -> FittedModel:
        """The same pipeline with another threshold or prior."""
        check_distribution("prior", prior)
        return replace(self, weights=weights, prior=prior, info={**self.info, "decision": why})


def versions() -> dict[str, str]:
    """What the model was made with."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["equipoise"] = equipoise.__version__
    return found


def save_model(model: FittedModel, folder: str | PathLike[str]) -> Path:
    """Write the folder whole, or leave what was there."""
    with replacing_folder(folder) as temporary:
        info = {**model.info, **_save_pipeline(model.pipeline, temporary)}
        np.savez_compressed(temporary / "operating.npz", held_out=model.held_out, truth=model.truth)
        write_json(
            temporary / "model.json",
            {
                "format": FORMAT,
                "versions": versions(),
                "columns": model.schema.to_json(),
                "classes": [_plain(label) for label in model.classes],
                "weights": model.weights.tolist(),
                "threshold": model.threshold,
                "prior": model.prior.tolist(),
                "trained_prior": model.trained_prior.tolist(),
                "data_prior": model.data_prior.tolist(),
                "info": info,
            },
        )
    return Path(folder)


def load_model(folder: str | PathLike[str]) -> FittedModel:
    """Read a model folder; nothing in it is unpickled, and a type that is not known to be safe is refused."""
    source = Path(folder)
    if not (source / "model.json").is_file():
        raise FileNotFoundError(f"{source} is not a model folder: it has no model.json")
    saved = read_json(source / "model.json")
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(
            f"{source}/model.json has format {saved.get('format')!r}; this version reads {FORMAT}"
        )
    try:
        with np.load(source / "operating.npz", allow_pickle=False) as arrays:
            held_out, truth = arrays["held_out"], arrays["truth"]
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise ValueError(f"{source}/operating.npz is not readable (cut off or damaged?): {error}") from error
    return FittedModel(
        pipeline=_load_pipeline(source, saved["info"]),
        schema=Schema.from_json(saved["columns"]),
        classes=tuple(saved["classes"]),
        weights=np.array(saved["weights"]),
        prior=np.array(saved["prior"]),
        trained_prior=np.array(saved["trained_prior"]),
        data_prior=np.array(saved["data_prior"]),
        held_out=held_out,
        truth=truth,
        info=saved["info"],
    )


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _skops() -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError("the model folder needs skops: pip install 'equipoise[report]'") from error
    return skops.io


def without_samplers(pipeline: Any) -> Any:
    """The steps that prediction needs, as a plain scikit-learn pipeline."""
    from sklearn.pipeline import Pipeline

    return Pipeline([step for step in pipeline.steps if not hasattr(step[1], "fit_resample")])


def _save_pipeline(pipeline: Any, folder: Path) -> dict[str, str]:
    """skops for scikit-learn's steps; a classifier that can save itself (safetensors) does so."""
    last = pipeline.steps[-1][1]
    if hasattr(last, "save"):
        from sklearn.pipeline import Pipeline

        last.save(folder / "classifier")
        pipeline = Pipeline(pipeline.steps[:-1])
        _skops().dump(pipeline, folder / "pipeline.skops")
        return {"classifier": type(last).__name__}
    _skops().dump(pipeline, folder / "pipeline.skops")
    return {}


def _load_pipeline(folder: Path, info: dict[str, Any]) -> Any:
    io, path = _skops(), folder / "pipeline.skops"
    try:
        unknown = sorted(set(io.get_untrusted_types(file=path)) - TRUSTED)
        if unknown:
            raise ValueError(f"{path} holds types that are not known to be safe: {', '.join(unknown)}")
        pipeline = io.load(path, trusted=sorted(TRUSTED))
    except (OSError, KeyError, EOFError, RuntimeError) as error:
        raise ValueError(f"{path} is not readable (cut off or damaged?): {error}") from error
    except Exception as error:
        if type(error).__name__ in ("BadZipFile", "JSONDecodeError"):
            raise ValueError(f"{path} is not readable (cut off or damaged?): {error}") from error
        raise
    if "classifier" not in info:
        return pipeline
    import equipoise.classifiers as classifiers

    if info["classifier"] not in classifiers.__all__:
        raise ValueError(f"{folder}/model.json names no classifier of Equipoise: {info['classifier']!r}")
    classifier = getattr(classifiers, info["classifier"]).load(folder / "classifier")
    pipeline.steps.append(("classifier", classifier))
    return pipeline
