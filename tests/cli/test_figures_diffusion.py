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


@pytest.mark.slow
def test_settings_of_a_figure_are_passed_on_or_refused(tmp_path, capsys):
    out = ["--out", str(tmp_path)]
    assert main(["theory", "diffusion", "--figure", "7", "--set", "dimension=12", *out]) == 0
    assert main(["theory", "diffusion", "--figure", "7", "--set", "size=12", *out]) == 2
    assert "figure 7 has no setting 'size'; it has dimension" in capsys.readouterr().err
    assert main(["theory", "diffusion", "--figure", "7", "--set", "dimension=many", *out]) == 2
    assert "dimension must be a whole number" in capsys.readouterr().err
    assert main(["theory", "diffusion", "--figure", "4", "--set", "weights=0", *out]) == 2
    assert "weights must be at least 2" in capsys.readouterr().err
    assert main(["theory", "diffusion", "--list"]) == 0
    assert "dimension=50" in capsys.readouterr().out
