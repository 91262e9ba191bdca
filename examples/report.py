"""From a table to a diagnosis, a fair comparison, a threshold and a model, in Python.

Run: python examples/report.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import equipoise
from equipoise.advisor.job import Options, load_model, run_job
from equipoise.datasets import Table, load_breast_cancer_imbalanced


def main() -> None:
    data = load_breast_cancer_imbalanced()

    # 1. What is hard about these data?
    diagnosis = equipoise.diagnose(data.X, data.y, questions=["counts", "minority_types", "overlap"])
    for finding in diagnosis.findings:
        print(f"{finding.question}\n  {finding.answer}")

    # 2. Which treatment? Nested cross-validation on the same folds for all.
    result = equipoise.compare(
        data.X, data.y, treatments=["plain", "threshold", "weights_threshold"], repeats=1, random_state=0
    )
    print(result.summary.pivot(index="treatment", columns="metric", values="mean").round(3))

    # 3. All of it, as the command does: report.html, report.md, report.json and model/.
    import pandas as pd

    table = pd.DataFrame(data.X, columns=list(data.feature_names))
    table["diagnosis"] = [data.target_names[code] for code in data.y]
    with tempfile.TemporaryDirectory() as out:
        options = Options(out=out, treatments=["threshold", "weights_threshold"], repeats=1, budget=120)
        paths = run_job(Table.from_frame(table, "diagnosis", name="breast cancer"), options)
        print(sorted(path.name for path in Path(out).iterdir()), paths["html"].stat().st_size, "bytes")
        model = load_model(paths["model"])
        print(model.predict(table.head(3)), model.threshold)


if __name__ == "__main__":
    main()
