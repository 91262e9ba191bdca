"""What a conditional classifier is put together from, and how its tuning is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from torch import Tensor, nn

from equipoise.classifiers._lambda_search import Tuning
from equipoise.metrics.decisions import decision_from_json, decision_to_json
from equipoise.networks import ConditionalNetwork, build_network
from equipoise.training import ConditionalStep, ConditionedLoss, FamilyLoss
from equipoise.training.distributions import Distribution


@dataclass(frozen=True)
class ConditionalModule:
    """A network factory that puts the modulation between a network's features and its head."""

    module: Any
    default: tuple[float, ...]
    settings: dict[str, Any]

    def __call__(self, input_shape: Sequence[int], n_classes: int, **params: Any) -> nn.Module:
        network = build_network(self.module, input_shape, n_classes, **params)
        return ConditionalNetwork(network, self.default, **self.settings)

    @classmethod
    def of(cls, owner: Any, module: Any) -> ConditionalModule:
        """For a conditional classifier whose distribution and default λ are known."""
        settings = {"modulate": owner.film, "hidden": owner.film_hidden, "residual": owner.film_residual}
        if owner.film_scaled:
            u = (np.arange(256) + 0.5) / 256
            values = [law.quantile(u) for law in owner.distribution_.values()]
            settings["center"] = tuple(float(value.mean()) for value in values)
            settings["spread"] = tuple(float(value.std()) or 1.0 for value in values)
        return cls(module, tuple(owner.default_.values()), settings)


@dataclass(frozen=True)
class ConditionedFamily:
    """A loss factory for the counts of the training data."""

    name: str
    default: dict[str, float]

    def __call__(self, class_counts: npt.ArrayLike, **fixed: Any) -> nn.Module:
        counts = tuple(np.asarray(class_counts, dtype=np.float64).tolist())
        return ConditionedLoss(FamilyLoss(self.name, counts, fixed), **self.default)


@dataclass(frozen=True)
class ConditionalStepFactory:
    distribution: dict[str, Distribution]
    step: Any
    per_sample: bool

    def __call__(self, loss: Any, **params: Any) -> ConditionalStep:
        return ConditionalStep(loss, self.distribution, self.step, self.per_sample, **params)


class FeaturesOnly(nn.Module):
    def __init__(self, network: ConditionalNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        return self.network.features(x)


def tuning_to_dict(tuning: Tuning, positive: Any) -> dict[str, Any]:
    decision = tuning.decision
    return {
        "params": tuning.params,
        "value": tuning.value,
        "decision": None if decision is None else decision_to_json(decision),
        "prior": tuning.prior,
        "positive": np.asarray(positive).tolist(),
        "table": {name: tuning.table[name].tolist() for name in tuning.table},
    }


def tuning_from_dict(saved: dict[str, Any], classes: npt.NDArray[Any]) -> tuple[Tuning, Any]:
    values = dict(saved)
    positive = classes[classes.tolist().index(values.pop("positive"))]
    decision = None if values["decision"] is None else decision_from_json(values["decision"], len(classes))
    return Tuning(**{**values, "decision": decision, "table": pd.DataFrame(values["table"])}), positive
