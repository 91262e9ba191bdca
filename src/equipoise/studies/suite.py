"""The generic study: methods × learners × data sets × folds × seeds × parameters, judged by metrics."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import check_choice, check_integer
from equipoise._core.random import derive_seed
from equipoise.advisor.treatments import (
    Context,
    Learner,
    Treatment,
    all_learners,
    all_treatments,
    get_learner,
    get_treatment,
)
from equipoise.metrics import METRICS, get_metric
from equipoise.studies import data
from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

OWN = "own"  # the learner of a method that brings its own
_Array = npt.NDArray[Any]


def suite(
    name: str,
    title: str,
    *,
    methods: Sequence[str],
    datasets: Sequence[str],
    metrics: Sequence[str],
    learners: Sequence[str] = ("logistic",),
    folds: int = 5,
    seeds: Sequence[int] = (0,),
    trials: int = 0,
    inner_folds: int = 3,
    tune_metric: str | None = None,
    max_rows: int | None = None,
    parameters: Mapping[str, Sequence[Any]] | None = None,
    **spec: Any,
) -> Spec:
    """A study of named methods on named data sets.

    Parameters
    ----------
    methods, learners, datasets, metrics : sequences of str
        Names. A method that brings its own learner is run once, the others with each learner.
    folds, seeds
        Stratified outer folds, dealt anew for each seed. The first metric is the one tuned for, unless
        ``tune_metric`` says otherwise.
    trials, inner_folds : int
        Every method gets the same number of Optuna trials, its defaults the first of them, each scored on
        the same inner folds of the training part. With 0 trials the defaults are taken.
    max_rows : int, optional
        Larger sets are thinned to so many rows, keeping the class shares.
    parameters : mapping
        Further axes: parameters of learners or methods and their values.

    Examples
    --------
    >>> spec = suite("demo", "Demo", methods=["plain", "balanced-forest"], datasets=["breast_cancer"],
    ...              metrics=["balanced_accuracy"], learners=["logistic", "forest"], folds=2)
    >>> [(cell["method"], cell["learner"], cell["fold"]) for cell in spec.cells()][:3]
    [('plain', 'logistic', 0), ('plain', 'logistic', 1), ('plain', 'forest', 0)]
    >>> len(spec.cells())
    6
    """
    fixed: dict[str, Any] = {
        "metrics": [get_metric(metric).name for metric in metrics],
        "trials": check_integer("trials", trials, low=0),
        "inner_folds": check_integer("inner_folds", inner_folds, low=2),
        "tune_metric": get_metric(tune_metric or metrics[0]).name,
        "max_rows": None if max_rows is None else check_integer("max_rows", max_rows, low=50),
    }
    axes = {
        "dataset": list(datasets),
        "method": list(methods),
        "learner": list(learners),
        "seed": list(seeds),
        "folds": check_integer("folds", folds, low=2),
    }
    for axis in ("dataset", "method", "learner", "seed"):
        if not axes[axis]:
            raise ValueError(f"{axis}s must not be empty")
    _check_parameters(parameters or {}, methods, learners)

    def cells(**overrides: Any) -> Iterator[Settings]:
        yield from _cells({**axes, **overrides}, fixed, parameters or {})

    shown = fixed["metrics"]
    return Spec(name, title, run_cell, grid=cells, metrics=shown, check=_check_cells, **spec)


def _cells(
    axes: Mapping[str, Any], fixed: Mapping[str, Any], parameters: Mapping[str, Sequence[Any]]
) -> Iterator[Settings]:
    axes, fixed = dict(axes), {key: axes.get(key, value) for key, value in fixed.items()}
    folds = axes["folds"]
    combinations = [
        dict(zip(parameters, values, strict=True)) for values in itertools.product(*parameters.values())
    ]
    for dataset, name in itertools.product(axes["dataset"], axes["method"]):
        method = get_treatment(name)
        for learner in axes["learner"] if method.takes_learner else [OWN]:
            accepted = _accepted(method, learner)
            for chosen, seed, fold in itertools.product(combinations, axes["seed"], range(folds)):
                given = {key: value for key, value in chosen.items() if key in accepted}
                yield {
                    "dataset": dataset,
                    "method": name,
                    "learner": learner,
                    **({"parameters": given} if given else {}),
                    "seed": seed,
                    "fold": fold,
                    "folds": folds,
                    **fixed,
                }


def _accepted(method: Treatment, learner: str) -> set[str]:
    return set(method.defaults) | (set() if learner == OWN else set(get_learner(learner).defaults))


def _check_parameters(
    parameters: Mapping[str, Sequence[Any]], methods: Sequence[str], learners: Sequence[str]
) -> None:
    known = {key for method in methods for key in get_treatment(method).defaults}
    known |= {key for learner in learners for key in get_learner(learner).defaults}
    for name, values in parameters.items():
        check_choice("parameter", name, sorted(known))
        if not isinstance(values, (list, tuple)) or not values:
            raise ValueError(f"parameter {name!r} must be a list of values, got {values!r}")


def _check_cells(cells: list[Settings]) -> None:
    """Everything that the cells name exists, and the methods fit the data."""
    for name in sorted({name for cell in cells for name in [*cell["metrics"], cell["tune_metric"]]}):
        check_choice("metric", get_metric(name).name.partition("(")[0], sorted(METRICS))
    for key, known in (("method", all_treatments()), ("learner", {**all_learners(), OWN: None})):
        for name in sorted({cell[key] for cell in cells}):
            check_choice(key, name, sorted(known))
    data.check_available(sorted({cell["dataset"] for cell in cells}))
    for cell in cells:
        if not data.is_multiclass(cell["dataset"]):
            continue
        if not get_treatment(cell["method"]).multiclass:
            raise ValueError(f"method {cell['method']!r} takes two classes, {cell['dataset']!r} has more")
        binary = [name for name in cell["metrics"] if not get_metric(name).multiclass]
        if binary:
            raise ValueError(f"metric {binary[0]!r} takes two classes, {cell['dataset']!r} has more")


def run_cell(
    *,
    dataset: str,
    method: str,
    learner: str,
    seed: int,
    fold: int,
    folds: int,
    metrics: Sequence[str],
    trials: int,
    inner_folds: int,
    tune_metric: str,
    max_rows: int | None,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Tune on inner folds of one outer fold's training part, fit, and judge on its test part."""
    X, y = _rows(dataset, max_rows, seed)
    train, test = _splits(y, folds, derive_seed(seed, "outer", dataset))[fold]
    entry, base = get_treatment(method), None if learner == OWN else get_learner(learner)
    cell_seed = derive_seed(seed, "cell", dataset, fold)  # the same for every method: a paired comparison
    counts = np.unique(y[train], return_counts=True)[1]
    build = _Builder(entry, base, cell_seed, inner_folds, counts, X.shape[1])
    start = time.perf_counter()
    best, scores = _tune(build, X[train], y[train], dict(parameters or {}), trials, tune_metric, cell_seed)
    tuned = time.perf_counter()
    model = build(best).fit(X[train], y[train])
    fitted = time.perf_counter()
    results = _judge(model, X[test], y[test], metrics)
    return {
        **results,
        "chosen": best,
        "trial_scores": scores,
        "tune_seconds": tuned - start,
        "fit_seconds": fitted - tuned,
        "predict_seconds": time.perf_counter() - fitted,
    }


def _rows(dataset: str, max_rows: int | None, seed: int) -> tuple[_Array, _Array]:
    from sklearn.model_selection import train_test_split

    found = data.load(dataset)
    X, y = found.table, found.y
    if max_rows is not None and len(y) > max_rows:
        keep, _ = train_test_split(
            np.arange(len(y)),
            train_size=max_rows,
            stratify=y,
            random_state=derive_seed(seed, "rows", dataset),
        )
        X, y = X[np.sort(keep)], y[np.sort(keep)]
    return X, y


def _splits(y: _Array, folds: int, seed: int) -> list[tuple[_Array, _Array]]:
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros((len(y), 1)), y))


@dataclass(frozen=True)
class _Builder:
    """From parameters to an estimator."""

    method: Treatment
    learner: Learner | None
    seed: int
    inner_folds: int
    class_counts: _Array
    n_columns: int

    @property
    def defaults(self) -> dict[str, Any]:
        return {**(self.learner.defaults if self.learner else {}), **self.method.defaults}

    @property
    def space(self) -> dict[str, Any]:
        return {**(self.learner.space if self.learner else {}), **self.method.space}

    def __call__(self, parameters: Mapping[str, Any]) -> Any:
        def base(class_weight: str | None = None) -> Any:
            if self.learner is None:
                raise ValueError(f"method {self.method.name!r} has no base learner")
            chosen = {key: parameters[key] for key in self.learner.defaults}
            return self.learner.build(self.seed, class_weight, **chosen)

        counts, folds = self.class_counts, self.inner_folds
        context = Context(
            seed=self.seed, smallest=int(counts.min()) * (folds - 1) // folds, folds=folds, base=base,
            n_rows=int(counts.sum()), n_columns=self.n_columns, n_classes=len(counts),
        )  # fmt: skip
        return self.method.build(context, **{key: parameters[key] for key in self.method.defaults})


def _tune(
    build: _Builder, X: _Array, y: _Array, given: dict[str, Any], trials: int, metric: str, seed: int
) -> tuple[dict[str, Any], list[float]]:
    """The best of so many trials (the first are the defaults) and every trial's score."""
    defaults = {**build.defaults, **given}
    space = (
        {key: span.distribution() for key, span in build.space.items() if key not in given} if trials else {}
    )
    if not trials:
        return defaults, []
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial({key: defaults[key] for key in space})
    inner = _splits(y, build.inner_folds, derive_seed(seed, "inner"))
    sign = get_metric(metric).sign
    scores: list[float] = []
    failure: ValueError | None = None
    for _ in range(trials if space else 1):  # with nothing to choose, one trial says as much as many
        trial = study.ask(space)
        try:
            score = _inner_score(build({**defaults, **trial.params}), X, y, inner, metric)
        except ValueError as error:  # parameters that cannot be fitted are not chosen
            failure = error
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            scores.append(float("nan"))
            continue
        study.tell(trial, sign * score)
        scores.append(score)
    if np.isnan(scores).all():
        raise ValueError(f"none of {trials} trials could be fitted") from failure
    return {**defaults, **study.best_params}, scores


def _inner_score(model: Any, X: _Array, y: _Array, inner: list[tuple[_Array, _Array]], metric: str) -> float:
    values = [
        _judge(model.fit(X[train], y[train]), X[test], y[test], [metric])[metric] for train, test in inner
    ]
    return float(np.mean(values))


def _judge(model: Any, X: _Array, y: _Array, metrics: Sequence[str]) -> dict[str, float]:
    """Metrics of a fitted classifier: labels from ``predict``, so that a tuned threshold counts."""
    chosen = [get_metric(name) for name in metrics]
    labels: Any = model.predict(X) if any(metric.needs == "labels" for metric in chosen) else None
    proba: Any = model.predict_proba(X) if any(metric.needs != "labels" for metric in chosen) else None
    found = {}
    for name, metric in zip(metrics, chosen, strict=True):
        if metric.needs == "labels":
            keywords: dict[str, Any] = {"labels": model.classes_} if "labels" in metric.accepts else {}
            if len(model.classes_) == 2 and "pos_label" in metric.accepts:
                keywords["pos_label"] = model.classes_[1]
            found[name] = float(metric(y, labels, **keywords))
        else:
            found[name] = float(metric.evaluate(y, proba, labels=model.classes_))
    return found
