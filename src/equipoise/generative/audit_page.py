"""The page of an audit: what is copied, by class, and the pairs that show it."""

from __future__ import annotations

from os import PathLike
from typing import Any

import equipoise
from equipoise._core.files import write_text
from equipoise.generative.audit import ClassAudit, CopyAudit
from equipoise.generative.gallery import gallery
from equipoise.report import Note, Report, Row, Section, Table, Text
from equipoise.report.blocks import Block

_COLUMNS = 12


def write_audit(audit: CopyAudit, source: str, out: str | PathLike[str]) -> None:
    """Write the page of an audit to a file, whole or not at all."""
    write_text(out, build_audit(audit, source).to_html())


def build_audit(audit: CopyAudit, source: str) -> Report:
    """The report of an audit of the samples from ``source``."""
    sections = [
        Section("Verdict", [_verdict(audit), _table(audit), *_pairs(audit)]),
        Section("How it was measured", [Text(text) for text in _method(audit)]),
    ]
    data = {
        "source": source,
        "threshold": audit.threshold,
        "classes": [_record(one) for one in audit.classes],
    }
    subtitle = f"{len(audit.samples):,} samples from {source}; trained on {audit.training}."
    footer = f"Equipoise {equipoise.__version__}. The criterion and its intervals: docs/how-to/diffusion.md."
    return Report("Which class is copied?", sections, subtitle, data, footer)


def _verdict(audit: CopyAudit) -> Note:
    first, *rest = audit.in_words()
    copied = any(one.copied for one in audit.classes)
    return Note(
        " ".join([first, *rest]), "warning" if copied else "good", "Copies found" if copied else "No copies"
    )


def _table(audit: CopyAudit) -> Table:
    rows: list[list[Any]] = []
    for one in sorted(audit.classes, key=lambda one: -one.fraction.low):
        said = "too few samples" if not one.known else "copied" if one.copied else "not beyond chance"
        copied = None if one.n_samples == 0 else one.fraction
        rows.append([one.name, one.n_samples, one.copies, copied, one.baseline,
                     f"{one.reproduced} of {one.n_training}", said])  # fmt: skip
    columns = [
        "class",
        "samples",
        "copies",
        "share copied",
        "chance",
        "training images reproduced",
        "verdict",
    ]
    caption = (
        f"Shares with exact {audit.confidence:.0%} intervals. Chance: training images of the class that would pass "
        "for copies of another one."
    )
    return Table(columns, rows, caption, {"share copied": ".0%", "chance": ".1%"})


def _pairs(audit: CopyAudit) -> list[Block]:
    blocks: list[Block] = [
        Text(
            "Each column is one sample with the nearest and the second nearest training image below it, those most "
            f"like a copy first. A sample is a copy, and framed, if the nearest is less than {audit.threshold:.2g} "
            "times as far as the second; the number below is that ratio."
        )
    ]
    span = float(audit.training.images.min()), float(audit.training.images.max())
    strips: list[Block] = []
    for code, one in enumerate(audit.classes):
        rows = audit.closest(code, _COLUMNS)
        if not len(rows):
            strips.append(Text(f"{one.name}: there is no sample of this class."))
            continue
        near = audit.neighbors.index[rows]
        strips.append(
            gallery(
                f"pairs-{code + 1}",
                f"{one.name}: {one.copies} of {one.n_samples} are copies",
                audit.samples[rows],
                audit.training.images[near[:, 0]],
                audit.training.images[near[:, 1]],
                audit.neighbors.ratio[rows],
                audit.threshold,
                span,
            )
        )
    return [*blocks, Row(strips)]


def _method(audit: CopyAudit) -> list[str]:
    dropped = f"{audit.duplicates:,} exact duplicates among the training images were dropped first."
    return [
        f"The classes of the samples: {audit.labels_from}. Distances are Euclidean, between pixels.",
        dropped if audit.duplicates else "No training image equals another one exactly.",
        "The test finds copies of whole images. It does not see parts of images, mirrored or recolored copies, "
        "and a class with few samples may be copied without its showing here.",
    ]


def _record(one: ClassAudit) -> dict[str, Any]:
    return {
        "class": one.name,
        "samples": one.n_samples,
        "copies": one.copies,
        "fraction": [one.fraction.value, one.fraction.low, one.fraction.high],
        "chance": [one.baseline.value, one.baseline.low, one.baseline.high],
        "reproduced": one.reproduced,
        "training_images": one.n_training,
        "copied": one.copied,
    }
