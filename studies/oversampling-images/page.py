"""The page of the study on images: who is best at one budget, the method in parts, longer runs, a look inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import PALETTE, Block, Headline, Note, Picture, Section, Table, Text
from equipoise.studies import Spec

from ..shared.tables import gain, paired, spread
from . import claims
from .claims import TESTS
from .printed import CLASSICAL, LATENTS, METHODS, PARTS, TABLE_2, printed, printed_acsa, shaffer

MEASURES = {"acsa": "ACSA", "macro_f1": "macro F1", "g_mean": "G-mean", "auprc": "AUPRC-OVA"}
CONTROLS = ("balanced batches", "natural batches", "plain")
RIVALS = (*CLASSICAL, *METHODS[1:], "one-stage GAMO", *CONTROLS)
SETTINGS = {"updates": "{:,} updates each", "budget": "equal cost, {:,} batches"}
"""Cells are compared within one of them only; see the study's ``run_cell``."""


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    compared = [*_compared(results)]
    opening = _opening(results, compared)
    sections = [
        Section(f"{dataset}: every method, {how}", [*_dataset(dataset, mine)])
        for dataset, how, mine in compared
    ]
    if opening:
        sections.insert(0, Section("The paper's claims", opening))
    most = max((mine[unit].max() for _, _, mine in compared for unit in SETTINGS if unit in mine), default=0)
    long = results[(results["method"] == "ours") & (_units(results) > most)] if compared else results[:0]
    if len(long):
        sections.append(Section("Longer runs", [_long_table(long)]))
    parts = [*_parts(results)]
    if parts:
        tables = [block for dataset, how, mine in parts for block in _parts_blocks(dataset, how, mine)]
        sections.append(Section("The method in parts (Tables 4 and 5, Fig 3)", tables))
    sections.append(Section("Significance (Table 2)", [*_significance(compared)]))
    looks = list(_looks(results))
    if looks:
        sections.append(Section("A look inside", looks))
    return sections


def _units(results: pd.DataFrame) -> pd.Series[float]:
    """The updates of a cell, or its budget."""
    return results[[name for name in SETTINGS if name in results]].bfill(axis=1).iloc[:, 0]


def _groups(results: pd.DataFrame, methods: Callable[[str], bool]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """By data set and setting, the cells that share the setting of most of some methods' cells, and ours."""
    for (unit, told), name in product(SETTINGS.items(), results["dataset"].unique()):
        own = results[results["dataset"] == name]
        chosen = own[own["method"].map(methods)]
        numbers = chosen[unit].dropna() if unit in own else chosen["seed"][:0]
        if len(numbers):
            number = numbers.mode().max()
            alike = own[(own[unit] == number) & ((own["method"] == "ours") | own["method"].map(methods))]
            yield str(name), told.format(int(number)), alike


def _compared(results: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    return _groups(results, lambda method: method in RIVALS)


def _parts(results: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    return _groups(results, _is_part)


def _opening(results: pd.DataFrame, compared: list[tuple[str, str, pd.DataFrame]]) -> list[Block]:
    """Of each data set the setting that is fair to all, where there is one."""
    said, rows, seen = [], [], set()
    for dataset, how, mine in compared:
        found = [*claims.above(dataset, mine, RIVALS)] if dataset not in seen else []
        if found:
            seen.add(dataset)
            said.append(claims.sentence(dataset, how, found, mine))
            rows += [*claims.levels(dataset, mine), *found]
    for dataset, how, mine in _parts(results):
        rows += [[f"{dataset}, {how}", *row[1:]] for row in claims.of_parts(dataset, mine)]
    return [Headline(" ".join(said)), claims.table(rows)] if said else []


def _dataset(dataset: str, mine: pd.DataFrame) -> Iterator[Block]:
    yield _told(mine)
    yield from _verdict(dataset, mine)
    for test in TESTS:
        yield _table(mine, test, dataset)
    if "imbalanced_macro_f1_data" in mine and mine["imbalanced_macro_f1_data"].notna().any():
        yield _by_prior(mine)


def _significance(compared: list[tuple[str, str, pd.DataFrame]]) -> Iterator[Block]:
    scores, own = printed_acsa(), _own_acsa(compared)
    columns = {"Tables 1 and 10 (14 rows)": scores, "Table 1 (7 sets)": scores.xs(0, level=1)}
    if set(METHODS) <= set(own) and len(own) > 1:
        columns[f"our runs ({len(own)} rows)"] = own
    found = [shaffer(table) for table in columns.values()]
    rows = [[name, printed, *(p[name] for p in found)] for name, printed in TABLE_2.items()]
    names = ["against", "printed", *columns]
    yield Table(
        names,
        rows,
        "Shaffer's adjusted p-values of the paper's method against each rival, from mean ACSA: as printed, from "
        "the printed tables, and from our runs, where a row is a data set and one of its test sets.",
        formats=dict.fromkeys(names[1:], ".2g"),
    )
    yield Text(
        "The printed values can come out only if the three runs of each cell count as data sets of their own, "
        "which they are not. The two test sets of one data set share their models, so even 14 rows are generous."
    )


def _own_acsa(compared: list[tuple[str, str, pd.DataFrame]]) -> pd.DataFrame:
    """A row a data set and test set, a column a method: each set's first setting with all, over common seeds."""
    rows: dict[tuple[str, str], pd.Series[float]] = {}
    for dataset, _, mine in compared:
        if "one-stage GAMO" in set(mine["method"]):  # which is the paper's
            mine = mine[mine["method"] != "GAMO"].replace({"method": {"one-stage GAMO": "GAMO"}})
        wide = mine.pivot_table(index="seed", columns="method", values=[f"{test}_acsa" for test in TESTS])
        if set(METHODS) <= set(mine["method"]) and (dataset, TESTS[0]) not in rows:
            each = {test: wide[f"{test}_acsa"][list(METHODS)].dropna() for test in TESTS}
            rows |= {(dataset, test): scores.mean() for test, scores in each.items() if len(scores)}
    return pd.DataFrame(rows).T


def _is_part(method: str) -> bool:
    return method.startswith("ours,")


def _told(mine: pd.DataFrame) -> Text:
    if "updates" in mine and mine["updates"].notna().all():
        how = (
            f"Every classifier takes {int(mine['updates'].iloc[0]):,} updates with batches of 128, averages its "
            "weights and sees the same moved images; a sampler with networks has as much again for itself."
        )
    else:
        how = (
            f"The budget of every method is what {int(mine['budget'].iloc[0]):,} batches of 128 cost the encoder "
            "and head under cross-entropy. Here the auto-encoder and the controls alone average their weights."
        )
    return Text(f"{how} Percent; mean ± standard deviation over seeds where there are several.")


def _measures(test: str) -> dict[str, str]:
    """On a balanced test set the macro G-mean is a function of ACSA, and so is left out."""
    return {name: title for name, title in MEASURES.items() if not (test == "balanced" and name == "g_mean")}


def _table(results: pd.DataFrame, test: str, dataset: str) -> Table:
    rows, measures = [], _measures(test)
    for method in ("ours", *RIVALS):
        mine = results[results["method"] == method]
        if len(mine):
            known = printed(dataset, test, method)
            shown = [
                value for name in measures for value in (spread(mine[f"{test}_{name}"]), known.get(name))
            ]
            rows.append([method, len(mine), *shown, f"{mine['fit_cpu_seconds'].mean():.0f}"])
    beside = [f"paper's {title}" for title in measures.values()]
    names = [name for pair in zip(measures.values(), beside, strict=True) for name in pair]
    caption = f"{test.capitalize()} test set."
    return Table(
        ["method", "seeds", *names, "CPU seconds"], rows, caption, formats=dict.fromkeys(beside, ".2f")
    )


def _verdict(dataset: str, mine: pd.DataFrame) -> Iterator[Block]:
    """Ours less each rival, seed by seed, on the balanced test set, beside what the paper prints."""
    measures, rows = _measures("balanced"), []
    short_of = []
    for rival in (name for name in RIVALS if name in set(mine["method"])):
        row: list[Any] = [rival]
        for name in measures:
            found = gain(mine, f"balanced_{name}", "ours", rival)
            known = [printed(dataset, "balanced", method).get(name) for method in ("ours", rival)]
            lead = None if None in known else known[0] - known[1]  # type: ignore[operator]
            row += [None if found is None else str(found), lead]
            if name == "acsa" and found is not None and found.word() != "more":
                short_of.append(rival)
        if row[1] is not None:
            rows.append(row)
    if not rows:
        return
    beside = [f"paper's {title}" for title in measures.values()]
    columns = ["against", *(name for pair in zip(measures.values(), beside, strict=True) for name in pair)]
    caption = "The auto-encoder less each rival on the balanced test set, with 95 % intervals over seeds."
    yield Table(columns, rows, caption, formats=dict.fromkeys(beside, "+.2f"))
    if mine["seed"].nunique() > 1:
        good = not short_of
        yield Note(
            "The auto-encoder is above every rival by more than the interval."
            if good
            else f"The auto-encoder is not above {', '.join(short_of)} by more than the interval.",
            title="Target",
            level="good" if good else "warning",
        )


def _by_prior(mine: pd.DataFrame) -> Table:
    """The same scores, decided for equal shares of the classes and for those of the training images."""
    priors = {"_even": "equal shares", "_data": "the data's shares"}
    names = [
        (f"{test}_macro_f1{suffix}", f"{test}, {told}") for test in TESTS for suffix, told in priors.items()
    ]
    rows = []
    for method in ("ours", *RIVALS):
        own = mine[mine["method"] == method].dropna(subset=[names[0][0]])
        if len(own):
            rows.append([method, len(own), *(spread(own[name]) for name, _ in names)])
    return Table(
        ["method", "seeds", *(told for _, told in names)],
        rows,
        "Macro F1 of both test sets, decided for equal class shares and for the training data's. The imbalanced "
        "test set has about the data's shares.",
    )


def _parts_blocks(dataset: str, how: str, mine: pd.DataFrame) -> Iterator[Block]:
    """A part less the whole is taken seed by seed."""
    rows, measures, latents = [], _measures("balanced"), LATENTS.get(dataset, {})
    for method, own in sorted(mine.groupby("method", sort=False), key=lambda pair: pair[0] != "ours"):
        scores = [spread(own[f"balanced_{name}"]) for name in measures]
        found = None if method == "ours" else gain(mine, "balanced_acsa", str(method), "ours")
        told = None if found is None else str(found)
        rows.append([str(method), len(own), *scores, told, PARTS.get(str(method)), latents.get(str(method))])
    names = ["method", "seeds", *measures.values(), "change", "Table 4 (CIFAR-10)", "Table 5"]
    caption = (
        f"{dataset}, balanced test set, {how}; change of ACSA, by seed, with its 95 % interval. The paper's "
        "columns are ACSA. All rows have balanced batches; whether the paper's row without oversampling (35.51) "
        "has is not said, and the study oversampling-parts has both."
    )
    yield Table(names, rows, caption, formats=dict.fromkeys(names[-2:], ".2f"))
    mixed = {2: "ours", **{t: f"ours, t = {t}" for t in (3, 4)}}
    scores_of = {t: mine.loc[mine["method"] == name, "balanced_acsa"] for t, name in mixed.items()}
    if all(len(scores) for scores in scores_of.values()):
        yield _mixed_picture(dataset, scores_of)


def _mixed_picture(dataset: str, scores: dict[int, pd.Series[float]]) -> Picture:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 3.2), layout="constrained")
    panel = figure.subplots()
    found = [paired(own) for own in scores.values()]
    widths = [one.half_width if np.isfinite(one.half_width) else 0.0 for one in found]
    panel.errorbar(
        [*scores], [one.mean for one in found], yerr=widths, color=PALETTE[0], marker="o", capsize=3
    )
    panel.set(xlabel="latents in a mix, t", ylabel="ACSA, percent", xticks=[*scores], title=dataset)
    seeds = max(len(own) for own in scores.values())
    caption = (
        f"{dataset}: ACSA by the number of latents in a mix (Fig 3), {seeds} seed{'s' * (seeds > 1)}"
        + (" and 95 % intervals." if seeds > 1 else ".")
    )
    return Picture.from_matplotlib(figure, f"oversampling-mixed-{dataset}", caption, "ACSA by t")


def _long_table(long: pd.DataFrame) -> Table:
    rows, measures = [], _measures("balanced")
    for run, units in zip(long.itertuples(), _units(long), strict=True):
        scores = [getattr(run, f"balanced_{name}") for name in measures]
        known = printed(str(run.dataset), "balanced", "ours").get("acsa")
        rows.append([run.dataset, run.seed, f"{units:,.0f}", *scores, known, f"{run.fit_cpu_seconds:.0f}"])
    names = ["data", "seed", "batches", *measures.values(), "paper's ACSA", "CPU seconds"]
    formats = dict.fromkeys([*measures.values(), "paper's ACSA"], ".2f")
    return Table(names, rows, "Balanced test set, one run each.", formats=formats)


def _looks(results: pd.DataFrame) -> Iterator[Block]:
    if "plane" not in results:
        return
    kept = results[[isinstance(plane, list) for plane in results["plane"]]]
    kept = kept.sort_values("budget", kind="stable").drop_duplicates("dataset", keep="last")
    for _, run in kept.iterrows():
        planes = {"principal components": run["plane"], "t-SNE": run.get("neighbor_plane")}
        shown = {title: np.array(plane) for title, plane in planes.items() if isinstance(plane, list)}
        yield _plane_picture(shown, np.array(run["plane_labels"]), str(run["dataset"]))


def _plane_picture(planes: dict[str, Any], labels: Any, name: str) -> Picture:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(planes) + 1, 3.8), layout="constrained")
    panels = figure.subplots(1, len(planes), squeeze=False)[0]
    for panel, (title, plane) in zip(panels, planes.items(), strict=True):
        for code in np.unique(labels):
            own, color = plane[labels == code], PALETTE[int(code) % len(PALETTE)]
            marker = "o" if code < len(PALETTE) else "^"
            panel.scatter(own[:, 0], own[:, 1], s=8, color=color, marker=marker, label=str(code))
        panel.set(title=title, xticks=[], yticks=[])
    panels[-1].legend(title="class", fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    caption = f"Latents of test images of {name}: {' and '.join(planes)}."
    return Picture.from_matplotlib(figure, f"oversampling-latent-{name}", caption, "Latents by class")
