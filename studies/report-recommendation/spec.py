"""Is the report's recommendation good? All treatments by nested cross-validation on benchmark sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from equipoise.studies.spec import Spec

SETS = [
    "ecoli", "arrhythmia", "solar_flare_m0", "car_eval_34", "car_eval_4", "yeast_ml8", "sick_euthyroid", "abalone",
    "abalone_19", "mammography",
]  # fmt: skip
MORE_SETS = ["optical_digits", "satimage", "pen_digits", "coil_2000", "isolet", "webpage"]
TREATMENTS = [
    "plain", "class_weight", "threshold", "weights_threshold", "smote", "undersampling", "boosting",
    "balanced_forest",
]  # fmt: skip
MORE_TREATMENTS = ["blend", "neural"]
METRICS = ("balanced_accuracy", "average_precision")


def run_cell(dataset: str, treatment: str, n_splits: int, repeats: int, seed: int) -> dict[str, Any]:
    """One treatment on one set: its scores on every outer fold."""
    from equipoise.advisor.compare import compare
    from equipoise.datasets import load_imblearn_benchmark

    data = load_imblearn_benchmark(dataset)
    result = compare(
        data.X, data.y, treatments=[treatment], n_splits=n_splits, repeats=repeats, random_state=seed
    )
    scores = result.scores.sort_values("fold")
    return {
        "rows": len(data.y),
        "positives": int(result.task.counts[1]),
        **{f"{metric}_folds": scores[metric].round(6).tolist() for metric in METRICS},
        "cell_seconds": float(scores["seconds"].sum()),
    }


def verdicts(results: Any) -> list[dict[str, Any]]:
    """Per set: the recommendation, its scores and the best's, and whether the two promises hold."""
    import pandas as pd

    from equipoise.advisor.compare.verdict import CREDIBLE, REFERENCE, judge

    rows = []
    for dataset, group in results.groupby("dataset", sort=False):
        order = [name for name in [*TREATMENTS, *MORE_TREATMENTS] if name in set(group["treatment"])]
        frames = []
        for _, row in group.iterrows():
            folds = {metric: row[f"{metric}_folds"] for metric in METRICS}
            frames.append(
                pd.DataFrame({"treatment": row["treatment"], **folds}).rename_axis("fold").reset_index()
            )
        scores = pd.concat(frames)
        verdict = judge(scores, order, 1 / int(group["n_splits"].iloc[0]), METRICS)
        means: Any = scores.groupby("treatment")[list(METRICS)].mean()
        errors: Any = scores.groupby("treatment")[list(METRICS)].sem()
        entry: dict[str, Any] = {"dataset": dataset, "rows": int(group["rows"].iloc[0])}
        entry["positives"] = int(group["positives"].iloc[0])
        entry["recommended"] = verdict.recommended
        for metric in METRICS:
            best = verdict.best[metric]
            entry[metric] = float(means.loc[verdict.recommended, metric])
            entry[f"best_{metric}"] = float(means.loc[best, metric])
            entry[f"error_{metric}"] = float(errors.loc[best, metric])
            entry[f"best_by_{metric}"] = best
        against = [verdict.against(REFERENCE, metric) for metric in METRICS]
        entry["worse_probability"] = max((d.worse for d in against if d), default=0.0)
        entry["within_one_error"] = verdict.shortfalls[verdict.recommended] <= 1
        entry["below_reference"] = entry["worse_probability"] > CREDIBLE
        rows.append(entry)
    return rows


def page(results: Any, spec: Spec) -> Sequence[Any]:
    """The table of sets, and how often the promises hold."""
    from equipoise.advisor._old_treatments import all_treatments
    from equipoise.report import Note, Section, Table

    rows = verdicts(results)
    labels = {name: treatment.label for name, treatment in all_treatments().items()}
    within = sum(row["within_one_error"] for row in rows)
    below = sum(row["below_reference"] for row in rows)
    note = (
        "The recommendation is within one standard error of the best of all treatments, on balanced "
        f"accuracy and on average precision, on {within} of {len(rows)} sets; it is credibly below class "
        f"weights with a tuned threshold on {below}."
    )
    table = Table(
        ["set", "rows", "positives", "recommended", "BA", "best BA", "s.e.", "AP", "best AP", "s.e. ",
         "within", "P(worse than weights + threshold)"],
        [
            [r["dataset"], r["rows"], r["positives"], labels.get(r["recommended"], r["recommended"]),
             r["balanced_accuracy"], r["best_balanced_accuracy"], r["error_balanced_accuracy"],
             r["average_precision"], r["best_average_precision"], r["error_average_precision"],
             "yes" if r["within_one_error"] else "no", r["worse_probability"]]
            for r in rows
        ],
        formats=dict.fromkeys(
            ["BA", "best BA", "s.e.", "AP", "best AP", "s.e. ", "P(worse than weights + threshold)"], ".3f"
        ),
    )  # fmt: skip
    return [
        Section(
            "Recommendations",
            [Note(note, "good" if within >= len(rows) - 1 and not below else "warning"), table],
        )
    ]


SPEC = Spec(
    name="report-recommendation",
    title="Is the report's recommended treatment as good as the best?",
    run_cell=run_cell,
    grid={"dataset": SETS, "treatment": TREATMENTS, "n_splits": 5, "repeats": 2, "seed": 0},
    sizes={
        "small": {"repeats": 1},
        "paper": {"dataset": [*SETS, *MORE_SETS], "treatment": [*TREATMENTS, *MORE_TREATMENTS]},
    },
    page=page,
    metrics=[],
)
