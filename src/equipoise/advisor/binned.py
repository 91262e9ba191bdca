"""Rows of a large table as LightGBM keeps them: read and binned block by block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np

from equipoise._core.checks import BoolArray
from equipoise.datasets.blocks import Block


def binned(blocks: Sequence[tuple[Block, BoolArray]], encoder: Any, reference: Any) -> Any:
    """A data set in which a value takes a byte, with the bins of another one.

    Parameters
    ----------
    blocks : sequence of (Block, array of bool)
        With the rows of each to use.
    encoder : TableEncoder
    reference : lightgbm.Dataset
        Whose bins to use.
    """
    rows: list[Any] = [_Encoded(block, own, encoder) for block, own in blocks if own.any()]
    y = np.concatenate([block.y[own] for block, own in blocks])
    return lgb.Dataset(rows, y, reference=reference, params=reference.params).construct()


class _Encoded(lgb.Sequence):
    """One block of rows, read and encoded when LightGBM asks for it."""

    def __init__(self, block: Block, kept: BoolArray, encoder: Any) -> None:
        self.block, self.kept, self.encoder = block, kept, encoder
        self.batch_size = int(kept.sum())

    def __len__(self) -> int:
        return self.batch_size

    def __getitem__(self, index: Any) -> Any:
        """The whole block, which is what LightGBM asks for with this batch size."""
        encoded = self.encoder.transform(self.block.read())
        return np.ascontiguousarray(encoded if self.kept.all() else encoded[self.kept])
