"""
From a table to a decision, in Python
=====================================

What is hard about these data, what is the best decision in the time there is, and how to change it later
without training.
"""

import tempfile
from pathlib import Path

import pandas as pd

import equipoise
from equipoise.datasets import load_breast_cancer_imbalanced

data = load_breast_cancer_imbalanced()
table = pd.DataFrame(data.X, columns=list(data.feature_names))
labels = [data.target_names[code] for code in data.y]

# %%
# What is hard about these data?

diagnosis = equipoise.diagnose(table, labels, questions=["counts", "minority_types", "overlap"])
for finding in diagnosis.findings:
    print(f"{finding.question}\n  {finding.answer}")

# %%
# The best decision within a few seconds, where a miss costs twenty false alarms.

advisor = equipoise.Advisor(cost={"fp": 1, "fn": 20}, budget="8s", verbose=False).fit(table, labels)
print(advisor.leaderboard_[["cost", "average_precision", "seconds"]].round(3))
for name, figure in advisor.operating_point_.figures.items():
    print(f"{name}: {figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f} in a fresh batch)")

# %%
# The page and the model, and another decision without training: at most 5 % alerts.

with tempfile.TemporaryDirectory() as out:
    paths = advisor.report(out)
    print(sorted(path.name for path in Path(out).iterdir()), paths["html"].stat().st_size, "bytes")
    model = equipoise.load(paths["model"])
print(model.retuned(alerts=0.05).predict(table.head(3)))
