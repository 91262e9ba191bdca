"""Small networks with the losses for long tails; each answers with probabilities at the data's class shares."""

from __future__ import annotations

import importlib.util
from typing import Any

from equipoise.advisor.treatments._contract import Context, Range, Treatment

MOST_ROWS = 50_000
_LOADING = 5.0  # seconds to import torch and to fit for the first time
_LEAST_MEMORY = 2 * 2**30  # of a worker: torch takes 200 MiB of it and never gives them back


def _needs_torch(context: Context) -> str:
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("lightning_fabric") is None:
        return "it needs torch (pip install 'equipoise[torch]')"
    if context.memory < _LEAST_MEMORY:
        return "the cluster's workers have less than 2 GiB of memory, which the fit to all rows needs"
    return ""


def _two_classes(context: Context) -> str:
    return _needs_torch(context) or ("" if context.n_classes == 2 else "it takes two classes")


def _epochs(context: Context, epochs: int) -> int:
    """Fewer passes over more rows: about as many steps for every table."""
    return max(3, min(epochs, round(epochs * 5_000 / max(context.n_rows, 1))))


def _network(context: Context, loss: str, *, epochs: int, lr: float, weight_decay: float) -> Any:
    from equipoise.classifiers import NeuralClassifier
    from equipoise.training import Deadline

    return NeuralClassifier(
        module="mlp", loss=loss, epochs=_epochs(context, epochs), batch_size=128, lr=lr,
        optimizer_params={"weight_decay": weight_decay}, callbacks=[Deadline(context.deadline)],
        random_state=context.seed, verbose=False,
    )  # fmt: skip


def _logit_adjusted(context: Context, **settings: Any) -> Any:
    return _network(context, "logit_adjusted", **settings)


def _nenum(context: Context, **settings: Any) -> Any:
    return _network(context, "nenum", **settings)


def _conditional(context: Context, **settings: Any) -> Any:
    from equipoise.classifiers import ConditionalClassifier

    network = _network(context, "ce", **settings)
    return ConditionalClassifier("vs", estimator=network, random_state=context.seed)


def _autoencoder(context: Context, *, epochs: int, lr: float, weight_decay: float) -> Any:
    from equipoise.classifiers import AutoencoderClassifier
    from equipoise.training import Deadline

    return AutoencoderClassifier(
        epochs=_epochs(context, epochs),
        lr=lr,
        weight_decay=weight_decay,
        callbacks=[Deadline(context.deadline)],
        random_state=context.seed,
        verbose=False,
    )


def _trained(name: str, summary: str, build: Any, order: int, applies: Any = _needs_torch) -> Treatment:
    return Treatment(
        name, summary, build,
        defaults={"epochs": 30, "lr": 3e-3, "weight_decay": 1e-2},
        space={"lr": Range(3e-4, 3e-2, log=True), "weight_decay": Range(1e-4, 1.0, log=True)},
        takes_learner=False, order=order, simplicity=60, most_rows=MOST_ROWS, least_seconds=_LOADING,
        applies=applies,
    )  # fmt: skip


TREATMENTS = [
    _trained("network-logit-adjusted", "a small network with logit adjustment", _logit_adjusted, 7),
    _trained("network-nenum", "a small network with the loss of effective numbers", _nenum, 8),
    _trained("network-conditional", "a loss-conditional network", _conditional, 9, _two_classes),
    _trained("latent-mixing", "an auto-encoder that mixes rare rows in its latent space", _autoencoder, 10),
]
