"""Losses learned on a meta set, on long-tailed images: Tables 2, 3, 9 and 11, and 5 and 6, of Wu & Li."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise.bench.grid import Settings
from equipoise.bench.spec import Spec
from equipoise.report import Block, Section, Table, Text

PLAIN: dict[str, dict[str, Any]] = {
    "CE": {"loss": "ce"},
    "CB-CE": {"loss": "class_balanced", "loss_params": {"beta": 0.999}},
    "LA": {"loss": "logit_adjusted"},
    "LDAM-DRW": {"loss": "ldam", "defer": True},
    "NENum": {"loss": "nenum", "loss_params": {"beta": 0.999}},
    "non-meta": {"loss": "combined", "loss_params": {"beta": 0.999}},
}
META: dict[str, dict[str, Any]] = {
    "MWN": {"method": "mwn"},
    "MetaSAug": {"method": "metasaug", "method_params": {"beta": 0.999}},
    "Meta-ENum": {"method": "meta-enum", "method_params": {"beta": 0.999}},
    "Meta-ENum −h": {"method": "meta-enum", "method_params": {"beta": 0.999, "tau1": 0.0}},
    "Meta-ENum −DS": {"method": "meta-enum", "method_params": {"beta": 0.999, "tau2": 0.0}},
    "Meta-ENum −h −DS": {"method": "meta-enum", "method_params": {"beta": 0.999, "tau1": 0.0, "tau2": 0.0}},
    "Meta-ENum T1=0": {"method": "meta-enum", "method_params": {"beta": 0.999}, "warmup": 0.0},
    "Meta-ENum, literal": {"method": "meta-enum", "method_params": {"beta": 0.999}, "meta_loss": "literal"},
    "Meta-ENum, head only": {"method": "meta-enum", "method_params": {"beta": 0.999}, "layers": "head"},
    "Meta-ENum, held out": {"method": "meta-enum", "method_params": {"beta": 0.999}, "hold_out": True},
}
METHODS = [*PLAIN, *META]
PAPER: dict[int, dict[str, float]] = {  # Tables 3, 9 and 11, and Table 5 for 1 : 1, percent
    100: {
        "CB-CE": 27.32,
        "LDAM-DRW": 25.88,
        "LA": 22.33,
        "NENum": 20.75,
        "MWN": 26.43,
        "MetaSAug": 19.46,
        "Meta-ENum": 17.92,
        "Meta-ENum −h": 18.65,
        "Meta-ENum −DS": 19.23,
        "Meta-ENum −h −DS": 27.32,
        "non-meta": 18.76,
    },
    10: {
        "CB-CE": 13.10,
        "LDAM-DRW": 11.63,
        "LA": 11.07,
        "NENum": 10.91,
        "MWN": 12.45,
        "MetaSAug": 10.56,
        "Meta-ENum": 9.83,
        "Meta-ENum −h": 11.28,
        "Meta-ENum −DS": 10.95,
        "Meta-ENum −h −DS": 13.10,
        "non-meta": 10.73,
    },
}
_TAIL = 3


@lru_cache(maxsize=3)
def load_split(dataset: str, ratio: float, head: int, pixels: int) -> tuple[Any, Any, Any, Any]:
    """Training images in an exponential profile and all test images; the same for all seeds."""
    from equipoise.datasets import imbalanced_indices, load_cifar10, load_fashion_mnist

    load = {"fashion": load_fashion_mnist, "cifar10": load_cifar10}[dataset]
    train, test = load("train", pixels="uint8"), load("test", pixels="uint8")
    y = np.asarray(train.y)
    rows = imbalanced_indices(y, profile="exponential", ratio=ratio, head=head, random_state=0)
    return shrink(train.X[rows], pixels), y[rows], shrink(test.X, pixels), np.asarray(test.y)


def shrink(images: npt.ArrayLike, pixels: int) -> npt.NDArray[np.float32]:
    """Means over squares, to ``pixels`` a side.

    >>> shrink(np.ones((3, 1, 28, 28)), 14).shape
    (3, 1, 14, 14)
    """
    x = np.asarray(images, dtype=np.float32)
    n, channels, side, _ = x.shape
    block = side // pixels
    return np.asarray(x.reshape(n, channels, pixels, block, pixels, block).mean(axis=(3, 5)))


NETWORKS: dict[str, dict[str, Any]] = {
    "mlp": {"module": "mlp", "module_params": {"hidden": (64,)}},
    "convnet": {"module": "convnet", "module_params": {"widths": (8, 16, 32)}},
    "resnet32": {"module": "resnet32"},
}


def make_classifier(
    method: str, counts: npt.NDArray[Any], *, network: str, lr: float, epochs: int, seed: int
) -> Any:
    from equipoise.classifiers import MetaClassifier, NeuralClassifier
    from equipoise.theory.effective_number import effective_number_weights
    from equipoise.training import DeferredReweighting

    settings = dict(PLAIN.get(method, {}))
    defer = settings.pop("defer", False)
    base = NeuralClassifier(
        **NETWORKS[network],
        epochs=epochs,
        batch_size=100,
        lr=lr,
        optimizer="sgd",
        optimizer_params={"weight_decay": 5e-4},
        step_params={"clip": 5.0},
        callbacks=[DeferredReweighting(effective_number_weights(counts, 0.999))] if defer else [],
        random_state=seed,
        verbose=False,
        **settings,
    )
    if method in PLAIN:
        return base
    return MetaClassifier(**{"hold_out": False, **META[method]}, estimator=base, random_state=seed)


def run_cell(
    method: str,
    dataset: str,
    ratio: float,
    seed: int,
    head: int,
    pixels: int,
    network: str,
    lr: float,
    epochs: int,
) -> dict[str, Any]:
    """Train one method once; errors and recalls in percent on the test data."""
    X, y, X_test, y_test = load_split(dataset, ratio, head, pixels)
    if network == "mlp":
        X, X_test = X.reshape(len(X), -1), X_test.reshape(len(X_test), -1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* have too few samples for", UserWarning)
        classifier = make_classifier(
            method, np.bincount(y), network=network, lr=lr, epochs=epochs, seed=seed
        ).fit(X, y)
    hit = classifier.predict(X_test) == y_test
    recalls = np.array([hit[y_test == c].mean() for c in np.unique(y_test)])
    return {
        "test_error": 100 * float(1 - hit.mean()),
        "head_recall": 100 * float(recalls[:_TAIL].mean()),
        "tail_recall": 100 * float(recalls[-_TAIL:].mean()),
        "train_error": 100 * float(1 - classifier.history_["accuracy"].iloc[-1]),
    }


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    sections = []
    groups: Any = results.groupby(["dataset", "ratio"], sort=False)
    for (dataset, ratio), at in groups:
        errors = at.pivot(index="seed", columns="method", values="test_error")
        blocks: list[Block] = [_table(at, errors, int(ratio)), *_verdict(errors)]
        kind = "balanced" if ratio == 1 else f"long-tailed, {ratio:g} : 1"
        sections.append(Section(f"{dataset}, {kind}", blocks))
    return sections


def _spread(column: pd.Series[Any]) -> str:
    values = column.to_numpy(dtype=np.float64)
    mean = f"{values.mean():.2f}"
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else mean


def _table(at: pd.DataFrame, errors: pd.DataFrame, ratio: int) -> Table:
    rows: list[list[Any]] = []
    for method in METHODS:
        mine = at[at["method"] == method]
        if len(mine):
            columns = ("test_error", "head_recall", "tail_recall", "train_error")
            paper = PAPER.get(ratio, {}).get(method)
            seconds = f"{mine['cell_seconds'].mean():.0f}" if "cell_seconds" in mine else ""
            rows.append([method, len(mine), *(_spread(mine[c]) for c in columns), seconds, paper])
    caption = (
        "Percent, mean ± standard error over the seeds that are done. The paper's column is CIFAR10-LT with "
        "ResNet-32 (Tables 3, 9 and 11)."
    )
    names = ["method", "seeds", "top-1 error", "head recall", "tail recall", "training error", "s", "paper"]
    return Table(names, rows, caption, formats={"paper": ".2f"})


def _verdict(errors: pd.DataFrame) -> Iterator[Block]:
    """Meta-ENum's difference to every other method, seed by seed."""
    if "Meta-ENum" not in errors:
        return
    rows: list[list[Any]] = []
    for method in METHODS:
        if method in errors and method != "Meta-ENum":
            gain = (errors[method] - errors["Meta-ENum"]).dropna().to_numpy(dtype=np.float64)
            if len(gain):
                error = float(gain.std(ddof=1) / np.sqrt(len(gain))) if len(gain) > 1 else float("nan")
                rows.append(
                    [method, f"{gain.mean():+.2f}", None if np.isnan(error) else error, _word(gain, error)]
                )
    if rows:
        caption = "How far Meta-ENum's error lies below another method's, in points, paired by seed."
        columns = ["against", "gain", "standard error", "Meta-ENum is"]
        yield Table(columns, rows, caption, formats={"standard error": ".2f"})
    else:
        yield Text("Meta-ENum has no seed in common with another method yet.")


def _word(gain: npt.NDArray[np.float64], error: float) -> str:
    if np.isnan(error):
        return "not told: one seed"
    if abs(gain.mean()) <= error:
        return "tied within a standard error"
    return "better" if gain.mean() > 0 else "worse"


def cells(
    methods: Sequence[str] = tuple(METHODS),
    data: Sequence[Sequence[Any]] = (("fashion", 100, 1000), ("fashion", 10, 600), ("fashion", 1, 250)),
    seeds: Sequence[int] = (0, 1, 2),
    pixels: int = 14,
    network: str = "mlp",
    lr: float = 0.1,
    epochs: int = 24,
) -> Iterator[Settings]:
    """Seed by seed, so that what is done at any time is a whole study with fewer seeds."""
    for seed, (dataset, ratio, head), method in product(seeds, data, methods):
        yield {
            "method": method,
            "dataset": dataset,
            "ratio": ratio,
            "seed": seed,
            "head": head,
            "pixels": pixels,
            "network": network,
            "lr": lr,
            "epochs": epochs,
        }


def check(cells: list[Settings]) -> None:
    unknown = sorted({cell["method"] for cell in cells} - set(METHODS))
    if unknown:
        raise ValueError(f"unknown methods {', '.join(unknown)}; there are {', '.join(METHODS)}")


SPEC = Spec(
    name="meta-fashion-lt",
    title="Losses learned on a meta set, on long-tailed and balanced images",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "methods": ["CE", "Meta-ENum"],
            "data": [["fashion", 10, 60]],
            "seeds": [0],
            "epochs": 2,
        },
        "small": {},
        "two-hours": {
            "data": [["fashion", 100, 2000], ["fashion", 10, 1200], ["fashion", 1, 500]],
            "network": "convnet",
            "epochs": 60,
        },
        "cifar10": {"data": [["cifar10", 100, 2000]], "pixels": 16, "network": "convnet", "epochs": 60},
        "paper": {
            "data": [["cifar10", 100, 5000], ["cifar10", 10, 5000], ["cifar10", 1, 5000]],
            "pixels": 32,
            "network": "resnet32",
            "epochs": 240,
            "seeds": [0, 1, 2, 3, 4],
        },
    },
    reference="Wu & Li, Revisiting the Effective Number Theory, Tables 2, 3, 5, 6, 9 and 11",
    paper={},
    differs=(
        "Fashion-MNIST at 14×14 pixels instead of CIFAR, about 2500 training images at every ratio (1000 in the "
        "head class at 100 : 1, so 10 in the last), a perceptron with one hidden layer of 64 units instead of "
        "ResNet-32, 24 epochs instead of 240, no augmentation. One setting of the optimizer for all: SGD, learning "
        "rate 0.1 with a cosine schedule, Nesterov momentum 0.9, weight decay 5e-4, gradients clipped at norm 5; "
        "β = 0.999. The meta set (ten a class, five of the smallest) is part of the training data of every method; "
        "for the row 'held out' it is not trained on. 'non-meta' and 'T1=0' have no warm-up with cross-entropy."
    ),
    page=page,
    metrics=("test_error", "tail_recall"),
    requires_data=("fashion-mnist",),
    check=check,
)
