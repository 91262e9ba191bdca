"""The page of the study on images: who is best at one budget, the method in parts, longer runs, a look inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import PALETTE, Block, Headline, Note, Picture, Section, Table, Text
from equipoise.studies import Spec

from ..shared.tables import spread
from .printed import CLASSICAL, LATENTS, METHODS, PARTS, TABLE_2, printed, printed_acsa, shaffer

TESTS = ("balanced", "imbalanced")
MEASURES = {"acsa": "ACSA", "macro_f1": "macro F1", "g_mean": "G-mean", "auprc": "AUPRC-OVA"}
CONTROLS = ("balanced batches", "natural batches", "plain")
RIVALS = (*CLASSICAL, *METHODS[1:], "one-stage GAMO", *CONTROLS)


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    rivals = results[results["method"].isin(RIVALS)]
    parts = results[results["method"].map(_is_part)]
    whole = results[results["method"] == "ours"]
    budget = rivals["budget"].max() if len(rivals) else whole["budget"].min()
    sections = []
    compared = pd.concat([whole[whole["budget"] == budget], rivals])
    for dataset, mine in compared.groupby("dataset", sort=False):
        blocks: list[Block] = [_told(mine), *_verdict(mine), *(_table(mine, t, str(dataset)) for t in TESTS)]
        sections.append(Section(f"{dataset}: every method at one budget", blocks))
    said = [
        f"{s.title.partition(':')[0]}: {b.text}" for s in sections for b in s.blocks if isinstance(b, Note)
    ]
    if said:
        sections[0] = Section(sections[0].title, [Headline(" ".join(said)), *sections[0].blocks])
    long = whole[whole["budget"] > budget]
    if len(long):
        sections.append(Section("Longer runs", [_long_table(long)]))
    if len(parts):
        tables = [
            _parts_table(whole[whole["dataset"] == name], own, str(name))
            for name, own in parts.groupby("dataset", sort=False)
        ]
        sections.append(Section("The method in parts (Tables 4 and 5)", tables))
    sections.append(Section("Significance (Table 2)", [*_significance(compared)]))
    looks = list(_looks(results))
    if looks:
        sections.append(Section("A look inside", looks))
    return sections


def _significance(compared: pd.DataFrame) -> Iterator[Block]:
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


def _own_acsa(compared: pd.DataFrame) -> pd.DataFrame:
    """A row a data set and test set, a column a method: means over seeds."""
    tests = [compared.pivot_table(index="dataset", columns="method", values=f"{test}_acsa") for test in TESTS]
    scores = pd.concat(tests, keys=TESTS)
    return scores[[name for name in METHODS if name in scores]].dropna()


def _is_part(method: str) -> bool:
    return method.startswith("ours,")


def _told(mine: pd.DataFrame) -> Text:
    return Text(
        f"The budget of every method is what {mine['budget'].iloc[0]:,} batches of 128 cost the encoder and head "
        "under cross-entropy. Percent; mean ± standard deviation over seeds where there are several."
    )


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


def _verdict(mine: pd.DataFrame) -> Iterator[Block]:
    """Ours less each rival, seed by seed, on the balanced test set: above by more than the seeds' spread?"""
    wide = mine.pivot(index="seed", columns="method", values="balanced_acsa")
    if "ours" not in wide:
        return
    rows: list[list[Any]] = []
    short_of = []
    for rival in (name for name in RIVALS if name in wide):
        gain = (wide["ours"] - wide[rival]).dropna()
        if len(gain):
            spread = max(wide["ours"].std(ddof=1), wide[rival].std(ddof=1)) if len(gain) > 1 else float("nan")
            beyond = bool(gain.mean() > spread)
            rows.append([rival, len(gain), gain.mean(), gain.min(), None if np.isnan(spread) else spread])
            if not beyond and not np.isnan(spread):
                short_of.append(rival)
    if rows:
        columns = ["against", "seeds", "gain", "least gain", "seeds' spread"]
        formats = {"gain": "+.2f", "least gain": "+.2f", "seeds' spread": ".2f"}
        yield Table(
            columns, rows, "ACSA of the auto-encoder less that of each rival, by seed.", formats=formats
        )
    if rows and len(wide) > 1:
        good = not short_of
        yield Note(
            "The auto-encoder is above every rival by more than the seeds' spread."
            if good
            else f"The auto-encoder is not above {', '.join(short_of)} by more than the seeds' spread.",
            title="Target",
            level="good" if good else "warning",
        )


def _parts_table(whole: pd.DataFrame, parts: pd.DataFrame, dataset: str) -> Table:
    """A part less the whole is taken seed by seed."""
    keys = ["dataset", "seed", "budget"]
    alike = whole[whole[keys].apply(tuple, axis=1).isin(parts[keys].apply(tuple, axis=1))]
    reference = alike.set_index(keys)["balanced_acsa"]
    rows, measures, latents = [], _measures("balanced"), LATENTS.get(dataset, {})
    for method, mine in pd.concat([alike, parts]).groupby("method", sort=False):
        scores = [spread(mine[f"balanced_{name}"]) for name in measures]
        change = (mine.set_index(keys)["balanced_acsa"] - reference).dropna()
        told = None if method == "ours" or not len(change) else change.mean()
        rows.append([str(method), len(mine), *scores, told, PARTS.get(str(method)), latents.get(str(method))])
    names = ["method", "seeds", *measures.values(), "change", "Table 4 (CIFAR-10)", "Table 5"]
    caption = (
        f"{dataset}, balanced test set, {parts['budget'].iloc[0]:,} batches; change of ACSA, by seed. The "
        "paper's columns are ACSA. All rows have balanced batches; whether the paper's row without "
        "oversampling (35.51) has is not said, and the study oversampling-parts has both."
    )
    return Table(names, rows, caption, formats={"change": "+.2f", **dict.fromkeys(names[-2:], ".2f")})


def _long_table(long: pd.DataFrame) -> Table:
    rows, measures = [], _measures("balanced")
    for run in long.itertuples():
        scores = [getattr(run, f"balanced_{name}") for name in measures]
        known = printed(str(run.dataset), "balanced", "ours").get("acsa")
        rows.append([run.dataset, run.seed, f"{run.budget:,}", *scores, known, f"{run.fit_cpu_seconds:.0f}"])
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
