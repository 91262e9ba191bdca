"""Losses learned on a meta set, on long-tailed images: Tables 2, 3, 9 and 11, and 5 and 6, of Wu & Li."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise.report import Block, Headline, Section, Table, Text
from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

from ..shared.long_tail import HELD, THIRTY, load_images
from ..shared.tables import claim, claims_section, gains, listed, paired, said_of

PLAIN: dict[str, dict[str, Any]] = {
    "CE": {"loss": "ce"},
    "CB-CE": {"loss": "class_balanced", "loss_params": {"beta": 0.999}},
    "LA": {"loss": "logit_adjusted"},
    "LDAM-DRW": {"loss": "ldam", "defer": True},
    "NENum": {"loss": "nenum", "loss_params": {"beta": 0.999}},
    "non-meta": {
        "loss": "combined",
        "loss_params": {"beta": 0.999, "offset": "likely", "warmup": 0.0, "scatter_gradient": False},
    },
    "CE-DRW": {"loss": "ce", "defer": True},
    "cosine CE-DRW": {"loss": "ldam", "loss_params": {"max_margin": 0.0}, "defer": True},
}
META: dict[str, dict[str, Any]] = {
    "MWN": {"method": "mwn"},
    "MetaSAug": {"method": "metasaug", "method_params": {"beta": 0.999}},
    "Meta-ENum": {"method": "meta-enum", "method_params": {"beta": 0.999}},
    "Meta-ENum −h": {"method": "meta-enum", "method_params": {"beta": 0.999, "tau1": 0.0}},
    "Meta-ENum −DS": {"method": "meta-enum", "method_params": {"beta": 0.999, "tau2": 0.0}},
    "Meta-ENum −h −DS": {"method": "meta-enum", "method_params": {"beta": 0.999, "tau1": 0.0, "tau2": 0.0}},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "Meta-ENum T1=0": {"warmup": 0.0},
    "Meta-ENum, literal": {"meta_loss": "literal"},
    "Meta-ENum, head only": {"layers": "head"},
    "Meta-ENum, held out": {"hold_out": True},
    "Meta-ENum, cosine head": {},
}
TUNED: dict[str, tuple[str, Sequence[float]]] = {
    "CE": ("weight_decay", (1e-4, 5e-4, 2e-3)),
    "CB-CE": ("beta", (0.99, 0.999, 0.9999)),
    "LA": ("tau", (0.75, 1.0, 1.5)),
    "LDAM-DRW": ("max_margin", (0.3, 0.5, 0.8)),
    "NENum": ("r", (0.5, 1.0, 2.0)),
    "non-meta": ("r", (0.5, 1.0, 2.0)),
    "MWN": ("meta_lr", (1e-4, 1e-3, 1e-2)),
    "MetaSAug": ("warmup", (0.33, 0.5, 0.8)),
    **{name: ("warmup", (0.33, 0.5, 0.67)) for name in META if name.startswith("Meta-ENum")},
}
"""The one number of each method that is chosen on validation images, and its three values."""

CHOSEN: dict[str, float] = {
    "CE": 0.0005,
    "CB-CE": 0.999,
    "LA": 0.75,
    "LDAM-DRW": 0.3,
    "NENum": 1,
    "non-meta": 2,
    "MWN": 0.001,
    "MetaSAug": 0.5,
    "Meta-ENum": 0.33,
    "Meta-ENum −h": 0.33,
    "Meta-ENum −DS": 0.5,
    "Meta-ENum −h −DS": 0.33,
}
"""What the tuning cells chose (a test holds it against the committed results)."""

PUBLISHED: dict[str, float] = {
    "CE": 0.0005,
    "CB-CE": 0.9999,
    "LA": 1.0,
    "LDAM-DRW": 0.5,
    "NENum": 2,
    "non-meta": 2,
    "MWN": 0.001,
    "MetaSAug": 0.8,
    **{name: 0.67 for name in META if name.startswith("Meta-ENum")},
}
"""The papers' own numbers, for the paper's own size: what a small network chose says nothing there."""

METHODS = [*PLAIN, *META, *VARIANTS]
CONTROLS = [*VARIANTS, "CE-DRW", "cosine CE-DRW"]
"""Run on the first of the data only: they say where a difference comes from."""

BALANCED = ("CE", "Meta-ENum")
PAPER: dict[str, dict[int, dict[str, float]]] = {  # Tables 2, 3, 9 and 11, percent
    "CIFAR10-LT": {
        100: {
            "CB-CE": 27.32, "LDAM-DRW": 25.88, "LA": 22.33, "NENum": 20.75, "MWN": 26.43, "MetaSAug": 19.46,
            "Meta-ENum": 17.92, "Meta-ENum −h": 18.65, "Meta-ENum −DS": 19.23, "Meta-ENum −h −DS": 27.32,
            "non-meta": 18.76,
        },
        10: {
            "CB-CE": 13.10, "LDAM-DRW": 11.63, "LA": 11.07, "NENum": 10.91, "MWN": 12.45, "MetaSAug": 10.56,
            "Meta-ENum": 9.83, "Meta-ENum −h": 11.28, "Meta-ENum −DS": 10.95, "Meta-ENum −h −DS": 13.10,
            "non-meta": 10.73,
        },
    },
    "CIFAR100-LT": {
        100: {
            "CB-CE": 61.23, "LDAM-DRW": 57.11, "LA": 56.11, "NENum": 54.46, "MWN": 58.39, "MetaSAug": 53.13,
            "Meta-ENum": 52.08, "Meta-ENum −h": 54.31, "Meta-ENum −DS": 55.65, "Meta-ENum −h −DS": 61.23,
            "non-meta": 52.60,
        },
        10: {
            "CB-CE": 42.43, "LDAM-DRW": 41.22, "LA": 41.66, "NENum": 40.39, "MWN": 41.09, "MetaSAug": 38.27,
            "Meta-ENum": 37.33, "Meta-ENum −h": 38.75, "Meta-ENum −DS": 39.27, "Meta-ENum −h −DS": 42.43,
            "non-meta": 38.28,
        },
    },
}  # fmt: skip
STANDARD = {"CE": 6.76, "Meta-ENum": 5.14}
"""Table 5: CIFAR-10 as it is, ResNet-110, percent."""

MANY = ("thirty-classes", "cifar100")
"""Data with many classes, beside which the paper's CIFAR100-LT stands."""

_TAIL = 3


NETWORKS: dict[str, dict[str, Any]] = {
    "convnet": {"module": "convnet", "module_params": {"widths": (8, 16, 32)}},
    "resnet32": {"module": "resnet32"},
}


def with_cosine_head(input_shape: Sequence[int], n_classes: int, *, inner: str, **params: Any) -> Any:
    """A network of that name with the normalized head that LDAM has."""
    from equipoise.networks import build_network, use_cosine_head

    return use_cosine_head(build_network(inner, input_shape, n_classes, **params))


def make_classifier(
    method: str,
    counts: npt.NDArray[Any],
    *,
    strength: float | None,
    network: str,
    lr: float,
    epochs: int,
    seed: int,
) -> Any:
    """One of :data:`METHODS`, with a value for its number in :data:`TUNED`."""
    from equipoise.classifiers import MetaClassifier, NeuralClassifier
    from equipoise.theory.effective_number import effective_number_weights
    from equipoise.training import DeferredReweighting, RandomAffine

    number, _ = TUNED.get(method, TUNED["Meta-ENum"])
    own = {} if strength is None else {number: strength}
    settings = dict(PLAIN.get(method, {"loss": "ce"}))
    defer = settings.pop("defer", False)
    optimizer = {"weight_decay": 5e-4, **(own if number == "weight_decay" else {})}
    if method in PLAIN and number != "weight_decay":
        settings["loss_params"] = {**settings.get("loss_params", {}), **own}
    made = NETWORKS[network]
    if method == "Meta-ENum, cosine head":
        params = {"inner": made["module"], **made.get("module_params", {})}
        made = {"module": with_cosine_head, "module_params": params}
    base = NeuralClassifier(
        **made,
        epochs=epochs,
        batch_size=100,
        lr=lr,
        optimizer="sgd",
        optimizer_params=optimizer,
        step_params={"clip": 5.0},
        augment=RandomAffine(shift=0.1, flip=True),
        callbacks=[DeferredReweighting(effective_number_weights(counts, 0.999))] if defer else [],
        random_state=seed,
        verbose=False,
        **settings,
    )
    if method in PLAIN:
        return base
    learned = {**META.get(method, META["Meta-ENum"]), **own, **VARIANTS.get(method, {})}
    return MetaClassifier(**{"hold_out": False, **learned}, estimator=base, random_state=seed)


def run_cell(
    method: str,
    dataset: str,
    ratio: float,
    seed: int,
    judge: str,
    strength: float | None,
    head: int,
    pixels: int,
    network: str,
    lr: float,
    epochs: int,
) -> dict[str, Any]:
    """Train one method once; errors and recalls in percent on the images of ``judge``."""
    images = load_images(dataset, ratio, head, pixels, seed, judge)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* have too few samples for", UserWarning)
        classifier = make_classifier(
            method,
            np.bincount(images.y),
            strength=strength,
            network=network,
            lr=lr,
            epochs=epochs,
            seed=seed,
        ).fit(images.X, images.y)
    y = images.y_judged
    hit = classifier.predict(images.X_judged) == y
    recalls = np.array([hit[y == c].mean() for c in np.unique(y)])
    return {
        "error": 100 * float(1 - hit.mean()),
        "head_recall": 100 * float(recalls[:_TAIL].mean()),
        "tail_recall": 100 * float(recalls[-_TAIL:].mean()),
        "train_error": 100 * float(1 - classifier.history_["accuracy"].iloc[-1]),
    }


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    final, trials = (results[results["judge"] == judge] for judge in ("test", "validation"))
    sections = [*_claims(final)]
    groups: Any = final.groupby(["dataset", "ratio"], sort=False)
    for (dataset, ratio), at in groups:
        errors = at.pivot(index="seed", columns="method", values="error")
        blocks: list[Block] = [_table(at, dataset, int(ratio)), *_verdict(errors)]
        kind = "balanced" if ratio == 1 else f"long-tailed, {ratio:g} : 1"
        sections.append(Section(f"{dataset}, {kind}", blocks))
    if len(trials):
        sections.append(Section("How each method's own number was chosen", [_trials_table(trials)]))
    return sections


def choose(trials: pd.DataFrame) -> dict[str, float]:
    """For each method the value with the least validation error, mean over the draws."""
    errors = trials.groupby(["method", "strength"])["error"].mean().unstack()
    return {str(method): float(value) for method, value in errors.idxmin(axis=1).items()}


def _trials_table(trials: pd.DataFrame) -> Table:
    best = choose(trials)
    rows = []
    for method in (m for m in TUNED if m in best):
        number, values = TUNED[method]
        mine = trials[trials["method"] == method].groupby("strength")["error"].mean()
        tried = ", ".join(f"{value:g}: {mine[value]:.2f}" for value in values if value in mine)
        rows.append([method, number, tried, f"{best[method]:g}"])
    caption = (
        f"Percent of {HELD:,} images of the training data that were not trained on, mean over "
        f"{trials['seed'].nunique()} draws, none of them among the draws above."
    )
    return Table(["method", "its number", "errors", "chosen"], rows, caption)


def _spread(column: pd.Series[Any]) -> str:
    values = column.to_numpy(dtype=np.float64)
    mean = f"{values.mean():.2f}"
    return f"{mean} ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else mean


def _table(at: pd.DataFrame, dataset: str, ratio: int) -> Table:
    beside = "CIFAR100-LT" if dataset in MANY else "CIFAR10-LT"
    rows: list[list[Any]] = []
    for method in METHODS:
        mine = at[at["method"] == method]
        if len(mine):
            columns = ("error", "head_recall", "tail_recall", "train_error")
            paper = PAPER[beside].get(ratio, {}).get(method)
            seconds = f"{mine['cell_seconds'].mean():.0f}" if "cell_seconds" in mine else ""
            rows.append([method, len(mine), *(_spread(mine[c]) for c in columns), seconds, paper])
    caption = (
        "Percent, mean ± standard error over the seeds that are done; each draws other images. The paper's column "
        f"is {beside} with ResNet-32 (Tables {2 if dataset in MANY else 3}, 9 and 11)."
    )
    names = ["method", "seeds", "top-1 error", "head recall", "tail recall", "training error", "s", "paper"]
    return Table(names, rows, caption, formats={"paper": ".2f"})


def _claims(final: pd.DataFrame) -> Iterator[Section]:
    """Meta-ENum beside each other method, over all long-tailed sets together, and on balanced data."""
    errors = final.pivot(index=["dataset", "ratio", "seed"], columns="method", values="error")
    if "Meta-ENum" not in errors:
        return
    tailed = errors[errors.index.get_level_values("ratio") > 1]
    methods = [method for method in METHODS if method in tailed and method not in CONTROLS]
    found = gains(tailed[methods], "Meta-ENum") if "Meta-ENum" in methods else {}
    printed = {method: _printed(tailed[[method, "Meta-ENum"]].dropna(), method) for method in found}
    rows = [
        claim("Meta-ENum", method, "long-tailed", found[method], number)
        for method, number in printed.items()
        if number is not None
    ]
    balanced = errors.drop(tailed.index)
    if len(balanced) and "CE" in balanced:
        number = STANDARD["CE"] - STANDARD["Meta-ENum"]
        gain = paired((balanced["CE"] - balanced["Meta-ENum"]).dropna())
        rows.append(claim("Meta-ENum", "CE", "balanced", gain, number))
    sets = len(tailed.index.droplevel("seed").unique())
    over = f"Over {sets} long-tailed sets" if sets > 1 else "On one long-tailed set"
    first = [Headline(f"{over}, {said_of('Meta-ENum', found)}")] if found else []
    beside = (
        "The paper's are means over CIFAR10-LT, and CIFAR100-LT beside many classes, at the same imbalances with "
        "ResNet-32 (Tables 2, 3, 9 and 11); on balanced data CIFAR-10 with ResNet-110 (Table 5)."
    )
    yield claims_section(first, rows, beside)


def _printed(pairs: pd.DataFrame, method: str) -> float | None:
    """The gain that the paper prints for the sets of these pairs, mean over them; None where it prints none."""
    places = pairs.index.droplevel("seed").unique()
    tables = [_beside(dataset).get(int(ratio), {}) for dataset, ratio in places]
    numbers = [table[method] - table["Meta-ENum"] for table in tables if method in table]
    return float(np.mean(numbers)) if numbers else None


def _beside(dataset: str) -> dict[int, dict[str, float]]:
    return PAPER["CIFAR100-LT" if dataset in MANY else "CIFAR10-LT"]


def _verdict(errors: pd.DataFrame) -> Iterator[Block]:
    """Meta-ENum's difference to every other method, seed by seed."""
    if "Meta-ENum" not in errors:
        return
    rows: list[list[Any]] = []
    for method in METHODS:
        if method in errors and method != "Meta-ENum":
            gain = (errors[method] - errors["Meta-ENum"]).dropna()
            if len(gain):
                found = paired(gain)
                rows.append([method, str(found), found.pairs, found.word("worse", "better")])
    if rows:
        caption = (
            "How far Meta-ENum's error lies below another method's, in points: mean, 95 % interval of pairs."
        )
        yield Table(["against", "gain", "seeds", "Meta-ENum is"], rows, caption)
    else:
        yield Text("Meta-ENum has no seed in common with another method yet.")


def cells(
    methods: Sequence[str] = tuple(METHODS),
    data: Sequence[Sequence[Any]] = (
        ("fashion-mnist", 100, 1000, 14),
        ("cifar10", 100, 1000, 16),
        ("fashion-mnist", 10, 600, 14),
        ("fashion-mnist", 1, 250, 14),
        ("thirty-classes", 100, 300, 14),
    ),
    seeds: Sequence[int] = (0, 1, 2),
    tuned_on: Sequence[int] = (21, 22),
    network: str = "convnet",
    lr: float = 0.1,
    epochs: int = 40,
    chosen: str = "trials",
) -> Iterator[Settings]:
    """The trials, on the first of the data; then seed by seed, so that a part is a study with fewer seeds."""
    strengths = CHOSEN if chosen == "trials" else PUBLISHED
    common = {"network": network, "lr": lr, "epochs": epochs}
    runs: list[tuple[Any, int, str, str, float | None]] = [
        (data[0], seed, method, "validation", strength)
        for seed, method in product(tuned_on, methods)
        if method in TUNED
        for strength in TUNED[method][1]
    ]
    for seed, place in product(seeds, data):
        for method in methods:
            if (method in CONTROLS and place != data[0]) or (place[1] == 1 and method not in BALANCED):
                continue
            strength = strengths.get("Meta-ENum" if method in VARIANTS else method)
            runs.append((place, seed, method, "test", strength))
    for (dataset, ratio, head, pixels), seed, method, judge, strength in runs:
        where = {"dataset": dataset, "ratio": ratio, "head": head, "pixels": pixels}
        yield {"method": method, **where, "seed": seed, "judge": judge, "strength": strength, **common}


def differs(results: pd.DataFrame) -> str:
    """What is not as in the paper, from the settings of the cells that are shown."""

    places = results[["dataset", "ratio", "head", "pixels"]].drop_duplicates()
    sets = [
        f"{dataset} at {pixels}×{pixels} pixels with {head} images in the head class at {ratio:g} : 1"
        for dataset, ratio, head, pixels in places.to_numpy()
    ]
    tuned = (
        "One number of each method was chosen from three on validation images of the first set. "
        if (results["judge"] == "validation").any()
        else "The numbers of each method are the papers' own. "
    )
    network, epochs, rate = (listed(results[name]) for name in ("network", "epochs", "lr"))
    return (
        f"{'; '.join(sets)}. A {network}, {epochs} epochs; images are shifted by up to a tenth and mirrored. Every "
        "seed draws other images. One setting of the optimizer for all: SGD, learning rate "
        f"{rate} with a cosine schedule, Nesterov momentum 0.9, weight decay 5e-4, gradients clipped "
        f"at norm 5; β = 0.999. {tuned}The meta set (ten a class, five of the smallest) is part of the training "
        "data of every method; for the row 'held out' it is not trained on. 'non-meta' and 'T1=0' have no warm-up "
        "with cross-entropy, and the scatter in 'non-meta' is a constant of the gradient, from the logits of the "
        "epoch before: the study losses-what-pays has the version that differs from Meta-ENum in learning alone. "
        "Thirty classes are MNIST, Fashion-MNIST and CIFAR-10 in gray."
    )


def check(cells: list[Settings]) -> None:
    unknown = sorted({cell["method"] for cell in cells} - set(METHODS))
    if unknown:
        raise ValueError(f"unknown methods {', '.join(unknown)}; there are {', '.join(METHODS)}")


def needs(cells: list[Settings]) -> list[str]:
    """The image sets that cells read."""
    named = {cell["dataset"] for cell in cells}
    return sorted(named - {"thirty-classes"} | (set(THIRTY) if "thirty-classes" in named else set()))


SPEC = Spec(
    name="meta-fashion-lt",
    title="Losses learned on a meta set, on long-tailed and balanced images",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "methods": ["CE", "Meta-ENum"],
            "data": [["fashion-mnist", 10, 60, 14]],
            "seeds": [0],
            "tuned_on": [],
            "epochs": 2,
        },
        "small": {},
        "paper": {
            "data": [
                ["cifar10", 100, 5000, 32],
                ["cifar10", 10, 5000, 32],
                ["cifar10", 1, 5000, 32],
                ["cifar100", 100, 500, 32],
                ["cifar100", 10, 500, 32],
            ],
            "network": "resnet32",
            "epochs": 240,
            "seeds": [0, 1, 2, 3, 4],
            "tuned_on": [],
            "chosen": "published",
        },
    },
    reference="Wu & Li, Revisiting the Effective Number Theory, Tables 2, 3, 5, 6, 9 and 11",
    paper={},
    differs=differs,
    page=page,
    requires_data=needs,
    check=check,
)
