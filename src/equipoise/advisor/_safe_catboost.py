"""CatBoost's models in JSON, checked before CatBoost reads them: its binary format cannot be."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

_PARTS = {"features_info", "model_info", "oblivious_trees", "scale_and_bias"}
_LARGEST = 3.4028235e38  # a border of minus this much parts missing values from all others
_DEEPEST = 16


def safe_catboost_model(model: Any, n_features: int, n_classes: int) -> dict[str, Any]:
    """The parts of a model (parsed JSON) that raw predictions need, all of them checked.

    What CatBoost notes beside the trees is left out: made-up notes end the program too. Read the result as a
    ``catboost.CatBoost`` and take ``prediction_type="RawFormulaVal"``, whose sigmoid (two classes) or softmax are
    the probabilities.

    Raises
    ------
    ValueError
        If it is not a sum of symmetric trees over ``n_features`` numbers.
    """
    if (
        not isinstance(model, dict)
        or set(model) != _PARTS
        or set(model["features_info"]) != {"float_features"}
    ):
        raise ValueError("a CatBoost model must hold symmetric trees over numbers, and nothing else")
    features = model["features_info"]["float_features"]
    borders = [_check_feature(feature, place, n_features) for place, feature in enumerate(features)]
    starts = [sum(map(len, borders[:place])) for place in range(len(borders))]
    scale, bias = model["scale_and_bias"]
    outputs = 1 if n_classes == 2 else n_classes
    _check_numbers("scale and bias", [scale, *bias], outputs + 1)
    if not model["oblivious_trees"]:
        raise ValueError("a CatBoost model must have trees")
    for tree in model["oblivious_trees"]:
        splits = tree["splits"] or []
        if not isinstance(splits, list) or len(splits) > _DEEPEST:
            raise ValueError(f"a CatBoost tree must have at most {_DEEPEST} splits")
        for split in splits:
            _check_split(split, borders, starts)
        _check_numbers("leaf values", tree["leaf_values"], outputs << len(splits))
        _check_numbers("leaf weights", tree["leaf_weights"], 1 << len(splits))
    return {**model, "model_info": {}}


def _check_feature(feature: dict[str, Any], place: int, n_features: int) -> list[float]:
    flat = feature["flat_feature_index"]
    if feature["feature_index"] != place or not _is_whole(flat) or not place <= flat < n_features:
        raise ValueError(f"a CatBoost model for {n_features} features has one of number {flat!r:.60}")
    borders: list[float] = feature["borders"] or []
    _check_numbers("borders", borders, len(borders))
    if any(low >= high for low, high in pairwise(borders)):
        raise ValueError("the borders of a CatBoost model must rise")
    return borders


def _check_split(split: dict[str, Any], borders: list[list[float]], starts: list[int]) -> None:
    feature, index = split["float_feature_index"], split["split_index"]
    if split["split_type"] != "FloatFeature" or not _is_whole(feature) or not _is_whole(index):
        raise ValueError("a CatBoost tree must split by numbers")
    if not 0 <= feature < len(borders) or not 0 <= index - starts[feature] < len(borders[feature]):
        raise ValueError("a split of a CatBoost tree is out of range")
    if split["border"] != borders[feature][index - starts[feature]]:
        raise ValueError("a split of a CatBoost tree is at no border")


def _check_numbers(what: str, values: Any, count: int) -> None:
    if not isinstance(values, list) or len(values) != count:
        raise ValueError(f"the {what} of a CatBoost model must be {count} numbers")
    if not all(isinstance(v, (int, float)) and math.isfinite(v) and abs(v) <= _LARGEST for v in values):
        raise ValueError(f"the {what} of a CatBoost model must be finite")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
