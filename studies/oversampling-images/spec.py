"""Oversampling on images: Tables 1, 4, 5, 10, 12, 14 and 15 of Mondal et al., every method with the same budget."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from equipoise._core.random import derive_seed
from equipoise.studies.grid import Settings
from equipoise.studies.spec import Spec

from ..shared.image_samplers import BATCH, CLASSICAL, epochs_of, image_sampler, resampled
from ..shared.long_tailed_images import augmentation, draw_parts
from .printed import PAPER

UNITS = 1.55
"""What a batch of ours or of DGC costs, in batches of the same encoder and head trained by cross-entropy."""
AVERAGE = 0.99
"""Decay of the moving average of the weights, which is the auto-encoder's own."""

OURS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ours, no classifier": {"classify": False},
    "ours, no mixes": {"oversample": False},
    "ours, no decoder": {"decode": False},
    "ours, learned mixer": {"mixing": "learned"},
    "ours, Beta(2, 2)": {"mixing": "beta"},
    "ours, t = 3": {"n_mixed": 3},
    "ours, t = 4": {"n_mixed": 4},
    "ours, m = 16": {"latent": 16},
    "ours, m = 32": {"latent": 32},
    "ours, m = 128": {"latent": 128},
}
_ALONE = {"oversample": False, "decode": False}
CONTROLS: dict[str, dict[str, Any]] = {
    "balanced batches": _ALONE,
    "natural batches": {**_ALONE, "batches": "natural"},
}
"""Our encoder and head with averaged weights: neither mixes nor an auto-encoder."""
SAMPLERS = ("DeepSMOTE", "GAMO", "BAGAN", *CLASSICAL)
FIRST = ("ours", *CONTROLS, "plain", "DeepSMOTE", "GAMO", "BAGAN", "one-stage GAMO", "DGC", "SMOTE")
METHODS = (*FIRST, *(name for name in CLASSICAL if name not in FIRST))
UPDATES = {"cifar10": 1055, "fashion-mnist": 940, "mnist": 940}
"""Near whole passes over the images as they are, and over as many of each class."""
SHOWN_LATENTS = 800


def run_cell(
    dataset: str, method: str, seed: int, updates: int | None = None, budget: int | None = None
) -> dict[str, Any]:
    """One method on one draw of Table 7's class counts.

    With ``updates`` every classifier takes so many batches of 128, and all average their weights and see the
    images moved; a sampler with networks has as much again for itself. Without averaged weights, cells of equal
    cost have a ``budget`` in batches of the encoder and head under cross-entropy: a method whose batches cost more
    gets fewer, and a sampler with networks spends half of it on itself. ``fit_cpu_seconds`` says what it came to.
    """
    parts = draw_parts(dataset, seed)
    X, y = parts["train"]
    start = time.process_time()
    if updates is None:
        assert budget is not None, "a cell has updates or a budget"
        classifier = _at_equal_cost(dataset, method, seed, budget, X, y)
    else:
        classifier = _at_equal_updates(dataset, method, seed, updates, X, y)
    found: dict[str, Any] = {"fit_cpu_seconds": time.process_time() - start}
    shares = np.bincount(np.searchsorted(classifier.classes_, y)) / len(y)
    for name in ("balanced", "imbalanced"):
        found |= {
            f"{name}_{key}": value for key, value in _measured(classifier, *parts[name], shares).items()
        }
    if method == "ours":
        found.update(_planes(classifier, *parts["balanced"], seed))
    return found


def _measured(classifier: Any, X: Any, y: Any, shares: Any) -> dict[str, float]:
    """Decided as trained, and (``_even``, ``_data``) under equal shares and under those of the training images.

    Who learns from balanced batches or rows decides for equal shares as trained, who does not for the data's.
    """
    from equipoise import metrics

    raw = classifier.predict_proba(X, prior="train")
    found = {"auprc": 100 * float(metrics.auprc_ova(y, raw))}
    priors = {"": classifier.training_prior_, "_even": 1 / len(shares), "_data": shares}
    for suffix, prior in priors.items():
        scores = raw * (prior / classifier.training_prior_)
        decided = classifier.classes_[scores.argmax(axis=1)]
        found[f"acsa{suffix}"] = 100 * float(metrics.balanced_accuracy(y, decided))
        found[f"macro_f1{suffix}"] = 100 * float(metrics.macro_f1(y, decided))
        found[f"g_mean{suffix}"] = 100 * float(metrics.g_mean_macro(y, decided))
    return found


def _at_equal_updates(dataset: str, method: str, seed: int, updates: int, X: Any, y: Any) -> Any:
    augment = augmentation(dataset)
    if method in OURS | CONTROLS:
        return _ours(method, updates, X, augment, seed).fit(X, y)
    if method == "DGC":
        return _dgc(updates, X, seed, augment=augment, average=AVERAGE).fit(X, y)
    if method == "one-stage GAMO":
        labels, counts = np.unique(y, return_counts=True)
        one = {labels[counts.argmin()]: counts.min() + 1}  # its rows are not asked for, but one is the least
        sampler = image_sampler(method, seed, updates, X, one, augment=augment, average=AVERAGE)
        resampled(sampler, X, y)
        return _OneStageGAMO(sampler, X, y)
    if method in SAMPLERS:
        X, y = resampled(image_sampler(method, seed, updates, X), X, y)
    return _plain(updates, X, augment, seed, average=AVERAGE).fit(X, y)


def _at_equal_cost(dataset: str, method: str, seed: int, budget: int, X: Any, y: Any) -> Any:
    augment = augmentation(dataset)
    if method in OURS | CONTROLS:
        return _ours(method, budget / (UNITS if method in OURS else 1), X, augment, seed).fit(X, y)
    if method == "DGC":
        return _dgc(budget / UNITS, X, seed).fit(X, y)
    if method == "one-stage GAMO":
        sampler = image_sampler("GAMO", seed, budget, X)
        resampled(sampler, X, y)
        return _OneStageGAMO(sampler, X, y)
    if method in SAMPLERS:
        X, y = resampled(image_sampler(method, seed, budget / 2, X), X, y)
        budget = budget if method in CLASSICAL else budget // 2  # only networks take their part of the budget
    return _plain(budget, X, augment, seed).fit(X, y)


def _ours(method: str, updates: float, X: Any, augment: Any, seed: int) -> Any:
    from equipoise.classifiers import AutoencoderClassifier

    common = {"epochs": epochs_of(updates, len(X)), "batch_size": BATCH, "augment": augment}
    return AutoencoderClassifier(
        **{**common, **(OURS | CONTROLS)[method]}, average=AVERAGE, random_state=seed
    )


def _dgc(updates: float, X: Any, seed: int, **more: Any) -> Any:
    from equipoise.classifiers import GenerativeClassifier

    epochs = epochs_of(updates, len(X))
    return GenerativeClassifier(epochs=epochs, batch_size=BATCH, n_draws=2, random_state=seed, **more)


def _plain(updates: float, X: Any, augment: Any, seed: int, average: float = 0.0) -> Any:
    from equipoise.classifiers import NeuralClassifier
    from equipoise.networks import Autoencoder
    from equipoise.training import ExponentialAverage

    return NeuralClassifier(
        Autoencoder,
        epochs=epochs_of(updates, len(X)),
        batch_size=BATCH,
        lr=2e-3,
        optimizer_params={"weight_decay": 1e-2},
        augment=augment,
        callbacks=[ExponentialAverage(average, skip=("critic", "mixer", "decoder"))] if average else [],
        random_state=seed,
    )


class _OneStageGAMO:
    """The classifier that plays in GAMO, which is the paper's rival; its outputs are one sigmoid a class."""

    def __init__(self, sampler: Any, X: Any, y: Any) -> None:
        self.classes_, counts = np.unique(y, return_counts=True)
        self._network, self._low, self._width = sampler.network_, X.min(), np.ptp(X)
        missing = counts.max() - counts  # half of a batch is real, half is made where the data lacks rows
        self.training_prior_ = (counts / counts.sum() + missing / missing.sum()) / 2

    def predict_proba(self, X: Any, prior: str = "train") -> Any:
        import torch

        signed = torch.from_numpy(2 * (X - self._low) / self._width - 1).float()
        signed = signed if self._network.extractor is not None else signed.flatten(1)
        with torch.inference_mode():
            parts = [self._network(part) for part in torch.split(signed, 1024)]
        scores = torch.cat(parts).sigmoid().double().numpy()
        return scores / scores.sum(axis=1, keepdims=True)


def _planes(classifier: Any, X: Any, y: Any, seed: int) -> dict[str, Any]:
    """Latents of test images in two planes: of the principal components, and of neighbors (t-SNE)."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    rng = np.random.default_rng(derive_seed(seed, "looks"))
    some = rng.permutation(len(y))[:SHOWN_LATENTS]
    latents = classifier.latents(X[some])
    planes = {"plane": PCA(2, random_state=0), "neighbor_plane": TSNE(2, random_state=0)}
    found = {name: np.round(made.fit_transform(latents), 3).tolist() for name, made in planes.items()}
    return {**found, "plane_labels": y[some].tolist()}


AT_COST = ("ours", "plain", "SMOTE", "DeepSMOTE", "GAMO", "BAGAN", "DGC")


def cells(
    seeds: Sequence[int] = (1, 2, 0),
    datasets: Sequence[str] = ("cifar10", "fashion-mnist", "mnist"),
    ablated: Sequence[str] = ("cifar10",),
    updates: int | None = None,
    ablation_updates: int = 560,
    long: int | None = None,
    at_cost: Sequence[str] = ("fashion-mnist", "mnist"),
    budget: int = 2000,
) -> Iterator[Settings]:
    """All methods on each set seed by seed, longer runs of ours if wanted, ours in parts, and runs at equal cost.

    The last are older: without averaged weights, and with one seed of the parts on Fashion-MNIST.
    """
    wanted = {dataset: updates or UPDATES.get(dataset, 1000) for dataset in datasets}
    fair = [
        (dataset, seed, name, wanted[dataset]) for dataset, seed, name in product(datasets, seeds, METHODS)
    ]
    fair += [(dataset, 1, "ours", long) for dataset in PAPER if long is not None]
    fair += [(*at, ablation_updates) for at in product(ablated, seeds, OURS)]
    for dataset, seed, method, units in dict.fromkeys(fair):
        yield {"dataset": dataset, "method": method, "seed": seed, "updates": units}
    older = [(*at, budget) for at in product(at_cost, seeds, AT_COST)]
    older += [("fashion-mnist", 1, method, budget // 2) for method in OURS if "fashion-mnist" in at_cost]
    for dataset, seed, method, units in older:
        yield {"dataset": dataset, "method": method, "seed": seed, "budget": units}


SPEC = Spec(
    name="oversampling-images",
    title="Oversampling on images with Table 7's class counts",
    reference="Mondal et al., AISTATS 2023, Tables 1, 2, 4, 5, 10, 12, 14, 15, Figs 2 and 3",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {"seeds": [1], "datasets": ["cifar10"], "ablated": [], "updates": 71, "at_cost": []},
        "small": {},
        "paper": {"updates": 20_000, "ablation_updates": 20_000, "long": 200_000, "at_cost": []},
    },
    paper=PAPER,
    differs=(
        "Networks with half the channels, minutes of one CPU core instead of 100,000 steps on a GPU, the same "
        "number of updates for every classifier, with averaged weights and the same moved images, and the same "
        "encoder and head behind every sampler instead of a ResNet-18. A sampler with networks trains as many "
        "batches' worth for itself as its classifier does. Every seed draws other images. The auto-encoder mixes "
        "uniformly and decodes on every tenth batch; both were chosen on images that are neither trained nor "
        "tested on here, and no rival was retuned. DGC draws two latents a class to predict. MNIST's test set has "
        "980 zeros where Table 7 asks for 1000. The control rows (balanced and natural batches) are our encoder "
        "and head with averaged weights and nothing else. Runs at equal cost are older: there ours alone averages "
        "its weights."
    ),
    requires_data=lambda cells: sorted({cell["dataset"] for cell in cells}),
)
