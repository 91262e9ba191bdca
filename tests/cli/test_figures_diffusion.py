"""The diffusion figures are drawn and hold something."""

import pytest

from equipoise.cli import main
from equipoise.cli.theory import figures

pytest.importorskip("matplotlib")


def test_all_theory_figures_of_the_paper_are_there():
    assert list(figures("diffusion")) == ["1", "2", "3", "4", "7", "8", "9", "10"]


@pytest.mark.parametrize(
    "name",
    [
        "8",
        *(
            pytest.param(n, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])
            for n in ["1", "2", "3", "4", "7", "9", "10"]
        ),
    ],
)
def test_figures_are_drawn(name, tmp_path):
    assert main(["theory", "diffusion", "--figure", name, "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"theory-diffusion-figure-{name}.png").stat().st_size > 20_000
