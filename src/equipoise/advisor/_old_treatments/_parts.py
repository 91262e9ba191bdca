"""Parts that several treatments share: preparing columns, and the linear model with its settings."""

from __future__ import annotations

import importlib.util
from typing import Any

from equipoise.advisor._old_treatments._contract import Task

#: Inverse regularization strengths: the four settings of every linear treatment.
LINEAR_SETTINGS = [{"classifier__C": c} for c in (0.01, 0.1, 1.0, 10.0)]
RARE_CATEGORY = 20  # columns with more categories than this are encoded by their target instead of one-hot


def prepare(task: Task, *, seed: int = 0) -> Any:
    """Impute, scale and encode, as the columns need it."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numeric = make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())
    if not task.kinds:
        return ColumnTransformer([("numbers", numeric, list(range(task.X.shape[1])))])
    names = list(task.X.columns)
    few: list[str] = []
    many: list[str] = []
    numbers: list[str] = []
    for name, kind in zip(names, task.kinds, strict=True):
        if kind == "number":
            numbers.append(name)
        else:
            (few if task.X[name].nunique() <= RARE_CATEGORY else many).append(name)
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=5, sparse_output=False)
    parts = [("numbers", numeric, numbers), ("few", one_hot, few), ("many", _target_encoder(seed), many)]
    return ColumnTransformer([part for part in parts if part[2]], sparse_threshold=0.0)


def _target_encoder(seed: int) -> Any:
    import sklearn
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import TargetEncoder

    major, minor = (int(part) for part in sklearn.__version__.split(".")[:2])
    if (major, minor) < (1, 9):
        return TargetEncoder(random_state=seed)
    return TargetEncoder(cv=StratifiedKFold(5, shuffle=True, random_state=seed))


def linear(seed: int, **settings: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=500, random_state=seed, **settings)


def needs_torch(task: Task, most_rows: int) -> str:
    """Why a network cannot be trained on the task; empty if it can."""
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("lightning_fabric") is None:
        return "it needs torch (pip install 'equipoise[torch]')"
    return "" if len(task.y) <= most_rows else f"there are more than {most_rows:,} rows"


def pipeline(task: Task, seed: int, classifier: Any, sampler: Any = None) -> Any:
    """Prepare, resample (inside the folds, where the pipeline is fitted), classify."""
    from imblearn.pipeline import Pipeline

    steps = [("prepare", prepare(task, seed=seed)), ("sampler", sampler), ("classifier", classifier)]
    return Pipeline([step for step in steps if step[1] is not None])
