"""What a study is: a pure function of JSON-able settings, a grid of settings, and the paper's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equipoise._core.checks import check_choice
from equipoise.studies.grid import Grid, Settings, change, expand, select


@dataclass(frozen=True)
class Spec:
    """A study. The file ``studies/<name>/spec.py`` defines one as ``SPEC`` to be run by its name.

    Parameters
    ----------
    name : str
        What the command calls it: the name of the study's folder.
    title : str
        One line for the page and the list.
    run_cell : callable
        ``run_cell(**settings) -> dict`` of JSON-able results (numbers, texts, lists for curves; numpy is
        converted). Module-level and pure: the same settings give the same bits, so a resumed run equals an
        uninterrupted one. A result that is a measurement of this run (a time) has a name ending in
        ``_seconds``. Result names must differ from the settings'. Heavy imports go inside.
    grid : mapping, sequence of mappings, or callable
        Axes (lists) and fixed settings (anything else); see :func:`equipoise.studies.grid.expand`.
        A callable ``cells(**overrides)`` yields the settings itself.
    sizes : mapping
        Overrides of the grid by the name of a size. ``"small"`` (the default size) fits two cores,
        ``"paper"`` is the paper's own. A callable is asked when the cells are wanted.
    reference : str
        The paper and its tables.
    paper : mapping
        The paper's numbers, for the page.
    differs : str or callable
        What differs from the paper, for the page; a callable makes it from the DataFrame of finished cells.
    page : callable, optional
        ``page(results, spec)`` with a DataFrame of finished cells (a column per setting and a result)
        returns the study's own sections; the generic tables follow if ``metrics`` are named. A file
        ``page.py`` beside ``spec.py`` with a function ``page`` is found by itself.
    metrics : sequence of str
        The results that the generic tables show; empty means every number, or none beside a ``page``. The
        best is marked where the name tells what is better (a metric of Equipoise, an accuracy, an error).
    requires_data : sequence of str, or callable
        Data that must be on this machine before anything runs: names of ``studies.data`` (``"ecoli"``,
        ``"mvtec-bottle"``, ...), or ``"mnist"``, ``"fashion-mnist"``, ``"cifar10"``, ``"pneumoniamnist"``.
        A callable is given the cells that are asked for, and says what they need.
    check : callable, optional
        ``check(cells)`` raises ValueError on settings that name what does not exist.
    folder : path, optional
        Where the study keeps its results and pages; whoever loads it from a source tree sets it.

    Examples
    --------
    >>> spec = Spec(name="squares", title="Squares", run_cell=_square, grid={"x": [1, 2, 3], "seed": 0},
    ...             sizes={"small": {"x": [1, 2]}, "paper": {}})
    >>> spec.cells()
    [{'x': 1, 'seed': 0}, {'x': 2, 'seed': 0}]
    >>> len(spec.cells("paper"))
    3
    """

    name: str
    title: str
    run_cell: Callable[..., Mapping[str, Any]]
    grid: Grid
    sizes: Mapping[str, Mapping[str, Any] | Callable[[], Mapping[str, Any]]] = field(
        default_factory=lambda: {"small": {}, "paper": {}}
    )
    reference: str = ""
    paper: Mapping[str, Any] = field(default_factory=dict)
    differs: str | Callable[[Any], str] = ""
    page: Callable[..., Sequence[Any]] | None = None
    metrics: Sequence[str] = ()
    requires_data: Sequence[str] | Callable[[list[Settings]], Sequence[str]] = ()
    check: Callable[[list[Settings]], None] | None = None
    folder: Path | None = None

    def __post_init__(self) -> None:
        if not is_study_name(self.name):
            raise ValueError(f"a study's name must be letters, digits and hyphens, got {self.name!r}")

    def default_store(self, size: str = "small") -> Path:
        """The file for the results of a size: in the study's own folder, or in the current one if it has none.

        Parameters
        ----------
        size : str
            A size of the study.

        Returns
        -------
        Path
            The file.
        """
        stem = self.name if self.folder is None else "results"
        return (self.folder or Path()) / f"{stem}{'' if size == 'small' else f'-{size}'}.sqlite"

    def cells(
        self,
        size: str = "small",
        only: Mapping[str, Sequence[str]] | None = None,
        changed: Mapping[str, Sequence[Any]] | None = None,
        **overrides: Any,
    ) -> list[Settings]:
        """The settings of every cell at a size, or of those that ``only`` selects, checked.

        Parameters
        ----------
        size : str
            A size of the study.
        only : mapping of str to sequence of str, optional
            Only the cells with these settings.
        changed : mapping of str to sequence, optional
            Settings that take other values than the grid's, as :func:`run_study` says.
        **overrides : Any
            Settings to use instead of the grid's.

        Returns
        -------
        list of dict
            The settings of each cell.
        """
        check_choice("size", size, self.sizes)
        chosen = self.sizes[size]
        cells = expand(self.grid, {**(chosen() if callable(chosen) else chosen), **overrides})
        if not cells:
            raise ValueError(f"study {self.name!r} has no cells at size {size!r}")
        cells = select(change(cells, changed or {}), only or {})
        if self.check is not None:
            self.check(cells)
        return cells


def is_study_name(name: Any) -> bool:
    """Whether a text can name a study, and so a folder and files: letters, digits, hyphens and underscores.

    >>> is_study_name("losses-fresh"), is_study_name("../../ESCAPED"), is_study_name("")
    (True, False, False)
    """
    return isinstance(name, str) and name.replace("-", "").replace("_", "").isalnum()


def _square(x: float, seed: int) -> dict[str, float]:
    return {"square": x * x}
