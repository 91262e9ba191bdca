"""Loss-conditional training against the same loss tuned by retraining (Lieberman et al., Tables 3, 4, 13–17)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equipoise.studies.spec import Spec

from .paper import TABLES as PAPER

Law = tuple[float, float, float]

VALUES = {
    "gamma": (0.0, 0.1, 0.2, 0.3), "tau": (0.0, 1.0, 2.0, 3.0),
    "alpha": (0.1, 0.25, 0.5, 0.75), "phi": (0.0, 1.0, 2.0, 3.0),
}  # fmt: skip
"""Table 2: a baseline trains one model for each of the sixteen combinations of its two hyper-parameters."""
ASKED = {**VALUES, "tau": (0.0, 1.0, 2.0, 3.0, 4.0)}
"""Table 2: every conditional model is asked for each of these combinations after training."""
LAWS: dict[str, tuple[Law, ...]] = {
    "gamma": ((0.0, 0.3, 0.0), (0.0, 0.3, 10 / 3), (0.0, 0.2, 5.0), (0.1, 0.3, 5.0)),
    "tau": ((0.0, 3.0, 0.0), (0.0, 3.0, 1 / 3), (1.0, 4.0, 0.0), (1.0, 4.0, 1 / 3)),
    "alpha": ((0.25, 0.75, 2.0), (0.25, 0.75, 0.0), (0.25, 0.75, 4.0), (0.1, 0.9, 1.25)),
    "phi": ((1.0, 3.0, 0.5), (1.0, 3.0, 0.0), (1.0, 3.0, 1.0), (1.0, 4.0, 1 / 3)),
}
"""Table 2: the sixteen pairs of densities L(a, b, h_b) that conditional models train with.

L(1, 3, 2) is no density; L(1, 3, 1) stands in for it. (``Linear.as_sampled(1, 3, 2)`` is what the authors draw.)
"""
NAMES = {"vs": ("gamma", "tau"), "focal": ("alpha", "phi")}
FASHION = {"fashion-shirt/t-shirt": (0, 6), "fashion-pullover/coat": (4, 2)}
IMAGES = (*FASHION, "pneumonia", "cifar-truck/automobile")
TABLES = ("ecoli", "abalone", "satimage")
METRICS = ("auc", "average_precision", "brier", "best_f1", "best_balanced_accuracy", "precision_at_recall")
SHOWN = ("auc", "brier", "precision_at_recall", "best_f1")
RECALLS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True)
class Training:
    """One model to be trained: fixed hyper-parameters, densities of the others, and what it is asked for."""

    fixed: dict[str, float]
    laws: dict[str, Law]
    asked: list[dict[str, float]]

    def label(self) -> str:
        laws = [f"{name} ~ L({a:g}, {b:g}, {h:.2g})" for name, (a, b, h) in self.laws.items()]
        return ", ".join([f"{name} = {value:g}" for name, value in self.fixed.items()] + laws)


def trainings(method: str) -> list[Training]:
    """The sixteen trainings of a method: ``vs`` or ``focal``, with ``-lct``, ``-lct-gamma`` (λ = γ alone) …

    ``-rows`` draws λ for every row, ``-authors`` initializes the modulation as the authors do, ``-scaled``
    standardizes λ before it.

    >>> len(trainings("vs-lct")), len(trainings("vs-lct")[0].asked)
    (16, 20)
    """
    names = NAMES[method.split("-")[0]]
    told = () if "lct" not in method else tuple(n for n in names if method.endswith(f"-{n}")) or names
    grid = {name: LAWS[name] if name in told else VALUES[name] for name in names}
    found = []
    for choice in itertools.product(*grid.values()):
        one: dict[str, Any] = dict(zip(names, choice, strict=True))
        asked = itertools.product(*(ASKED[name] for name in told))
        found.append(
            Training(
                {name: one[name] for name in names if name not in told},
                {name: one[name] for name in told},
                [dict(zip(told, values, strict=True)) for values in asked],
            )
        )
    return found


def run_cell(
    dataset: str,
    method: str,
    beta: int,
    seed: int,
    majority: int,
    epochs: int,
    width: int,
    recipe: str = "small",
) -> dict[str, Any]:
    """All trainings of one method on one set: each metric's best model and λ are chosen on validation data.

    ``scarce`` has the test scores of a second choice, on validation data at the training set's imbalance.
    ``recipe="paper"`` trains as the paper does: see :func:`equipoise.classifiers.conditional_preset`.
    """
    import time

    from equipoise.metrics import precision_at_recall

    parts = _load(dataset, beta, seed, majority)
    plan = trainings(method)
    start = time.perf_counter()
    answers = list(_fit_all(method, plan, parts, seed, epochs, width, recipe))  # (λ, rows, classes) each
    seconds = time.perf_counter() - start
    few = at_training_imbalance(parts["y"], parts["y_valid"], seed)
    scarce, best = _choose(answers, parts, few), _choose(answers, parts, slice(None))
    result: dict[str, Any] = {"train_rows": len(parts["y"]), "models": len(plan)}
    result["scarce"] = {name: value for name, (_, value) in scarce.items()}
    for name, ((model, told), value) in best.items():
        asked = ", ".join(f"{key} = {value:g}" for key, value in plan[model].asked[told].items())
        result |= {name: value, f"{name}_model": plan[model].label(), f"{name}_asked": asked}
    chosen = [best["average_precision"][0]] if "lct" in method else [(i, 0) for i in range(len(plan))]
    result["precisions"] = [
        [
            round(precision_at_recall(parts["y_test"], answers[i][1][j][:, 1], min_recall=r, pos_label=1), 4)
            for r in RECALLS
        ]
        for i, j in chosen
    ]
    tested = [test for _, test in answers]
    test = {name: _scores(name, parts["y_test"], tested) for name in SHOWN}
    result["auc_map"] = test["auc"].round(4).tolist()
    result["tradeoff"] = {name: test[name][best["auc"][0][0]].round(4).tolist() for name in SHOWN}
    return {**result, "fit_seconds": seconds}


def _scores(name: str, y: Any, answers: Sequence[Any]) -> Any:
    """A metric of every training under every λ."""
    import numpy as np

    from equipoise.metrics import get_metric

    evaluate = get_metric(name).evaluate
    return np.round([[evaluate(y, proba, labels=[0, 1], pos_label=1) for proba in one] for one in answers], 6)


def _choose(
    answers: Sequence[tuple[Any, Any]], parts: dict[str, Any], rows: Any
) -> dict[str, tuple[tuple[int, int], float]]:
    """For each metric the training and the λ that are best on these validation rows, and their test score."""
    import numpy as np

    from equipoise.metrics import get_metric

    found = {}
    for name in METRICS:
        valid = _scores(name, parts["y_valid"][rows], [both[0][:, rows] for both in answers])
        best = int((valid * get_metric(name).sign).argmax())
        model, told = (int(place) for place in np.unravel_index(best, valid.shape))
        value = _scores(name, parts["y_test"], [answers[model][1][told : told + 1]])
        found[name] = (model, told), float(value[0, 0])
    return found


def _fit_all(
    method: str,
    plan: Sequence[Training],
    parts: dict[str, Any],
    seed: int,
    epochs: int,
    width: int,
    recipe: str,
) -> Iterator[tuple[Any, Any]]:
    """Probabilities on validation and test data of every training, (λ, rows, classes) each."""
    from equipoise.classifiers import ConditionalClassifier, NeuralClassifier, conditional_preset
    from equipoise.training import Linear

    images = parts["X"].ndim > 2
    if recipe == "paper" and images:
        settings = conditional_preset("paper", sam="-sam" in method, epochs=epochs, random_state=seed)
        base, step = settings["estimator"], {key: settings[key] for key in ("step", "step_params")}
    else:
        shape: dict[str, Any] = {"widths": (width, 2 * width, 4 * width)} if images else {"hidden": (64, 64)}
        base = NeuralClassifier(module_params=shape, epochs=epochs, batch_size=64, lr=2e-3, random_state=seed)
        step = {"step": "sam", "step_params": {"rho": 0.1}} if "-sam" in method else {}
    loss = method.split("-")[0]
    for training in plan:
        if not training.laws:
            base.set_params(loss=loss, loss_params=training.fixed, **step).fit(parts["X"], parts["y"])
            answer = [base.predict_proba(parts[side], prior="train")[None] for side in ("X_valid", "X_test")]
        else:
            laws = {name: Linear(*law) for name, law in training.laws.items()}
            clf = ConditionalClassifier(
                loss,
                distribution=laws,
                loss_params=training.fixed,
                estimator=base,
                film="nofilm" not in method,
                film_residual="-authors" not in method and recipe != "paper",
                film_scaled="-scaled" in method,
                per_sample="-rows" in method,
                random_state=seed,
                **step,
            ).fit(parts["X"], parts["y"])
            with warnings.catch_warnings():  # Table 2 asks for values beyond some of the densities
                warnings.filterwarnings("ignore", "(?s).*outside the trained range.*")
                answer = [
                    clf.predict_proba(parts[side], training.asked, prior="train")
                    for side in ("X_valid", "X_test")
                ]
        yield answer[0], answer[1]


def _load(dataset: str, beta: int, seed: int, majority: int) -> dict[str, Any]:
    """Training data at imbalance β; validation and test data balanced, as in the paper, where there is enough."""
    import numpy as np

    from equipoise import datasets

    rng = np.random.default_rng([seed, beta])
    if dataset in TABLES:
        data = datasets.load_imblearn_benchmark(dataset)
        X, y = np.asarray(data.X, dtype=np.float32), (np.asarray(data.y) == 1).astype(int)
        order = np.concatenate([rng.permutation(np.flatnonzero(y == label)) for label in (0, 1)])
        place = np.concatenate([np.linspace(0, 1, (y == label).sum(), endpoint=False) for label in (0, 1)])
        fit, valid, held = order[place < 0.5], order[(place >= 0.5) & (place < 0.7)], order[place >= 0.7]
        return _parts(X[fit], y[fit], X[valid], y[valid], X[held], y[held])
    if dataset in FASHION:
        head, rare = FASHION[dataset]
        train, test = (datasets.load_fashion_mnist(split=split) for split in ("train", "test"))
    elif dataset == "pneumonia":
        head, rare = 1, 0
        train, test = (datasets.load_medmnist("pneumoniamnist", split=split) for split in ("train", "test"))
    else:
        head, rare = 9, 1
        train, test = (datasets.load_cifar10(split=split) for split in ("train", "test"))
    X, y, y_test = train.X, np.asarray(train.y), np.asarray(test.y)
    pools = [rng.permutation(np.flatnonzero(y == label)) for label in (head, rare)]
    set_aside = min(500, len(pools[0]) // 10)  # validation images first: the paper trains on all there are
    majority = min(majority, len(pools[0]) - set_aside)
    n_rare = max(2, round(majority / beta))
    n_valid = min(500, len(pools[0]) - majority, len(pools[1]) - n_rare)
    fit = np.concatenate([pools[0][:majority], pools[1][:n_rare]])
    valid = np.concatenate([pools[0][majority:][:n_valid], pools[1][n_rare:][:n_valid]])
    held = np.flatnonzero(np.isin(y_test, (head, rare)))
    labels = [(part == rare).astype(int) for part in (y[fit], y[valid], y_test[held])]
    return _parts(X[fit], labels[0], X[valid], labels[1], test.X[held], labels[2])


def at_training_imbalance(y: Any, y_valid: Any, seed: int) -> Any:
    """Rows of a validation set with no more positives than its negatives have in training.

    >>> import numpy as np
    >>> y, y_valid = np.repeat([0, 1], [1000, 10]), np.repeat([0, 1], [500, 500])
    >>> np.bincount(y_valid[at_training_imbalance(y, y_valid, 0)]).tolist()
    [500, 5]
    """
    import numpy as np

    negatives, positives = (np.flatnonzero(y_valid == label) for label in (0, 1))
    kept = min(len(positives), max(1, round(len(negatives) * (y == 1).sum() / (y == 0).sum())))
    return np.sort(np.r_[negatives, np.random.default_rng(seed).permutation(positives)[:kept]])


def _parts(X: Any, y: Any, X_valid: Any, y_valid: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    return {"X": X, "y": y, "X_valid": X_valid, "y_valid": y_valid, "X_test": X_test, "y_test": y_test}


def cells(
    majority: int = 1000, epochs: int = 12, width: int = 8, seeds: int = 3, recipe: str = "small"
) -> Iterator[dict[str, Any]]:
    """Seed by seed the three versions of VS on every set; then Table 4's other losses, longer runs, trials."""
    size: dict[str, Any] = {"majority": majority, "epochs": epochs, "width": width}
    if recipe != "small":
        size["recipe"] = recipe
    main = ("vs", "vs-lct", "vs-lct-nofilm")
    for seed in range(seeds):
        for dataset, beta, method in itertools.product(IMAGES, (100, 200), main):
            yield {"dataset": dataset, "method": method, "beta": beta, "seed": seed, **size}
        for dataset, method in itertools.product(TABLES, main):
            yield {"dataset": dataset, "method": method, "beta": 0, "seed": seed, **size, "majority": 0}
    others = ("focal", "focal-lct", "focal-lct-nofilm", "vs-lct-gamma", "vs-lct-tau")
    sharp = ("vs-sam", "vs-sam-lct", "vs-sam-lct-nofilm")
    for seed, method in itertools.product(range(seeds), others):
        yield {"dataset": IMAGES[-1], "method": method, "beta": 100, "seed": seed, **size}
    for seed, dataset, method in itertools.product(range(seeds), (IMAGES[-1], IMAGES[1]), main[:2]):
        yield {"dataset": dataset, "method": method, "beta": 100, "seed": seed, **size, "epochs": 5 * epochs}
    for seed, dataset in itertools.product(range(seeds), (IMAGES[-1], IMAGES[1])):
        yield {"dataset": dataset, "method": "vs-lct-rows", "beta": 100, "seed": seed, **size}
    for seed, dataset, beta in itertools.product(range(seeds), IMAGES, (100, 200)):
        yield {"dataset": dataset, "method": "vs-lct-authors", "beta": beta, "seed": seed, **size}
    for seed, dataset in itertools.product(range(seeds), TABLES):
        yield {"dataset": dataset, "method": "vs-lct-authors", "beta": 0, "seed": seed, **size, "majority": 0}
    for seed, method in itertools.product(range(seeds), sharp):
        yield {"dataset": IMAGES[-1], "method": method, "beta": 100, "seed": seed, **size}
    for seed in range(seeds):
        yield {"dataset": "ecoli", "method": "vs-lct-scaled", "beta": 0, "seed": seed, **size, "majority": 0}
    yield from _other_losses(seeds, size)


def _other_losses(seeds: int, size: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Table 3's other losses, retrained and conditional, on the settings that Table 4's cells leave out."""
    images = [pair for pair in itertools.product(IMAGES, (100, 200)) if pair != (IMAGES[-1], 100)]
    tables = [(name, 0) for name in TABLES]
    for seed, loss, (dataset, beta) in itertools.product(
        range(seeds), ("focal", "vs-sam"), [*tables, *images]
    ):
        rows = size if beta else {**size, "majority": 0}
        for method in (loss, f"{loss}-lct"):
            yield {"dataset": dataset, "method": method, "beta": beta, "seed": seed, **rows}


def needs(cells: Sequence[dict[str, Any]]) -> list[str]:
    """The data that these cells read."""
    names = {"pneumonia": "pneumoniamnist", "cifar-truck/automobile": "cifar10"}
    names |= dict.fromkeys(FASHION, "fashion-mnist")
    return sorted({names.get(cell["dataset"], cell["dataset"]) for cell in cells})


SPEC = Spec(
    name="conditional",
    title="One conditional model against sixteen retrained ones",
    reference="Lieberman et al., Tables 3, 4, 13–17 and Figs 1–8",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {"majority": 100, "epochs": 1, "width": 2, "seeds": 1},
        "small": {},
        "paper": {"majority": 5000, "epochs": 500, "width": 64, "recipe": "paper"},
    },
    differs=(
        "A convnet of three layers (8, 16, 32 channels) on 1,000 images of the frequent class and 10 or 5 of the "
        "rare one, 12 epochs of AdamW at 2e-3, batches of 64, in place of a ResNet-32 on 5,000 images for 500 "
        "epochs of SGD; Fashion-MNIST and PneumoniaMNIST in place of melanoma and APTOS. Every method trains "
        "sixteen models, as there. Model and λ are chosen on validation data (500 of each class where there are), "
        "not on the test set as in the paper. L(1, 3, 2) of Table 2 is no density; L(1, 3, 1) stands in "
        "for it, not Linear(7/3, 3, 2), which the authors' sampler draws. The size paper sets a tenth of the "
        "frequent class, at most 500 images, aside for validation first. "
        "Probabilities are as trained, not corrected to a prior."
    ),
    paper=PAPER,
    requires_data=needs,
)
