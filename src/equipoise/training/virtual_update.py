"""A step of the optimizer that is not taken, and how its end answers a change of the gradient (Wu & Li, Eq 23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Tensors = dict[str, Tensor]
_CLIP_EPS = 1e-6  # torch.nn.utils.clip_grad_norm_ divides by norm + 1e-6


@dataclass
class VirtualUpdate:
    """The weights after a step, and how they answer a change of the gradient.

    Attributes
    ----------
    weights : dict
        Θ̂.
    rate : dict
        −∂Θ̂/∂G of each parameter, a number: the learning rate times what momentum makes of the gradient.
    clipping : tuple or None
        The clipped gradient's factor, its norm and the gradient, if clipping was active.
    """

    weights: Tensors
    rate: dict[str, float]
    clipping: tuple[float, float, Tensors] | None = None

    def direction(self, meta_gradient: Tensors) -> Tensors:
        """w = (∂Θ̂/∂G)ᵀ g."""
        w = {name: -self.rate[name] * g for name, g in meta_gradient.items()}
        if self.clipping is None:
            return w
        factor, norm, gradient = self.clipping
        along = sum(float((gradient[name] * w[name]).sum()) for name in w)
        shrink = along / (norm * (norm + _CLIP_EPS))
        return {name: factor * (w[name] - shrink * gradient[name]) for name in w}


@torch.no_grad()
def virtual_update(
    parameters: Mapping[str, Tensor],
    gradients: Tensors,
    optimizer: Any,
    *,
    replicate: bool = True,
    clip: float | None = None,
) -> VirtualUpdate:
    """One step of the optimizer that is not taken (Wu & Li, Eq 23).

    Parameters
    ----------
    parameters, gradients : dict of Tensor
    optimizer : torch optimizer
        Learning rates come from it; if it is SGD and ``replicate``, momentum (with Nesterov and dampening)
        and weight decay do too. Any other is taken as plain SGD at its learning rate.
    clip : float, optional
        Largest norm of the gradient.
    """
    inner = getattr(optimizer, "optimizer", optimizer)
    groups = {id(p): group for group in inner.param_groups for p in group["params"]}
    like_sgd = replicate and isinstance(inner, torch.optim.SGD)
    clipping, factor = None, 1.0
    if clip is not None:
        norm = float(torch.linalg.vector_norm(torch.stack([g.norm() for g in gradients.values()])))
        factor = min(1.0, clip / (norm + _CLIP_EPS))
        clipping = (factor, norm, gradients) if factor < 1.0 else None
    weights, rate = {}, {}
    for name, p in parameters.items():
        group = groups.get(id(p))
        if group is None:
            weights[name], rate[name] = p.detach().clone(), 0.0
            continue
        g = gradients[name] * factor
        step, gain = _sgd(p, g, group, inner.state.get(p, {})) if like_sgd else (g, 1.0)
        weights[name] = p.detach() - float(group["lr"]) * step
        rate[name] = float(group["lr"]) * gain
    return VirtualUpdate(weights, rate, clipping)


def _sgd(p: Tensor, g: Tensor, group: Mapping[str, Any], state: Mapping[str, Any]) -> tuple[Tensor, float]:
    """The step of torch's SGD, and its derivative by the gradient."""
    d = g + group["weight_decay"] * p if group["weight_decay"] else g
    momentum, gain = group["momentum"], 1.0
    if momentum:
        buffer = state.get("momentum_buffer")
        fresh = 1.0 if buffer is None else 1.0 - group["dampening"]
        moved = d if buffer is None else momentum * buffer + fresh * d
        gain = 1.0 + momentum * fresh if group["nesterov"] else fresh
        d = d + momentum * moved if group["nesterov"] else moved
    return d, gain
