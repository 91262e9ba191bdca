"""Peak memory of training on pictures that stay on disk: python benchmarks/streamed_memory.py conditional 600."""

from __future__ import annotations

import argparse
import resource
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from equipoise.classifiers import AutoencoderClassifier, ConditionalClassifier, NeuralClassifier
from equipoise.datasets import ImageFiles

SIDE = 256


def peak() -> str:
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("classifier", choices=["conditional", "autoencoder"])
    parser.add_argument("pictures", type=int)
    asked = parser.parse_args()
    base = NeuralClassifier(
        "convnet", module_params={"widths": (4, 8)}, epochs=1, batch_size=32, random_state=0, verbose=False
    )
    classifier = {
        "conditional": ConditionalClassifier(estimator=base, random_state=0),
        "autoencoder": AutoencoderClassifier(
            latent=16, epochs=1, batch_size=32, random_state=0, verbose=False
        ),
    }[asked.classifier]
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            Path(folder) / f"{i}.jpg" for i in range(50)
        ]  # every picture is read anew, however often it comes
        for path in paths:
            blocks = np.kron(rng.integers(0, 255, (16, 16, 3)), np.ones((16, 16, 1)))
            Image.fromarray(blocks.astype(np.uint8)).save(path, quality=60)
        rows = np.arange(asked.pictures) % len(paths)
        files = ImageFiles([paths[row] for row in rows], SIDE)
        print(f"before: {peak()}")
        classifier.fit(files, (rows >= 40).astype(int))
        print(f"{asked.classifier}, {asked.pictures} pictures of {SIDE}², fitted: {peak()}")


if __name__ == "__main__":
    main()
