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
