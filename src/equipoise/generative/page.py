"""The page of one diffusion run, or of several together."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import equipoise
from equipoise._core.files import write_text
from equipoise.generative.folder import RunFolder
from equipoise.generative.run_comparison import compare_runs
from equipoise.generative.run_summary import RunSummary, summarize_run
from equipoise.generative.sections import method, samples, theory, verdict
from equipoise.report import Details, Report, Section, Text
from equipoise.report.blocks import Block


def write_report(
    folders: Sequence[RunFolder], out: str | PathLike[str], *, reference: str | None = None
) -> None:
    """Write the page of one or several runs to a file, whole or not at all."""
    names = [folder.name for folder in folders]
    for folder in folders:
        if names.count(folder.name) > 1:
            folder.title = str(folder.path)
    summaries = [summarize_run(folder) for folder in folders]
    report = build_report(summaries, reference=reference)
    write_text(out, report.to_html().encode("utf-8", "replace").decode("utf-8"))


def build_report(summaries: Sequence[RunSummary], *, reference: str | None = None) -> Report:
    """The report of one run in sections, or of several: together first, then a section each."""
    footer = f"Equipoise {equipoise.__version__}. Neighbors, bootstrap and theory: docs/how-to/diffusion.md."
    if len(summaries) == 1:
        one = summaries[0]
        sections = [
            Section("Verdict", verdict(one)),
            Section("Samples", samples(one)),
            Section("Theory", theory(one)),
            Section("How it was made", method(one)),
        ]
        title = f"{one.folder.name}: when is each class memorized?"
        return Report(title, sections, f"{one.data}; {_short(one)}.", _as_data(summaries), footer)
    sections = [Section("Together", compare_runs(summaries, reference))]
    for number, one in enumerate(summaries):
        blocks: list[Block] = [Text(f"{one.data}; {_short(one)}."), *verdict(one)]
        blocks += [
            Details("Samples beside their nearest training images", samples(one, f"run{number + 1}-")),
            Details("The theory's order", theory(one)),
            Details("How it was made", method(one)),
        ]
        sections.append(Section(one.folder.name, blocks))
    title = f"{len(summaries)} runs together: when is each class memorized?"
    return Report(title, sections, "Diffusion models, class by class.", _as_data(summaries), footer)


def _short(one: RunSummary) -> str:
    settings = one.folder.settings
    kind = "conditional U-Net" if settings["conditional"] else "U-Net"
    return f"{settings['preset']} {kind}, {one.clock.last:,} steps, seed {settings['seed']}"


def _as_data(summaries: Sequence[RunSummary]) -> dict[str, Any]:
    return {
        "runs": [
            {
                "folder": str(one.folder.path),
                "run": one.folder.record,
                "looks": one.table.to_dict("records"),
                "first": one.clock.first,
                "memorized": dict(zip(one.names, one.clock.memorized, strict=True)),
                "advised": one.clock.advised,
                "predicted": None if one.predicted is None else list(one.predicted.order),
            }
            for one in summaries
        ]
    }
