"""The same table gives the same model, whatever the order of hashes, rows, columns and threads."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attack import formats
from equipoise.advisor import Advisor, load

SETTINGS = {"treatments": ["lightgbm", "logistic"], "trials": 0, "budget": 600}
ROWS = np.random.default_rng(1)
FRAME = pd.DataFrame(ROWS.normal(size=(120, 3)), columns=["a", "b", "c"])
FRAME["kind"] = ROWS.choice(["u", "v", "w"], len(FRAME))
LABELS = np.where(FRAME["a"] + ROWS.normal(size=len(FRAME)) > 1, "yes", "no")


def fit_and_save(place: str) -> None:
    """Run in processes of their own, by the test below."""
    Advisor(**SETTINGS, n_jobs=1).fit(FRAME, LABELS).save(place)


def bits(place: Path) -> dict[str, str]:
    """All files of a model but those that tell the time that it took; of an archive, whose names are addresses in
    memory, the arrays.
    """
    told = {"advisor.json", "seal.json"}
    paths = [path for path in sorted(place.rglob("*")) if path.is_file() and path.name not in told]
    return {str(path.relative_to(place)): content(path) for path in paths}


def content(path: Path) -> str:
    if not zipfile.is_zipfile(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()
    with zipfile.ZipFile(path) as archive:
        return str([entry.CRC for entry in archive.infolist() if entry.filename != "schema.json"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_order_of_hashes_does_not_change_a_bit(tmp_path, tally):
    for seed in ("0", "1"):
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", "import sys; from attack.test_same import fit_and_save; "
             "fit_and_save(sys.argv[1])", str(tmp_path / seed)],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    first, second = bits(tmp_path / "0"), bits(tmp_path / "1")
    assert len(first) > 5
    tally(
        "same bits of a model's files, PYTHONHASHSEED 0 and 1",
        len(first),
        len(first.items() & second.items()),
    )
    assert first == second
    decided = [load(tmp_path / seed).predict(FRAME).tolist() for seed in ("0", "1")]
    assert decided[0] == decided[1]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_threads_do_not_change_a_decision(tally):
    one, two = (Advisor(**SETTINGS, n_jobs=jobs).fit(FRAME, LABELS) for jobs in (1, 2))
    np.testing.assert_allclose(one.predict_proba(FRAME), two.predict_proba(FRAME), atol=1e-12)
    agree = one.predict(FRAME) == two.predict(FRAME)
    tally("same decisions with one thread and with two", len(agree), int(agree.sum()))
    assert agree.all()


def test_the_order_of_rows_does_not_change_a_prediction(tally):
    advisor = formats.advisor(formats.QUICK, 0)
    order = np.random.default_rng(0).permutation(len(formats.X))
    alone = np.concatenate([advisor.predict_proba(formats.X[[row]]) for row in order[:10]])
    together = advisor.predict_proba(formats.X)[order]
    np.testing.assert_array_equal(advisor.predict_proba(formats.X[order]), together)
    np.testing.assert_allclose(alone, together[:10], atol=1e-12)
    tally("same predictions in another order of rows, and alone", len(order) + 10, len(order) + 10)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_order_of_columns_does_not_change_a_prediction(tally):
    advisor = Advisor(**SETTINGS, n_jobs=1).fit(FRAME, LABELS)
    turned = FRAME[FRAME.columns[::-1]]
    agree = advisor.predict(turned) == advisor.predict(FRAME)
    tally("same decisions in another order of columns", len(agree), int(agree.sum()))
    assert agree.all()
