"""The model folder: everything that is needed to predict and to decide again, without pickle, sealed.

``advisor.json`` holds the settings, columns, classes, priors, weights and the decision; ``held_out.npz`` the
held-out predictions on which a decision can be chosen again; ``encoders.skops`` the encoding of the columns;
``models/`` one file or folder for each fitted model, in the format of its own library.
"""

from __future__ import annotations

import io
import platform
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import equipoise
from equipoise._core.checks import check_array, check_distribution
from equipoise._core.extras import optional
from equipoise._core.files import DamagedFileError, write_bytes, write_json
from equipoise._core.memory import refuse_if_too_large
from equipoise._core.sealed import SealedFolder, open_sealed, sealing
from equipoise.advisor._advisor import Advisor
from equipoise.advisor._safe_catboost import safe_catboost_model
from equipoise.advisor._safe_trees import check_tree_safety, safe_booster_text
from equipoise.advisor.bags import Bag, FoldModel
from equipoise.advisor.ensemble import Stack
from equipoise.advisor.treatments import Treatment, all_treatments
from equipoise.advisor.treatments._boosted import CatBoostTrees, LightGBMTrees
from equipoise.advisor.verdict import Verdict
from equipoise.datasets.schema import Schema
from equipoise.metrics.decisions import decision_from_json, decision_to_json

FORMAT = 2
_PACKAGES = (
    "numpy", "scipy", "scikit-learn", "imbalanced-learn", "pandas", "lightgbm", "catboost", "skops", "torch",
)  # fmt: skip
#: Types outside skops' own list of safe ones that the treatments are made of. They hold data only.
_TRUSTED = frozenset({
    "equipoise.datasets.encoding.DateParts",
    "equipoise.datasets.encoding.ScaledNumbers",
    "equipoise.datasets.encoding.TableEncoder",
    "equipoise.datasets.encoding.TextParts",
    "equipoise.datasets.image_features.ImageEncoder",
    "imblearn.ensemble._forest.BalancedRandomForestClassifier",
    "imblearn.pipeline.Pipeline",
    "imblearn.under_sampling._prototype_selection._random_under_sampler.RandomUnderSampler",
    "numpy.dtype",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
})  # fmt: skip


def versions() -> dict[str, str]:
    """What a model is made with."""
    found = {"python": platform.python_version(), "equipoise": equipoise.__version__}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _skops() -> Any:
    """The library for scikit-learn's models; its import walks all of scikit-learn, which would import torch."""
    adapters = [f"sklearn.externals.array_api_compat.{name}" for name in ("cupy", "dask", "torch")]
    absent = {name: None for name in adapters if name not in sys.modules}
    sys.modules.update(absent)  # type: ignore[arg-type]
    try:
        return optional("skops.io", "the model folder needs skops")
    finally:
        for name in absent:
            del sys.modules[name]


def save_advisor(advisor: Advisor, folder: str | PathLike[str]) -> Path:
    """Write the folder whole, or leave what was there."""
    io_ = _skops()
    with sealing(folder) as temporary:
        write_bytes(temporary / "encoders.skops", io_.dumps(advisor.encoders_))
        models = temporary / "models"
        models.mkdir()
        bags = [_bag_to_json(bag, models, number) for number, bag in enumerate(advisor.bags_)]
        arrays: dict[str, Any] = {
            "held_out": advisor.held_out_,
            "truth": advisor.truth_,
            "block": advisor.block_,
        }
        if advisor.row_costs_ is not None:
            arrays["alarm_cost"], arrays["miss_cost"] = advisor.row_costs_
        if advisor.groups_ is not None:
            arrays["groups"] = advisor.groups_
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)
        write_bytes(temporary / "held_out.npz", buffer.getvalue())
        write_json(
            temporary / "advisor.json", {**_advisor_to_json(advisor), "bags": bags, "arrays": list(arrays)}
        )
    return Path(folder)


def _advisor_to_json(advisor: Advisor) -> dict[str, Any]:
    names = getattr(advisor, "feature_names_in_", None)
    return {
        "format": FORMAT,
        "versions": versions(),
        "params": _params_to_json(advisor.get_params(deep=False)),
        "columns": advisor.schema_.to_json(),
        "n_features_in": int(advisor.n_features_in_),
        "feature_names_in": None if names is None else [str(n) for n in names],
        "labels": [_plain(label) for label in advisor._labels],
        "data_prior": advisor.data_prior_.tolist(),
        "stack": {"weights": advisor.stack_.weights.tolist(), "offsets": advisor.stack_.offsets.tolist()},
        "decision": decision_to_json(advisor.decision_),
        "verdict": asdict(advisor.verdict_),
        "leaderboard": advisor.leaderboard_.reset_index().to_dict("records"),
        "notes": list(advisor.notes_),
        "fit_seconds": advisor.fit_seconds_,
        "info": getattr(advisor, "info_", {}),
    }


def _params_to_json(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters as plain values; a generator and treatments of one's own have none."""
    kept = {name: _plain(value) for name, value in params.items()}
    if not isinstance(kept["random_state"], int):
        kept["random_state"] = None
    if not all(isinstance(one, str) for one in kept["treatments"] or ()):
        kept["treatments"] = None
    return kept


def _bag_to_json(bag: Bag, folder: Path, number: int) -> dict[str, Any]:
    treatment = bag.treatment
    return {
        "name": bag.name,
        "treatment": {"name": treatment.name, "summary": treatment.summary, "view": treatment.view},
        "settings": {k: _plain(v) for k, v in bag.settings.items()},
        "seconds": bag.seconds,
        "repeats": bag.repeats,
        "models": [_model_to_json(model, folder, f"{number}-{i}") for i, model in enumerate(bag.models)],
    }


def _model_to_json(model: FoldModel, folder: Path, name: str) -> dict[str, Any]:
    made = model.estimator
    about = {
        "file": name, "kind": "skops", "trained_prior": model.trained_prior.tolist(),
        "data_prior": model.data_prior.tolist(),
    }  # fmt: skip
    if isinstance(made, LightGBMTrees):
        write_bytes(folder / name, made.booster_.model_to_string(num_iteration=made.rounds_).encode())
        return {**about, "kind": "lightgbm", "classes": made.classes_.tolist()}
    if isinstance(made, CatBoostTrees):
        write_json(folder / name, made.to_json())
        return {**about, "kind": "catboost", "classes": made.classes_.tolist()}
    if hasattr(made, "save"):
        made.save(folder / name)
        return {**about, "kind": type(made).__name__}
    write_bytes(folder / name, _skops().dumps(made))
    return about


def load(folder: str | PathLike[str], trusted: Sequence[str] = ()) -> Advisor:
    """Read a model folder that :meth:`Advisor.save`, ``equipoise report`` or ``equipoise retune`` wrote.

    Nothing in it is unpickled; a file that was damaged is named; a type that is not known to be safe is refused.

    Parameters
    ----------
    folder : path
        The model folder.
    trusted : sequence of str
        Further types of scikit-learn estimators of your own that you trust, by their full names.

    Returns
    -------
    Advisor
        The fitted advisor, ready to predict and to be retuned.

    Raises
    ------
    DamagedFileError
        If a file is damaged or does not fit the others.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import make_classification
    >>> from equipoise import Advisor
    >>> X, y = make_classification(200, weights=[0.8], random_state=0)
    >>> advisor = Advisor(treatments=["logistic"], trials=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = load(advisor.save(f"{folder}/model"))
    >>> bool((again.predict(X) == advisor.predict(X)).all())
    True
    """
    saved = open_sealed(folder)
    data = saved.read_json("advisor.json")
    if data.get("format") != FORMAT:
        raise DamagedFileError(f"{saved.path}/advisor.json has format {data.get('format')!r}, not {FORMAT}")
    with saved.reading("advisor.json"):
        return _from_json(saved, data, _TRUSTED | set(trusted))


def _from_json(saved: SealedFolder, data: dict[str, Any], trusted: frozenset[str] | set[str]) -> Advisor:
    advisor = Advisor(**data["params"])
    advisor._labels = tuple(data["labels"])
    n = len(advisor._labels)
    advisor._set_classes(advisor._labels)
    advisor.n_features_in_ = int(data["n_features_in"])
    if data["feature_names_in"] is not None:
        advisor.feature_names_in_ = np.array(data["feature_names_in"], dtype=object)
    advisor.schema_ = Schema.from_json(data["columns"])
    advisor.encoders_ = _load_skops(saved, "encoders.skops", trusted)
    advisor.data_prior_ = _distribution(data["data_prior"], n)
    widths = {view: int(encoder.n_features_out_) for view, encoder in advisor.encoders_.items()}
    _try_encoders(saved, advisor, widths)
    advisor.bags_ = [_bag_from_json(saved, item, n, widths, trusted) for item in data["bags"]]
    weights, offsets = (
        check_array("weights", data["stack"]["weights"]),
        check_array("o", data["stack"]["offsets"]),
    )
    if weights.shape != (len(advisor.bags_),) or offsets.shape != (n,) or (weights < 0).any():
        raise ValueError(f"the stack must have {len(advisor.bags_)} weights and {n} offsets")
    advisor.stack_ = Stack(weights, offsets)
    advisor.decision_ = decision_from_json(data["decision"], n)
    arrays = saved.read_arrays("held_out.npz", *data["arrays"])
    advisor.held_out_, advisor.truth_, advisor.block_ = arrays["held_out"], arrays["truth"], arrays["block"]
    if advisor.held_out_.shape != (len(advisor.truth_), n) or len(advisor.block_) != len(advisor.truth_):
        raise ValueError("the held-out predictions do not fit each other")
    costs = (arrays["alarm_cost"], arrays["miss_cost"]) if "alarm_cost" in arrays else None
    advisor.row_costs_, advisor.groups_ = costs, arrays.get("groups")
    advisor._judge()
    told = data["verdict"]
    advisor.verdict_ = Verdict(**{**told, "unable": tuple(told.get("unable", ()))})
    advisor.leaderboard_ = pd.DataFrame(data["leaderboard"]).set_index("name")
    advisor.notes_, advisor.fit_seconds_ = list(data["notes"]), float(data["fit_seconds"])
    advisor.info_ = dict(data["info"])
    return advisor


def _distribution(values: Any, n: int) -> Any:
    shares = check_distribution("a prior", values)
    if len(shares) != n:
        raise ValueError(f"a prior must have {n} shares, got {len(shares)}")
    return shares


def _bag_from_json(
    saved: SealedFolder, item: dict[str, Any], n: int, widths: dict[str, int], trusted: Any
) -> Bag:
    about = item["treatment"]
    known = all_treatments().get(about["name"]) or Treatment(about["name"], about["summary"], _cannot_build)
    treatment = replace(known, summary=about["summary"], view=about["view"])
    models = [
        _model_from_json(saved, model, n, about["view"], widths[about["view"]], trusted)
        for model in item["models"]
    ]
    none = np.empty((0, n))
    return Bag(
        item["name"], treatment, dict(item["settings"]), models, none, item["seconds"], item["repeats"]
    )


def _cannot_build(context: Any, **settings: Any) -> Any:
    raise ValueError("this treatment was your own: it can predict, but not be fitted again from the folder")


def _model_from_json(
    saved: SealedFolder, item: dict[str, Any], n: int, view: str, n_features: int, trusted: Any
) -> FoldModel:
    name, kind = f"models/{item['file']}", item["kind"]
    if kind == "lightgbm":
        text = safe_booster_text(saved.read_bytes(name).decode(), n_features, len(item["classes"]))
        made: Any = LightGBMTrees.from_text(text, item["classes"])
    elif kind == "catboost":
        trees = safe_catboost_model(saved.read_json(name), n_features, len(item["classes"]))
        made = CatBoostTrees.from_json(trees, item["classes"])
    elif kind == "skops":
        made = _load_skops(saved, name, trusted)
    else:
        from equipoise import classifiers

        if kind not in classifiers.__all__:
            raise ValueError(f"{kind!r} is no classifier of Equipoise")
        made = getattr(classifiers, kind).load(saved / "models" / item["file"])
    model = FoldModel(
        made, view, _distribution(item["trained_prior"], n), _distribution(item["data_prior"], n)
    )
    with saved.reading(name):  # whatever in it does not fit together is said now, not at the first prediction
        answer = model.log_proba(np.zeros((1, n_features)))
        if answer.shape != (1, n) or not np.isfinite(answer).all():
            raise ValueError(f"it must answer with {n} finite numbers, got {answer}")
    return model


def _try_encoders(saved: SealedFolder, advisor: Advisor, widths: dict[str, int]) -> None:
    """Encode a row of zeros and missing values."""
    row = {c.name: [0.0 if c.kind == "number" else None] for c in advisor.schema_.columns}
    typed = advisor.schema_.convert(pd.DataFrame(row))
    with saved.reading("encoders.skops"):
        for view, encoder in advisor.encoders_.items():
            encoded = encoder.transform(typed)
            known = encoded[~np.isnan(encoded)] if view == "trees" else encoded  # trees see what is missing
            if encoded.shape != (1, widths[view]) or not np.isfinite(known).all():
                raise ValueError(f"a row must become {widths[view]} numbers, got {encoded!r:.60}")


def _load_skops(saved: SealedFolder, name: str, trusted: Any) -> Any:
    io_, content = _skops(), saved.read_bytes(name)
    with saved.reading(name):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:  # no file unfolds to more than it declares
            refuse_if_too_large(saved.path / name, sum(part.file_size for part in archive.infolist()))
        unknown = sorted(set(io_.get_untrusted_types(data=content)) - set(trusted))
        if unknown:
            raise DamagedFileError(
                f"{saved.path / name} holds types that are not known to be safe: {', '.join(unknown)}; if they "
                "are your own, name them with trusted"
            )
        made = io_.loads(content, trusted=sorted(trusted))
        check_tree_safety(made)
        return made


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, pd.DataFrame):  # costs by name: the truth, then the call
        return {
            str(truth): {str(call): float(v) for call, v in row.items()} for truth, row in value.iterrows()
        }
    if isinstance(value, (Mapping, pd.Series)):
        return {str(name): _plain(one) for name, one in dict(value).items()}
    return value.item() if isinstance(value, np.generic) else value
