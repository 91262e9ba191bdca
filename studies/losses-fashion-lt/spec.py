"""Losses on Fashion-MNIST-LT: Tables 2, 3 and 7 and Fig 7 of Wu & Li, at a size for two cores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from equipoise._core.random import derive_seed
from equipoise.report import Block, Headline, Picture, Section, Table, Text, new_axes
from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

from ..shared.long_tail import THIRTY, draw_apart, load_images
from ..shared.tables import claim, claims_section, gains, listed, said_of, spread

METHODS: dict[str, dict[str, Any]] = {
    "CE": {"loss": "ce"},
    "focal": {"loss": "focal", "loss_params": {"phi": 1.0}},
    "CB-CE": {"loss": "class_balanced", "loss_params": {"beta": 0.999}},
    "CB-focal": {"loss": "class_balanced", "loss_params": {"beta": 0.999, "phi": 0.5}},
    "CB fine-tuning": {"loss": "ce", "fine_tune": True},
    "LDAM": {"loss": "ldam"},
    "LDAM-DRW": {"loss": "ldam", "defer": True},
    "ISDA": {"loss": "isda", "loss_params": {"strength": 0.25}},
    "LA": {"loss": "logit_adjusted"},
    "LPL": {"loss": "lpl", "loss_params": {"spread": 1.5}},
    "KPS": {"loss": "kps"},
    "NENum": {"loss": "nenum", "loss_params": {"beta": 0.999}},
    "NENum−": {"loss": "nenum", "loss_params": {"beta": 0.999, "offset": "focal"}},
    "NENum−−": {"loss": "nenum", "loss_params": {"beta": 0.999, "offset": "none"}},
    "NENum, equal scatter": {"loss": "nenum", "loss_params": {"beta": 0.999, "scatter": False}},
}
ELSEWHERE: dict[str, dict[str, Any]] = {
    "Combined": {"loss": "combined", "loss_params": {"beta": 0.999}},
    "large margin": {"loss": "large_margin", "loss_params": {"margin": 0.2, "form": "additive"}},
    "DisturbLabel": {"loss": "disturb_label", "loss_params": {"rate": 0.05}},
    "center": {"loss": "center", "loss_params": {"strength": 0.01}},
    "Lq": {"loss": "lq", "loss_params": {"q": 0.4}},
    "ISDA + dropout": {"loss": "isda", "loss_params": {"strength": 0.25}, "dropout": 0.3},
    "LPL, by predictions": {"loss": "lpl", "loss_params": {"spread": 1.5, "split": "prediction"}},
    "MetaSAug": {"loss": "ce", "meta": "metasaug"},
    "Meta-ENum": {"loss": "ce", "meta": "meta-enum"},
}
"""Methods that the study losses-fresh trains in the same way."""

BASELINES = ("CE", "CB-CE", "focal", "CB-focal")
LONGER = ("CE", "CB-CE", "CB-focal", "NENum")
ABLATIONS = ("NENum", "NENum−", "NENum−−", "NENum, equal scatter", "CB-CE")
PAPER = {  # Table 3 and Table 7: CIFAR10-LT, ResNet-32, top-1 error in percent
    100: {
        "CB-CE": 27.32,
        "CB fine-tuning": 28.66,
        "focal": 29.62,
        "CB-focal": 25.43,
        "LDAM": 26.45,
        "LDAM-DRW": 25.88,
        "ISDA": 26.45,
        "LA": 22.33,
        "LPL": 22.05,
        "KPS": 18.77,
        "NENum": 20.75,
        "NENum−": 22.89,
        "NENum−−": 24.63,
    },
    10: {
        "CB-CE": 13.10,
        "CB fine-tuning": 16.83,
        "focal": 13.34,
        "CB-focal": 12.52,
        "LDAM": 12.68,
        "LDAM-DRW": 11.63,
        "ISDA": 12.98,
        "LA": 11.07,
        "LPL": 10.59,
        "KPS": 10.95,
        "NENum": 10.91,
        "NENum−": 11.37,
        "NENum−−": 12.92,
    },
}
_WEIGHT_EDGES = np.logspace(-6, 1, 29)
_TAIL = 3  # classes
MANY = 30
"""Classes that stand for those of CIFAR100-LT in Fig 7."""

_PARTS: tuple[Literal["train", "test"], ...] = ("train", "test")


@lru_cache(maxsize=2)
def load_split(ratio: float, head: int, held_out: int, draw: int = 0) -> dict[str, tuple[Any, Any]]:
    """Train (exponential profile), validation (``held_out`` a class, not trained on) and test, at 14×14 pixels.

    The data are the same for all seeds, as CIFAR-LT is; another ``draw`` takes other images of the training part.
    """
    from equipoise.datasets import load_fashion_mnist

    train, test = (load_fashion_mnist(part, pixels="uint8") for part in _PARTS)
    y = np.asarray(train.y)
    rng = np.random.default_rng(1 + draw)
    rows, chosen = draw_apart(y, ratio=ratio, head=head, seed=draw, rng=rng, per_class=held_out)
    if chosen is None:
        rest = np.setdiff1d(np.arange(len(y)), rows)
        chosen = np.concatenate([rng.permutation(rest[y[rest] == c])[:held_out] for c in np.unique(y)])
    return {
        "train": (halve(train.X[rows]), y[rows]),
        "validation": (halve(train.X[chosen]), y[chosen]),
        "test": (halve(test.X), np.asarray(test.y)),
    }


def load_thirty(ratio: float, head: int, draw: int) -> dict[str, tuple[Any, Any]]:
    """Thirty classes in the place of CIFAR-100: digits, clothes and photographs in gray, at 14×14 pixels."""
    found = load_images("thirty-classes", ratio, head, 14, draw, "test")
    return {"train": (found.X, found.y), "test": (found.X_judged, found.y_judged)}


def halve(images: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Mean over 2×2 pixels.

    >>> halve(np.ones((3, 1, 28, 28))).shape
    (3, 1, 14, 14)
    """
    x = np.asarray(images, dtype=np.float32)
    n, channels, height, width = x.shape
    return np.asarray(x.reshape(n, channels, height // 2, 2, width // 2, 2).mean(axis=(3, 5)))


def make_classifier(
    method: str,
    counts: npt.NDArray[Any],
    *,
    lr: float,
    epochs: int,
    seed: int,
    loss_params: dict[str, Any] | None = None,
) -> Any:
    from equipoise.classifiers import MetaClassifier, NeuralClassifier
    from equipoise.theory.effective_number import effective_number_weights
    from equipoise.training import BalancedFineTuning, DeferredReweighting

    settings = {**METHODS, **ELSEWHERE}[method]
    callbacks: list[Any] = []
    if settings.get("defer"):
        callbacks.append(DeferredReweighting(effective_number_weights(counts, 0.999), start=0.8))
    if settings.get("fine_tune"):
        callbacks.append(BalancedFineTuning(start=0.8, lr_factor=1.0))  # the schedule is low by then
    if method == "NENum":
        callbacks.append(_weight_watch(epochs))
    made = NeuralClassifier(
        "convnet",
        module_params={"widths": (8, 16, 32), "dropout": settings.get("dropout", 0.0)},
        loss=settings["loss"],
        loss_params={**settings.get("loss_params", {}), **(loss_params or {})},
        epochs=epochs,
        batch_size=128,
        lr=lr,
        callbacks=callbacks,
        random_state=seed,
        verbose=False,
    )
    if "meta" not in settings:
        return made
    return MetaClassifier(settings["meta"], method_params={"beta": 0.999}, estimator=made, random_state=seed)


def with_wrong_labels(y: npt.NDArray[Any], share: float, seed: int) -> npt.NDArray[Any]:
    """Class codes of which a share is replaced by another class, each as likely.

    >>> wrong = with_wrong_labels(np.zeros(1000, dtype=int), 0.2, seed=0) > 0
    >>> bool(0.16 < wrong.mean() < 0.24)
    True
    """
    rng = np.random.default_rng(derive_seed(seed, "wrong labels"))
    n_classes = max(int(y.max()) + 1, 2)
    other = (y + rng.integers(1, n_classes, len(y))) % n_classes
    return np.where(rng.random(len(y)) < share, other, y)


def run_cell(
    method: str,
    ratio: float,
    lr: float,
    seed: int,
    head: int,
    held_out: int,
    epochs: int,
    draw: int = 0,
    loss_params: dict[str, Any] | None = None,
    wrong_labels: float = 0.0,
    classes: int = 10,
) -> dict[str, Any]:
    """Train one method once; errors in percent on validation data, where there are such, and on test data."""
    data = load_split(ratio, head, held_out, draw) if classes == 10 else load_thirty(ratio, head, draw)
    X, y = data["train"]
    if wrong_labels:
        y = with_wrong_labels(y, wrong_labels, draw)
    _SEEN.clear()
    classifier = make_classifier(
        method, np.bincount(y), lr=lr, epochs=epochs, seed=seed, loss_params=loss_params
    ).fit(X, y)
    result: dict[str, Any] = {}
    for name, (inputs, labels) in data.items():
        if name == "train":
            continue
        hit = classifier.predict(inputs) == labels
        recalls = np.array([hit[labels == c].mean() for c in np.unique(labels)])
        result[f"{name}_error"] = 100 * float(1 - hit.mean())
        result[f"{name}_acsa"] = 100 * float(recalls.mean())
        result[f"{name}_tail_recall"] = 100 * float(recalls[-_TAIL:].mean())
        result[f"{name}_head_recall"] = 100 * float(recalls[:_TAIL].mean())
    result["train_error"] = 100 * float(1 - classifier.history_["accuracy"].iloc[-1])
    if _SEEN:
        result["weights"] = json.dumps(_SEEN)
    return result


_SEEN: list[
    dict[str, Any]
] = []  # what the watch of the cell under way has seen; callbacks are copied for a fit


def _weight_watch(epochs: int) -> Any:
    import torch
    from torch.nn import functional as F

    from equipoise.training import Callback, predict

    class WeightWatch(Callback):
        """Histograms of NENum's sample weights in the largest and the smallest class (Fig 7)."""

        def on_epoch_end(self, run: Any, record: dict[str, float]) -> None:
            if run.epoch not in (1, epochs // 2, epochs):
                return
            y = run.data.targets
            surprise = F.cross_entropy(predict(run.network, run.data.inputs), y, reduction="none")
            weight = run.step.loss.sample_weights(surprise, y).numpy()
            counts = torch.bincount(y).numpy()
            for part, c in (("head", counts.argmax()), ("tail", counts.argmin())):
                mine = weight[y.numpy() == c]
                found = np.histogram(np.clip(mine, *_WEIGHT_EDGES[[0, -1]]), _WEIGHT_EDGES)[0]
                _SEEN.append(
                    {"epoch": run.epoch, "part": part, "mean": float(mine.mean()), "counts": found.tolist()}
                )

    return WeightWatch()


def pilot(results: pd.DataFrame) -> pd.DataFrame:
    """Validation errors of the methods that were run at every learning rate: a row a method, a column a rate."""
    top = results[results["ratio"] == results["ratio"].max()]
    top = top[(top["seed"] == top["seed"].min()) & (top["epochs"] == top["epochs"].min())]
    return top.pivot(index="method", columns="lr", values="validation_error").dropna()


def chosen(results: pd.DataFrame) -> pd.DataFrame:
    """The cells at the one learning rate that has the least mean validation error in the pilot."""
    return results[results["lr"] == pilot(results).mean().idxmin()]


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    many = results["classes"] == MANY if "classes" in results else np.zeros(len(results), dtype=bool)
    thirty, results = results[many], results[~many]
    picked = chosen(results)
    beside = "The paper's are CIFAR10-LT with ResNet-32 (Tables 3 and 7)."
    sections = [
        claims_section([*_claim(picked)], [*_claims(picked)], beside),
        Section("The learning rate", [_pilot_table(pilot(results))]),
    ]
    for _, at in picked.groupby(["ratio", "epochs"], sort=False):
        ratio, epochs = float(at["ratio"].iloc[0]), int(at["epochs"].iloc[0])
        blocks: list[Block] = [_table(at, ratio), _against(at)]
        if set(ABLATIONS) <= set(at["method"]):
            blocks.append(_ablation(at, ratio))
        sections.append(Section(f"Fashion-MNIST-LT {ratio:g} : 1, {epochs} epochs", blocks))
    drawn = [*_weights_picture(picked, "ten"), *_weights_picture(thirty, "thirty")]
    if drawn:
        sections.append(Section("Sample weights (Fig 7)", drawn))
    return sections


def _claims(picked: pd.DataFrame) -> Iterator[list[Any]]:
    """NENum beside each other method for which the paper has an error."""
    for (ratio, epochs), at in picked.groupby(["ratio", "epochs"], sort=False):
        printed = PAPER.get(int(ratio), {})
        errors = at.pivot(index="seed", columns="method", values="test_error")
        known = [method for method in METHODS if method in errors and method in printed]
        if "NENum" in known:
            for other, found in gains(errors[known], "NENum").items():
                where = f"{ratio:g} : 1, {epochs} epochs"
                yield claim("NENum", other, where, found, printed[other] - printed["NENum"])


def _pilot_table(table: pd.DataFrame) -> Table:
    rows: list[list[Any]] = [
        [str(method), *values] for method, values in zip(table.index, table.to_numpy(), strict=True)
    ]
    rows.append(["mean", *table.mean()])
    names = [f"lr {rate:g}" for rate in table.columns]
    caption = "Validation error in percent, one seed: the rate with the least mean is used for every method."
    return Table(["method", *names], rows, caption, formats=dict.fromkeys(names, ".2f"))


def _table(at: pd.DataFrame, ratio: float) -> Table:
    rows: list[list[Any]] = []
    for method in METHODS:
        mine = at[at["method"] == method]
        if len(mine):
            columns = ("test_error", "test_acsa", "test_head_recall", "test_tail_recall", "train_error")
            paper = PAPER.get(int(ratio), {}).get(method)
            rows.append([method, *(spread(mine[column]) for column in columns), paper])
    seeds = at["seed"].nunique()
    caption = (
        f"Percent, mean ± standard deviation over {seeds} seeds, at the learning rate chosen on "
        f"validation data. The "
        "test set is balanced, so the top-1 error is 100 − ACSA. The paper's column is CIFAR10-LT with ResNet-32."
    )
    names = ["method", "top-1 error", "ACSA", "head recall", "tail recall", "training error", "paper"]
    return Table(names, rows, caption, formats={"paper": ".2f"})


def _against(at: pd.DataFrame) -> Block:
    """NENum's difference to each baseline, seed by seed."""
    errors = at.pivot(index="seed", columns="method", values="test_error")
    if "NENum" not in errors:
        return Text("NENum was not run.")
    found = gains(errors[[m for m in (*BASELINES, "NENum") if m in errors]], "NENum")
    rows = [[method, str(gain), gain.word("worse", "better")] for method, gain in found.items()]
    caption = (
        "How far NENum's top-1 error lies below a baseline's, in points, with the 95 % interval of the pairs."
    )
    return Table(["baseline", "gain", "NENum is"], rows, caption)


def _claim(picked: pd.DataFrame) -> Iterator[Headline]:
    """NENum against the baselines at the largest imbalance."""
    top = picked[picked["ratio"] == picked["ratio"].max()]
    errors = top.pivot_table(index="seed", columns="method", values="test_error")
    if "NENum" not in errors:
        return
    found = gains(errors[[m for m in (*BASELINES, "NENum") if m in errors]], "NENum")
    yield Headline(
        f"At {top['ratio'].iloc[0]:g} : 1 {said_of('NENum', found)} Its "
        "settings had been seen on these test data; the study losses-fresh repeats it on fresh data and does not "
        "find NENum ahead of CB."
    )


def _ablation(at: pd.DataFrame, ratio: float) -> Block:
    rows: list[list[Any]] = []
    terms = {
        "NENum": "scatter × count × robust g (Eq 19)",
        "NENum−": "scatter × count × (1 − p)² (Eq 28)",
        "NENum−−": "scatter × count (Eq 29)",
        "NENum, equal scatter": "count × robust g",
        "CB-CE": "count",
    }
    for method in ABLATIONS:
        mine = at[at["method"] == method]
        if len(mine):
            paper = PAPER.get(int(ratio), {}).get(method)
            tail = spread(mine["test_tail_recall"])
            rows.append([method, terms[method], spread(mine["test_error"]), tail, paper])
    caption = "As Table 7: what the weight is made of, and the top-1 error."
    names = ["method", "weight", "top-1 error", "tail recall", "paper"]
    return Table(names, rows, caption, formats={"paper": ".2f"})


def _weights_picture(picked: pd.DataFrame, classes: str) -> Iterator[Picture]:
    if "weights" not in picked:
        return
    cells = picked[picked["weights"].notna() & (picked["ratio"] == picked["ratio"].min())]
    if len(cells):
        yield weights_picture(json.loads(cells["weights"].iloc[0]), classes)


def weights_picture(seen: list[dict[str, Any]], classes: str = "ten") -> Picture:
    """Fig 7: how NENum's weights are distributed in the head and the tail class, over epochs."""
    figure, axes = new_axes(8, 3, 1, 2)
    for axis, part in zip(axes, ("head", "tail"), strict=True):
        for item in (s for s in seen if s["part"] == part):
            share = np.array(item["counts"]) / max(sum(item["counts"]), 1)
            label = f"epoch {item['epoch']} (mean {item['mean']:.2g})"
            axis.stairs(share, _WEIGHT_EDGES, label=label, linewidth=1.5)
        axis.set(title=f"{part} class", xlabel="sample weight", ylabel="share of samples", xscale="log")
        axis.margins(y=0.4)
        axis.legend(frameon=False, fontsize="small")
    panels = "a and b" if classes == "ten" else "c and d"
    caption = (
        f"Sample weights of NENum in the largest and the smallest of {classes} classes, over epochs "
        f"(panels {panels})."
    )
    name = "losses-fashion-lt-weights" + ("" if classes == "ten" else f"-{classes}")
    return Picture.from_matplotlib(figure, name, caption, "Histograms of sample weights of two classes")


def cells(
    methods: Sequence[str] = tuple(METHODS),
    ratios: Sequence[float] = (100, 10),
    seeds: Sequence[int] = (0, 1, 2),
    lrs: Sequence[float] = (0.015, 0.005),
    shown: int = 124_000,
    longer: int = 2,
    head: int = 1000,
    held_out: int = 50,
    many: bool = True,
) -> Iterator[Settings]:
    """A pilot for the learning rate; the baselines and NENum with its ablations; some for longer; the others.

    A run is ``shown`` samples long, or ``longer`` times that. The others are at the first ratio
    only, the longer runs at the second. ``many`` adds NENum with thirty classes, for Fig 7.
    """
    from equipoise.datasets import exponential_counts

    first = [m for m in methods if m in BASELINES or m in ABLATIONS]
    others = [m for m in methods if m not in first]
    top, lr = ratios[:1], lrs[:1]
    plan = [
        *product(top, seeds[:1], first, lrs, [1]),
        *product(top, seeds, first, lr, [1]),
        *product(ratios[1:], seeds, first, lr, [1]),
        *product(top, seeds, others, lr, [1]),
        *product(ratios[1:], seeds, [m for m in first if m in LONGER], lr, [longer]),
    ]
    for ratio, seed, method, rate, times in plan:
        size = int(exponential_counts(head, 10, ratio).sum())
        yield {
            "method": method,
            "ratio": ratio,
            "lr": rate,
            "seed": seed,
            "head": head,
            "held_out": held_out,
            "epochs": max(round(shown / size), 1) * times,
        }
    if many:
        head = round(0.3 * head)
        epochs = max(round(shown / exponential_counts(head, MANY, ratios[0]).sum()), 1)
        where = {"ratio": ratios[0], "head": head, "held_out": 0, "classes": MANY}
        yield {"method": "NENum", "lr": lrs[0], "seed": seeds[0], "epochs": epochs, **where}


def differs(results: pd.DataFrame) -> str:
    """What is not as in the paper, from the settings of the cells that are shown."""
    many = results["classes"] == MANY if "classes" in results else np.zeros(len(results), dtype=bool)
    ten = results[~many]
    lengths = [
        f"{listed(at['epochs'])} epochs at {ratio:g} : 1" for ratio, at in ten.groupby("ratio", sort=False)
    ]
    seen = (
        "The 60 epochs were added after the 30 had been seen, and the numbers of epochs follow earlier trials that "
        "compared NENum and CB on test error: the study losses-fresh compares them on fresh data, and does not "
        "find NENum ahead of CB. "
        if {30, 60} <= set(ten["epochs"])
        else ""
    )
    thirty = (
        "For CIFAR100-LT in Fig 7 stand thirty classes (MNIST, Fashion-MNIST and CIFAR-10 in gray), "
        f"{listed(results[many]['head'])} images of the largest."
        if many.any()
        else ""
    )
    head, rates, held_out = (listed(ten[name]) for name in ("head", "lr", "held_out"))
    return (
        f"Fashion-MNIST at 14×14 pixels instead of CIFAR, {head} samples in the head class instead of 5,000, a "
        f"convnet with 8, 16 and 32 channels instead of ResNet-32; {', '.join(lengths)}, AdamW with a cosine "
        "schedule and no augmentation, not 200 epochs of SGD with crops and flips. Every method has the same "
        f"budget and no tuning of its own: one learning rate of {rates}, chosen on validation data ({held_out} "
        "images of each class that are not trained on), and hyper-parameters of the papers, with β = 0.999 instead "
        "of 0.9999 for all that use effective numbers, as there are fewer samples. Seeds change the network and "
        "the order; "
        f"the data are the same. {seen}{thirty}"
    ).strip()


def check(cells: list[Settings]) -> None:
    known = {**METHODS, **ELSEWHERE}
    unknown = sorted({cell["method"] for cell in cells} - set(known))
    if unknown:
        raise ValueError(f"unknown methods {', '.join(unknown)}; there are {', '.join(known)}")


SPEC = Spec(
    name="losses-fashion-lt",
    title="Losses on long-tailed Fashion-MNIST",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "methods": ["CE", "NENum"],
            "ratios": [10],
            "seeds": [0],
            "lrs": [0.01],
            "head": 100,
            "shown": 800,
            "many": False,
        },
        "small": {},
        "paper": {"head": 6000, "shown": 3_000_000, "seeds": [0, 1, 2, 3, 4]},
    },
    reference="Wu & Li, Revisiting the Effective Number Theory, Tables 2, 3 and 7 and Fig 7",
    paper={"test_error": {str(ratio): numbers for ratio, numbers in PAPER.items()}},
    differs=differs,
    page=page,
    requires_data=lambda cells: THIRTY if any("classes" in cell for cell in cells) else ["fashion-mnist"],
    check=check,
)
