"""A study's page: what was run, tables with ties by test, ranks over data sets, time, curves, failures."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from equipoise.metrics.significance import (
    bayesian_signed_rank,
    friedman,
    pairwise,
    versus_control,
    win_tie_loss,
)
from equipoise.report import Block, Code, Details, Facts, Headline, Links, Note, Report, Section, Table, Text
from equipoise.studies._rows import StoreError
from equipoise.studies.grid import Settings
from equipoise.studies.locate import named_spec, spec_names
from equipoise.studies.plots import curves_picture, ranks_picture, time_quality_picture
from equipoise.studies.scores import Layout, Scores, direction, format_score, read_layout, score
from equipoise.studies.spec import Spec
from equipoise.studies.store import Store

_MARKS = "★ the best mean; ≈ not told from it by a paired test at 95%"
_MOST_COLUMNS = 7
_MOST_BLOCKS = 15


def write_pages(
    store_path: str | PathLike[str], folder: str | PathLike[str], spec: Spec | None = None
) -> list[Path]:
    """Write ``NAME.html``, ``NAME.md`` and their pictures for every study in a store.

    ``spec`` describes the study of its name; others are looked for by :func:`~equipoise.studies.named_spec`.

    Parameters
    ----------
    store_path : path
        The store.
    folder : path
        Where to write.
    spec : Spec, optional
        The study; by default it is found by its name.

    Returns
    -------
    list of Path
        The files that were written.
    """
    written: list[Path] = []
    with Store(store_path, read_only=True) as store:
        for study in store.studies():
            known = spec if spec is not None and spec.name == study["name"] else _spec_of(study)
            report = study_report(store, study, known)
            written += report.write(folder, study["name"], kinds=("html", "md")).values()
    if not written:
        raise StoreError(f"the store {store_path} holds no study")
    return written


def study_report(store: Store, study: Mapping[str, Any], spec: Spec | None = None) -> Report:
    """The page of one study, from what the store holds and what its ``spec`` says."""
    records = list(store.records(study["name"]))
    frame = store.frame(study["name"])
    sections: list[Section] = []
    scores: list[Scores] = []
    if spec is not None and spec.page is not None and len(frame):
        sections += list(spec.page(frame, spec))
    metrics = spec.metrics if spec is not None else study["metrics"]
    if len(frame) and (metrics or spec is None or spec.page is None):
        settings = list(dict.fromkeys(key for record in records for key in record["settings"]))
        layout = read_layout(frame, settings, metrics)
        scores = [score(frame, layout, metric) for metric in layout.metrics]
        sections += _generic(frame, layout, scores, study["name"], spec)
    whole = _cells_of_size(spec, study["size"])
    sections += [
        *_problems(records),
        Section("How it was run", list(_about(study, records, whole, store, spec))),
    ]
    title, reference = (spec.title, spec.reference) if spec else (study["title"], study["reference"])
    blocks = list(sections[0].blocks)
    own = blocks[0] if blocks and isinstance(blocks[0], Headline) else None
    blocks = blocks[own is not None :]
    if own is not None and own.parts:  # the study's own page has said it all
        first = own
    else:
        claim = own.claim if own is not None else ""
        first = _first_screen(title, reference, scores[0] if scores else None, records, claim)
    sections[0] = replace(sections[0], blocks=[first, *_cautions(spec, records, whole, frame), *blocks])
    size = f"Size: {study['size']}." if study["size"] else ""
    subtitle = " ".join(filter(None, [reference and f"After {reference}.", size]))
    return Report(title, sections, subtitle=subtitle, footer=_versions(records))


def _spec_of(study: Mapping[str, Any]) -> Spec | None:
    """The study's own description if it is found by name; a study from a TOML file has none."""
    return named_spec(study["name"]) if study["name"].replace("_", "-") in spec_names() else None


def _first_screen(
    title: str, reference: str, scores: Scores | None, records: list[dict[str, Any]], claim: str = ""
) -> Headline:
    """What was asked, what came out (the study's own ``claim``, or the best method), and how sure that is."""
    done = [record for record in records if record["status"] == "done"]
    parts = [("What was asked", f"{title}." + (f" After {reference}." if reference else ""))]
    sure = f"{len(done):,} cells" + (
        f", {scores.repeats} repeats of each." if scores and scores.repeats > 1 else _seeds(done)
    )
    test = ""
    if not claim and scores is not None and direction(scores.metric) and scores.mean.shape[1] > 1:
        claim, test = _outcome(scores)
    if claim:
        parts.append(("What came out", claim))
    return Headline(claim or title, [*parts, ("How sure", f"{sure} {test}".strip())])


def _seeds(records: list[dict[str, Any]]) -> str:
    """How many seeds or draws the cells have, where they have several."""
    for name in ("seed", "draw"):
        found = {str(record.get("settings", {}).get(name)) for record in records} - {"None"}
        if len(found) > 1:
            return f" with {len(found)} {name}s in all."
    return "."


def _outcome(scores: Scores) -> tuple[str, str]:
    """The best method of a metric and who cannot be told from it, and by which test."""
    table, up, named = scores.complete, direction(scores.metric) > 0, scores.metric.replace("_", " ")
    if len(table) > 1:
        comparison = pairwise(table, correction="shaffer", greater_is_better=up)
        best: Any = comparison.ranks.idxmin()
        close = int((comparison.adjusted[best].drop(best) >= 0.05).sum())
        place = f"the best mean rank in {named} over {len(table)} settings"
        test = "Ranks are compared by Shaffer's test at 5%."
    else:
        best = scores.mean.iloc[0].idxmax() if up else scores.mean.iloc[0].idxmin()
        place = f"the best mean {named}"
        if scores.repeats < 2:
            return f"“{best}” has {place}.", "One run of each tells no spread."
        close = int(scores.tied.iloc[0].drop(best).sum())
        test = "Means are compared by a paired test at 95%."
    others = scores.mean.shape[1] - 1
    if others == 1:
        told = f"the other {'cannot' if close else 'can'} be told from it"
    else:
        told = f"{others - close if others > close else 'none'} of the {others} others can be told from it"
    return f"“{best}” has {place}; {told}.", test


def write_index(specs: Sequence[Spec], folder: str | PathLike[str]) -> Path:
    """Write ``index.html``, which leads to the page of every study that has one in a folder below.

    Parameters
    ----------
    specs : sequence of Spec
    folder : path
        The folder that holds the studies' folders.

    Returns
    -------
    Path
    """
    found = [spec for spec in specs if (Path(folder) / spec.name / f"{spec.name}.html").exists()]
    links = [(spec.title, f"{spec.name}/{spec.name}.html", spec.reference) for spec in found]
    claim = f"{len(found)} studies, each with its settings, its results and a command that runs it again."
    return Report("Studies of Equipoise", [Section("What was asked", [Headline(claim), Links(links)])]).write(
        folder, "index", kinds=("html",)
    )["html"]


def _cautions(
    spec: Spec | None, records: list[dict[str, Any]], whole: list[Settings], frame: pd.DataFrame
) -> Iterator[Block]:
    """What a reader must know before the first number."""
    if spec is not None and spec.differs:
        text = spec.differs(frame) if callable(spec.differs) else spec.differs
        yield Note(text, title="What differs from the paper" if spec.reference else "")
    if len(records) < len(whole):
        yield Note(
            f"Only {len(records)} of the {len(whole)} cells of this size were asked for.", level="warning"
        )


def _about(
    study: Mapping[str, Any],
    records: list[dict[str, Any]],
    whole: list[Settings],
    store: Store,
    spec: Spec | None,
) -> Iterator[Block]:
    status = Counter(record["status"] for record in records)
    seconds = [record["seconds"] for record in records if record["seconds"] is not None]
    memory = [record["peak_memory_mb"] for record in records if record["peak_memory_mb"] is not None]
    facts: list[tuple[str, ...]] = [("Cells done", f"{status['done']} of {len(records)}")]
    if status["failed"]:
        facts.append(("Failed", str(status["failed"])))
    if seconds:
        facts += [("Time in cells", _duration(sum(seconds))), ("Longest cell", _duration(max(seconds)))]
    if memory:
        facts.append(("Peak memory", f"{max(memory):,.0f} MB"))
    yield Facts(facts)
    only = _selection(records, whole) if len(records) < len(whole) else ""
    source = shlex.quote(study["source"] or study["name"])
    size = f" --size {study['size']}" if study["size"] not in ("", "small") else ""
    name = shlex.quote(store.path.name)
    if spec is not None and store.path.resolve() == spec.default_store().resolve():
        yield Code(f"equipoise bench run {source}{size}{only}\nequipoise bench report {source}")
    else:
        yield Code(f"equipoise bench run {source}{size}{only} --store {name}\nequipoise bench report {name}")
    yield Text(_where(records))
    settings = _fixed_settings(records)
    if settings:
        yield Details("Settings that all cells share", [Table(["setting", "value"], settings)])


def _cells_of_size(spec: Spec | None, size: str) -> list[Settings]:
    """The study's cells at that size, if it comes with Equipoise and its data is here."""
    if spec is None or size not in spec.sizes:
        return []
    try:
        return spec.cells(size)
    except (ValueError, OSError):
        return []


def _selection(records: list[dict[str, Any]], whole: list[Settings]) -> str:
    """The ``--only`` options that choose the cells that were run."""
    text = ""
    for name in dict.fromkeys(key for cell in whole for key in cell):
        run = dict.fromkeys(str(record["settings"].get(name)) for record in records)
        if len(run) < len({str(cell.get(name)) for cell in whole}):
            text += f" --only {shlex.quote(f'{name}=' + ','.join(_quoted(value) for value in run))}"
    return text


def _quoted(value: str) -> str:
    """A value as ``--only`` reads it: in double quotes if it has a comma or such quotes itself."""
    return '"' + value.replace('"', '""') + '"' if any(sign in value for sign in ',"') else value


def _fixed_settings(records: list[dict[str, Any]]) -> list[list[str]]:
    names = list(dict.fromkeys(key for record in records for key in record["settings"]))
    values = {
        name: {json.dumps(record["settings"].get(name), sort_keys=True) for record in records}
        for name in names
    }
    return [[name, next(iter(found)).strip('"')] for name, found in values.items() if len(found) == 1]


def _generic(
    frame: pd.DataFrame, layout: Layout, all_scores: list[Scores], name: str, spec: Spec | None
) -> list[Section]:
    sections = []
    paper = spec.paper if spec is not None else {}
    for scores in all_scores:
        table, beside = _score_table(scores), list(_paper_beside(scores, paper))
        comparable = scores.mean.shape[1] > 1 and len(scores.complete) > 1 and direction(scores.metric)
        over = list(_over_blocks(scores, name)) if comparable else []
        if over and len(scores.mean) > _MOST_BLOCKS:  # nobody reads a hundred rows first
            blocks = [*over, *beside, Details(f"All {len(scores.mean)} rows", [table])]
        else:
            blocks = [table, *beside, *over]
        sections.append(Section(scores.metric, blocks))
    if all_scores and frame["cell_seconds"].notna().all():
        sections.append(Section("Time", list(_time(frame, layout, all_scores[0], name))))
    if layout.curves:
        pictures = [curves_picture(frame, layout, curve, f"{name}-{_slug(curve)}") for curve in layout.curves]
        sections.append(Section("Curves", pictures))
    return sections


def _score_table(scores: Scores) -> Table:
    """Methods or blocks down the side, whichever are more."""
    methods, blocks = list(scores.mean.columns), list(scores.mean.index)
    better = {1: " (higher is better)", -1: " (lower is better)", 0: ""}[direction(scores.metric)]
    plural = (
        f"mean ± standard deviation over {scores.repeats} repeats" if scores.repeats > 1 else "one run each"
    )
    marks = f"; {_MARKS}" if better else ""
    caption = f"{scores.metric}{better}, {plural}{marks}."
    if len(blocks) > len(methods) or len(methods) <= _MOST_COLUMNS < len(blocks):
        rows = [[str(block), *(format_score(scores, block, m) for m in methods)] for block in blocks]
        return Table(["", *map(str, methods)], rows, caption)
    rows = [[str(method), *(format_score(scores, b, method) for b in blocks)] for method in methods]
    return Table(["", *map(str, blocks)], rows, caption)


def _paper_beside(scores: Scores, paper: Mapping[str, Any]) -> Iterator[Block]:
    """The paper's numbers beside ours, if ``paper`` is metric → block → method → number (or metric → method)."""
    found = paper.get(scores.metric)
    if not isinstance(found, Mapping):
        return
    table = found if all(isinstance(value, Mapping) for value in found.values()) else {None: found}
    rows = []
    for block, numbers in table.items():
        at = block if block in scores.mean.index else scores.mean.index[0] if len(scores.mean) == 1 else None
        for method, number in numbers.items():
            known = at is not None and method in scores.mean.columns
            ours = format_score(scores, at, method) if known else "not run"
            plain = number is None or isinstance(number, (int, float, str))
            rows.append([str(block or at or ""), str(method), number if plain else str(number), ours])
    yield Table(["", "method", "paper", "ours"], rows, "The paper's number beside ours.")


def _over_blocks(scores: Scores, name: str) -> Iterator[Block]:
    """Tests over data sets: Friedman, Shaffer's post-hoc with its diagram, and each method against the best."""
    table, up = scores.complete, direction(scores.metric) > 0
    comparison = pairwise(table, correction="shaffer", greater_is_better=up)
    if table.shape[1] > 2:
        overall = friedman(table, greater_is_better=up)
        yield Text(
            f"Friedman's test over {len(table)} blocks: χ² = {overall.statistic:.2f}, p = {overall.p_value:.2g} "
            f"(Iman and Davenport: F = {overall.f_statistic:.2f}, p = {overall.f_p_value:.2g})."
        )
    yield ranks_picture(comparison, f"{name}-{_slug(scores.metric)}-ranks", scores.metric)
    yield _against_best(table, comparison.ranks, up)


def _against_best(table: pd.DataFrame, ranks: pd.Series[float], up: bool) -> Table:
    order = list(ranks.sort_values(kind="stable").index)
    best = order[0]
    p_values = versus_control(table, best, greater_is_better=up)["adjusted"]
    counts = win_tie_loss(table, control=best, greater_is_better=up)
    rope = 0.01 * (100 if np.abs(table.to_numpy()).max() > 10 else 1)  # percents count a hundredfold
    rows: list[list[Any]] = []
    for method in order:
        if method == best:
            rows.append([method, ranks[method], table[method].mean(), None, None, None])
            continue
        win, tie, loss = counts.loc[(method, best)]
        posterior = bayesian_signed_rank(
            table[best], table[method], rope=rope, greater_is_better=up, random_state=0
        )
        bayes = f"{posterior.first:.2f} / {posterior.equivalent:.2f} / {posterior.second:.2f}"
        rows.append(
            [method, ranks[method], table[method].mean(), p_values[method], f"{win} / {tie} / {loss}", bayes]
        )
    columns = ["method", "mean rank", "mean", "p (Holm)", "win / tie / loss", "P(best / same / this)"]
    caption = (
        f"Against {best}, the best by rank: Holm's p of the difference of ranks, data sets won, and the Bayesian "
        f"signed-rank test's probabilities that the best is better, that they are within {rope:g}, that this is."
    )
    formats = {"mean rank": ".2f", "mean": ".3f", "p (Holm)": ".3g"}
    return Table(columns, rows, caption, formats=formats, emphasis=(0,))


def _time(frame: pd.DataFrame, layout: Layout, scores: Scores, name: str) -> Iterator[Block]:
    groups = frame.groupby(layout.method, sort=False)
    means = groups["cell_seconds"].agg(["mean", "std", "max"]).reset_index()
    rows = [[str(a), b, None if np.isnan(c) else c, d] for a, b, c, d in means.itertuples(index=False)]
    columns = ["method", "mean s", "sd s", "longest s"]
    if scores.mean.shape[1] > 1:
        yield time_quality_picture(frame, layout, scores, f"{name}-time")
    formats = dict.fromkeys(columns[1:], ".3g")
    yield Table(columns, rows, "Seconds a cell, on the machine that ran it.", formats=formats)


def _problems(records: list[dict[str, Any]]) -> list[Section]:
    blocks: list[Block] = []
    failed = [record for record in records if record["status"] == "failed"]
    if failed:
        rows = [
            [json.dumps(record["settings"], sort_keys=True), record["error"].strip().splitlines()[-1]]
            for record in failed
        ]
        blocks.append(
            Table(["settings", "error"], rows, "Cells that failed; their tracebacks are in the store.")
        )
        blocks.append(Details("The first traceback", [Code(failed[0]["error"])]))
    warned = Counter(text for record in records for text in record["warnings"] or ())
    if warned:
        rows = [[text[:300], count] for text, count in warned.most_common(20)]
        blocks.append(Table(["warning", "cells"], rows, "Warnings that cells gave."))
    unfinished = sum(record["status"] in ("pending", "running") for record in records)
    if unfinished:
        blocks.insert(0, Note(f"{unfinished} cells are not finished.", level="warning"))
    return [Section("Problems", blocks)] if blocks else []


def _versions(records: list[dict[str, Any]]) -> str:
    found = {json.dumps(record["versions"], sort_keys=True) for record in records if record["versions"]}
    texts = [", ".join(f"{k} {v}" for k, v in json.loads(text).items()) for text in sorted(found)]
    return "Made with " + "; and with ".join(texts) + "." if texts else ""


def _where(records: list[dict[str, Any]]) -> str:
    """On which processors the cells ran, and what that means for the last digits."""
    known = [record["versions"] for record in records if record["versions"]]
    found = sorted({str(versions["cpu"]) for versions in known if versions.get("cpu")})
    where = (
        f"The cells ran on {'; '.join(found)}. " if found else "The cells do not say on which CPU they ran. "
    )
    return where + "Noise floor: another CPU or other versions may move a trained result."


def _duration(seconds: float) -> str:
    return (
        f"{seconds:.1f} s"
        if seconds < 90
        else f"{seconds / 60:.1f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text).strip("-") or "x"
