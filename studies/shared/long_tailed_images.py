"""The long-tailed image sets of Mondal et al.: their class counts (Table 7), and augmentation for each."""

from __future__ import annotations

from typing import Any

import numpy as np


def draw_parts(dataset: str, seed: int) -> dict[str, tuple[Any, Any]]:
    """The training rows, the balanced and the imbalanced test rows of one draw."""
    from equipoise.datasets import class_counts, load_cifar10, load_fashion_mnist, load_mnist, make_imbalanced

    load = {"fashion-mnist": load_fashion_mnist, "mnist": load_mnist, "cifar10": load_cifar10}[dataset]
    stock = {"train": load("train"), "balanced": load("test"), "imbalanced": load("test")}
    splits = {"train": "train", "balanced": "balanced_test", "imbalanced": "imbalanced_test"}
    parts = {}
    for name, split in splits.items():
        counts = class_counts(f"{dataset}-mondal", split)  # type: ignore[arg-type]
        counts = np.minimum(counts, np.bincount(stock[name].y))  # MNIST's test set has only 980 zeros
        X, y = make_imbalanced(stock[name].X, stock[name].y, counts=counts, random_state=seed)
        parts[name] = (X, np.asarray(y))
    return parts


def augmentation(dataset: str) -> Any:
    """Shifts, and mirroring or small turns where these leave the class alone."""
    from equipoise.training import RandomAffine

    # A mirrored shoe or car is one still, a mirrored digit is not.
    return RandomAffine(0.1, 10, 0.1) if dataset == "mnist" else RandomAffine(shift=0.1, flip=True)
