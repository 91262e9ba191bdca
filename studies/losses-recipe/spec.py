"""Which recipe wins: every loss with the same five trials, the best of them on fresh draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

from ..shared.long_tail import THIRTY, load_images
from . import training as how
from .choosing import PLAIN, Factors

_CB = {"beta": 0.999}
_LA_WITH_DS = {"beta": 0.0, "adjustment": 1.0, "tau1": 0.0, "warmup": 0.0}
LOSSES: dict[str, dict[str, Any]] = {
    "CE": {"loss": "ce"},
    "CB-CE": {"loss": "class_balanced", "loss_params": _CB},
    "focal": {"loss": "focal", "loss_params": {"phi": 1.0}},
    "CB-focal": {"loss": "class_balanced", "loss_params": {**_CB, "phi": 0.5}},
    "LA": {"loss": "logit_adjusted"},
    "VS": {"loss": "vs"},
    "LDAM-DRW": {"loss": "ldam", "loss_params": {"max_margin": 0.3}, "deferred": True},
    "KPS": {"loss": "kps"},
    "LPL": {"loss": "lpl", "loss_params": {"spread": 1.5}},
    "ISDA": {"loss": "isda", "loss_params": {"strength": 0.25}},
    "large margin": {"loss": "large_margin", "loss_params": {"margin": 0.2, "form": "additive"}},
    "DisturbLabel": {"loss": "disturb_label", "loss_params": {"rate": 0.05}},
    "center": {"loss": "center", "loss_params": {"strength": 0.01}},
    "Lq": {"loss": "lq", "loss_params": {"q": 0.4}},
    "NENum": {"loss": "nenum", "loss_params": _CB},
    "Combined": {"loss": "combined", "loss_params": _CB},
    "LA + DS": {"loss": "combined", "loss_params": _LA_WITH_DS, "late_scatter": True},
}
"""The numbers of a loss are its paper's, or what the studies losses-fashion-lt and meta-fashion-lt chose."""

TODAY: tuple[str, Factors] = ("LDAM-DRW", ("sgd", *PLAIN))
"""What ``NeuralClassifier(recipe="equipoise")`` was when the study began."""

TRAINING: dict[str, str] = {
    **dict.fromkeys(LOSSES, "adamw"),
    "CB-focal": "sgd",
    "VS": "sgd",
}
"""What the first round of trials chose for each loss; ``choosing.py`` prints it from the store."""

CHOSEN: dict[str, Factors] = {
    "LA": ("adamw", False, 0.0),
    "LA + DS": ("adamw", True, 0.0),
    "LDAM-DRW": ("adamw", False, 0.0),
    "Combined": ("adamw", True, 0.0),
    "CB-CE": ("adamw", True, 0.0),
    "LPL": ("adamw", True, 0.0),
    "CB-focal": ("sgd", True, 0.0),
    "KPS": ("adamw", False, 0.0),
    "NENum": ("adamw", True, 0.0),
    "ISDA": ("adamw", True, 0.0),
    "focal": ("adamw", True, 0.0),
    "center": ("adamw", True, 0.0),
    "CE": ("adamw", True, 0.0),
    "VS": ("sgd", True, 0.2),
    "large margin": ("adamw", False, 0.0),
    "DisturbLabel": ("adamw", True, 0.0),
    "Lq": ("adamw", True, 0.2),
}
"""What both rounds chose for each loss, the best one first; the page checks it against the trials themselves."""

FINALISTS = 5
"""So many of the losses in ``CHOSEN`` are judged on fresh draws, beside the recipe of today."""

SECOND = tuple(factors for factors in product((False, True), (0.0, 0.2)) if factors != PLAIN)
"""The second round: averaged weights, mixed images (α of their Beta), both."""

TRIED_ON = (("fashion-mnist", 100, 1000, 14), ("cifar10", 100, 1000, 16))
PLACES = (*TRIED_ON, ("thirty-classes", 100, 300, 14))
"""Thirty classes took part in no choice."""


def run_cell(
    method: str,
    dataset: str,
    ratio: float,
    draw: int,
    judge: str,
    head: int,
    pixels: int,
    averaged: bool,
    mixed: float,
    epochs: int,
    training: str = "adamw",
) -> dict[str, Any]:
    """Train one recipe once; the error and the recalls of head and tail in percent."""
    images = load_images(dataset, ratio, head, pixels, draw, judge)
    made = how.make_classifier(
        counts=np.bincount(images.y),
        training=training,
        averaged=averaged,
        mixed=mixed,
        epochs=epochs,
        seed=draw,
        **LOSSES[method],
    )
    classifier = made.fit(images.X, images.y)
    y = images.y_judged
    hit = classifier.predict(images.X_judged) == y
    recalls = np.array([hit[y == c].mean() for c in np.unique(y)])
    return {
        "error": 100 * float(1 - recalls.mean()),
        "head_recall": 100 * float(recalls[:3].mean()),
        "tail_recall": 100 * float(recalls[-3:].mean()),
    }


def cells(
    tuned_on: Sequence[int] = (71,),
    draws: Sequence[int] = (81, 82, 83, 84, 85, 86, 87, 88),
    losses: Sequence[str] = tuple(LOSSES),
    epochs: int = 40,
) -> Iterator[Settings]:
    """The first round of trials; the second, where the first has chosen; draw by draw, what both have chosen."""
    rounds = (
        [(loss, (training, *PLAIN)) for loss, training in product(losses, how.TRAININGS)],
        [(loss, (TRAINING[loss], *more)) for loss, more in product(losses, SECOND) if loss in TRAINING],
    )
    for recipes, draw, place in product(rounds, tuned_on, TRIED_ON):
        for recipe in recipes:
            yield _cell(*recipe, place, draw, "validation", epochs)
    finalists = [recipe for recipe in list(CHOSEN.items())[:FINALISTS] if recipe[0] in losses]
    for draw, place in product(draws, PLACES):
        for recipe in dict.fromkeys([*finalists, TODAY]):
            yield _cell(*recipe, place, draw, "test", epochs)


def _cell(
    method: str, factors: Factors, place: tuple[str, float, int, int], draw: int, judge: str, epochs: int
) -> Settings:
    where = dict(zip(("dataset", "ratio", "head", "pixels"), place, strict=True))
    training, averaged, mixed = factors
    cell = {"method": method, **where, "draw": draw, "judge": judge}
    cell |= {"averaged": averaged, "mixed": mixed, "epochs": epochs}
    return cell if training == "adamw" else cell | {"training": training}


SPEC = Spec(
    name="losses-recipe",
    title="Which recipe of training wins on long-tailed images",
    run_cell=run_cell,
    grid=cells,
    sizes={"small": {}, "tiny": {"tuned_on": [71], "draws": [81], "losses": ["LA"], "epochs": 1}},
    reference="Wu & Li, Revisiting the Effective Number Theory, Tables 2 and 3",
    differs=(
        "As the study losses-what-pays: about 2500 training images at 14×14 (Fashion-MNIST) and 16×16 pixels "
        "(CIFAR-10), a convnet with 8, 16 and 32 channels, 40 epochs, images shifted by up to a tenth and "
        "mirrored. Thirty classes are MNIST, Fashion-MNIST and CIFAR-10 in gray, 300 to 3 images of each. Every "
        "loss has five trials on each of two sets: SGD at 0.1, or AdamW at 0.015 with a head that normalizes "
        "features and weights; with the better of these, averaged weights, mixed images, and both. Schedule "
        "(cosine) and weight decay (5e-4) are the same for all, and LDAM and KPS have a normalizing head in any "
        "case. “LA + DS” is logit adjustment, with the scatter DS of Eq 20 and its gradient after a third of the "
        "run; “DS on LA”, of which the store keeps four earlier trials, took the scatter from weights that the "
        "head had yet to normalize. Mixed images are λx + (1 − λ)x′ with λ from Beta(α, α) in each batch, and "
        "λℓ(y) + (1 − λ)ℓ(y′) as their loss."
    ),
    requires_data=sorted({*THIRTY}),
)
