"""
A study from a file
===================

A grid of methods, learners and data sets that is run, killed and resumed at will, and read back as a table.
"""

import sys
import tempfile
from pathlib import Path

from equipoise.studies import Store, load_spec, run_study
from equipoise.studies.pages import write_pages

spec = load_spec(Path(sys.argv[0]).with_name("bench.toml"))
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "my-study.sqlite"
    counts = run_study(spec, path, jobs=1, only={"fold": ["0", "1"]})
    counts = run_study(spec, path, jobs=1, resume=True)  # only what is missing runs
    print(f"{counts.done} cells done, {counts.failed} failed")
    with Store(path, read_only=True) as store:
        frame = store.frame(spec.name)
    print(frame.groupby(["dataset", "method"], sort=False)["balanced_accuracy"].agg(["mean", "std"]).round(3))
    print("pages:", ", ".join(page.name for page in write_pages(path, folder)))
