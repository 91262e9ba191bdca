"""The paper's claims, answered from the study's own cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from equipoise.report import Section, Table, Text

from ..shared.tables import paired
from .paper import SETS, TABLES, WITHOUT_FILM
from .spec import METRICS, RECALLS, trainings

_NAMES = {
    "focal": "Focal", "focal-lct": "Focal + LCT", "vs": "VS", "vs-lct": "VS + LCT",
    "vs-sam": "VS + SAM", "vs-sam-lct": "VS + SAM + LCT",
}  # fmt: skip
_TRUCK = SETS.index("automobile/truck")
LOWER = ("brier",)
KEYS = ["dataset", "beta", "seed"]


def gains(results: pd.DataFrame, metric: str, better: str, than: str) -> pd.Series:
    """How much one method beats another in a metric, paired over set, β and seed; positive is better."""
    wide = results.pivot_table(index=KEYS, columns="method", values=metric)
    if not {better, than} <= set(wide):
        return pd.Series(dtype=float)
    sign = -1.0 if metric in LOWER else 1.0
    return ((wide[better] - wide[than]) * sign).dropna()


def claims(results: pd.DataFrame) -> Section | None:
    """One line for each claim that the cells can answer."""
    pairs = _pairs(results, "vs")
    if not pairs:
        return None
    focal = _pairs(results, "focal")
    lines = [
        _winners(pairs, "VS"),
        *([_winners(focal, "Focal")] if focal else []),
        _recalls(pairs, "VS"),
        *([_recalls(focal, "Focal")] if focal else []),
        *_table_three(results),
        _boxes(pairs),
        _typical(pairs),
        _brier(pairs),
    ]
    columns = ["claim of the paper", "answer of these cells"]
    return Section("The paper's claims", [Table(columns, lines)])


def _pairs(results: pd.DataFrame, loss: str) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Cells of the loss retrained and conditional, for each set and imbalance of images that has both."""
    images = results[results["beta"] > 0]
    found = []
    for _, part in images.groupby(["dataset", "beta"]):
        plain, told = part[part["method"] == loss], part[part["method"] == f"{loss}-lct"]
        if len(plain) and len(told):
            found.append((plain, told))
    return found


def _mean(cells: pd.Series) -> Any:
    return np.mean([np.asarray(cell) for cell in cells], axis=0)


def _winners(pairs: list[tuple[pd.DataFrame, pd.DataFrame]], loss: str) -> list[str]:
    counts = [len(set(_mean(plain["precisions"]).argmax(axis=0))) for plain, _ in pairs]
    said = f"{min(counts)} to {max(counts)} of 16 retrained models are the best at some of {len(RECALLS)} recalls"
    verdict = _verdict(min(counts) > 1)
    return [f"§4.1, {loss}: different λ are best at different recalls", f"{verdict}: {said}"]


def _recalls(pairs: list[tuple[pd.DataFrame, pd.DataFrame]], loss: str) -> list[str]:
    gains = np.concatenate([_mean(t["precisions"])[0] - _mean(p["precisions"]).max(axis=0) for p, t in pairs])
    said = f"better at {int((gains > 0).sum())} of {len(gains)} recalls, on average by {gains.mean():+.3f}"
    verdict = "agrees" if (gains > 0).all() else "differs"
    return [
        f"Fig 1, {loss}: one conditional model beats the best retrained one at all recalls",
        f"{verdict}: {said}",
    ]


def _table_three(results: pd.DataFrame) -> list[list[str]]:
    """What conditioning adds to the AUC of each loss: the mean over seeds of each setting, then over settings."""
    lines = []
    for loss, claim in (
        ("vs", "conditioning improves VS"),
        ("focal", "conditioning improves Focal"),
        ("vs-sam", "conditioning improves VS + SAM, inconsistently"),
    ):
        said, found = [], []
        for kind, chosen in (("images", results["beta"] > 0), ("tables", results["beta"] == 0)):
            gain = gains(results[chosen], "auc", f"{loss}-lct", loss)
            if gain.empty:
                continue
            one = paired(100 * gain.groupby(level=["dataset", "beta"]).mean())
            better = int((gain.groupby(level=["dataset", "beta"]).mean() > 0).sum())
            said.append(f"{kind} {one} points of AUC, higher in {better} of {one.pairs} settings")
            found.append(one)
        if not found:
            continue
        words = {one.word("differs", "agrees") for one in found}
        verdict = words.pop() if len(words) == 1 else "cannot tell"
        lines.append([f"Table 3: {claim}", f"{verdict}: {'; '.join(said)} (95% intervals over settings)"])
    return lines


def _boxes(pairs: list[tuple[pd.DataFrame, pd.DataFrame]]) -> list[str]:
    shares = [float((_mean(t["auc_map"]) > _mean(p["auc_map"]).max()).mean()) for p, t in pairs]
    share = float(np.mean(shares))
    said = f"{share:.0%} of the trainings and λ have a higher AUC than the best retrained model"
    return [
        "Figs 4–7: most conditional models beat the best retrained one",
        f"{_verdict(share > 0.5)}: {said}",
    ]


def _typical(pairs: list[tuple[pd.DataFrame, pd.DataFrame]]) -> list[str]:
    """Not the best model, but the mean over all of them: what is not fitted to one bias ranks better."""
    plain, told = ([_mean(pair[side]["auc_map"]) for pair in pairs] for side in (0, 1))
    gains = np.array([one.mean() - other.mean() for one, other in zip(told, plain, strict=True)])
    within, between = (
        np.mean([np.ptp(one, axis=1).mean() for one in told]),
        np.mean([np.ptp(one) for one in plain]),
    )
    said = (
        f"the mean AUC over all trainings and λ is higher in {int((gains > 0).sum())} of {len(gains)} settings, by "
        f"{gains.mean():+.4f} on average; λ moves the AUC of one model by {within:.3f}, and the retrained models "
        f"differ by {between:.3f}"
    )
    verdict = f"{_verdict(gains.mean() > 0)} for the typical model"
    return ["§5.2: a model that is not fitted to one bias ranks better", f"{verdict}: {said}"]


def _brier(pairs: list[tuple[pd.DataFrame, pd.DataFrame]]) -> list[str]:
    tau = np.array([asked["tau"] for asked in trainings("vs-lct")[0].asked])
    scores = [np.mean([cell["brier"] for cell in told["tradeoff"]], axis=0) for _, told in pairs]
    ranks = [float(spearmanr(tau, score).statistic) for score in scores]
    least = [tau[int(np.argmin(score))] for score in scores]
    at_zero = sum(value == 0 for value in least)
    said = (
        f"rank correlation of τ and the Brier score {min(ranks):.2f} to {max(ranks):.2f}, yet the least score "
        f"is at τ = 0 in {at_zero} of {len(least)} settings: a test set of equal classes is best answered at τ = 1"
    )
    return ["Fig 2: a lower τ lowers the Brier score", f"{_verdict(at_zero == len(least))}: {said}"]


def _verdict(agrees: bool) -> str:
    return "agrees" if agrees else "differs"


def paper_section(results: pd.DataFrame) -> Section:
    """The paper's numbers on automobile/truck beside ours, and how its own tables stand."""
    part = results[results["dataset"].str.startswith("cifar") & (results["beta"] == 100)]
    ours = part.groupby("method")[list(METRICS)].mean()
    rows: list[list[Any]] = []
    for method, name in _NAMES.items():
        if method in ours.index:
            for metric in METRICS:
                rows.append([name, metric, TABLES[metric][name][_TRUCK], float(ours.loc[method, metric])])
    for name, auc in WITHOUT_FILM.items():
        method = {told: key for key, told in _NAMES.items()}[name] + "-nofilm"
        if method in ours.index:
            rows.append([f"{name}, without FiLM", "auc", auc, float(ours.loc[method, "auc"])])
    formats = {"paper": ".3f", "here": ".3f"}
    caption = (
        "CIFAR-10 automobile/truck at β = 100. Here truck is the frequent class, and the networks are small."
    )
    beside = Table(["method", "metric", "paper", "here"], rows, formats=formats, caption=caption)
    return Section("The paper's numbers", [beside, Text(_own_tables()), _all_numbers()])


def _own_tables() -> str:
    """How often conditioning wins in the paper's own tables."""
    parts = []
    for metric, table in TABLES.items():
        sign = -1 if metric == "brier" else 1
        won = {
            base: sum(sign * (a - b) > 0 for a, b in zip(table[f"{base} + LCT"], table[base], strict=True))
            for base in ("Focal", "VS", "VS + SAM")
        }
        parts.append(f"{metric} {won['Focal']}, {won['VS']}, {won['VS + SAM']}")
    return (
        "In the paper's own tables conditioning is better in so many of nine columns (Focal, VS, VS + SAM): "
        + "; ".join(parts) + "."
    )  # fmt: skip


def _all_numbers() -> Table:
    rows = [[metric, method, *values] for metric, table in TABLES.items() for method, values in table.items()]
    caption = "All of Tables 3 and 13–17; CIFAR sets at β = 100."
    return Table(["metric", "method", *SETS], rows, formats=dict.fromkeys(SETS, ".3f"), caption=caption)
