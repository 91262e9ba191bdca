"""The page of the conditional study: one table a metric, and the pictures of the paper from our own cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from equipoise.report import Headline, Picture, Section, Table, Text
from equipoise.studies.spec import Spec

from ..shared.tables import paired
from .claims import LOWER, claims, gains, paper_section
from .spec import ASKED, LAWS, METRICS, NAMES, RECALLS, SHOWN, VALUES, trainings

ORDER = (
    "vs", "vs-lct", "vs-lct-nofilm", "vs-lct-gamma", "vs-lct-tau", "vs-lct-rows",
    "vs-lct-authors", "vs-lct-scaled", "vs-sam", "vs-sam-lct", "vs-sam-lct-nofilm",
    "focal", "focal-lct", "focal-lct-nofilm",
)  # fmt: skip
PAIRS = (
    ("vs-lct", "vs"), ("vs-lct-authors", "vs"), ("vs-lct-rows", "vs"),
    ("vs-lct", "vs-lct-nofilm"), ("vs-lct-authors", "vs-lct-nofilm"), ("vs-lct-scaled", "vs-lct"),
    ("focal-lct", "focal"), ("vs-sam-lct", "vs-sam"),
)  # fmt: skip


def page(results: pd.DataFrame, spec: Spec) -> Sequence[Section]:
    """Verdict, claims, a table a metric, the paper's numbers, Table 4, and Figs 1–8."""
    everything, results = results, results[results["epochs"] == results["epochs"].min()]
    results = results.assign(typical_auc=[np.mean(cell) for cell in results["auc_map"]])
    answered = claims(results)
    sections = [
        Section("In short", [Headline(_claim(results)), *_verdict(results)]),
        *([] if answered is None else [answered]),
    ]
    sections += [Section(metric, [_table(results, metric)]) for metric in METRICS]
    table = _table_four(results)
    if table is not None:
        sections.append(Section("Losses with and without conditioning (Table 4)", [table]))
    longer = _longer(everything)
    if longer is not None:
        sections.append(Section("Longer training", [longer]))
    scarce = _scarce(results)
    if scarce is not None:
        sections.append(scarce)
    sections.append(paper_section(results))
    drawn = (_figure(results, loss) for _figure in (_figure_1, _figure_2) for loss in ("vs", "focal"))
    pictures = [picture for picture in (*drawn, _figure_3(), *_maps(results)) if picture]
    return [*sections, Section("Pictures", pictures)] if pictures else sections


def _claim(results: pd.DataFrame) -> str:
    """What one conditional model gains on the best of the retrained ones, on images and on tables."""
    said = []
    for kind, chosen in (("images", results["beta"] > 0), ("tables", results["beta"] == 0)):
        found = [
            (name, paired(100 * gains(results[chosen], metric, "vs-lct", "vs")))
            for name, metric in (("AUC", "auc"), ("average precision", "average_precision"))
            if len(gains(results[chosen], metric, "vs-lct", "vs"))
        ]
        told = " and ".join(f"{one} points of {name} ({one.word('worse', 'better')})" for name, one in found)
        said += [f"On {kind} one conditional model gains {told}, {found[0][1].pairs} pairs."] if found else []
    return " ".join([*said, "Gains are over the best of sixteen retrained models, with 95% intervals."])


def _verdict(results: pd.DataFrame) -> list[Any]:
    """Paired differences over all sets and seeds, and in how many (set, β) their mean is not negative."""
    rows: list[list[Any]] = []
    for kind, chosen in (("images", results["beta"] > 0), ("tables", results["beta"] == 0)):
        for (better, than), metric in itertools.product(PAIRS, (*METRICS, "typical_auc")):
            gain = gains(results[chosen], metric, better, than)
            if gain.empty:
                continue
            settings = gain.groupby(level=["dataset", "beta"]).mean()
            rows.append([
                kind, better, than, metric, gain.mean(), gain.sem() if len(gain) > 1 else float("nan"),
                f"{int((settings >= 0).sum())} of {len(settings)}", f"{int((gain > 0).sum())} of {len(gain)}",
            ])  # fmt: skip
    columns = ["data", "method", "against", "metric", "gain", "±", "settings not worse", "pairs better"]
    formats = {"gain": "+.4f", "±": ".4f"}
    said = (
        "Gains are paired over set, imbalance and seed and signed so that positive is better; ± is the standard "
        "error of their mean. typical_auc is the mean AUC of all trainings under all λ, not of the chosen one."
    )
    return [Text(said), Table(columns, rows, formats=formats)]


def _table(results: pd.DataFrame, metric: str) -> Table:
    grouped = results.groupby(["dataset", "beta", "method"])[metric]
    means, spreads = grouped.mean().unstack(), grouped.std().unstack()
    methods = [method for method in ORDER if method in means]
    rows: list[list[Any]] = []
    for key in means.index:
        values = means.loc[key, methods]
        best = values.idxmin() if metric in LOWER else values.idxmax()
        shown = [
            "" if pd.isna(values[m]) else f"{values[m]:.3f} ± {spreads.loc[key, m]:.3f}" + " ★" * (m == best)
            for m in methods
        ]
        rows.append([key[0], "" if key[1] == 0 else str(key[1]), *shown])
    caption = (
        "Mean and standard deviation over seeds of the test score; model and λ chosen on validation data."
    )
    return Table(["set", "β", *methods], rows, caption=caption)


def _table_four(results: pd.DataFrame) -> Table | None:
    part = results[results["dataset"].str.startswith("cifar") & (results["beta"] == 100)]
    means = part.groupby("method")["auc"].mean()
    losses = [loss for loss in ("vs", "vs-sam", "focal") if loss in means]
    if len(losses) < 2:
        return None
    rows = [
        [label, *(means.get(loss + suffix, float("nan")) for loss in losses)]
        for label, suffix in (("baseline", ""), ("+ LCT", "-lct"), ("+ LCT without FiLM", "-lct-nofilm"))
    ]
    caption = "AUC on CIFAR-10 truck/automobile at β = 100, mean over seeds."
    return Table(["", *losses], rows, formats=dict.fromkeys(losses, ".3f"), caption=caption)


def _longer(results: pd.DataFrame) -> Table | None:
    """The settings that were also trained for longer, retrained and conditional, on the same seeds."""
    lengths = results[results["epochs"] > results["epochs"].min()]
    keys = ["dataset", "beta", "seed", "method"]
    both = results.merge(lengths[keys].drop_duplicates(), on=keys)
    if lengths.empty:
        return None
    rows = [
        [*names, len(part), *(part[metric].mean() for metric in METRICS)]
        for names, part in both.groupby(["dataset", "beta", "epochs", "method"])
    ]
    caption = "Test scores, mean over the seeds that were run for both lengths."
    columns = ["set", "β", "epochs", "method", "seeds", *METRICS]
    return Table(columns, rows, formats=dict.fromkeys(METRICS, ".3f"), caption=caption)


def _scarce(results: pd.DataFrame) -> Section | None:
    """Conditioning judged by models and λ that were chosen on as few positives as training has."""
    if "scarce" not in results:
        return None
    many = results[(results["beta"] > 0) & results["scarce"].notna()]
    few = many.assign(**{metric: [cell[metric] for cell in many["scarce"]] for metric in METRICS})
    rows: list[list[Any]] = []
    for (better, than), metric in itertools.product(PAIRS, METRICS):
        gain, scarce = (gains(part, metric, better, than) for part in (many, few))
        if gain.empty:
            continue
        lost = (many[metric] - few[metric]) * (-1.0 if metric in LOWER else 1.0)
        costs = [lost[many["method"] == method].mean() for method in (than, better)]
        rows.append(
            [better, than, metric, len(gain), gain.mean(), gain.sem(), scarce.mean(), scarce.sem(), *costs]
        )
    if not rows:
        return None
    said = (
        "Images only: these cells also chose on a validation set at the training imbalance (500 negatives with 5 "
        "or 2 positives), one draw a seed. The validation rows of the tables have the training imbalance "
        "anyway, so that their gains above are of this kind already. The last two columns are what the choice on "
        "few positives costs."
    )
    shown = ["lost, retrained", "lost, conditional"]
    columns = [
        "method",
        "against",
        "metric",
        "pairs",
        "gain, many positives",
        "±",
        "gain, few",
        "± (few)",
        *shown,
    ]
    signed = dict.fromkeys(("gain, many positives", "gain, few", *shown), "+.4f")
    table = Table(columns, rows, formats={**signed, "±": ".4f", "± (few)": ".4f"})
    return Section("Chosen at the training imbalance", [Text(said), table])


def _of(results: pd.DataFrame, method: str, dataset: str, beta: int) -> pd.DataFrame:
    chosen = (results["method"] == method) & (results["dataset"] == dataset) & (results["beta"] == beta)
    return results[chosen]


def _figure_3() -> Picture:
    """The densities of λ that the study trains with, and their integrals."""
    from equipoise.classifiers import plot_densities
    from equipoise.training import Linear

    laws = {"γ": "gamma", "τ": "tau", "α": "alpha", "φ": "phi"}
    drawn = {sign: [Linear(*law) for law in LAWS[name]] for sign, name in laws.items()}
    caption = "The densities L(a, b, h) that λ is drawn from (Table 2, as Fig 3), and their integrals."
    return Picture.from_matplotlib(plot_densities(drawn), "conditional-densities", caption, "Densities of λ")


def _figure_1(results: pd.DataFrame, loss: str) -> Picture | None:
    """Precision at eight recalls: the retrained models that are best somewhere, and one conditional model."""
    from equipoise.classifiers import plot_precision_at_recalls

    drawn = []
    for dataset, beta in _settings(results):
        plain, told = (_of(results, method, dataset, beta) for method in (loss, f"{loss}-lct"))
        if plain.empty or told.empty:
            continue
        curves = np.mean([np.asarray(cell) for cell in plain["precisions"]], axis=0)
        labels = [training.label() for training in trainings(loss)]
        one = np.mean([np.asarray(cell)[0] for cell in told["precisions"]], axis=0)
        drawn.append((f"{dataset}, β = {beta}", dict(zip(labels, curves, strict=True)), one))
    if not drawn:
        return None
    figure = plot_precision_at_recalls(RECALLS, drawn)
    caption = (
        f"Precision on test data at eight recalls, mean over seeds (Fig 1): every retrained {loss} model that is "
        "the best of its kind at some recall, and the one conditional model with the best average precision on "
        "validation data."
    )
    return Picture.from_matplotlib(
        figure, "conditional-recalls" + _suffix(loss), caption, "Line plots of precision over recall"
    )


def _suffix(loss: str) -> str:
    return "" if loss == "vs" else f"-{loss}"


def _figure_2(results: pd.DataFrame, loss: str) -> Picture | None:
    """What one conditional model can be, λ by λ, beside the one retrained model with the best AUC."""
    from equipoise.classifiers import plot_tradeoff

    drawn = []
    for dataset, beta in _settings(results):
        plain, told = (_of(results, method, dataset, beta) for method in (loss, f"{loss}-lct"))
        if plain.empty or told.empty:
            continue
        table = pd.DataFrame(trainings(f"{loss}-lct")[0].asked)
        for name in SHOWN:
            table[name] = np.mean([cell[name] for cell in told["tradeoff"]], axis=0)
        rival = {name: float(np.mean([cell[name] for cell in plain["tradeoff"]])) for name in SHOWN}
        drawn.append((f"{dataset}, β = {beta}", table, rival))
    chosen = [one for one in drawn if "pneumonia" in one[0]][-1:] or drawn[-1:]  # medical, as in the paper
    if not chosen:
        return None
    title, table, rival = chosen[0]
    figure = plot_tradeoff(table, "auc", SHOWN[1:], color=NAMES[loss][1], rival=rival)
    caption = (
        f"{title}: AUC against three metrics on test data for {len(table)} λ of the conditional model with the "
        f"best AUC on validation data, mean over seeds (Fig {2 if loss == 'vs' else 8}); the cross is the "
        "retrained model with the best AUC."
    )
    return Picture.from_matplotlib(
        figure, "conditional-tradeoff" + _suffix(loss), caption, "Scatter plots over λ"
    )


def _maps(results: pd.DataFrame) -> list[Picture]:
    """Figs 4–7: AUC of sixteen models, each conditional one a block of its answers."""
    from equipoise.classifiers import plot_training_maps

    dataset, beta = "cifar-truck/automobile", 100
    kinds = {
        "vs": "retrained (Fig 4)", "vs-lct": "λ = (γ, τ) (Fig 5)", "vs-lct-gamma": "λ = γ (Fig 6)",
        "vs-lct-tau": "λ = τ (Fig 7)",
    }  # fmt: skip
    ticks = {name: [f"{value:g}\nL{law}" for value, law in _trained(name)] for name in NAMES["vs"]}
    drawn = []
    for method, title in kinds.items():
        part = _of(results, method, dataset, beta)
        if part.empty:
            continue
        scores = np.mean([np.asarray(cell) for cell in part["auc_map"]], axis=0)
        told = tuple(trainings(method)[0].laws)
        shape = tuple(len(ASKED[name]) if name in told else 1 for name in NAMES["vs"])
        drawn.append((title, scores.reshape(len(VALUES["gamma"]), len(VALUES["tau"]), *shape)))
    if not drawn:
        return []
    figure = plot_training_maps(
        drawn,
        rows="γ or its density",
        columns="τ or its density",
        row_ticks=ticks["gamma"],
        column_ticks=ticks["tau"],
    )
    caption = (
        "Test AUC on truck/automobile at β = 100, mean over seeds: sixteen trainings of each kind in the order of "
        "Table 2; within each block of a conditional model its answers over γ (down) and τ (across)."
    )
    return [
        Picture.from_matplotlib(figure, "conditional-maps", caption, "Heat maps of AUC over trainings and λ")
    ]


def _trained(name: str) -> list[tuple[float, str]]:
    """The four values of a hyper-parameter that baselines train with, and the four densities beside them."""
    told = ["(" + ", ".join(f"{number:.3g}" for number in law) + ")" for law in LAWS[name]]
    return list(zip(VALUES[name], told, strict=True))


def _settings(results: pd.DataFrame) -> list[tuple[str, int]]:
    images = results[results["beta"] > 0]
    return list(dict.fromkeys(zip(images["dataset"], images["beta"], strict=True)))
