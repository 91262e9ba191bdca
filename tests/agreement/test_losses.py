"""Every loss is what its paper prints, in value and gradient."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from equipoise.losses import available_losses, get_loss
from loss_formulas import CASES, COUNTS, differences


@pytest.mark.parametrize(
    ("name", "params", "formula"), [case[1:4] for case in CASES], ids=[c[0] for c in CASES]
)
def test_value_and_gradient_are_the_papers(name, params, formula):
    value, steep = differences(name, params, formula)
    assert value < 1e-6
    assert steep < 1e-6


def test_the_table_has_every_loss():
    covered = {type(get_loss(case[1], COUNTS, **case[2])) for case in CASES}
    missing = {kind.__name__ for kind in available_losses().values()} - {kind.__name__ for kind in covered}
    assert missing == {"DisturbLabelLoss"}
    made = Path(__file__).parents[2] / "docs" / "explanation" / "losses-agreement.md"
    written = made.read_text(encoding="utf-8")
    assert all(f"| {case[0]} | `get_loss(" in written for case in CASES)
