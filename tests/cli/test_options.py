"""What all commands share: standard input, JSON, quiet and verbose, config files, completion, quick refusals."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from equipoise.cli import build_parser, main
from equipoise.cli._options import leaves, with_config

HEAVY = {"lightgbm", "torch", "sklearn", "numpy", "pandas", "matplotlib"}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    rng = np.random.default_rng(0)
    ill = rng.random(300) < 0.15
    frame = pd.DataFrame(
        {"a": rng.normal(ill, 1), "b": rng.normal(0, 1, 300), "ill": np.where(ill, "yes", "no")}
    )
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def give_stdin(monkeypatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))


def diagnosed(*words: str) -> list[str]:
    return ["diagnose", *words, "--target", "ill", "--questions", "counts,overlap"]


@pytest.mark.parametrize(
    "words",
    [["--version"], ["report", "no-such.csv"], ["predict", "no-such", "x.csv"], ["diagnose", "no-such"]],
)
def test_nothing_heavy_is_loaded_for_a_version_or_a_missing_file(words):
    code = f"""
import sys
from equipoise.cli import main
try: main({words!r})
except SystemExit: pass
print(sorted({HEAVY!r} & set(sys.modules)))"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.splitlines()[-1] == "[]"
    assert words == ["--version"] or "no such file or folder: no-such" in done.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version_is_told(flag, capsys):
    with pytest.raises(SystemExit) as ended:
        main([flag])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("equipoise ")


def test_without_a_command_there_is_help(capsys):
    assert main([]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("usage: equipoise")
    assert said.err == ""


def test_a_diagnosis_answers_every_question(rows, tmp_path, capsys):
    assert main([*diagnosed(str(rows)), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "How rare is the rarest class?" in said
    assert "diagnosis.html" in said
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".html", ".json", ".md"]


def test_an_unknown_question_is_refused(rows, capsys):
    assert main(["diagnose", str(rows), "--target", "ill", "--questions", "meaning"]) == 2
    assert "'meaning'" in capsys.readouterr().err


def test_json_is_all_that_stands_on_standard_output(rows, tmp_path, capsys):
    assert main([*diagnosed(str(rows)), "--json", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert [finding["slug"] for finding in found["findings"]] == ["counts", "overlap"]
    assert sum(found["counts"].values()) == 300
    assert found["files"]["html"] == str(tmp_path / "diagnosis.html")
    assert "Page: " in said.err


def test_quiet_says_no_more_than_the_result(rows, tmp_path, capsys):
    assert main([*diagnosed(str(rows)), "-q", "--json", "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)
    assert said.err == ""


def test_verbose_tells_the_time_and_the_place_of_an_error(rows, monkeypatch, capsys):
    monkeypatch.delenv("EQUIPOISE_PROGRESS", raising=False)
    assert main([*diagnosed(str(rows)), "-v"]) == 0
    said = capsys.readouterr().err
    assert said.rstrip().endswith(" s")
    assert "diagnosing" in said
    with pytest.raises(FileNotFoundError):
        main(["diagnose", "no-such", "-v"])


@pytest.mark.parametrize("kind", ["csv", "parquet", "npz"])
def test_standard_input_is_read_as_a_file_would_be(kind, rows, tmp_path, monkeypatch, capsys):
    frame = pd.read_csv(rows)
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        np.savez(path, X=frame[["a", "b"]].to_numpy(), ill=(frame["ill"] == "yes").to_numpy(dtype=int))
    assert main([*diagnosed(str(path)), "--json"]) == 0
    expected = json.loads(capsys.readouterr().out)
    give_stdin(monkeypatch, path.read_bytes())
    assert main([*diagnosed("-"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    for finding in expected["findings"] + found["findings"]:
        finding["values"].pop("seconds")
    assert found == expected


def test_an_empty_standard_input_is_refused(monkeypatch, capsys):
    give_stdin(monkeypatch, b"")
    assert main(diagnosed("-")) == 2
    assert "standard input is empty" in capsys.readouterr().err


def parsed(folder, text: str, *words: str):
    path = folder / "report.toml"
    path.write_text(text)
    parser = build_parser()
    return parser.parse_args(with_config(parser, [*words, "--config", str(path)]))


def test_a_config_file_holds_the_long_options(tmp_path):
    args = parsed(
        tmp_path, 'target = "ill"\ncost = "fp=1,fn=20"\nseed = 3\ndrop = ["a", "b"]\nquiet = true', "report"
    )
    assert (args.target, args.cost, args.seed, args.drop, args.verbosity) == (
        "ill",
        "fp=1,fn=20",
        3,
        "a,b",
        -1,
    )


def test_the_command_line_wins_over_the_config_file(tmp_path):
    text = 'target = "ill"\nseed = 3\nquiet = true'
    args = parsed(tmp_path, text, "report", "--target", "well", "-v")
    assert (args.target, args.seed, args.verbosity) == ("well", 3, 1)
    text = 'figure = ["1", "2"]'
    assert parsed(tmp_path, text, "theory", "anomaly").figure == ["1", "2"]
    assert parsed(tmp_path, text, "theory", "anomaly", "--figure", "3").figure == ["3"]


def test_a_config_file_reaches_a_command_of_two_words(tmp_path):
    assert parsed(tmp_path, 'size = "paper"', "bench", "run", "smoke").size == "paper"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tarket = 1", "has no option 'tarket'; it has alerts, "),
        ("json = 1", "json must be true or false, got 1"),
        ("cost = true", "cost must be a text, a number"),
        ("target = ", "is not readable TOML"),
    ],
)
def test_a_wrong_config_file_is_refused(text, words, tmp_path, capsys):
    path = tmp_path / "report.toml"
    path.write_text(text)
    assert main(["report", "--config", str(path)]) == 2
    assert words in capsys.readouterr().err
    assert main(["report", "--config", str(tmp_path / "gone.toml")]) == 2


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_completion_knows_every_command(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(f"{word}" in script for word in ("report", "diagnose", "--cost", "--json", "--config"))


def test_every_command_can_be_quiet_verbose_and_configured():
    for leaf in leaves(build_parser()):
        assert {"-q", "-v", "--config"} <= leaf._option_string_actions.keys(), leaf.prog


@pytest.mark.parametrize("variable", ["NO_COLOR", "FORCE_COLOR"])
def test_nothing_is_colored(variable, monkeypatch, capsys):
    monkeypatch.setenv(variable, "1")
    assert main([]) == 0
    assert main(["theory", "anomaly", "--figure", "nine"]) == 2
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err


def test_figures_are_listed_as_json(capsys):
    assert main(["theory", "anomaly", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {str(number) for number in range(1, 19)} <= {one["figure"] for one in listed}
