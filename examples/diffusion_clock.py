"""Train a small diffusion model on two classes of digits, go on with it, look again, and write its page.

Seconds are enough to see how it works; copying begins after thousands of steps (raise STEPS to see it). The same
from the command line:

    equipoise diffusion train digits.npz --classes 1=ones,8=eights --limit-per-class 20 --preset tiny --out run
    equipoise diffusion monitor run --samples 100
    equipoise diffusion report run
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from equipoise.datasets import read_labeled_images
from equipoise.generative import DDPM, training_runs
from equipoise.generative.clock import in_words, read_clock
from equipoise.generative.page import write_report
from equipoise.generative.theory_advice import prescribe

STEPS = 60


def main() -> None:
    place = Path(tempfile.mkdtemp(prefix="equipoise-"))
    digits = load_digits()
    np.savez(place / "digits.npz", X=(digits.images / 16).astype(np.float32), y=digits.target)
    reading = {"classes": {"1": "ones", "8": "eights"}, "limit": 20}

    data = read_labeled_images(place / "digits.npz", **reading)
    print(prescribe(data).in_words(data.classes))  # what `train --equalize` would do

    options = {**reading, "preset": "tiny", "steps": STEPS, "batch_size": 36, "n_samples": 24, "stride": 8}
    training_runs.start_run(place / "digits.npz", place / "run", options)
    folder = training_runs.resume_run(
        place / "run", {"steps": 2 * STEPS}
    )  # also after a kill; to the same bits
    folder = training_runs.look_again(place / "run", n_samples=40, second="class")

    clock = read_clock(folder.table(), folder.names)
    print("\n".join(in_words(clock)))
    write_report([folder], folder.path / "report.html")
    print("Page:", folder.path / "report.html")

    step = clock.advised or max(folder.checkpoints())
    images = DDPM.load(folder.checkpoint(step)).sample(4, stride=8)
    print(f"Four samples of step {step}: {images.shape}, values {images.min():.2f} to {images.max():.2f}")


if __name__ == "__main__":
    main()
