"""The figure command: lists, refuses what does not exist, and finds figures by name."""

from __future__ import annotations

import pytest

from equipoise.cli import main
from equipoise.cli.theory import figures, models, studies
from equipoise.studies import spec_names


def test_every_figure_has_a_caption():
    for model in models():
        for name, draw in figures(model).items():
            assert (draw.__doc__ or "").strip(), f"figure {name} of {model} has no caption"


def test_unknown_model_is_refused(capsys):
    assert main(["theory", "no-such-model"]) == 2
    assert "MODEL must be one of 'anomaly', 'diffusion', 'effective_number'" in capsys.readouterr().err


def test_without_the_studies_the_command_says_where_the_figures_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EQUIPOISE_STUDIES")
    monkeypatch.setattr("equipoise.studies.locate.__file__", str(tmp_path / "a" / "b" / "c" / "locate.py"))
    assert main(["theory", "anomaly", "--list"]) == 2
    assert "run this command in a clone of the repository" in capsys.readouterr().err


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
    assert all(f"{number:>11}  " in listed for number in range(1, 19))


def test_an_experiment_is_answered_with_its_study(tmp_path, capsys):
    assert main(["theory", "anomaly", "--figure", "15", "--out", str(tmp_path)]) == 0
    assert "equipoise bench run anomaly-sgd" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", ["1", "2", "6", "7"])
def test_quick_figures_of_the_anomaly_model_are_drawn(number, tmp_path):
    assert main(["theory", "anomaly", "--figure", number, "--out", str(tmp_path)]) == 0
    assert (tmp_path / f"theory-anomaly-figure-{number}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("number", ["1", "2", "3", "4"])
def test_figures_of_effective_numbers_are_drawn(number, tmp_path):
    assert main(["theory", "effective_number", "--figure", number, "--out", str(tmp_path)]) == 0
    drawn = tmp_path / f"theory-effective_number-figure-{number}.png"
    assert drawn.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("model", models())
def test_every_study_of_a_figure_exists(model):
    for name in {text.split()[0] for text in studies(model).values()}:
        assert name in spec_names()


@pytest.mark.parametrize("number", ["2", "3", "7", "8"])
def test_a_refused_figure_leaves_no_folder(tmp_path, capsys, number):
    out = tmp_path / "figures"
    assert main(["theory", "diffusion", "--figure", number, "--set", "dimension=0", "--out", str(out)]) == 2
    assert "dimension must be at least 2" in capsys.readouterr().err
    assert not out.exists()
