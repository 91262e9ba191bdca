"""A missing extra is named by a sentence, for every public name that needs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import equipoise.classifiers
import equipoise.generative
import equipoise.losses
import equipoise.training

WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "lightning_fabric", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
import importlib
room = importlib.import_module(sys.argv[1])
for name in sys.argv[2:]:
    try:
        getattr(room, name)
    except ModuleNotFoundError as error:
        print(name, "|", error)
"""
FREE = {"ResampledClassifier"}
ROOMS = [equipoise.classifiers, equipoise.generative, equipoise.losses, equipoise.training]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_every_name_that_needs_torch_says_so(room):
    names = [name for name in room.__all__ if name not in FREE]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, room.__name__, *names],
        capture_output=True,
        text=True,
        check=True,
    )
    said = dict(line.split(" | ") for line in done.stdout.splitlines())
    for name, sentence in said.items():
        assert sentence.startswith(f"{name} needs ")
        assert sentence.endswith("pip install 'equipoise[torch]'")
    if room is equipoise.generative:  # whose pages and tables need no torch
        assert {"DDPM", "MemorizationMonitor", "sample"} <= set(said)
    else:
        assert {name for name in names if not name.startswith("plot")} <= set(said)
