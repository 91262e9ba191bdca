"""A model folder that was made up, with a seal that fits: what does not fit together is said when it is read."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import equipoise
from attack.formats import FORMATS, X, seal_again
from equipoise._core.files import DamagedFileError

CHANGES = {
    "shorter": lambda array: np.atleast_1d(array)[:-1],
    "flat": np.ravel,
    "none": lambda array: np.full(array.shape, np.nan),
    "negative": lambda array: -array - 5,
    "text": lambda array: np.full(array.shape, "x"),
}


def change_array(path: Path, number: int, change: str) -> str:
    """Change one array of an archive; its name."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(name for name in parts if name.endswith(".npy"))[number]
    buffer = io.BytesIO()
    np.save(buffer, CHANGES[change](np.load(io.BytesIO(parts[name]), allow_pickle=False)))
    parts[name] = buffer.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    return name


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("file", ["encoders.skops", "models/0-0"])
def test_arrays_that_do_not_fit_are_named(tmp_path, file, change):
    """Any answer will do, but none may be an error of a library beneath."""
    for number in range(3):
        place = tmp_path / str(number)
        FORMATS["logistic advisor"].save(place, 0)
        change_array(place / file, number, change)
        seal_again(place)
        with contextlib.suppress(DamagedFileError):
            assert np.isfinite(equipoise.load(place).predict_proba(X)).all()


def test_a_model_without_a_finite_answer_is_named(tmp_path):
    FORMATS["logistic advisor"].save(tmp_path / "x", 0)
    for number in range(3):
        change_array(tmp_path / "x" / "models/0-0", number, "none")
    seal_again(tmp_path / "x")
    with pytest.raises(DamagedFileError, match=r"x/models/0-0 is not usable \(made up or damaged\?\)"):
        equipoise.load(tmp_path / "x")
