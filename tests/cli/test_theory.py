"""The figure command: lists, refuses what does not exist, and finds figures by name."""

from __future__ import annotations

import pytest

from equipoise.cli import main
from equipoise.cli.theory import figures, models


def test_every_figure_has_a_caption():
    for model in models():
        for name, draw in figures(model).items():
            assert (draw.__doc__ or "").strip(), f"figure {name} of {model} has no caption"


def test_unknown_model_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["theory", "no-such-model"])
    assert ended.value.code == 2


@pytest.mark.parametrize("model", models())
def test_unknown_figure_is_answered_with_what_exists(model, capsys):
    assert main(["theory", model, "--figure", "no-such-figure"]) == 2
    assert "--figure must be one of" in capsys.readouterr().err


def test_a_figure_is_written(tmp_path, capsys):
    assert main(["theory", "anomaly", "--figure", "13", "--out", str(tmp_path)]) == 0
    path = tmp_path / "theory-anomaly-figure-13.png"
    assert str(path) in capsys.readouterr().out
    assert path.read_bytes().startswith(b"\x89PNG")


def test_figures_are_listed(capsys):
    assert main(["theory", "anomaly", "--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"{number:>4}  " in listed for number in (3, 4, 5, 8, 9, 10, 11, 12, 13))
