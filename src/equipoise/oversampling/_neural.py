"""What the samplers with networks share: inputs as tensors, seeds, and rows back from tensors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._core.checks import FloatArray, IntArray, check_positive
from equipoise.oversampling._base import ProvenanceSampler
from equipoise.oversampling.provenance import Synthetic

if TYPE_CHECKING:
    import torch


@dataclass(kw_only=True, repr=False, eq=False)
class NeuralSampler(ProvenanceSampler):
    """A subclass trains in ``_train`` and makes the rows of one class in ``_make``.

    Torch is imported when rows are made, not before.
    """

    image_shape: Sequence[int] | None = None
    device: str = "cpu"
    precision: str = "32-true"
    verbose: bool | None = None
    _signed = False
    """Images in [−1, 1] instead of [0, 1]."""

    def _synthesize(
        self, X: FloatArray, codes: IntArray, wanted: dict[int, int], rng: np.random.Generator
    ) -> Synthetic:
        import torch

        from equipoise.training.inputs import unit_preparation

        prepare = unit_preparation(X, self.image_shape, signed=self._signed)
        if not wanted:
            return Synthetic.concatenate([], X.shape[1])
        seed = int(rng.integers(2**31 - 1))
        inputs, targets = prepare(X), torch.from_numpy(codes)
        parts = []
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self._train(inputs, targets, seed)
            for code, count in wanted.items():
                members = np.flatnonzero(codes == code)
                made, parents, weights = self._make(inputs, members, code, count, rng)
                rows = _within(prepare.invert(made), X, prepare.input_shape)
                if not np.isfinite(rows).all():
                    raise ValueError(
                        f"{type(self).__name__} made values that are not finite; a lower lr may help"
                    )
                parts.append(Synthetic(rows, np.full(count, code), parents, weights))
        return Synthetic.concatenate(parts, X.shape[1])

    def _fit(
        self,
        network: torch.nn.Module,
        step: Any,
        data: tuple[torch.Tensor, torch.Tensor],
        *,
        lr: float | None = None,
        **settings: Any,
    ) -> list[dict[str, float]]:
        import torch

        from equipoise.training import TensorData, fit

        rate = None if lr is None else float(check_positive("lr", lr))
        adam = None if rate is None else torch.optim.Adam(network.parameters(), lr=rate)
        settings |= {"fabric": self._fabric(), "verbose": self.verbose}
        run = fit(network, step, TensorData(*data), optimizer=adam, **settings)
        network.cpu().eval()
        return run.history

    def _fabric(self) -> Any:
        from equipoise.training import make_fabric

        return make_fabric(self.device, self.precision)

    @abstractmethod
    def _train(self, inputs: torch.Tensor, targets: torch.Tensor, seed: int) -> None:
        """Learn from all rows; what ``_make`` needs is kept on the sampler, names ending in ``_``."""

    @abstractmethod
    def _make(
        self, inputs: torch.Tensor, members: IntArray, code: int, count: int, rng: np.random.Generator
    ) -> tuple[torch.Tensor, IntArray, FloatArray]:
        """``count`` samples of a class, with parents (row numbers, −1 for none) and mixing weights."""


def _within(rows: FloatArray, X: FloatArray, input_shape: Sequence[int]) -> FloatArray:
    """Images keep to the values that images have; a column that is constant stays so."""
    if len(input_shape) > 1:
        return np.clip(rows, X.min(), X.max())
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(low == high, low, rows)


def random_parents(members: IntArray, count: int, n_mixed: int, rng: np.random.Generator) -> IntArray:
    """``n_mixed`` different members for each new row, as far as there are as many."""
    if len(members) < n_mixed:
        return rng.choice(members, size=(count, n_mixed))
    order = rng.random((count, len(members))).argpartition(n_mixed - 1, axis=1)[:, :n_mixed]
    picked: Any = members[order]
    return np.asarray(picked)
