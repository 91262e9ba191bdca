"""The long-tailed image sets of Mondal et al.: their class counts (Table 7), and augmentation for each."""

from __future__ import annotations

from typing import Any

import numpy as np


def draw_parts(dataset: str, seed: int) -> dict[str, tuple[Any, Any]]:
    """The training rows, the balanced and the imbalanced test rows of one draw."""
    from equipoise.datasets import class_counts, imbalanced_indices

    stock = {split: all_images(dataset, split) for split in ("train", "test")}
    splits = {"train": "train", "balanced": "balanced_test", "imbalanced": "imbalanced_test"}
    parts = {}
    for name, split in splits.items():
        counts = class_counts(f"{dataset}-mondal", split)  # type: ignore[arg-type]
        images, y = stock["train" if name == "train" else "test"]
        counts = np.minimum(counts, np.bincount(y, minlength=len(counts)))  # MNIST's test set has 980 zeros
        rows = imbalanced_indices(y, counts=counts, random_state=seed)
        pixels = images.read(rows) / np.float32(255) if hasattr(images, "read") else images[rows]
        parts[name] = (pixels, y[rows])
    return parts


def all_images(dataset: str, split: Any) -> tuple[Any, Any]:
    """All images of a split, in memory or unread on disk, and their class codes."""
    from equipoise import datasets

    on_disk = {"celeba": datasets.find_celeba_hair_files, "imagenet100": datasets.find_imagenet100_files}
    if dataset in on_disk:
        return on_disk[dataset](split)
    loaders = {
        "mnist": datasets.load_mnist, "fashion-mnist": datasets.load_fashion_mnist, "svhn": datasets.load_svhn,
        "cifar10": datasets.load_cifar10, "cifar100": datasets.load_cifar100,
    }  # fmt: skip
    data = loaders[dataset](split)
    return data.X, np.asarray(data.y)


def augmentation(dataset: str) -> Any:
    """Shifts, and mirroring or small turns where these leave the class alone."""
    from equipoise.training import RandomAffine

    # A mirrored shoe or car is one still, a mirrored digit is not.
    return RandomAffine(0.1, 10, 0.1) if dataset in ("mnist", "svhn") else RandomAffine(shift=0.1, flip=True)
