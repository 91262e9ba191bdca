"""Trees that would crash or hang the program are refused; those that scikit-learn and LightGBM grow are not."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    StackingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from equipoise.advisor._safe_catboost import safe_catboost_model
from equipoise.advisor._safe_trees import check_tree_safety, safe_booster_text

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
X[:, 4] = RNG.integers(0, 5, 200)
Y = (X[:, 0] + (X[:, 4] == 2) + 0.3 * RNG.normal(size=200) > 0.5).astype(int)


def grown() -> list[object]:
    from imblearn.ensemble import BalancedRandomForestClassifier

    forest = RandomForestClassifier(5, random_state=0)
    return [
        DecisionTreeClassifier(random_state=0),
        DecisionTreeClassifier(max_leaf_nodes=7, random_state=0),
        forest,
        ExtraTreesClassifier(3, random_state=0),
        BalancedRandomForestClassifier(3, random_state=0),
        GradientBoostingClassifier(n_estimators=3, random_state=0),
        HistGradientBoostingClassifier(max_iter=3, random_state=0),
        IsolationForest(n_estimators=5, max_features=0.6, random_state=0),
        BaggingClassifier(n_estimators=3, max_features=0.5, random_state=0),
        StackingClassifier([("f", forest)], final_estimator=RandomForestClassifier(3), cv=2),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), copy.deepcopy(forest)),
    ]


@pytest.mark.parametrize("model", grown(), ids=lambda model: type(model).__name__)
def test_what_was_grown_is_let_through(model):
    if isinstance(model, HistGradientBoostingClassifier) and model.categorical_features is not None:
        model = model.set_params(categorical_features=None)
    check_tree_safety(model.fit(X, Y))
    check_tree_safety(
        model.fit(X, RNG.integers(0, 3, len(X))) if not isinstance(model, IsolationForest) else model
    )


def with_state(tree, **changes):
    """The same tree with other nodes, as a made-up file would hold it."""
    kind, arguments, state = tree.__reduce__()
    state = {**state, "nodes": state["nodes"].copy(), "values": state["values"].copy()}
    for name, change in changes.items():
        if name in state["nodes"].dtype.names:
            place, value = change
            state["nodes"][name][place] = value
        elif name == "values":
            state["values"][change] = np.nan
        else:
            state[name] = change
    made = kind(*arguments)
    made.__setstate__(state)
    return made


CRAFTED = {
    "a child out of range": {"left_child": (0, 10**9)},
    "a negative child": {"right_child": (0, -7)},
    "a circle": {"left_child": (0, 0)},
    "a child with two parents": {"right_child": (0, 1)},
    "a feature out of range": {"feature": (0, 10**8)},
    "a negative feature": {"feature": (0, -5)},
    "no nodes": {"node_count": 0},
    "a depth too small": {"max_depth": 0},
    "a value that is none": {"values": 0},
    "a threshold that is none": {"threshold": (0, np.nan)},
}


@pytest.mark.parametrize("changes", CRAFTED.values(), ids=CRAFTED)
def test_crafted_trees_are_refused(changes):
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    forest.estimators_[1].tree_ = with_state(forest.estimators_[1].tree_, **changes)
    with pytest.raises(ValueError, match=r"^(a|the) .*tree"):
        check_tree_safety(make_pipeline(StandardScaler(), forest))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left", 10**6),
        ("right", 0),
        ("feature_idx", 10**6),
        ("feature_idx", -9),
        ("is_categorical", 1),
        ("value", np.nan),
    ],
)
def test_crafted_histogram_trees_are_refused(field, value):
    model = HistGradientBoostingClassifier(max_iter=2, random_state=0).fit(X, Y)
    model._predictors[1][0].nodes[field][0] = value
    with pytest.raises(ValueError, match="tree"):
        check_tree_safety(model)


def test_a_forest_gives_its_trees_as_many_columns_as_they_read():
    forest = RandomForestClassifier(2, random_state=0).fit(X, Y)
    wide = DecisionTreeClassifier(random_state=0).fit(np.hstack([X] * 50), Y)
    forest.estimators_[1] = wide
    with pytest.raises(ValueError, match="stands in a forest for 5"):
        check_tree_safety(forest)
    with pytest.raises(ValueError, match="stands in a forest for 5"):
        check_tree_safety({"seen before": wide, "forest": forest})


@pytest.mark.parametrize(
    "kind", [RandomForestClassifier, HistGradientBoostingClassifier, DecisionTreeClassifier]
)
@pytest.mark.parametrize("value", [None, "5", 0, -1, 10**6])
def test_the_number_of_columns_cannot_be_hidden(kind, value):
    model = kind(random_state=0).fit(X, Y)
    del model.n_features_in_
    if value is not None:
        model.n_features_in_ = value
    with pytest.raises(ValueError, match="features"):
        check_tree_safety(model)


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(ValueError, match="must not hold a KNeighborsClassifier"):
        check_tree_safety(make_pipeline(StandardScaler(), KNeighborsClassifier().fit(X, Y)))


def test_the_crash_is_real():
    """Without the check the first crafted tree ends the program."""
    code = """
import sys; sys.path[:0] = %r
import test_crafted_trees as t
forest = t.RandomForestClassifier(2, random_state=0).fit(t.X, t.Y)
far = (0, 10**9)
forest.estimators_[1].tree_ = t.with_state(forest.estimators_[1].tree_, left_child=far, right_child=far)
forest.predict(t.X)
""" % [__file__.rpartition("/")[0]]
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode < 0


@pytest.fixture(scope="module")
def booster_text() -> str:
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(X, Y, categorical_feature=[4], params={"verbosity": -1})
    params = {
        "objective": "binary", "num_leaves": 6, "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5,
        "min_data_per_group": 5, "max_cat_to_onehot": 1,
    }  # fmt: skip
    return lightgbm.train(params, data, 4).model_to_string()


def test_lightgbm_is_let_through(booster_text):
    import lightgbm

    assert "cat_boundaries" in booster_text
    whole = lightgbm.Booster(model_str=booster_text)
    safe = lightgbm.Booster(model_str=safe_booster_text(booster_text, 5, 2))
    np.testing.assert_array_equal(safe.predict(X), whole.predict(X))
    check_tree_safety({"booster": whole})


@pytest.mark.parametrize(
    ("field", "first"),
    [
        ("left_child", "999999"), ("left_child", "0"), ("right_child", "-99"), ("split_feature", "77"),
        ("split_feature", "-1"), ("num_leaves", "9999"), ("num_leaves", "0"), ("num_cat", "-1"),
        ("leaf_value", "nan"), ("leaf_value", "1_0"), ("threshold", "nan"), ("cat_boundaries", "5"),
        ("max_feature_idx", "0"), ("tree_sizes", "1"), ("tree_sizes", "99999999"), ("num_tree_per_iteration", "3"),
        ("num_class", "5"), ("is_linear", "1"), ("left_child", "1\\nleft_child=7"), ("left_child", "1\\r2"),
        ("leaf_weight", "x"), ("leaf_weight", "1 2"), ("internal_value", "x"), ("leaf_count", ""),
        ("shrinkage", "x"), ("split_gain", "1\\nsurprise=1"), ("objective", ""), ("objective", "lambdarank"),
        ("version", "v9"), ("Tree", "\\0"), ("Tree", "1"), ("split_gain", "1\\0"),
        ("label_index", "7"), ("feature_names", "a b"), ("feature_infos", "[x:1]"),
    ],
)  # fmt: skip
def test_crafted_boosters_are_refused(booster_text, field, first):
    first = first.encode().decode("unicode_escape")
    lines = booster_text.split("\n")
    place = next(k for k, line in enumerate(lines) if line.startswith(f"{field}="))
    values = lines[place].partition("=")[2].split(" ")
    lines[place] = f"{field}={' '.join([first, *values[1:]])}"
    text = "\n".join(lines)
    sizes = [len(part) + 6 for part in text.split("\nTree=")[1:]]
    if field != "tree_sizes":  # as an attacker would, who knows that they are compared
        last = text.split("\nTree=")[-1].partition("\nend of trees")[0]
        sizes[-1] = len(last) + 6
        text = "\n".join(
            f"tree_sizes={' '.join(map(str, sizes))}" if line.startswith("tree_sizes=") else line
            for line in text.split("\n")
        )
    with pytest.raises(ValueError, match=r"tree|LightGBM"):
        safe_booster_text(text, 5, 2)


def test_a_booster_for_other_columns_or_classes_is_refused(booster_text):
    for n_features, n_classes in ((4, 2), (6, 2), (5, 3)):
        with pytest.raises(ValueError, match="of this LightGBM model must be"):
            safe_booster_text(booster_text, n_features, n_classes)


def test_notes_behind_the_trees_are_left_out(booster_text):
    """A line of them that is out of its place ends the program at times."""
    assert "[num_threads: 1]" in booster_text
    assert safe_booster_text(booster_text, 5, 2).endswith("\nend of trees\n\npandas_categorical:null\n")


@pytest.mark.parametrize("text", ["", "Tree=0", "\nTree=0\nend of trees", "x" * 100])
def test_no_booster_at_all(text):
    with pytest.raises(ValueError, match="LightGBM"):
        safe_booster_text(text, 5, 2)


@pytest.fixture(scope="module", params=[2, 3])
def catboost_model(request, tmp_path_factory):
    """A CatBoost model, its number of classes and its JSON."""
    catboost = pytest.importorskip("catboost")
    labels = Y if request.param == 2 else np.digitize(X[:, 0], [-0.5, 0.5])
    model = catboost.CatBoostClassifier(
        iterations=4, depth=3, verbose=0, thread_count=1, allow_writing_files=False,
        loss_function="Logloss" if request.param == 2 else "MultiClass",
    ).fit(X, labels)  # fmt: skip
    path = tmp_path_factory.mktemp("catboost") / "model.json"
    model.save_model(str(path), format="json")
    return model, request.param, json.loads(path.read_text())


def test_catboost_is_let_through(catboost_model, tmp_path):
    import catboost

    model, n_classes, parsed = catboost_model
    path = tmp_path / "safe.json"
    path.write_text(json.dumps(safe_catboost_model(parsed, X.shape[1], n_classes)))
    loaded = catboost.CatBoost().load_model(str(path), format="json")
    raw = loaded.predict(X, prediction_type="RawFormulaVal", thread_count=1)
    proba = softmax(raw, axis=1) if n_classes == 3 else np.column_stack([expit(-raw), expit(raw)])
    np.testing.assert_allclose(proba, model.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("oblivious_trees", []), ("oblivious_trees/0/splits/0/float_feature_index", 99),
        ("oblivious_trees/0/splits/0/split_index", 10**6), ("oblivious_trees/0/splits/0/split_index", -1),
        ("oblivious_trees/0/splits/0/split_type", "OnlineCtr"), ("oblivious_trees/0/splits/0/border", 0.123),
        ("oblivious_trees/0/leaf_values", [0.0]), ("oblivious_trees/0/leaf_values/0", float("nan")),
        ("oblivious_trees/0/leaf_weights", []), ("oblivious_trees/0/splits", [{}] * 40),
        ("features_info/float_features/0/flat_feature_index", 10**6),
        ("features_info/float_features/0/feature_index", 3),
        ("features_info/float_features/0/borders", [2.0, 1.0]), ("features_info/categorical_features", []),
        ("scale_and_bias", [1, []]), ("ctr_data", {}),
    ],
)  # fmt: skip
def test_crafted_catboost_models_are_refused(catboost_model, path, value):
    _, n_classes, parsed = catboost_model
    made = copy.deepcopy(parsed)
    *way, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    place = made
    for step in way:
        place = place[step]
    place[last] = value
    with pytest.raises(ValueError, match="CatBoost"):
        safe_catboost_model(made, X.shape[1], n_classes)
