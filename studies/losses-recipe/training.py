"""How the study trains: heads, mixed images as a step, the scatter after a warm-up, a cell's classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise.classifiers import NeuralClassifier
from equipoise.losses import get_loss
from equipoise.networks import build_network, logits_and_features, use_cosine_head
from equipoise.theory.effective_number import effective_number_weights
from equipoise.training import (
    Callback,
    DeferredReweighting,
    ExponentialAverage,
    Outcome,
    PlainStep,
    RandomAffine,
)

WARM_UP = 1 / 3
_NONE = 1e-12  # a weight of DS that keeps its covariances running and adds nothing

TRAININGS: dict[str, dict[str, Any]] = {
    "sgd": {"optimizer": "sgd", "lr": 0.1},
    "adamw": {"optimizer": "adamw", "lr": 0.015},
}
"""With SGD goes the convnet's linear head, with AdamW one that normalizes; LDAM and KPS always have their own."""


class MixedStep:
    """Train on λx + (1 − λ)x′ with the loss λℓ(y) + (1 − λ)ℓ(y′) (mixup, for losses of class indices too)."""

    def __init__(self, loss: nn.Module, alpha: float, clip: float) -> None:
        self.loss, self.alpha, self.plain = loss, alpha, PlainStep(loss, clip)

    def __getattr__(self, name: str) -> Any:  # setup, epochs and states are those of a plain step
        if name in ("setup", "start_epoch", "end_epoch", "state_dict", "load_state_dict"):
            return getattr(self.plain, name)
        raise AttributeError(name)

    def __call__(self, model: Any, optimizer: Any, batch: Any) -> Outcome:
        generator, y = batch.generator, batch.labels()
        share, _ = torch._sample_dirichlet(torch.full((2,), self.alpha), generator).tolist()
        other = torch.randperm(len(y), generator=generator)
        optimizer.zero_grad()
        logits, features = logits_and_features(
            model, share * batch.inputs + (1 - share) * batch.inputs[other]
        )
        offered = {"features": features, "head_weight": model.head.weight}
        needs = {name: offered[name] for name in getattr(self.loss, "requires", ())}
        loss = share * self.loss(logits, y, sample_weight=batch.weight, **needs)
        self.loss.gathers = False  # the batch's features count once, for the first label
        weight = None if batch.weight is None else batch.weight[other]
        loss = loss + (1 - share) * self.loss(logits, y[other], sample_weight=weight, **needs)
        self.loss.gathers = True
        self.plain.backward(loss)
        self.plain.update(model, optimizer)
        return Outcome(loss.detach(), {"accuracy": (logits.argmax(1) == y).float().mean()})


class LateScatter(Callback):
    """DS joins a combined loss after the warm-up, in which its base is trained."""

    def on_epoch_start(self, run: Any) -> None:
        run.step.loss.tau2 = 1.0 if run.epoch >= WARM_UP * run.epochs else _NONE


class UnitHead(nn.Module):
    """s·cos as a linear layer of unit features: a loss of features and weights sees what makes the logits."""

    def __init__(self, linear: nn.Linear, scale: float = 30.0) -> None:
        super().__init__()
        self.direction, self.scale = linear.weight, scale
        self.register_forward_pre_hook(lambda _, args: F.normalize(args[0], dim=-1))

    @property
    def weight(self) -> Tensor:
        return self.scale * F.normalize(self.direction, dim=-1)

    def forward(self, features: Tensor) -> Tensor:
        return F.linear(features, self.weight)


def cosine_convnet(input_shape: Sequence[int], n_classes: int, **params: Any) -> Any:
    """The convnet with a head that normalizes features and weights."""
    return use_cosine_head(build_network("convnet", input_shape, n_classes, **params))


def unit_convnet(input_shape: Sequence[int], n_classes: int, **params: Any) -> Any:
    """The same for a loss that looks at features or at the head's weights."""
    network = build_network("convnet", input_shape, n_classes, **params)
    network.head = UnitHead(network.head)
    return network


def make_classifier(
    loss: str,
    counts: Any,
    *,
    training: str,
    averaged: bool,
    mixed: float,
    epochs: int,
    seed: int,
    loss_params: dict[str, Any] | None = None,
    deferred: bool = False,
    late_scatter: bool = False,
) -> NeuralClassifier:
    """All but the loss and the named factors is the same for all."""
    made = get_loss(loss, counts, **(loss_params or {}))
    module: Any = "convnet"  # in which LDAM and KPS put a normalizing head, with the scale that they assume
    if training == "adamw" and getattr(made, "head", None) != "cosine":
        module = unit_convnet if made.requires else cosine_convnet
    callbacks: list[Any] = [ExponentialAverage(0.99)] if averaged else []
    if deferred:
        callbacks.append(DeferredReweighting(effective_number_weights(counts, 0.999)))
    if late_scatter:
        callbacks.append(LateScatter())
    step_params = {"clip": 5.0} | ({"alpha": mixed} if mixed else {})
    return NeuralClassifier(
        module,
        module_params={"widths": (8, 16, 32)},
        loss=loss,
        loss_params=loss_params,
        epochs=epochs,
        batch_size=100,
        step=MixedStep if mixed else "plain",
        step_params=step_params,
        augment=RandomAffine(shift=0.1, flip=True),
        callbacks=callbacks,
        random_state=seed,
        verbose=False,
        optimizer_params={"weight_decay": 5e-4},
        **TRAININGS[training],
    )
