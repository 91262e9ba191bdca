"""Checks, randomness, solutions, progress, files and priors."""

from __future__ import annotations

import errno
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equipoise._core import checks, files, priors, progress
from equipoise._core.random import as_generator, derive_seed, draw_seed
from equipoise._core.solution import ConvergenceError, ConvergenceWarning, Solution, Status


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: checks.check_array("x", [1, np.inf]), "x must be finite, got inf"),
        (lambda: checks.check_array("x", []), "x must not be empty"),
        (lambda: checks.check_fraction("share", 0), r"share must lie in \(0, 1\), got 0"),
        (lambda: checks.check_in_range("p", 2, 0, 1), r"p must lie in \[0, 1\], got 2"),
        (lambda: checks.check_positive("rate", [1, -3]), "rate must be positive, got -3"),
        (
            lambda: checks.check_counts("counts", [3, -1]),
            "counts must be whole numbers of at least 0, got -1",
        ),
        (lambda: checks.check_counts("counts", [3.5]), "got 3.5"),
        (lambda: checks.check_distribution("prior", [0.5, 0.6]), "sums to 1, got a sum of 1.1"),
        (lambda: checks.check_integer("k", 9, high=4), "k must be at most 4, got 9"),
        (lambda: checks.check_members("columns", ["z"], ["a", "b"]), "unknown 'z'; there are 'a', 'b'"),
    ],
)
def test_message_names_argument_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_wrong_types_are_type_errors():
    with pytest.raises(TypeError, match="k must be an integer, got True"):
        checks.check_integer("k", True)
    with pytest.raises(TypeError, match="x must be numeric"):
        checks.check_array("x", ["a"])
    with pytest.raises(TypeError, match="random_state"):
        as_generator("seed")  # type: ignore[arg-type]


def test_same_seed_same_bits_and_globals_untouched():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert np.array_equal(as_generator(5).random(9), as_generator(5).random(9))
    assert draw_seed(7) == 7
    assert derive_seed(1, "a") != derive_seed(1, "b")
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_legacy_random_state_moves_on():
    state = np.random.RandomState(0)
    assert as_generator(state).random() != as_generator(state).random()


def test_a_failed_solution_warns_and_raises():
    with pytest.warns(ConvergenceWarning, match="residual 0.1"):
        solution = Solution(1.0, Status.MAX_STEPS, residual=0.1, steps=3)
    with pytest.raises(ConvergenceError, match="max_steps"):
        solution.raise_if_failed()


def test_bars_are_silent_off_a_terminal(capsys):
    assert list(progress.track(range(3), "x")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_bars_show_when_asked(capsys):
    assert list(progress.track(range(3), "work", verbose=True)) == [0, 1, 2]
    assert "work" in capsys.readouterr().err


def test_a_failed_write_keeps_the_old_file(tmp_path: Path):
    path = tmp_path / "a.json"
    files.write_json(path, {"old": 1})

    def full_disk() -> None:
        with files.replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        full_disk()
    assert files.read_json(path) == {"old": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path):
    target = tmp_path / "model"
    with files.replacing_folder(target) as folder:
        (folder / "a").write_text("1")

    def fail() -> None:
        with files.replacing_folder(target) as folder:
            (folder / "b").write_text("2")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [p.name for p in target.iterdir()] == ["a"]
    with files.replacing_folder(target) as folder:
        (folder / "c").write_text("3")
    assert [p.name for p in target.iterdir()] == ["c"]
    assert [p.name for p in tmp_path.iterdir()] == ["model"]


def test_truncated_json_is_named(tmp_path: Path):
    path = tmp_path / "cut.json"
    path.write_text('{"a": ')
    with pytest.raises(ValueError, match=r"cut\.json is not readable JSON"):
        files.read_json(path)


@given(
    st.integers(2, 5).flatmap(
        lambda c: st.tuples(*[st.lists(st.floats(0.05, 1), min_size=c, max_size=c) for _ in range(3)])
    )
)
def test_correcting_there_and_back_is_the_identity(weights):
    p, trained, wanted = (np.array(w) / np.sum(w) for w in weights)
    there = priors.correct_prior(p, trained, wanted)
    assert there.sum() == pytest.approx(1)
    assert priors.correct_prior(there, wanted, trained) == pytest.approx(p, abs=1e-9)


def test_weighted_prior_counts_mass():
    codes = np.array([0, 0, 1])
    assert priors.weighted_prior(codes, 3) == pytest.approx([2 / 3, 1 / 3, 0])
    assert priors.weighted_prior(codes, 2, [1, 1, 2]) == pytest.approx([0.5, 0.5])


def test_of_very_many_names_those_most_like_the_wrong_one_are_offered():
    known = [f"set-{i}" for i in range(200)] + ["mammography"]
    with pytest.raises(ValueError, match="mamography") as error:
        checks.check_choice("data set", "mamography", known)
    assert "'mammography'" in str(error.value)
    assert "and 193 more" in str(error.value)
    with pytest.raises(ValueError, match=r"'mammography'.*and 193 more"):
        checks.check_members("dataset", ["mamography"], known)
