"""A small network trained with the loss of effective numbers and data scatter."""

from __future__ import annotations

from functools import partial
from typing import Any

from equipoise.advisor._old_treatments._contract import Task, Treatment
from equipoise.advisor._old_treatments._parts import needs_torch, pipeline

MOST_ROWS = 50_000


def _build(task: Task, seed: int) -> Any:
    from equipoise.classifiers import NeuralClassifier

    network = NeuralClassifier(
        module="mlp", loss="nenum", epochs=20, batch_size=128, lr=3e-3, random_state=seed, verbose=False
    )
    return pipeline(task, seed, network)


TREATMENT = Treatment(
    "neural", "Neural network, NENum loss",
    "the loss weighs each class by how much its rows cover and how far they spread",
    _build,  # the classifier keeps the ledger itself: its probabilities come at the data's prior
    [
        {"classifier__module_params": {"hidden": hidden}, "classifier__optimizer_params": {"weight_decay": decay}}
        for hidden in ([32], [64, 64])
        for decay in (1e-4, 1e-1)
    ],
    applies=partial(needs_torch, most_rows=MOST_ROWS), order=40,
)  # fmt: skip
