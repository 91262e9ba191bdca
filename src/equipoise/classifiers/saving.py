"""A fitted classifier as a folder: safetensors and JSON."""

from __future__ import annotations

import os
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from equipoise._core.checks import check_distribution, check_integer, check_same_length
from equipoise._core.files import DamagedFileError
from equipoise._core.sealed import SealedFolder, open_sealed
from equipoise.losses._links import Link
from equipoise.networks import use_cosine_head
from equipoise.training import check_finite, load_state, save_state
from equipoise.training.inputs import Preparation

C = TypeVar("C")


def save_classifier(classifier: Any, folder: str | os.PathLike[str]) -> None:
    """Write parameters (those that are plain values), labels, priors, history and weights."""
    params, left_out = {}, []
    for name, value in classifier.get_params(deep=False).items():
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, np.ndarray):
            value = value.tolist()
        if _is_plain(value):
            params[name] = value
        else:
            left_out.append(name)
    state = {
        "kind": type(classifier).__name__,
        "params": params,
        "left_out": left_out,
        "classes": _labels_to_json(classifier.classes_),
        "preparation": classifier.preparation_.to_dict(),
        "n_features_in": classifier.n_features_in_,
        "feature_names_in": list(getattr(classifier, "feature_names_in_", [])),
        "data_prior": classifier.data_prior_.tolist(),
        "training_prior": classifier.training_prior_.tolist(),
        "link": None if classifier.link_ is None else classifier.link_.to_dict(),
        "history": classifier.history_.to_dict("list"),
        "weights": dict(classifier.network_.state_dict()),
    }
    save_state(folder, state)


def load_classifier(cls: type[C], folder: str | os.PathLike[str] | SealedFolder, params: dict[str, Any]) -> C:
    """Make the classifier again, with ``params`` over the saved ones."""
    saved = open_sealed(folder)
    state = load_state(saved)
    check_kind(saved, state, cls.__name__)
    with saved.reading("tree.json"):
        missing = "module" in state["left_out"] and "module" not in params
    if missing:
        raise ValueError("the module was not saved, only its weights: pass it to load as module=…")
    with saved.reading("tree.json"):
        return _rebuild(cls, state, params)


def check_kind(saved: SealedFolder, state: Any, kind: str) -> None:
    """Refuse the folder of another classifier."""
    found = state.get("kind") if isinstance(state, dict) else None
    if found != kind:
        raise DamagedFileError(f"{saved.path} must hold a {kind}, got {found!r}")


def _rebuild(cls: type[C], state: dict[str, Any], params: dict[str, Any]) -> C:
    classifier: Any = cls(**{**state["params"], **params})
    classifier.classes_ = _labels_from_json(state["classes"])
    classifier.preparation_ = Preparation.from_dict(state["preparation"])
    classifier.n_features_in_ = check_integer("n_features_in", state["n_features_in"], low=1)
    if state["feature_names_in"]:
        check_same_length(
            features=range(classifier.n_features_in_), feature_names_in=state["feature_names_in"]
        )
        classifier.feature_names_in_ = np.array(state["feature_names_in"], dtype=object)
    for name in ("data_prior", "training_prior"):
        prior = check_distribution(name, state[name], tolerance=1e-6)
        check_same_length(classes=classifier.classes_, prior=prior)
        setattr(classifier, f"{name}_", prior)
    classifier.link_ = None if state.get("link") is None else Link.from_dict(state["link"])
    classifier.history_ = pd.DataFrame(state["history"])
    if "module" not in params:
        _refuse_more_than_saved(classifier, state["weights"])
    network = classifier._empty_network()
    if "head.scale" in state["weights"]:
        use_cosine_head(network)
    check_finite(state["weights"])
    network.load_state_dict(state["weights"])
    classifier.network_ = network.eval()
    return classifier


def _refuse_more_than_saved(classifier: Any, weights: dict[str, torch.Tensor]) -> None:
    """Count the weights that the settings declare before any memory is taken for them."""
    with torch.device("meta"):
        declared = sum(part.numel() for part in classifier._empty_network().parameters())
    held = sum(part.numel() for part in weights.values())
    if declared > 2 * held + 10**6:  # a head may be exchanged after the network was made
        raise ValueError(f"the settings declare a network of {declared:,} weights, and {held:,} were saved")


def _is_plain(value: Any) -> bool:
    """Numbers, strings, and lists, tuples and dicts of them."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, (str, int)) and _is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def _labels_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Labels with their type: numbers, booleans, strings.

    >>> _labels_from_json(_labels_to_json(np.array([True, False])))
    array([ True, False])
    """
    values = classes.tolist()
    if not all(isinstance(value, (str, int, float, bool)) for value in values):
        raise TypeError(f"labels must be strings, numbers or booleans to be saved, got {values[0]!r}")
    return {"dtype": classes.dtype.str if classes.dtype != object else "object", "values": values}


def _labels_from_json(saved: dict[str, Any]) -> npt.NDArray[Any]:
    return np.array(saved["values"], dtype=object if saved["dtype"] == "object" else saved["dtype"])
