"""Which recipe wins: five losses with AdamW and a normalizing head, each with the same trials, on fresh draws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

from ..shared.long_tail import THIRTY, load_images
from . import training

LOSSES: dict[str, dict[str, Any]] = {
    "CB-CE": {"loss": "class_balanced", "loss_params": {"beta": 0.999}},
    "LA": {"loss": "logit_adjusted"},
    "KPS": {"loss": "kps"},
    "LDAM-DRW": {"loss": "ldam", "loss_params": {"max_margin": 0.3}},
    "DS on LA": {
        "loss": "combined",
        "loss_params": {"beta": 0.0, "adjustment": 1.0, "tau1": 0.0, "warmup": 0.0},
    },
}
TODAY = "LDAM-DRW, SGD"
"""What ``NeuralClassifier(recipe="equipoise")`` was when the study began: LDAM-DRW with SGD."""

FACTORS = tuple(product((False, True), (0.0, 0.2)))
"""The four trials of every loss: averaged weights or not, and mixed images (α of their Beta) or not."""

CHOSEN: dict[str, tuple[bool, float]] = {}
"""What the trials chose for each loss; the page checks it against the trials themselves."""

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
) -> dict[str, Any]:
    """Train one recipe once; the error and the recalls of head and tail in percent."""
    images = load_images(dataset, ratio, head, pixels, draw, judge)
    counts = np.bincount(images.y)
    made = training.make_classifier(
        LOSSES[method.removesuffix(", SGD")],
        counts,
        sgd=method == TODAY,
        deferred=method.startswith("LDAM-DRW"),
        averaged=averaged,
        mixed=mixed,
        epochs=epochs,
        seed=draw,
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
    tuned_on: Sequence[int] = (71, 72),
    draws: Sequence[int] = (81, 82, 83, 84),
    losses: Sequence[str] = tuple(LOSSES),
    epochs: int = 40,
) -> Iterator[Settings]:
    """The trials; then, draw by draw, every loss as its trials chose it, beside the recipe of today."""
    for draw, place in product(tuned_on, TRIED_ON):
        for loss, factors in product(losses, FACTORS):
            yield _cell(loss, place, draw, "validation", factors, epochs)
    for draw, place in product(draws, PLACES):
        for loss in (name for name in losses if name in CHOSEN):
            yield _cell(loss, place, draw, "test", CHOSEN[loss], epochs)
        yield _cell(TODAY, place, draw, "test", (False, 0.0), epochs)


def _cell(
    method: str,
    place: tuple[str, float, int, int],
    draw: int,
    judge: str,
    factors: tuple[bool, float],
    epochs: int,
) -> Settings:
    where = dict(zip(("dataset", "ratio", "head", "pixels"), place, strict=True))
    how = {"averaged": factors[0], "mixed": factors[1], "epochs": epochs}
    return {"method": method, **where, "draw": draw, "judge": judge, **how}


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
        "loss but “LDAM-DRW, SGD” has AdamW at 0.015 with a cosine schedule, weight decay 5e-4 and a head that "
        "normalizes features and weights. “DS on LA” is logit adjustment, with the scatter DS of Eq 20 "
        "and its gradient after a third of the run. Mixed images are λx + (1 − λ)x′ with λ from Beta(α, α) in each "
        "batch, and λℓ(y) + (1 − λ)ℓ(y′) as their loss."
    ),
    requires_data=sorted({*THIRTY}),
)
