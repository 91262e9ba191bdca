"""The study of losses learned on a meta set: its cells, its page, and a cell that runs."""

from __future__ import annotations

import pandas as pd
import pytest

from equipoise.bench import named_spec
from equipoise.bench.specs import meta_fashion_lt
from equipoise.report import Table


def test_every_size_has_its_cells():
    spec = named_spec("meta-fashion-lt")
    small = spec.cells("small")
    assert len(small) == 3 * 3 * len(meta_fashion_lt.METHODS)
    assert {cell["seed"] for cell in small[: len(small) // 3]} == {0}
    assert {cell["dataset"] for cell in spec.cells("cifar10")} == {"cifar10"}
    with pytest.raises(ValueError, match="unknown methods MAML"):
        spec.cells("small", methods=["MAML"])


def test_the_page_says_who_is_better():
    rows = [
        {"method": method, "dataset": "fashion", "ratio": 100, "seed": seed, "test_error": error + 0.1 * seed,
         "head_recall": 90.0, "tail_recall": 50.0, "train_error": 1.0, "cell_seconds": 1.0}
        for method, error in (("CE", 30.0), ("Meta-ENum", 20.0), ("Meta-ENum −h", 19.0))
        for seed in (0, 1)
    ]  # fmt: skip
    (section,) = meta_fashion_lt.page(pd.DataFrame(rows), meta_fashion_lt.SPEC)
    _, verdict = (block for block in section.blocks if isinstance(block, Table))
    assert {row[0]: row[-1] for row in verdict.rows} == {"CE": "better", "Meta-ENum −h": "worse"}


def test_a_cell_runs_twice_to_the_same_numbers():
    (cell, *_) = [c for c in meta_fashion_lt.SPEC.cells("tiny") if c["method"] == "Meta-ENum"]
    try:
        meta_fashion_lt.load_split("fashion", 10, 60, 14)
    except FileNotFoundError:
        pytest.skip("Fashion-MNIST is not on this machine")
    first = meta_fashion_lt.run_cell(**cell)
    assert first == meta_fashion_lt.run_cell(**cell)
    assert 0 < first["test_error"] < 90
