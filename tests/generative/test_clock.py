"""What the looks say: times with intervals, the window, the checkpoint to use, in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from equipoise.generative.clock import in_words, read_clock
from equipoise.generative.training_runs import look_steps

STEPS = np.array([10, 100, 1000, 10000])


def table(fractions, errors=None, n=200):
    """Looks of two classes at the four steps."""
    rows = []
    for code, own in enumerate(fractions):
        for at, fraction in enumerate(own):
            row = {"label": code, "step": STEPS[at], "n": n, "fraction": fraction, "low": 0.0, "high": 1.0}
            rows.append(row if errors is None else {**row, "held_out_error": errors[code][at]})
    return pd.DataFrame(rows)


def test_the_first_class_the_window_and_the_checkpoint():
    clock = read_clock(
        table([[0, 0, 0.8, 1], [0, 0, 0, 0.9]], [[3, 1, 1, 2], [3, 1.2, 1, 2]]), ["bag", "shoe"]
    )
    assert clock.first == "bag"
    assert clock.sureness == 1
    assert clock.order == ("bag", "shoe")
    closes = 100 * 10 ** (1 / 3 / 0.8)
    assert clock.memorized[0].value == pytest.approx(closes)
    assert clock.memorized[0].low < closes < clock.memorized[0].high
    assert clock.window is not None
    assert not clock.window.is_open, "the shoe generalizes only at step 1000"
    assert clock.advised == 100
    words = " ".join(in_words(clock))
    assert "'bag' is memorized first" in words
    assert "There is no window: 'shoe' generalizes only at step 1,000" in words
    assert "Use the checkpoint of step 100, the best for all classes before" in words


def test_an_open_window_advises_its_best_look():
    clock = read_clock(table([[0, 0, 0, 1], [0, 0, 0, 0.9]], [[3, 1.04, 1, 2], [3, 1, 1.02, 2]]), ["a", "b"])
    assert clock.window is not None
    assert clock.window.is_open
    assert clock.window.opens == 100
    assert clock.advised == 1000, "the worst class is 2 % over its best there, and 4 % at step 100"
    assert "stop in between" in in_words(clock)[1]


def test_the_checkpoint_lies_in_the_window_even_if_a_class_was_better_before():
    errors = [[1.0, 1.6, 1.7, 2], [3, 1.5, 1.0, 2]]
    clock = read_clock(table([[0, 0, 0, 1], [0, 0, 0, 0.9]], errors), ["a", "b"])
    assert clock.window is not None
    assert clock.window.opens == 1000
    assert clock.advised == 1000, "step 100 is 60 % over at worst, but before the window"
    assert clock.worst == ("a", pytest.approx(1.7))
    assert in_words(clock)[2].endswith("there the error of 'a' on held-out images is 70% above its lowest.")


def test_nothing_memorized_and_everything_at_once():
    clock = read_clock(table([[0] * 4, [0, 0, 0, 0.1]], [[2, 1, 1, 1], [2, 1, 1, 1]]), ["a", "b"])
    assert clock.first is None
    assert np.isinf(clock.memorized[0].value)
    assert np.isnan(clock.gaps["a", "b"].value)
    assert (
        "No class is memorized within 10,000 steps (most copies at the end: 10% of 'b')" in in_words(clock)[0]
    )
    falling = read_clock(table([[0] * 4] * 2, [[4, 3, 2, 1], [2, 1, 1, 1]]), ["a", "b"])
    assert (
        in_words(falling)[1] == "The error on held-out images is still falling at the end for 'a': train on."
    )
    at_once = read_clock(table([[1] * 4, [1] * 4]), ["a", "b"])
    assert at_once.advised is None
    assert at_once.window is None
    assert "Even the first checkpoint copies" in in_words(at_once)[2]


def test_a_class_that_is_never_memorized_makes_the_gap_infinite():
    clock = read_clock(table([[0, 0, 1, 1], [0] * 4]), ["a", "b"])
    assert clock.gaps["a", "b"].value == -np.inf
    assert "'b' not within 10,000 steps" in in_words(clock)[0]
    assert clock.advised == 100, "without held-out images, the last look before"


def test_an_uncertain_order_is_called_so():
    same = table([[0, 0.2, 0.5, 1], [0, 0.2, 0.52, 1]], n=20)
    clock = read_clock(same, ["a", "b"])
    assert clock.sureness < 0.95
    assert "not certain" in in_words(clock)[0]
    assert clock.gaps["a", "b"].low < 0 < clock.gaps["a", "b"].high


def test_intervals_narrow_with_more_samples():
    widths = []
    for n in (50, 800):
        time = read_clock(table([[0, 0.2, 0.6, 1], [0] * 4], n=n), ["a", "b"]).memorized[0]
        widths.append(np.log(time.high / time.low))
    assert widths[0] / widths[1] == pytest.approx(4, rel=0.35), "by the root of sixteen"


def test_the_grid_of_looks_does_not_move_when_a_run_is_made_longer():
    short, long = look_steps(500, 5), look_steps(5000, 5)
    assert set(short) - {500} <= set(long)
    assert long[-1] == 5000
