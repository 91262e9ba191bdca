"""From a table to files: diagnose, search, and write the page and the model together."""

from __future__ import annotations

import time
import warnings
from os import PathLike
from pathlib import Path

from equipoise._core.files import replacing_together
from equipoise.advisor._advisor import Advisor
from equipoise.advisor.budget import Budget, parse_duration
from equipoise.advisor.model import save_advisor
from equipoise.datasets import DataTable
from equipoise.diagnosis import Diagnosis, diagnose

_FOR_DIAGNOSIS, _FOR_REASONS = 0.2, 0.08  # of what reading leaves, and of the budget
_LEAST_DIAGNOSIS, _LEAST_SEARCH = 0.05, 0.1  # of the budget, even where nothing is left of it
_FOR_WRITING = 4.0  # seconds of a processor that nobody else uses


def write_report(
    advisor: Advisor, table: DataTable, out: str | PathLike[str], budget: Budget, *, id: str | None = None
) -> dict[str, Path]:
    """Write ``report.html``, ``report.md``, ``report.json`` and ``model/`` under ``out``, all together.

    Parameters
    ----------
    advisor : Advisor
        It is fitted here, within what the diagnosis leaves of the budget.
    table : DataTable
    out : path
    budget : Budget
        For all of it.
    id : str, optional
        The column that names the rows, for later predictions.

    Returns
    -------
    dict of str to Path
    """
    advisor.check(table)
    spent = time.monotonic() - budget.started
    seconds = max(_FOR_DIAGNOSIS * (budget.seconds - spent), _LEAST_DIAGNOSIS * budget.seconds)
    diagnosis = diagnose(table, table.y, seconds=seconds)
    spent = time.monotonic() - budget.started
    pace = max(1.0, spent / max(time.process_time(), 1e-3))  # others may want the processor too
    kept = min(_FOR_WRITING * pace, 0.5 * budget.seconds) + _FOR_REASONS * budget.seconds
    left, least = budget.seconds - spent - kept, _LEAST_SEARCH * budget.seconds
    advisor.set_params(budget=max(left, least))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the decision is for balanced accuracy instead")
        advisor.fit_table(table)
    if left < least:
        advisor.notes_.append(
            f"The budget of {budget.seconds:g} s left hardly any time for a search: {spent:.1f} s had passed "
            "before it began, and the page takes time too. A longer budget finds a better model."
        )
    advisor.info_["id"] = id
    return write_fitted(advisor, table, out, diagnosis)


def write_fitted(
    advisor: Advisor, table: DataTable, out: str | PathLike[str], diagnosis: Diagnosis | None = None
) -> dict[str, Path]:
    """Write a fitted advisor's page and model together; the table is diagnosed if that was not done."""
    from equipoise.advisor.page import build_report
    from equipoise.advisor.reasons import find_reasons

    if diagnosis is None:
        diagnosis = diagnose(table, table.y, seconds=60.0)
    reasons = find_reasons(advisor, _FOR_REASONS * parse_duration(advisor.budget))
    report = build_report(advisor, table, diagnosis, str(out), reasons)
    with replacing_together(out) as temporary:
        paths = report.write(temporary)
        save_advisor(advisor, temporary / "model")
    return {**{kind: Path(out) / path.name for kind, path in paths.items()}, "model": Path(out) / "model"}
