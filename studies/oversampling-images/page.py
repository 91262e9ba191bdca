"""The page of the study on images: who is best at one budget, the method in parts, longer runs, a look inside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import PALETTE, Block, Headline, Note, Picture, Section, Table, Text, new_axes
from equipoise.studies import Spec

from ..shared.tables import spread
from .printed import METHODS, TABLE_2, printed_acsa, shaffer

PAPER: dict[str, dict[str, dict[str, float]]] = {  # Tables 1, 12 and 15: balanced test set, in percent
    "fashion-mnist": {
        "ours": {"acsa": 84.79, "macro_f1": 84.30, "g_mean": 91.30, "auprc": 92.33},
        "DeepSMOTE": {"acsa": 82.78, "macro_f1": 82.11, "g_mean": 90.11, "auprc": 88.21},
        "GAMO": {"acsa": 83.29, "macro_f1": 82.63, "g_mean": 90.41, "auprc": 89.06},
        "BAGAN": {"acsa": 79.93, "macro_f1": 79.23, "g_mean": 88.40},
        "DGC": {"acsa": 82.34, "macro_f1": 81.48, "g_mean": 89.02},
        "SMOTE": {"acsa": 70.58, "macro_f1": 68.06, "g_mean": 76.39},
    },
    "mnist": {
        "ours": {"acsa": 96.79, "macro_f1": 96.78, "g_mean": 98.20, "auprc": 99.71},
        "DeepSMOTE": {"acsa": 92.60, "macro_f1": 92.44, "g_mean": 95.83, "auprc": 98.62},
        "GAMO": {"acsa": 94.97, "macro_f1": 94.90, "g_mean": 97.19, "auprc": 98.02},
        "BAGAN": {"acsa": 92.76, "macro_f1": 92.62, "g_mean": 95.92},
        "DGC": {"acsa": 94.60, "macro_f1": 94.53, "g_mean": 96.90},
        "SMOTE": {"acsa": 87.98, "macro_f1": 85.02, "g_mean": 89.99},
    },
}


IMBALANCED: dict[str, dict[str, float]] = {  # Table 10, ACSA on the imbalanced test set
    "fashion-mnist": {"ours": 86.24, "DeepSMOTE": 82.81, "GAMO": 81.85, "BAGAN": 80.56, "DGC": 81.78},
    "mnist": {"ours": 96.75, "DeepSMOTE": 93.30, "GAMO": 95.38, "BAGAN": 93.26, "DGC": 94.89},
}
PARTS: dict[str, float] = {  # Table 4, ACSA on CIFAR-10; the paper's own method has a learned mixer
    "ours": 54.51,
    "ours, learned mixer": 57.94,
    "ours, no classifier": 20.58,
    "ours, no mixes": 35.51,
    "ours, no decoder": 52.16,
    "ours, Beta(2, 2)": 52.35,
}
LATENTS = {"ours, m = 16": 85.70, "ours, m = 32": 85.82, "ours, m = 128": 86.04}  # Table 5, Fashion-MNIST
MEASURES = {"acsa": "ACSA", "macro_f1": "macro F1", "g_mean": "G-mean", "auprc": "AUPRC-OVA"}
RIVALS = ("SMOTE", "DeepSMOTE", "GAMO", "BAGAN", "DGC", "plain")


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    rivals = results[results["method"].isin(RIVALS)]
    parts = results[results["method"].map(_is_part)]
    whole = results[results["method"] == "ours"]
    budget = rivals["budget"].max() if len(rivals) else whole["budget"].min()
    sections = []
    compared = pd.concat([whole[whole["budget"] == budget], rivals])
    for dataset, mine in compared.groupby("dataset", sort=False):
        blocks: list[Block] = [_told(mine), *_verdict(mine), *(_table(mine, t, str(dataset)) for t in PAPERS)]
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
        sections.append(Section("The method in parts (Tables 4 and 5)", [_parts_table(whole, parts)]))
    sections.append(Section("Significance (Table 2)", [*_significance(compared)]))
    looks = list(_looks(results))
    if looks:
        sections.append(Section("A look inside", looks))
    return sections


def _significance(compared: pd.DataFrame) -> Iterator[Block]:
    scores, own = printed_acsa(), _own_acsa(compared)
    columns = {"Tables 1 and 10 (14 rows)": scores, "Table 1 (7 sets)": scores.xs(0, level=1)}
    if set(METHODS) <= set(own) and len(own) > 1:
        columns[f"our runs ({len(own)} rows)"] = own[list(METHODS)]
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
    tests = [
        compared.pivot_table(index="dataset", columns="method", values=f"{test}_acsa") for test in PAPERS
    ]
    return pd.concat(tests, keys=PAPERS).dropna()


def _is_part(method: str) -> bool:
    return method.startswith("ours,")


def _told(mine: pd.DataFrame) -> Text:
    return Text(
        f"The budget of every method is what {mine['budget'].iloc[0]:,} batches of 128 cost the encoder and head "
        "under cross-entropy. Percent; mean ± standard deviation over seeds where there are several."
    )


PAPERS = {
    "balanced": {d: {m: n["acsa"] for m, n in of.items()} for d, of in PAPER.items()},
    "imbalanced": IMBALANCED,
}


def _measures(test: str) -> dict[str, str]:
    """On a balanced test set the macro G-mean is a function of ACSA, and so is left out."""
    return {name: title for name, title in MEASURES.items() if not (test == "balanced" and name == "g_mean")}


def _table(results: pd.DataFrame, test: str, dataset: str) -> Table:
    rows, measures = [], _measures(test)
    for method in ("ours", *RIVALS):
        mine = results[results["method"] == method]
        if len(mine):
            scores = [spread(mine[f"{test}_{name}"]) for name in measures]
            known = PAPERS[test].get(dataset, {}).get(method)
            rows.append([method, len(mine), *scores, known, f"{mine['fit_cpu_seconds'].mean():.0f}"])
    names = ["method", "seeds", *measures.values(), "paper's ACSA", "CPU seconds"]
    return Table(names, rows, f"{test.capitalize()} test set.", formats={"paper's ACSA": ".2f"})


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


def _parts_table(whole: pd.DataFrame, parts: pd.DataFrame) -> Table:
    """A part less the whole is taken seed by seed."""
    keys = ["dataset", "seed", "budget"]
    alike = whole[whole[keys].apply(tuple, axis=1).isin(parts[keys].apply(tuple, axis=1))]
    reference = alike.set_index(keys)["balanced_acsa"]
    rows, measures = [], _measures("balanced")
    for method, mine in pd.concat([alike, parts]).groupby("method", sort=False):
        scores = [spread(mine[f"balanced_{name}"]) for name in measures]
        change = (mine.set_index(keys)["balanced_acsa"] - reference).dropna()
        told = None if method == "ours" or not len(change) else change.mean()
        rows.append([str(method), len(mine), *scores, told, PARTS.get(str(method)), LATENTS.get(str(method))])
    names = ["method", "seeds", *measures.values(), "change", "paper, CIFAR-10", "paper, Fashion-MNIST"]
    caption = (
        f"Fashion-MNIST, balanced test set, {parts['budget'].iloc[0]:,} batches; change of ACSA, by seed. The "
        "paper's columns are ACSA. All rows have balanced batches; whether the paper's row without "
        "oversampling (35.51) has is not said, and the study oversampling-parts has both."
    )
    return Table(names, rows, caption, formats={"change": "+.2f", **dict.fromkeys(names[-2:], ".2f")})


def _long_table(long: pd.DataFrame) -> Table:
    rows, measures = [], _measures("balanced")
    for run in long.itertuples():
        scores = [getattr(run, f"balanced_{name}") for name in measures]
        known = PAPER[str(run.dataset)]["ours"]["acsa"]
        rows.append([run.dataset, run.seed, f"{run.budget:,}", *scores, known, f"{run.fit_cpu_seconds:.0f}"])
    names = ["data", "seed", "batches", *measures.values(), "paper's ACSA", "CPU seconds"]
    formats = dict.fromkeys([*measures.values(), "paper's ACSA"], ".2f")
    return Table(names, rows, "Balanced test set, one run each.", formats=formats)


def _looks(results: pd.DataFrame) -> Iterator[Block]:
    if "sheet" not in results:
        return
    kept = results[[isinstance(sheet, list) for sheet in results["sheet"]]]
    kept = kept.sort_values("budget", kind="stable").drop_duplicates("dataset", keep="last")
    for _, run in kept.iterrows():
        name = str(run["dataset"])
        yield _sheet_picture(run["sheet"], name)
        yield _plane_picture(np.array(run["plane"]), np.array(run["plane_labels"]), name)


def _sheet_picture(sheet: list[dict[str, Any]], name: str) -> Picture:
    from matplotlib.figure import Figure

    columns = len(sheet[0]["images"])
    figure = Figure(figsize=(0.62 * columns + 0.5, 0.66 * len(sheet)), layout="constrained")
    axes = figure.subplots(len(sheet), columns, squeeze=False)
    for row, own in zip(axes, sheet, strict=True):
        for ax, image in zip(row, own["images"], strict=True):
            ax.imshow(image, cmap="gray_r", vmin=0, vmax=255)
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        row[0].set_ylabel(f"class {own['label']}", fontsize=8)
    caption = "The rarest classes: four training images, then ten decoded mixes of two latents."
    return Picture.from_matplotlib(figure, f"oversampling-sheet-{name}", caption, f"Decoded mixes, {name}")


def _plane_picture(plane: Any, labels: Any, name: str) -> Picture:
    figure, panel = new_axes(5.6, 4.2)
    for code in np.unique(labels):
        own = plane[labels == code]
        color = PALETTE[int(code) % len(PALETTE)]
        panel.scatter(
            own[:, 0],
            own[:, 1],
            s=8,
            color=color,
            marker="o" if code < len(PALETTE) else "^",
            label=str(code),
        )
    panel.legend(title="class", fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    panel.set(xlabel="first principal component", ylabel="second")
    caption = f"Latents of test images of {name}, in the plane of largest variance."
    return Picture.from_matplotlib(figure, f"oversampling-latent-{name}", caption, "Latents by class")
