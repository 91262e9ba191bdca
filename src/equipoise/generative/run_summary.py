"""All that the page says of a run, computed; nothing is rendered here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from equipoise.datasets.labeled_images import LabeledImages
from equipoise.generative.clock import Clock, read_clock
from equipoise.generative.ddpm import held_out_rows
from equipoise.generative.folder import RunFolder
from equipoise.generative.theory_advice import describe, predict
from equipoise.theory.diffusion import ClassMixture, PredictedOrder

THRESHOLDS = (1 / 3, 1 / 6, 1 / 12)


@dataclass(frozen=True)
class RunSummary:
    """All that the page says of a run, computed."""

    folder: RunFolder
    data: LabeledImages
    table: pd.DataFrame
    clock: Clock
    other: dict[float, Clock]
    mixture: ClassMixture | None
    predicted: PredictedOrder | None
    why_not: str

    @property
    def names(self) -> tuple[str, ...]:
        return self.folder.names

    @property
    def shares(self) -> list[float]:
        """How often each class was drawn."""
        given = self.folder.settings["class_shares"]
        return list(given) if given else (self.data.counts / self.data.counts.sum()).tolist()

    @cached_property
    def pixel_variance(self) -> list[float]:
        """Mean variance of a pixel within each class, in the images' own units (Fig 5b)."""
        own = (self.data.images[self.data.codes == code] for code in range(len(self.names)))
        return [float(images.var(axis=0, ddof=1, dtype=np.float64).mean()) for images in own]

    @cached_property
    def trained_on(self) -> np.ndarray[Any, Any]:
        """The images that neighbors were looked for among."""
        settings = self.folder.settings
        held = held_out_rows(self.data.codes, settings["held_out_fraction"], settings["seed"])
        return self.data.images[~held]


def summarize_run(folder: RunFolder) -> RunSummary:
    """Read a run's clock and ask the theory."""
    data, table = folder.images(), folder.table()
    clocks = {threshold: read_clock(table, folder.names, threshold=threshold) for threshold in THRESHOLDS}
    mixture, predicted, why_not = None, None, ""
    if len(folder.names) > 1:
        try:
            mixture = describe(data)
            settings = folder.settings
            predicted = predict(data, settings["class_shares"], n_bootstrap=10, seed=settings["seed"])
        except ValueError as error:  # such as a class whose images are all the same
            why_not = str(error)
    else:
        why_not = "an order needs two classes"
    return RunSummary(folder, data, table, clocks[1 / 3], clocks, mixture, predicted, why_not)
