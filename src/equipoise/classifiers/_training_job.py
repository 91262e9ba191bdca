"""What happens in the training processes, one or several: a job in, weights and history out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from equipoise._core.checks import FloatArray, check_choice
from equipoise._core.random import derive_seed
from equipoise.classifiers.ledger import implied_prior, sampled_prior
from equipoise.losses import get_loss
from equipoise.losses._links import Link
from equipoise.networks import build_network
from equipoise.training import Step, TensorData, fit
from equipoise.training.steps import call_if_there


@dataclass
class Job:
    """All that a training process needs; it can travel to a spawned one."""

    network: nn.Module
    step: Step
    loss: nn.Module
    data: TensorData
    class_counts: FloatArray
    class_mass: FloatArray
    optimizer: str | Callable[..., torch.optim.Optimizer]
    optimizer_params: dict[str, Any]
    lr: float
    settings: dict[str, Any]  # of the loop


def train(fabric: Any, job: Job) -> dict[str, Any]:
    """What a job comes to: weights, history, priors, and the step's state."""
    parameters = [p for part in (job.network, job.loss) for p in part.parameters() if p.requires_grad]
    optimizer = build_optimizer(job.optimizer, parameters, job.lr, job.optimizer_params)
    run = fit(job.network, job.step, job.data, optimizer=optimizer, fabric=fabric, **job.settings)
    weights = {name: value.detach().cpu() for name, value in run.network.state_dict().items()}
    sampled = sampled_prior(
        job.class_mass,
        shares=getattr(run.sampler, "shares", None),
        counts=job.class_counts,
        class_weight=None if run.class_weight is None else run.class_weight.cpu(),
    )
    return {
        "weights": weights,
        "history": run.history,
        "sampled_prior": sampled,
        "training_prior": implied_prior(job.loss, sampled),
        "step_state": call_if_there(run.step, "state_dict"),
    }


def build_optimizer(
    optimizer: str | Callable[..., torch.optim.Optimizer],
    parameters: Sequence[nn.Parameter],
    lr: float,
    params: dict[str, Any],
) -> torch.optim.Optimizer:
    """An optimizer by name with the house's defaults, or from a factory."""
    if callable(optimizer):
        return optimizer(parameters, lr=lr, **params)
    known: dict[str, tuple[Callable[..., torch.optim.Optimizer], dict[str, Any]]] = {
        "adamw": (torch.optim.AdamW, {"weight_decay": 1e-4}),
        "adam": (torch.optim.Adam, {"weight_decay": 1e-4}),
        "sgd": (torch.optim.SGD, {"weight_decay": 1e-4, "momentum": 0.9, "nesterov": True}),
    }
    check_choice("optimizer", optimizer, known)
    factory, defaults = known[optimizer]
    if parameters[0].device.type == "cpu":  # one call for all parameters: quicker on small networks
        defaults["fused"] = True
    made = factory(parameters, lr=lr, **{**defaults, **params})
    made.register_step_pre_hook(_lay_gradients_as_parameters)
    return made


def _lay_gradients_as_parameters(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    """Fused kernels pair values by their place in memory, whatever layout a step gives to gradients it sets."""
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is not None and grad.stride() != parameter.stride():
                parameter.grad = torch.empty_like(parameter).copy_(grad)


def build_loss(
    loss: str | nn.Module | Callable[..., nn.Module], counts: FloatArray, params: dict[str, Any] | None
) -> nn.Module:
    """A loss by name or from a factory, made for these class counts, or a copy of an instance."""
    if isinstance(loss, nn.Module):
        if params:
            raise ValueError("loss_params needs a loss by name, got an instance")
        return copy.deepcopy(loss)
    if callable(loss):
        return loss(counts, **(params or {}))
    return get_loss(loss, class_counts=counts, **(params or {}))


def initial_network(
    module: str | Callable[..., nn.Module] | nn.Module,
    input_shape: Sequence[int],
    n_classes: int,
    params: dict[str, Any] | None,
    seed: int,
) -> nn.Module:
    """The untrained network: its weights follow from the seed, and the global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, "network"))
        return build_network(module, input_shape, n_classes, **(params or {}))


@dataclass(frozen=True)
class LinkedCrossEntropy:
    """Cross-entropy of the probabilities that a loss's exact link makes of the logits, a value per row."""

    link: Link

    def __call__(self, logits: Tensor, targets: Tensor) -> Tensor:
        log_p = torch.from_numpy(self.link(logits.double().numpy()))
        return -log_p.gather(1, targets.unsqueeze(1)).squeeze(1)


def exact_link(loss: Any) -> Link | None:
    """The exact link of a loss; None if it has none, or is not of this family."""
    find = getattr(loss, "link", None)
    return find() if callable(find) else None
