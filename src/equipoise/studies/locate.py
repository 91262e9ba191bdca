"""Where studies are: ``smoke`` inside the package, all others in the nearest ``studies/`` folder, or by a path."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from equipoise._core.checks import check_type
from equipoise.studies.spec import Spec

FOLDER_VARIABLE = "EQUIPOISE_STUDIES"
_BUILT_IN = ("smoke",)
_SPEC_FILE = "spec.py"
_PACKAGE = "equipoise_studies_"


def studies_folder() -> Path | None:
    """Return the folder that holds the studies, or ``None`` if there is none.

    It is what the environment variable ``EQUIPOISE_STUDIES`` names, or else the nearest folder called ``studies``,
    in the current folder or one of its parents, in which some subfolder has a ``spec.py``, or else that of the
    source tree from which this package runs.

    Raises
    ------
    FileNotFoundError
        If ``EQUIPOISE_STUDIES`` does not name a folder.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise FileNotFoundError(f"{FOLDER_VARIABLE} must name a folder, got {named!r}")
        return Path(named).resolve()
    here = Path.cwd()
    for parent in (here, *here.parents, Path(__file__).resolve().parents[3]):
        folder = parent / "studies"
        if any(folder.glob(f"*/{_SPEC_FILE}")):
            return folder
    return None


def spec_names() -> list[str]:
    """Return the names of the studies that :func:`named_spec` finds.

    Returns
    -------
    list of str
        The names, sorted.

    Examples
    --------
    >>> "smoke" in spec_names()
    True
    """
    folder = studies_folder()
    found = [path.parent.name for path in folder.glob(f"*/{_SPEC_FILE}")] if folder else []
    return sorted({*_BUILT_IN, *found})


def _study_folder(name: str) -> Path | None:
    """Return the folder in which a study of that name keeps its results, or ``None`` outside a source tree."""
    folder = studies_folder()
    return folder / name if folder is not None and (folder / name).is_dir() else None


def named_spec(name: str) -> Spec:
    """Return the study of that name.

    Parameters
    ----------
    name : str
        The name of a folder of :func:`studies_folder`, or ``"smoke"``. Underscores count as hyphens.

    Returns
    -------
    Spec
        The study.

    Raises
    ------
    ValueError
        If there is no such study, or if its ``spec.py`` cannot be loaded or describes another study.

    Examples
    --------
    >>> named_spec("smoke").name
    'smoke'
    """
    name = check_type("name", name, str).replace("_", "-")
    known = spec_names()
    if name not in known:
        where = f" in {studies_folder() or 'any folder studies/ here or above'} (see {FOLDER_VARIABLE})"
        raise ValueError(f"no study is named {name!r}; there are {', '.join(known)}{where}")
    if name in _BUILT_IN:
        spec = _spec_of(importlib.import_module(f"equipoise.studies.{name}"), name)
        return replace(spec, folder=_study_folder(name))
    folder = studies_folder()
    assert folder is not None  # the name was found there
    return _spec_from_file(folder / name / _SPEC_FILE, name)


def load_spec(source: str | os.PathLike[str]) -> Spec:
    """Return a study by its name, or from the path of its folder, its ``spec.py`` or a ``.toml`` file.

    A ``spec.py`` is a program and is run: load only studies that you trust.

    Parameters
    ----------
    source : str or path
        The name or the path.

    Returns
    -------
    Spec
        The study.

    Raises
    ------
    ValueError
        If there is no such study or it cannot be loaded.
    FileNotFoundError
        If ``source`` is a path and nothing is there.

    Examples
    --------
    >>> load_spec("smoke").name
    'smoke'
    """
    text = os.fspath(source)
    path = Path(text)
    if text.endswith(".toml"):
        from equipoise.studies.toml import spec_from_toml

        return spec_from_toml(path)
    if (path / _SPEC_FILE).is_file():
        return _spec_from_file(path / _SPEC_FILE)
    if text.endswith(".py") or len(path.parts) != 1:
        if not path.is_file():
            raise FileNotFoundError(f"no such study: {path} (a folder with a {_SPEC_FILE}, or such a file)")
        return _spec_from_file(path)
    return named_spec(text)


def study_module(name: str, module: str = "spec") -> ModuleType:
    """Return a module of a study in :func:`studies_folder`, imported.

    The module can import its neighbors (``from .page import page``) and what studies share
    (``from ..shared.tables import mean_and_spread``).
    """
    folder = studies_folder()
    if folder is None or not (folder / name / f"{module}.py").is_file():
        raise ValueError(f"there is no {module}.py of a study {name!r} in {folder or 'any folder studies/'}")
    return _import_file(folder / name / f"{module}.py")


def _spec_from_file(path: Path, name: str | None = None) -> Spec:
    path = path.resolve()
    spec = _spec_of(_import_file(path), name)
    page = path.parent / "page.py"
    if spec.page is None and path.name == _SPEC_FILE and page.is_file():
        spec = replace(spec, page=_PageFile(str(page)))
    return replace(spec, run_cell=_CellFile(str(path), spec.name), folder=path.parent)


def _spec_of(module: ModuleType, name: str | None) -> Spec:
    spec = getattr(module, "SPEC", None)
    if not isinstance(spec, Spec) or (name is not None and spec.name != name):
        raise ValueError(f"{module.__file__} must define SPEC = Spec(name={name or '...'!r}, ...)")
    return spec


def _import_file(path: Path) -> ModuleType:
    """Import ``studies/<name>/<file>.py`` as ``<package of the folder studies>.<name>.<file>``.

    The import system takes names with hyphens, so relative imports work among the files of one ``studies`` folder.
    """
    path = path.resolve()
    root, parts = path.parent.parent, (path.parent.name, path.stem)
    if any("." in part for part in parts):
        raise ValueError(f"the folder and the file of a study must have no dot in their names, got {path}")
    package = f"{_PACKAGE}{hashlib.blake2b(str(root).encode(), digest_size=6).hexdigest()}"
    if package not in sys.modules:
        made = ModuleType(package, f"The studies in {root}.")
        made.__path__ = [str(root)]
        sys.modules[package] = made
    try:
        return importlib.import_module(".".join((package, *parts)))
    except Exception as error:
        raise ValueError(f"the study {path} cannot be loaded: {type(error).__name__}: {error}") from error


def loaded_folders() -> list[str]:
    """Return the folders from which this process has loaded studies."""
    return [
        path
        for name, module in list(sys.modules.items())
        if name.startswith(_PACKAGE) and "." not in name
        for path in module.__path__
    ]


@dataclass(frozen=True)
class _CellFile:
    """The ``run_cell`` of a study's file: sent to a worker by path and name, and loaded there."""

    path: str
    name: str

    def __call__(self, **settings: Any) -> Mapping[str, Any]:
        path = Path(self.path)
        if not path.is_file():  # another machine has its studies elsewhere
            found = _study_folder(self.name)
            path = (found or path.parent) / _SPEC_FILE
        spec: Spec = _import_file(path).SPEC
        return spec.run_cell(**settings)


@dataclass(frozen=True)
class _PageFile:
    """The ``page`` function of a study's ``page.py``, loaded when a page is made."""

    path: str

    def __call__(self, results: Any, spec: Spec) -> Sequence[Any]:
        return _import_file(Path(self.path)).page(results, spec)
