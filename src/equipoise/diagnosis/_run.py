"""Asking all questions."""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic, perf_counter, process_time
from types import ModuleType
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from equipoise._core.checks import check_members
from equipoise._core.progress import Progress
from equipoise._core.random import RandomState, draw_seed
from equipoise.datasets.table import DataTable
from equipoise.diagnosis._contract import Answer, Finding, Sample
from equipoise.diagnosis._render import render
from equipoise.report import Block, Note, Section


@dataclass(frozen=True)
class Diagnosis:
    """All findings, as a section of a report or as plain values.

    Attributes
    ----------
    findings : tuple of Finding
        The answers, in the order of the questions.
    left_out : tuple of str
        The questions that there was no time for.
    """

    findings: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()

    def __getitem__(self, slug: str) -> Finding:
        return next(f for f in self.findings if f.slug == slug)

    def section(self) -> Section:
        """Each question with its answer and its pictures.

        Returns
        -------
        Section
            A section for a :class:`~equipoise.report.Report`.
        """
        blocks: list[Block] = []
        for finding in self.findings:
            blocks.append(Note(finding.answer, finding.level, finding.question))
            blocks += finding.blocks
        if self.left_out:
            blocks.append(Note(f"Not asked, for lack of time: {' '.join(self.left_out)}"))
        return Section("Diagnosis", blocks)

    @property
    def warnings(self) -> list[Finding]:
        """The findings whose level is ``"warning"``."""
        return [f for f in self.findings if f.level == "warning"]

    def to_json(self) -> list[dict[str, Any]]:
        """The findings as plain values, without figures.

        Returns
        -------
        list of dict
            A ``slug``, ``question``, ``answer``, ``level`` and ``values`` for each finding.
        """
        return [
            {"slug": f.slug, "question": f.question, "answer": f.answer, "level": f.level, "values": f.values}
            for f in self.findings
        ]


def _questions() -> dict[str, ModuleType]:
    package = importlib.import_module("equipoise.diagnosis")
    names = [m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_")]
    modules = {name: importlib.import_module(f"equipoise.diagnosis.{name}") for name in names}
    return dict(sorted(modules.items(), key=lambda item: item[1].ORDER))


def question_names() -> list[str]:
    """The questions that a diagnosis asks, in order.

    Returns
    -------
    list of str
        The names, as :func:`diagnose` takes them.
    """
    return list(_questions())


def diagnose(
    X: Any,
    y: npt.ArrayLike | None = None,
    *,
    positive: Any = None,
    groups: npt.ArrayLike | None = None,
    time: npt.ArrayLike | None = None,
    questions: Iterable[str] | None = None,
    seconds: float = np.inf,
    random_state: RandomState = 0,
    verbose: bool | None = None,
) -> Diagnosis:
    """Ask what is hard about the data, beyond the class counts.

    Parameters
    ----------
    X : array, DataFrame or DataTable
        The rows, or a :class:`~equipoise.datasets.DataTable` with rows and labels.
    y : array, optional
        The labels; not needed for a table.
    positive : label, optional
        The label to find; with many classes the question becomes "this one or another?".
    groups, time : array, optional
        Equal values for rows that belong together, and when each row was seen; a table has its own.
    questions : iterable of str, optional
        Names out of :func:`question_names`; by default all that apply: drift needs the time.
    seconds : float
        Questions that would take longer than this together are left out, the slow ones first, and named.
    random_state : int, generator or None
        The seed of the subsamples that the costly questions work on.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Returns
    -------
    Diagnosis
        The findings, and the questions that were left out.

    Raises
    ------
    ValueError
        If a question is not known or the labels have fewer than two classes.

    Notes
    -----
    A question that fails is answered by a note that says so; the others go on.

    Examples
    --------
    >>> from equipoise.datasets import load_wine_imbalanced
    >>> data = load_wine_imbalanced()
    >>> diagnose(data.X, data.y, questions=["counts"]).findings[0].level
    'warning'
    """
    table = X if isinstance(X, DataTable) else DataTable.from_arrays(X, cast(Any, y), positive, groups, time)
    sample = Sample(table, draw_seed(random_state))
    known = _questions()
    if questions is None:
        wanted = [name for name, module in known.items() if getattr(module, "applies", _always)(sample)]
    else:
        wanted = list(questions)
    check_members("questions", wanted, list(known))
    findings = {}
    started, worked = monotonic(), process_time()
    # One thread: on samples as small as these, several wait for each other, long on a busy machine.
    with Progress(len(wanted), "diagnosing", verbose) as bar, threadpool_limits(1):
        for name in sorted(wanted, key=lambda name: _usual_seconds(known[name])):
            bar.advance(0, note=name)
            spent = monotonic() - started
            pace = max(1.0, spent / max(process_time() - worked, 0.1))  # others may want the processor too
            if spent + pace * _usual_seconds(known[name]) <= seconds:
                findings[name] = _ask(name, known[name], sample)
            bar.advance()
    left_out = tuple(known[name].QUESTION for name in wanted if name not in findings)
    return Diagnosis(tuple(findings[name] for name in wanted if name in findings), left_out)


def _always(sample: Sample) -> bool:
    return True


def _usual_seconds(module: ModuleType) -> float:
    """What a question takes on a table of some thousand rows."""
    return float(getattr(module, "USUAL_SECONDS", 0.5))


def _ask(name: str, module: ModuleType, sample: Sample) -> Finding:
    started = perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: Answer = module.ask(sample)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
        text = f"This question could not be answered for these data: {error}"
        return Finding(name, module.QUESTION, text, "note")
    seconds = round(perf_counter() - started, 2)
    text, blocks = render(name, sample, found)
    most = getattr(module, "MOST", None)
    if most is not None and len(sample.y) > most:
        text += f" (A stratified sample of about {most:,} rows.)"
    return Finding(name, module.QUESTION, text, found.level, {**found.values, "seconds": seconds}, blocks)
