"""Odd arguments for every public function: only our errors, a ValueError or the like leave it, and soon."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from equipoise._core.solution import ConvergenceError

#: All that exports functions but the command, which has a test of its own.
MODULES = [
    "advisor", "classifiers", "datasets", "diagnosis", "generative", "losses", "losses.functional", "metrics",
    "metrics.significance", "networks", "oversampling", "report", "studies", "theory.anomaly", "theory.diffusion",
    "theory.effective_number", "theory.mixing", "training",
]  # fmt: skip
ALLOWED = (ValueError, TypeError, OSError, ImportError, NotImplementedError, ConvergenceError)
SECONDS, ENOUGH = 20, 60  # of the processor, for a call and for a function
NAN = float("nan")
SMALL: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 0.5, 0.1, 1.5, -0.6, 1e-300, 1e300, NAN, float("inf"), 2**70, 1j,
    "", "overlap", "micro", "\x1b[31m", b"x", (), [], {}, {"fp": 1}, object, slice(None),
]  # fmt: skip
ARRAYS: list[Any] = [
    [0, 1, 1, 0], [0, 1, 2, 1], [0.2, 0.9, 0.6, 0.1], [0.25, 0.25, 0.5], [1, 10, 100], [0.0], [NAN, 1.0],
    ["a", "b"],
    [[0.8, 0.2], [0.1, 0.9], [0.4, 0.6], [0.7, 0.3]], [[1, 2], [3]], [None, 1], [[]], [-1, 5], [0, 0, 0, 0],
    np.array(["x", 1, None], dtype=object), np.zeros((0, 2)), np.zeros((2, 2, 2)), np.eye(3), np.array(3.0),
    np.array([True, False, True, True]), np.array([2**63 - 1, -(2**63)]), np.float32(0.3),
    np.array(["2020"], "M8[Y]"),
    pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]}), pd.Series([0, 1, 1, 0]), pd.DataFrame(),
]  # fmt: skip
ODD = st.sampled_from([*SMALL, *ARRAYS])


def functions() -> list[Any]:
    found: dict[int, Any] = {}
    for name in MODULES:
        module = importlib.import_module(f"equipoise.{name}")
        for member in getattr(module, "__all__", vars(module)):
            value = getattr(module, member)
            public = not member.startswith("_") and getattr(value, "__module__", "").startswith("equipoise.")
            if inspect.isfunction(value) and public:
                found[id(value)] = value
    return sorted(found.values(), key=lambda function: (function.__module__, function.__name__))


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Names of files are among the odd arguments."""
    monkeypatch.chdir(tmp_path)


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Of the processor's time, so that a busy machine is no failure."""

    def late(number: int, frame: Any) -> None:
        raise AssertionError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@st.composite
def calls(draw: Any, function: Any) -> tuple[list[Any], dict[str, Any]]:
    arguments, named = [], {}
    for parameter in inspect.signature(function).parameters.values():
        required = parameter.default is parameter.empty
        if (
            parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            or parameter.name == "download"
        ):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY or not required:
            if required or draw(st.integers(0, 3)) == 0:
                named[parameter.name] = draw(ODD)
        else:
            arguments.append(draw(ODD))
    return arguments, named


def attack(function: Any, arguments: list[Any], named: dict[str, Any]) -> bool:
    """Call it; whether the error, if any, is said by Equipoise and not by a library beneath."""
    try:
        with warnings.catch_warnings(), within(SECONDS), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            function(*arguments, **named)
    except ALLOWED as error:
        last = traceback.extract_tb(error.__traceback__)[-1].filename
        return "equipoise" in last or last == __file__
    return True


def fuzz(function: Any, examples: int, tally: Callable[[str, int, int], None]) -> None:
    clear: list[bool] = []
    started = time.process_time()

    @settings(
        max_examples=examples, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(calls(function))
    def run(call: tuple[list[Any], dict[str, Any]]) -> None:
        if time.process_time() - started < ENOUGH:
            clear.append(attack(function, *call))

    run()
    tally("odd calls of public functions: only our types of errors", len(clear), len(clear))
    tally("odd calls of public functions: in our own words", len(clear), sum(clear))


@pytest.mark.parametrize("function", functions(), ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_odd_arguments(function, tally):
    fuzz(function, 3, tally)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("function", functions(), ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_many_odd_arguments(function, tally):
    fuzz(function, 55, tally)
