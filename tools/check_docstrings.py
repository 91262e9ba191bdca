"""Check the docstring of every exported name, by import: ``python tools/check_docstrings.py [ROOM …]``.

Rooms export by ``__all__``; an exported module without one exports the public names that it defines. Every exported
function and class, and every public method and property of such a class, must have a docstring in numpydoc's form.
The codes are numpydoc's: GL08 no docstring, SS03 the summary does not end with a period, PR01 a parameter is not
documented, PR02 a documented parameter does not exist, PR07 a parameter has no description, RT01 no Returns (or
Yields) section, RT03 a returned value has no description. The fields of a dataclass count as parameters and may be
documented as attributes. There is no list of exceptions.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from numpydoc.docscrape import NumpyDocString

import equipoise

Problem = tuple[str, str, str]  # code, name, what
NOTHING = (None, "None", "NoReturn", inspect.Signature.empty)


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The exported objects of a module and of the modules that it exports, by full name."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
        ]
        names += [child.name for child in pkgutil.iter_modules(getattr(module, "__path__", []))]
    for name in names:
        value = vars(module).get(name)
        if value is None:
            try:
                value = getattr(module, name)
            except AttributeError:  # a module that was not imported yet
                value = importlib.import_module(f"{module.__name__}.{name}")
        if isinstance(value, ModuleType):
            yield from exported(value)
        elif inspect.isclass(value) or inspect.isfunction(value) or hasattr(value, "__wrapped__"):
            yield f"{module.__name__}.{name}", value


def members(name: str, kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that a class has from this project."""
    fields = getattr(kind, "__dataclass_fields__", {})  # a function may be a field's default
    for base in kind.__mro__:
        if not base.__module__.startswith("equipoise"):
            continue
        for member, value in vars(base).items():
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            function = getattr(function, "fn", function)  # scikit-learn's available_if
            if isinstance(function, property) or hasattr(function, "func"):  # also a cached_property
                function = getattr(function, "fget", None) or function.func
                function = property(function)
            elif not inspect.isfunction(function):
                continue
            hidden = member.startswith("_") or member in fields
            if not hidden and inspect.getattr_static(kind, member) is value:
                yield f"{name}.{member}", function


def parameters(value: Any) -> list[str]:
    """The names that a docstring must explain."""
    if isinstance(value, property):
        return []
    if inspect.isclass(value):
        made_here = inspect.isfunction(value.__init__) and value.__init__.__module__.startswith("equipoise")
        if not (made_here or dataclasses.is_dataclass(value) or hasattr(value, "_fields")):
            return []
        if getattr(value, "_is_protocol", False):
            return []
    return [name for name in inspect.signature(value).parameters if name not in ("self", "cls")]


def check(name: str, value: Any) -> Iterator[Problem]:
    """What is wrong with one docstring."""
    function = value.fget if isinstance(value, property) else value
    text = function.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
    if not text or text.startswith(f"{getattr(value, '__name__', '')}("):  # what dataclass writes by itself
        yield "GL08", name, "no docstring"
        text = ""
    doc = NumpyDocString(inspect.cleandoc(text))
    summary = " ".join(doc["Summary"]).strip()
    if text and not summary.endswith((".", "?", ":")):
        yield "SS03", name, f"the summary ends with {summary[-20:]!r}"
    fields = doc["Parameters"] + doc["Other Parameters"]
    if inspect.isclass(value):
        fields = fields + doc["Attributes"]
    told = {one.strip().lstrip("*"): entry for entry in fields for one in entry.name.split(",")}
    wanted = parameters(value)
    for one in wanted:
        if one not in told:
            yield "PR01", name, f"{one} is not documented"
        elif not " ".join(told[one].desc).strip():
            yield "PR07", name, f"{one} has no description"
    for entry in doc["Attributes"]:
        if not " ".join(entry.desc).strip():
            yield "PR07", name, f"the attribute {entry.name} has no description"
    for entry in doc["Parameters"]:
        for one in entry.name.split(","):
            if one.strip().lstrip("*") not in wanted:
                yield "PR02", name, f"{one.strip()!r} is documented and does not exist"
    if not inspect.isclass(value) and not isinstance(value, property) and text:
        yield from _returned(name, value, doc)


def _returned(name: str, value: Any, doc: NumpyDocString) -> Iterator[Problem]:
    if inspect.signature(value).return_annotation in NOTHING:
        return
    found = doc["Returns"] + doc["Yields"]
    if not found:
        yield "RT01", name, "no Returns section"
    for one in found:
        if not " ".join(one.desc).strip():
            yield "RT03", name, f"the returned {one.type or one.name} has no description"


def check_room(room: str) -> tuple[int, list[Problem]]:
    """The number of parameters that a room's exported names have, and what is wrong with its docstrings."""
    seen: dict[int, str] = {}
    problems: list[Problem] = []
    count = 0
    for name, value in exported(importlib.import_module(room)):
        for full, one in [(name, value), *(members(name, value) if inspect.isclass(value) else [])]:
            key = id(one.fget if isinstance(one, property) else one)
            if key not in seen:
                seen[key] = full
                count += len(parameters(one))
                problems += check(full, one)
    return count, problems


def main(rooms: list[str]) -> int:
    """Print every problem and the sums of each room."""
    total = undocumented = wrong = 0
    every = [child.name for child in pkgutil.iter_modules(equipoise.__path__) if child.ispkg]
    for room in rooms or [name for name in every if not name.startswith("_")]:
        count, problems = check_room(f"equipoise.{room}")
        for code, name, what in problems:
            print(f"{code} {name}: {what}")
        missing = sum(code in ("PR01", "PR07") for code, _, _ in problems)
        print(
            f"{room}: {missing} of {count} parameters undocumented, {len(problems)} problems", file=sys.stderr
        )
        total, undocumented, wrong = total + count, undocumented + missing, wrong + len(problems)
    print(f"All: {undocumented} of {total} parameters undocumented, {wrong} problems", file=sys.stderr)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
