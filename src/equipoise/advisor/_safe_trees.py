"""Trees from a stranger's file, checked before they are walked.

Compiled code follows the child and feature indices of a tree without looking: one out of range reads foreign
memory or ends the program, and a circle never ends. What :func:`check_tree_safety` lets through can do neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import FloatArray, IntArray

#: Compiled estimators that no pipeline of Equipoise holds and whose arrays nothing here checks.
_UNCHECKED = ("sklearn.svm.", "sklearn.neighbors.", "sklearn.cluster.")
_WHOLE, _REAL = re.compile(r"-?[0-9]{1,18}"), re.compile(r"-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")
_REAL_OR_INFINITE = re.compile(_REAL.pattern + r"|-?inf")  # a split that parts missing values from all others
_RANGE = re.compile(
    rf"none|\[({_REAL_OR_INFINITE.pattern}):({_REAL_OR_INFINITE.pattern})\]|-?[0-9]+(:-?[0-9]+)*"
)
_NAME = re.compile(r"[^\s\0]+")
_HEAD = frozenset({
    "tree", "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective",
    "feature_names", "feature_infos",
})  # fmt: skip
_ANY = re.compile(_REAL_OR_INFINITE.pattern + r"|-?nan")
#: What LightGBM notes beside the splits of a tree: for each leaf, and for each split.
_OF_LEAVES = ("leaf_weight", "leaf_count")
_OF_SPLITS = ("split_gain", "internal_value", "internal_weight", "internal_count")
_OF_TREES = frozenset({
    "Tree", "num_leaves", "num_cat", "leaf_value", "left_child", "right_child", "split_feature", "decision_type",
    "threshold", "cat_boundaries", "cat_threshold", "is_linear", "shrinkage", *_OF_LEAVES, *_OF_SPLITS,
})  # fmt: skip
_FITTED = frozenset({"tree_", "estimators_", "_predictors"})
_OURS = ("sklearn.", "imblearn.", "equipoise.", "lightgbm.")


def check_tree_safety(estimator: Any) -> None:
    """Raise a ValueError if predicting with a loaded estimator could crash, hang or read foreign memory.

    All trees in it are checked, however deep: scikit-learn's ``Tree``, the ``TreePredictor`` of histogram
    boosting and LightGBM's boosters. Parents come before their children, every node has one parent, features
    exist, and values are finite.
    """
    seen: set[tuple[int, int | None]] = set()
    waiting: list[tuple[Any, int | None]] = [(estimator, None)]
    while waiting:
        item, width = waiting.pop()
        if (id(item), width) in seen:
            continue
        seen.add((id(item), width))
        width = _check_one(item, width)
        waiting.extend((part, width) for part in _parts(item))


def _parts(item: Any) -> Iterator[Any]:
    if isinstance(item, dict):
        yield from item.values()
    elif isinstance(item, (list, tuple, set, frozenset)) or (
        isinstance(item, np.ndarray) and item.dtype == object
    ):
        yield from item.ravel() if isinstance(item, np.ndarray) else item
    elif type(item).__module__.startswith(_OURS) and hasattr(item, "__dict__"):
        yield from vars(item).values()


def _check_one(item: Any, width: int | None) -> int | None:
    """Check an object; return the number of columns that its parts are given without being asked."""
    from sklearn.ensemble import IsolationForest
    from sklearn.ensemble._forest import BaseForest
    from sklearn.ensemble._gb import BaseGradientBoosting
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
    from sklearn.tree import BaseDecisionTree
    from sklearn.tree._tree import Tree

    if type(item).__module__.startswith(_UNCHECKED):
        raise ValueError(f"a model must not hold a {type(item).__name__}, which cannot be checked")
    if type(item).__module__.startswith("lightgbm.") and hasattr(item, "model_to_string"):
        for tree in _split_booster(item.model_to_string())[1]:
            _check_booster_tree(_fields(tree), item.num_feature())
    elif isinstance(item, Tree):
        _check_tree(item, width)
    elif isinstance(item, (dict, list, tuple, np.ndarray)):
        return width
    elif _FITTED.isdisjoint(getattr(item, "__dict__", ())):  # a pattern to make estimators of, or none
        return None
    elif isinstance(item, BaseDecisionTree):
        own = _n_features(item)
        if width not in (None, own):
            raise ValueError(f"a tree for {own} features stands in a forest for {width}")
        return own
    elif isinstance(item, IsolationForest):
        for tree, columns in zip(item.estimators_, item.estimators_features_, strict=True):
            if not tree.n_features_in_ == len(columns) == item._max_features:
                raise ValueError("a tree of an isolation forest expects other columns than it is given")
    elif isinstance(item, (BaseForest, BaseGradientBoosting)):
        return _n_features(item)
    elif isinstance(item, BaseHistGradientBoosting):
        _check_histogram_boosting(item)
    return None


def _n_features(estimator: Any) -> int:
    found = getattr(estimator, "n_features_in_", None)
    if not isinstance(found, (int, np.integer)) or found < 1:
        raise ValueError(f"n_features_in_ of a tree or forest must be a whole number, got {found!r:.60}")
    return int(found)


def _check_tree(tree: Any, n_features: int | None) -> None:
    """Check scikit-learn's ``Tree``; it belongs to an estimator for ``n_features`` columns."""
    if n_features is None or tree.n_features != n_features:
        raise ValueError(f"a tree for {tree.n_features} features stands in a model for {n_features}")
    if not 1 <= tree.node_count <= tree.capacity:
        raise ValueError(f"a tree claims {tree.node_count} nodes and has {tree.capacity}")
    left, right = (np.asarray(side, dtype=np.int64) for side in (tree.children_left, tree.children_right))
    inner = (left != -1) | (right != -1)
    depth = _depth(left, right, inner)
    if depth > tree.max_depth:
        raise ValueError(f"a tree claims a depth of {tree.max_depth} and has one of {depth}")
    _check_indices("features", tree.feature[inner], n_features)
    if np.isnan(tree.threshold[inner]).any():
        raise ValueError("the thresholds of a tree must be numbers")
    _check_finite(tree.value, tree.weighted_n_node_samples)


def _check_histogram_boosting(model: Any) -> None:
    n_features = _n_features(model)
    if getattr(model, "_preprocessor", None) is not None:
        raise ValueError("a histogram boosting with a preprocessor of its own cannot be checked")
    categorical = np.asarray(model._bin_mapper.is_categorical_)
    if categorical.shape != (n_features,):
        raise ValueError(f"a boosting for {n_features} features describes {categorical.size}")
    for round_of_trees in model._predictors:
        if len(round_of_trees) != model.n_trees_per_iteration_:
            raise ValueError("a boosting must have as many trees in every round")
        for predictor in round_of_trees:
            _check_predictor(predictor, n_features, categorical.astype(bool))


def _check_predictor(predictor: Any, n_features: int, categorical: npt.NDArray[np.bool_]) -> None:
    """Check histogram boosting's ``TreePredictor``."""
    nodes, bits = predictor.nodes, predictor.raw_left_cat_bitsets
    if nodes.ndim != 1 or not len(nodes):
        raise ValueError("a tree must have nodes")
    inner = nodes["is_leaf"] == 0
    _depth(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), inner)
    _check_indices("features", nodes["feature_idx"][inner], n_features)
    by_category = inner & (nodes["is_categorical"] != 0)
    if not categorical[nodes["feature_idx"][by_category]].all():
        raise ValueError("a tree splits a column of numbers by categories")
    if bits.ndim != 2 or bits.shape[1] != 8:
        raise ValueError(f"the categories of a tree must have shape (n, 8), got {bits.shape}")
    _check_indices("categories", nodes["bitset_idx"][by_category], len(bits))
    if np.isnan(nodes["num_threshold"][inner]).any():
        raise ValueError("the thresholds of a tree must be numbers")
    _check_finite(nodes["value"])


def _depth(left: IntArray, right: IntArray, inner: npt.NDArray[np.bool_]) -> int:
    """The depth of a tree of which every node but the first has one parent, which comes before it."""
    parents = np.flatnonzero(inner)
    children = np.concatenate([left[parents], right[parents]])
    if not np.array_equal(np.sort(children), np.arange(1, len(inner))):
        raise ValueError("a tree has a child that is out of range, missing, or has two parents")
    if (children <= np.tile(parents, 2)).any():
        raise ValueError("a tree has a child that comes before its parent")
    depth = np.zeros(len(inner), dtype=np.int64)
    for parent in parents:
        depth[[left[parent], right[parent]]] = depth[parent] + 1
    return int(depth.max())


def _check_indices(what: str, values: npt.NDArray[Any], count: int) -> None:
    found = values.astype(np.int64)
    if ((found < 0) | (found >= count)).any():
        raise ValueError(f"the {what} of a tree must lie in 0 … {count - 1}")


def _check_finite(*arrays: npt.NDArray[Any]) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("the values of a tree must be finite")


# LightGBM's text


def safe_booster_text(text: str, n_features: int, n_classes: int) -> str:
    """The parts of a LightGBM model that predictions need, all of them checked: its head and its trees.

    What LightGBM notes behind the trees is left out: made-up notes end the program too.

    Raises
    ------
    ValueError
        If it is not a sum of trees over ``n_features`` numbers for ``n_classes`` classes.
    """
    head, trees = _split_booster(text)
    about, outputs = _fields(head), 1 if n_classes == 2 else n_classes
    _check_booster_head(about, n_features, outputs)
    if _whole_numbers(about, "tree_sizes", len(trees)).tolist() != [len(tree.encode()) for tree in trees]:
        raise ValueError("a LightGBM model states other sizes of its trees than they have")
    if len(trees) % outputs:
        raise ValueError(f"a LightGBM model must have {outputs} trees in every round, got {len(trees)}")
    for number, tree in enumerate(trees):
        if not tree.startswith(f"Tree={number}\n"):
            raise ValueError("the trees of a LightGBM model must have numbers that rise by one")
        _check_booster_tree(_fields(tree), n_features)
    return f"{head}\n{''.join(trees)}end of trees\n\npandas_categorical:null\n"


def _split_booster(text: str) -> tuple[str, list[str]]:
    """The head and the trees, each with the line that ends it."""
    head, *trees = text.partition("\nend of trees")[0].split("\nTree=")
    if not trees or "\nend of trees" not in text:
        raise ValueError("a LightGBM model has no trees or no end")
    return head, [f"Tree={tree}\n" for tree in trees]


def _check_booster_head(about: dict[str, str], n_features: int, outputs: int) -> None:
    if about.keys() - {"", "tree_sizes"} != _HEAD:
        raise ValueError("the head of a LightGBM model must hold the lines of one, each of them once")
    asked = {"num_class": outputs, "num_tree_per_iteration": outputs, "label_index": 0}
    for name, value in {**asked, "max_feature_idx": n_features - 1}.items():
        if _whole_numbers(about, name, 1)[0] != value:
            raise ValueError(f"{name} of this LightGBM model must be {value}, got {about[name]!r:.60}")
    objective = "binary sigmoid:1" if outputs == 1 else f"multiclass num_class:{outputs}"
    if about["objective"] != objective or about["version"] != "v4" or about["tree"]:
        raise ValueError(f"a LightGBM model must have version v4 and the objective {objective}")
    _words(about, "feature_names", n_features, _NAME)
    _words(about, "feature_infos", n_features, _RANGE)


def _fields(block: str) -> dict[str, str]:
    """The lines ``name=value`` up to the first empty line, where LightGBM ends reading too."""
    lines = [line.partition("=") for line in block.partition("\n\n")[0].split("\n")]
    fields = {name: value for name, _, value in lines}
    if "\r" in block or "\0" in block or len(fields) != len(lines):
        raise ValueError("a LightGBM model has a line twice, or lines that end in an unusual way")
    return fields


def _check_booster_tree(tree: dict[str, str], n_features: int) -> None:
    """Check every line: LightGBM reads trees in threads, in which a word that is no number ends the program."""
    if unknown := tree.keys() - _OF_TREES - {""}:
        raise ValueError(f"a tree of a LightGBM model has a line {min(unknown)!r:.60}")
    leaves, categories = (int(_whole_numbers(tree, name, 1)[0]) for name in ("num_leaves", "num_cat"))
    if leaves < 1 or categories < 0 or tree.get("is_linear", "0") != "0":
        raise ValueError("a tree must have leaves, each with one value")
    _numbers(tree, "leaf_value", leaves)
    if "shrinkage" in tree:
        _numbers(tree, "shrinkage", 1)
    if leaves == 1:
        return
    for names, count in ((_OF_LEAVES, leaves), (_OF_SPLITS, leaves - 1)):
        for name in tree.keys() & names:
            _words(tree, name, count, _ANY)
    left, right, feature, kind = (
        _whole_numbers(tree, name, leaves - 1)
        for name in ("left_child", "right_child", "split_feature", "decision_type")
    )
    threshold = np.array([float(word) for word in _words(tree, "threshold", leaves - 1, _REAL_OR_INFINITE)])
    _check_indices("features", feature, n_features)
    # Leaf k is written as −k − 1; here it follows the inner nodes.
    left, right = (np.where(side < 0, leaves - 2 - side, side) for side in (left, right))
    _depth(left, right, np.arange(2 * leaves - 1) < leaves - 1)
    by_category = (kind & 1) != 0
    if categories:
        bounds = _whole_numbers(tree, "cat_boundaries", categories + 1)
        if bounds[0] != 0 or (np.diff(bounds) < 0).any():
            raise ValueError("the categories of a tree do not fit together")
        _whole_numbers(tree, "cat_threshold", int(bounds[-1]))
    _check_finite(threshold[by_category])
    _check_indices("categories", threshold[by_category], categories)


def _whole_numbers(fields: dict[str, str], name: str, count: int) -> IntArray:
    return np.array([int(word) for word in _words(fields, name, count, _WHOLE)], dtype=np.int64)


def _numbers(fields: dict[str, str], name: str, count: int) -> FloatArray:
    values = np.array([float(word) for word in _words(fields, name, count, _REAL)])
    _check_finite(values)
    return values


def _words(fields: dict[str, str], name: str, count: int, pattern: re.Pattern[str]) -> list[str]:
    """The numbers of a line, in the one spelling that LightGBM and Python read alike."""
    words = fields.get(name, "").split(" ")
    if len(words) != count or not all(map(pattern.fullmatch, words)):
        raise ValueError(f"{name} of a LightGBM model must hold {count} numbers, got {' '.join(words)!r:.60}")
    return words
