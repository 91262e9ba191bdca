"""How good are the images that samplers make? Tables 3 and 11 and Figs 4 to 8 of Mondal et al."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np

from equipoise._core.random import derive_seed
from equipoise.studies.spec import Spec

from ..shared.image_samplers import BATCH, CLASSICAL, epochs_of, image_sampler, resampled
from ..shared.long_tailed_images import all_images, augmentation, draw_parts

METHODS = ("fresh reals", "copies", *CLASSICAL, "ours", "DeepSMOTE", "GAMO", "BAGAN")
COMPARED = 450
"""Made images of a class, and as many real ones of the test set; MNIST's test set has 980 zeros."""
SHOWN, NEIGHBORS = 2, 5
JUDGE_ROWS, JUDGE_UPDATES = 10_000, 160


def run_cell(dataset: str, method: str, seed: int, budget: int) -> dict[str, Any]:
    """The images that one method makes of every minority class, beside test images of the class."""
    from equipoise import metrics

    parts = draw_parts(dataset, seed)
    X, y = parts["train"]
    test, truth = parts["balanced"]
    rng = np.random.default_rng(derive_seed(seed, "samples"))
    minority = np.flatnonzero(np.bincount(y) < np.bincount(y).max())
    halves = {c: rng.permutation(np.flatnonzero(truth == c))[: 2 * COMPARED] for c in minority}
    start = time.process_time()
    if method == "fresh reals":
        made = {c: test[halves[c][COMPARED:]] for c in minority}
    elif method == "copies":
        made = {c: X[rng.choice(np.flatnonzero(y == c), COMPARED)] for c in minority}
    else:
        counts = {int(c): int((y == c).sum()) + COMPARED for c in minority}
        images, labels = resampled(image_sampler(method, seed, budget, X, counts), X, y)
        made = {c: images[len(X) :][labels[len(X) :] == c] for c in minority}
    found: dict[str, Any] = {"fit_cpu_seconds": time.process_time() - start, "classes": minority.tolist()}
    spaces = {"feature": _judge(dataset).latents, "pixel": lambda images: images.reshape(len(images), -1)}
    for space, look in spaces.items():
        pairs = [(look(test[halves[c][:COMPARED]]), look(made[c])) for c in minority]
        balls = [metrics.balls(real, fake, k=NEIGHBORS) for real, fake in pairs]
        found[f"{space}_density"] = [one.density for one in balls]
        found[f"{space}_coverage"] = [one.coverage for one in balls]
        if space == "feature":
            found["feature_frechet"] = [metrics.frechet_distance(real, fake) for real, fake in pairs]
    shown = np.concatenate([made[c][:SHOWN] for c in minority])
    gray = np.clip(np.round(255 * shown), 0, 255).astype(int)
    channels_last = np.moveaxis(gray.reshape(len(gray), -1, *X.shape[-2:]), 1, -1)
    return {**found, "sheet": channels_last.tolist()}


@lru_cache(maxsize=1)
def _judge(dataset: str) -> Any:
    """One classifier for all methods, seeds and classes, which has learned from a balanced draw of all images."""
    from equipoise.classifiers import AutoencoderClassifier
    from equipoise.datasets import imbalanced_indices

    images, y = all_images(dataset, "train")
    each = min(JUDGE_ROWS // len(np.unique(y)), np.bincount(y).min())
    rows = imbalanced_indices(y, counts=np.full(len(np.unique(y)), each), random_state=0)
    judge = AutoencoderClassifier(
        oversample=False,
        decode=False,
        epochs=epochs_of(JUDGE_UPDATES, len(rows)),
        batch_size=BATCH,
        augment=augmentation(dataset),
        random_state=0,
    )
    return judge.fit(images[rows], y[rows])


SPEC = Spec(
    name="oversampling-samples",
    title="The images that samplers make: density, coverage, Fréchet distance",
    reference="Mondal et al., AISTATS 2023, Tables 3 and 11, Figs 4 to 8",
    run_cell=run_cell,
    grid={"dataset": ["fashion-mnist"], "seed": [0, 1, 2], "method": list(METHODS), "budget": 1000},
    sizes={
        "tiny": {"seed": [0], "method": ["fresh reals", "copies", "SMOTE"], "budget": 100},
        "small": {},
        "paper": {"dataset": ["mnist", "fashion-mnist", "cifar10"], "budget": 20_000},
    },
    differs=(
        f"{COMPARED} made and {COMPARED} test images of each minority class instead of 800. Features are the 64 of "
        "one classifier, trained on a balanced draw of all training images and the same for every method; the "
        "paper does not say whose features it takes, and its Fréchet distances are of an Inception network, so "
        "only the order of methods can be compared. Samplers train for minutes of one core. GAMO mixes pixels; the "
        "paper's GAMO2PIX has a decoder."
    ),
    requires_data=lambda cells: sorted({cell["dataset"] for cell in cells}),
)
