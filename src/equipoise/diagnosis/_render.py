"""The sentences and figures of the diagnosis: one function per question, from its numbers to words and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from equipoise.diagnosis._contract import Answer, Sample
from equipoise.report import (
    COLORS,
    PALETTE,
    Block,
    Details,
    Figure,
    Table,
    bar,
    new_figure,
    plain,
    plain_labels,
    scatter,
)

_Rendered = tuple[str, Sequence[Block]]
_POPULATIONS = {
    "tail": "Anomaly-detection imbalance: the rare class is cut off from one population, like its tail. "
    "The threshold then matters more than new points.",
    "group": "Separate groups: the rare class has a distribution of its own. Methods that model each class, "
    "or add points inside the group, can help.",
    "undecided": "The rare class may be a tail or a group of its own: these data cannot tell.",
}
_WAYS = {
    "subset": ("leaving common rows out", COLORS["majority"], "solid"),
    "weights": ("weighting the classes", COLORS["accent"], "solid"),
    "fresh": ("fresh rows", PALETTE[2], "dot"),
}
_THEORY = (
    "Pezzicoli, Ros, Landes & Baity-Jesi: a perceptron that learns a hyperplane cut into one Gaussian "
    "population, with the load and the noise at which it does what a linear classifier does on these rows. "
    "The share is that of the rows, or of their weight. Leaving rows out and class weights use the rows at hand; "
    "the dotted line would need as many fresh rows at that share. The model knows no label noise, no ridge penalty "
    "and no other shape of features."
)
_TYPE_SHADES = (COLORS["accent"], PALETTE[7], PALETTE[3], COLORS["minority"])


def render(name: str, sample: Sample, answer: Answer) -> _Rendered:
    """The sentence and the blocks of a question's answer."""
    made: _Rendered = globals()[f"_{name}"](sample, dict(answer.values), dict(answer.shown))
    return made


def _counts(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    counts, total = sample.counts, int(sample.counts.sum())
    rare, common = sample.rare, int(counts.argmax())
    low, high = v["share_interval"]
    text = (
        f"{sample.label(rare)} has {counts[rare]:,} of {total:,} rows, {v['share']:.2%} "
        f"({low:.2%} to {high:.2%}); {sample.label(common)} has {v['ratio']:.1f} times as many "
        f"({v['ratio_interval'][0]:.1f} to {v['ratio_interval'][1]:.1f})."
    )
    if v["few"]:
        text += " With so few, every figure about this class is rough: read the intervals, not the means."
    order = np.argsort(-counts, kind="stable")
    labels = plain_labels(sample.classes[code] for code in order)
    shades = [COLORS["minority"] if code == rare else COLORS["majority"] for code in order]
    many = len(labels) > 40
    bars = bar(
        x=labels, y=counts[order], marker_color=shades, text=None if many else [f"{c:,}" for c in counts[order]],
        textposition="outside", cliponaxis=False, hovertemplate="%{x}: %{y:,} rows<extra></extra>",
    )  # fmt: skip
    figure = new_figure(bars, y="rows", margin_t=28)
    figure.update_xaxes(type="category", showticklabels=not many, showgrid=False)
    spare = max(3 - len(labels), 0) / 2  # two bars are not as wide as the page
    figure.update_layout(bargap=0.35, xaxis_range=[-0.75 - spare, len(labels) - 0.25 + spare])
    alt = "Bar chart of class sizes: " + ", ".join(
        f"{plain(sample.classes[c], 24)} {counts[c]}" for c in order[:12]
    )
    caption = f"The sizes of the {len(labels)} classes, largest first." if many else "Class sizes."
    return text, [Figure(figure, caption, alt, 300)]


def _effective_numbers(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    nominal, ratio = sample.counts.max() / sample.counts.min(), v["ratio"]
    text = f"Counting near-copies once, the imbalance is {ratio:.1f} to 1 instead of {nominal:.1f} to 1: "
    if ratio < 0.8 * nominal:
        text += "the large class repeats itself, so weights by counts would overshoot."
    elif ratio < 1.25 * nominal:
        text += "rows hardly repeat, so counts may be taken at face value."
    else:
        text += "the small class repeats itself, so it is rarer than its count says."
    columns = ["class", "rows", "distinct share", "effective number"]
    rows = [
        [str(label), int(count), distinct, effective]
        for label, count, distinct, effective in zip(
            sample.classes, sample.counts, shown["distinct"], v["effective"], strict=True
        )
    ]
    caption = "Random covering (Cui et al. 2019): E = (1 − βⁿ)/(1 − β), β set by the near-copies found."
    table = Table(columns, rows, caption, {columns[2]: ".1%", columns[3]: ".0f"})
    return text, [Details("Effective numbers", [table])]


def _scatter(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    factor, asked = v["factor"], shown["asked"]
    words = "farther than" if factor > 1.25 else "less far than" if factor < 0.8 else "about as far as"
    text = (
        f"Across the boundary {sample.label(shown['classes'][asked])} spreads {words} the others "
        f"({factor:.2f} times); the nearest other class's mean lies {v['separation'][asked]:.1f} of its own "
        "deviations away."
    )
    columns = ["class", "deviation across the boundary", "distance to the nearest mean", "distance/deviation"]
    rows = [
        [str(sample.classes[code]), spread, gap, ratio]
        for code, spread, gap, ratio in zip(
            shown["classes"], shown["spreads"], shown["gaps"], v["separation"], strict=True
        )
    ]
    return text, [Details("Data scatter", [Table(columns, rows, formats=dict.fromkeys(columns[1:], ".2f"))])]


def _map(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    rows, points = shown["rows"], shown["points"]
    y, order = sample.y[rows], np.argsort(-sample.counts, kind="stable")
    traces = []
    for rank, code in enumerate(order):
        rare = code == sample.rare
        other = COLORS["majority"] if len(order) == 2 else PALETTE[rank % len(PALETTE)]
        mine, name = y == code, plain(sample.classes[code], 24)
        marker = {"color": COLORS["minority"] if rare else other, "size": 8 if rare else 5,
                  "opacity": 0.9 if rare else 0.45, "symbol": "diamond" if rare else "circle"}  # fmt: skip
        across, along = points[mine].T
        traces.append(
            scatter(x=across, y=along, customdata=rows[mine], mode="markers", name=name, marker=marker,
                    hovertemplate=f"{name}, row %{{customdata}}<extra></extra>")
        )  # fmt: skip
    figure = new_figure(*traces, x="across the boundary", y="along it")
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False)
    text = (
        f"Rows are laid out across the linear boundary of {sample.label(sample.rare)} and along the widest "
        f"direction beside it. The plane holds {v['variance_share']:.0%} of the variance, so points that "
        "coincide here may still differ."
    )
    caption = "A map of the rare class among the others."
    return text, [Figure(figure, caption, "Scatter plot of all classes.", 420)]


def _minority_types(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    text = (
        f"Of the {sample.label(sample.rare)} rows {v['safe']:.0%} are safe, {v['borderline']:.0%} borderline, "
        f"{v['rare']:.0%} rare and {v['outlier']:.0%} outliers by their five nearest neighbors. "
    )
    if v["rare"] + v["outlier"] > 0.5:
        text += "Most are strewn among the others: interpolating between them would fill the wrong region."
    elif v["safe"] > 0.6:
        text += "They keep together: weights, a threshold or interpolation can all work."
    else:
        text += "The boundary region decides: compare treatments there rather than overall."
    bars = [
        bar(x=[v[kind]], y=[""], name=kind, orientation="h", marker_color=shade,
            hovertemplate=f"{kind}: %{{x:.1%}}<extra></extra>")
        for kind, shade in zip(("safe", "borderline", "rare", "outlier"), _TYPE_SHADES, strict=True)
    ]  # fmt: skip
    figure = new_figure(*bars, barmode="stack", x="share of the rare rows")
    figure.update_xaxes(tickformat=".0%", range=[0, 1])
    alt = ", ".join(f"{kind} {v[kind]:.0%}" for kind in ("safe", "borderline", "rare", "outlier"))
    return text, [Figure(figure, "", alt, 150)]


def _overlap(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    overlap, worst = v["overlap"], int(np.nanargmax(v["by_class"]))
    text = (
        f"With all classes weighted alike, {overlap:.0%} of the rows lie in a neighborhood of another class; "
        f"most of {sample.label(worst)}, {v['by_class'][worst]:.0%}. "
    )
    if overlap < 0.05:
        text += "The classes are all but separate: imbalance is hardly a problem here."
    elif overlap < 0.25:
        text += "There is room for a good boundary, and where it lies is a matter of costs."
    else:
        text += "No rebalancing separates what overlaps: better columns will help more than any treatment."
    return text, []


def _duplicates(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    if v["conflicting_rows"]:
        text = (
            f"{v['conflicting_rows']:,} rows have a twin with another label ({v['conflicts']:,} groups): "
            "no model can get them all right; settle their labels or add the column that tells them apart."
        )
    elif "described" in shown:
        text = shown["described"]
    elif v["repeated_rows"]:
        text = (
            f"{v['repeated_rows']:,} rows repeat another row with the same label. If they are the same event "
            "recorded twice, remove them: copies in both training and test rows make every score too good."
        )
    else:
        text = "No row occurs twice."
    return text, []


def _leakage(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    found = []
    if v["given_away"]:
        named = ", ".join(f"“{name}”" for name in v["given_away"][:5])
        found.append(
            f"{named} alone tells the classes apart almost perfectly: was it known before the outcome?"
        )
    if v["filled_for_rare"]:
        named = ", ".join(f"“{name}”" for name in v["filled_for_rare"][:5])
        found.append(
            f"Whether {named} is filled gives {sample.label(sample.rare)} away: was it known before the outcome?"
        )
    if v["copied"]:
        share = v["copied_share"]
        found.append(f"{share:.0%} of the rare rows are copies of each other, as after random over-sampling.")
    if v["interpolated"]:
        found.append(
            f"{v['interpolated_share']:.0%} of the rare rows lie exactly between two others, as SMOTE leaves "
            "them: go back to the data before resampling."
        )
    if not found:
        found.append(
            f"No column alone gives the target away (the best, “{v['best_column']}”, ranks it with an AUC of "
            f"{v['best_auc']:.2f}), and the rare rows do not look resampled."
        )
    return " ".join(found), []


def _drift(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    low, high = v["auc_interval"]
    told = f"an AUC of {v['auc']:.2f}, {low:.2f} to {high:.2f}, where 0.5 is chance"
    first, last = v["share_change_interval"]
    share = (
        f"{sample.label(sample.rare)} has {v['share_early']:.2%} of the earlier rows and {v['share_late']:.2%} of "
        f"the later ones (a change of {100 * first:+.2f} to {100 * last:+.2f} points, 97.5% sure)"
    )
    if v["drifts"]:
        least = 0.35 * abs(v["columns"][0]["auc"] - 0.5)
        named = "; ".join(_moved(c) for c in v["columns"][:3] if abs(c["auc"] - 0.5) >= least)
        text = f"Later rows can be told from earlier ones ({told}). What moved most: {named}. "
    else:
        text = f"Later rows cannot be told from earlier ones ({told}). "
    text += f"{share}." if v["share_moves"] else f"{share}, which may be chance."
    if v["drifts"] or v["share_moves"]:
        text += " Expect less of new rows than of old ones: judge with --time, and fit again as rows come."
    names = [f"{part} {i + 1}" for part in ("early", "late") for i in range(len(shown["shares"]) // 2)]
    shades = [COLORS["majority"]] * (len(names) // 2) + [COLORS["minority"]] * (len(names) // 2)
    bars = bar(x=names, y=shown["shares"], marker_color=shades, hovertemplate="%{x}: %{y:.2%}<extra></extra>")
    figure = new_figure(bars, y="share of its rows")
    figure.update_yaxes(tickformat=".2~%", rangemode="tozero")
    caption = f"The share of {sample.label(sample.rare)} in ten parts of the rows, in the order of time."
    return text, [Figure(figure, caption, "Bar chart of the rarest class's share over time.", 260)]


def _moved(column: dict[str, Any]) -> str:
    """A column and how it moved, in words."""
    name = f"“{column['name'][:60]}”"
    if column["by_gaps"]:
        before, after = column["missing"]
        return f"{name} (missing in {before:.0%}, then in {after:.0%})"
    if column["kind"] in ("category", "text"):
        value = plain(column["value"], 24)
        return f"{name} (“{value}” in {column['early']:.0%}, then in {column['late']:.0%})"
    if column["kind"] == "date":
        before, after = (f"{np.datetime64(int(column[half]), 's')}"[:10] for half in ("early", "late"))
        return f"{name} (median {before}, then {after})"
    return f"{name} (median {column['early']:.3g}, then {column['late']:.3g})"


def _folds(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    text = (
        f"With {v['folds']} folds each test fold has about {v['per_fold']} of {sample.label(sample.rare)}, so that "
        f"a recall moves in steps of {1 / max(v['per_fold'], 1):.2g} there; over all folds a recall of 80% is "
        f"known to ±{1.96 * v['recall_error']:.1%}."
    )
    if v["per_fold"] < 10:
        text += " Smaller differences between treatments cannot be seen: repeat the folds, or collect more."
    return text, []


def _label_noise(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    number = v["found"]
    if not number:
        return "No label looks wrong to two different models.", []
    text = (
        f"{number:,} of {v['asked']:,} rows ({v['share']:.1%}) look mislabeled to two different models, among "
        f"them {v['by_class'][sample.rare]:.0%} of the {sample.label(sample.rare)} rows. Look at those listed "
        "before trusting small differences."
    )
    columns = ["row", "label", "looks like", "probability of its label"]
    listed = [
        [int(row), str(sample.classes[label]), str(sample.classes[other]), float(p)]
        for row, label, other, p in zip(
            shown["rows"], shown["labels"], shown["looks_like"], shown["probability"], strict=True
        )
    ]
    caption = "Rows counted from 0, most suspicious first."
    return text, [Details("Rows to look at", [Table(columns, listed, caption, {columns[3]: ".3f"})])]


def _learning_curve(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    low, high = v["gain_interval"]
    text = (
        f"With twice as many {sample.label(sample.rare)} rows a linear model's balanced accuracy would go from "
        f"{v['now']:.3f} to about {v['doubled']:.3f} (a change of {low:+.3f} to {high:+.3f}). "
    )
    text += {
        "yes": "Collecting more rare rows is worth more than most treatments.",
        "no": "More of the same would change little: better columns or another model would.",
        "not sure": "Whether more rows pay is not sure yet.",
    }[v["pays"]]
    at, sizes, scores = shown["at"], shown["sizes"], shown["scores"]
    unique = np.unique(sizes)
    means = np.array([scores[sizes == n].mean() for n in unique])
    spread = np.array([scores[sizes == n].std(ddof=1) / np.sqrt((sizes == n).sum()) for n in unique])
    hover = "%{x} rare rows: %{y:.3f}<extra></extra>"
    band = scatter(x=np.concatenate([at, at[::-1]]), y=np.concatenate([shown["high"], shown["low"][::-1]]),
                   fill="toself", fillcolor=COLORS["soft"], line={"width": 0}, name="95% band",
                   hoverinfo="skip")  # fmt: skip
    line = scatter(x=at, y=shown["middle"], mode="lines", name="fit", hovertemplate=hover,
                   line={"color": COLORS["accent"], "dash": "dash"})  # fmt: skip
    dots = scatter(x=unique, y=means, mode="markers", name="measured", hovertemplate=hover,
                   marker={"color": COLORS["minority"], "size": 9},
                   error_y={"type": "data", "array": spread, "thickness": 1.2, "width": 3})  # fmt: skip
    figure = new_figure(band, line, dots, x="rare rows in training", y="balanced accuracy")
    caption = "Measured on held-out rows, and extrapolated by a power law."
    return text, [Figure(figure, caption, "Learning curve.", 320)]


def _population(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    text = f"{_POPULATIONS[v['kind']]} (Evidence {v['evidence']:+.1f} standard errors"
    text += f"; about {v['label_noise']:.1%} of the labels look wrong.)" if v["label_noise"] > 0.002 else ".)"
    position, mine = shown["positions"], shown["mine"]
    edges = np.histogram_bin_edges(position, 40)
    name = plain(sample.classes[sample.rare], 24)
    traces = []
    for rows, label, color in ((~mine, "the others", COLORS["majority"]), (mine, name, COLORS["minority"])):
        density, _ = np.histogram(position[rows], edges, density=True)
        traces.append(bar(x=(edges[:-1] + edges[1:]) / 2, y=density, name=label, marker_color=color,
                          opacity=0.75, hovertemplate=f"{label}: %{{y:.2f}}<extra></extra>"))  # fmt: skip
    figure = new_figure(*traces, x="position across the boundary (held-out)", y="density in its class",
                        barmode="overlay", bargap=0)  # fmt: skip
    caption = "Each class's rows across a linear boundary, each scaled to its own size."
    return text, [Figure(figure, caption, "Histograms of both classes across the boundary.", 280)]


def _training_ratio(sample: Sample, v: dict[str, Any], shown: dict[str, Any]) -> _Rendered:
    plan = shown["plan"]
    gains = ", ".join(
        f"{label} {v[way]['gain_at_half']:+.3f} ({low:+.3f} to {high:+.3f})"
        for way, (label, _, _) in _WAYS.items()
        for low, high in [v[way]["gain_at_half_interval"]]
    )
    best = {
        "subset": f"the best is to keep {plan.subset.n_negative:,} of the {plan.n_negative:,} common rows, "
        f"a share of {v['subset']['share']:.2f} ({v['subset']['gain']:+.3f})",
        "weights": "the best is to weight the classes so that the rare one has "
        f"{v['weights']['share']:.0%} of the weight ({v['weights']['gain']:+.3f})",
        "as is": "the best is to train on all rows as they are",
    }[v["best"]]
    worth = {
        "usable": "The solvable model of anomaly detection fits data like these.",
        "weak": "The solvable model of anomaly detection fits these data only in part.",
        "worthless": "The solvable model of anomaly detection does not apply to these data.",
    }[v["verdict"]]
    doubts = " ".join(reason.removeprefix("Worthless: ").capitalize() for reason in shown["doubts"])
    text = (
        f"{worth} {doubts}{' ' if doubts else ''}With the rows at hand {best} in balanced accuracy. "
        f"At equal shares the model expects: {gains}."
    )
    hover = "share %{x:.2f}<br>balanced accuracy %{y:.3f}<extra></extra>"
    traces = [
        scatter(x=plan.shares, y=np.round(getattr(plan, f"{way}_curve"), 4), mode="lines", name=label,
                line={"color": color, "width": 2.5, "dash": dash}, hovertemplate=f"{label}<br>{hover}")
        for way, (label, color, dash) in _WAYS.items()
    ]  # fmt: skip
    own = scatter(x=[v["share"]], y=[v["as_is"]], mode="markers", name="all rows as they are",
                  marker={"color": COLORS["minority"], "size": 12},
                  hovertemplate=f"all rows<br>{hover}")  # fmt: skip
    figure = new_figure(*traces, own, x="share of rare rows in training", y="balanced accuracy, in theory")
    return text, [
        Figure(figure, _THEORY, "Theory: what the pool of rows gives at every training share.", 340)
    ]
