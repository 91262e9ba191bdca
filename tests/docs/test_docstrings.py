"""The checker of docstrings finds what it is there to find."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("numpydoc")

_FILE = Path(__file__).parents[2] / "tools" / "check_docstrings.py"
_SPEC = importlib.util.spec_from_file_location("check_docstrings", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
checker = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(checker)


def codes(value: object) -> list[str]:
    return sorted(code for code, _, _ in checker.check("name", value))


def whole(a: int, *, b: int = 0) -> int:
    """Add two numbers.

    Parameters
    ----------
    a, b : int
        The numbers.

    Returns
    -------
    int
        Their sum.
    """
    return a + b


def bare(a: int) -> int:
    return a


def half(a: int, b: int) -> int:
    """Add two numbers

    Parameters
    ----------
    a : int
    c : int
        A parameter that is not there.
    """
    return a + b


@dataclass
class Fields:
    """Two fields.

    Attributes
    ----------
    one : int
        The first.
    """

    one: int
    two: int = 0

    def undocumented(self) -> None:
        pass


@dataclass
class Silent:
    one: int


def test_a_whole_docstring_passes():
    assert codes(whole) == []


def test_what_is_missing_is_named():
    assert codes(bare) == ["GL08", "PR01"]
    assert codes(half) == ["PR01", "PR02", "PR07", "RT01", "SS03"]


def test_the_fields_of_a_dataclass_are_parameters():
    assert codes(Fields) == ["PR01"]
    assert codes(Silent) == ["GL08", "PR01"]


def test_methods_are_found_only_where_this_project_defines_them():
    Fields.__module__ = "equipoise.somewhere"
    assert [name for name, _ in checker.members("Fields", Fields)] == ["Fields.undocumented"]


def test_a_method_that_a_base_overrides_is_checked_once():
    class Between(Fields):
        def undocumented(self) -> None:
            """Documented here."""

    class Last(Between):
        pass

    for kind in (Fields, Between, Last):
        kind.__module__ = "equipoise.somewhere"
    assert [value.__doc__ for _, value in checker.members("Last", Last)] == ["Documented here."]


def test_a_room_is_walked_by_what_it_exports():
    count, problems = checker.check_room("equipoise.cli")
    assert count == 1
    assert problems == []
