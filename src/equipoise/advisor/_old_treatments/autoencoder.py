"""The class-preserving auto-encoder, oversampled in its latent space."""

from __future__ import annotations

from functools import partial
from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment
from equipoise.advisor._old_treatments._parts import needs_torch, pipeline

MOST_ROWS = 20_000


def _build(task: Task, seed: int) -> Any:
    from equipoise.classifiers import AutoencoderClassifier

    return pipeline(task, seed, AutoencoderClassifier(epochs=30, random_state=seed, verbose=False))


TREATMENT = Treatment(
    "autoencoder", "Auto-encoder, latent oversampling",
    "mixes of rare rows in a latent space that keeps the classes apart stay rare rows",
    _build,  # the classifier keeps the ledger itself: its probabilities come at the data's prior
    [
        {"classifier__lr": lr, "classifier__weight_decay": decay}
        for lr in (1e-3, 4e-3)
        for decay in (1e-3, 1e-1)
    ],
    applies=partial(needs_torch, most_rows=MOST_ROWS), order=41,
)  # fmt: skip
