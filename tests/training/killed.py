"""Run by test_resume: the same training, uninterrupted and killed with -9 again and again; both are saved.

Children are forked from a process that has imported everything and computed nothing, so a kill is cheap to
repeat.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

import lightning_fabric  # noqa: F401  (imported here, once, not in every child)
import numpy as np
import torch
from sklearn.datasets import make_classification

from equipoise._core import files
from equipoise.classifiers import NeuralClassifier
from equipoise.training import DeferredReweighting, EarlyStopping, LearningRate, checkpoint


def train(out: str, checkpoints: str | None) -> None:
    X, y = make_classification(400, 10, n_informative=6, n_classes=3, weights=[0.7, 0.2], random_state=0)
    NeuralClassifier(
        module_params={"hidden": (32, 16), "dropout": 0.3, "batch_norm": True},
        loss="nenum",
        sampler="sqrt",
        epochs=24,
        lr=0.01,
        schedule=LearningRate("cosine", warmup=3),
        early_stopping=EarlyStopping("val_balanced_accuracy", patience=20),
        callbacks=[DeferredReweighting("balanced", start=0.5)],
        checkpoint=checkpoints,
        random_state=5,
    ).fit(X, y, sample_weight=np.linspace(0.5, 1.5, len(y))).save(out)


def in_a_child(out: str, checkpoints: str | None, kill_after: float | None, die_in_save: int | None) -> bool:
    """Whether the child came to its end."""
    child = os.fork()
    if not child:
        torch.set_num_threads(1)
        if die_in_save is not None:
            _die_between_files(die_in_save)
        try:
            train(out, checkpoints)
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit("the training itself failed")
    return os.WIFEXITED(status)


def _die_between_files(number: int) -> None:
    """In the save of that number: tensors written, JSON not."""
    calls = [0]

    def write_json(path: object, value: object) -> None:
        calls[0] += 1
        if calls[0] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        files.write_json(path, value)

    checkpoint.write_json = write_json


if __name__ == "__main__":
    folder = sys.argv[1]
    started = time.monotonic()
    in_a_child(f"{folder}/whole", None, None, None)
    whole = time.monotonic() - started
    kills = 0
    for number in (1, 3):
        kills += not in_a_child(f"{folder}/resumed", f"{folder}/saves", None, number)
    delays = random.Random(0)
    for _ in range(5):
        kills += not in_a_child(
            f"{folder}/resumed", f"{folder}/saves", delays.uniform(0.1, 0.4) * whole, None
        )
    in_a_child(f"{folder}/resumed", f"{folder}/saves", None, None)
    print(kills)
