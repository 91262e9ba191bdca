"""The samplers that the studies on images compare, with settings for a budget of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

BATCH = 128
CLASSICAL = ("SMOTE", "AMDO", "MC-CCR", "MC-RBO")


def epochs_of(updates: float, rows: int) -> int:
    """The passes over so many rows that come nearest to a number of updates; one at least."""
    return max(1, round(updates / -(-rows // BATCH)))


def image_sampler(
    method: str, seed: int, budget: float, X: Any, strategy: Any = "auto", **one_stage: Any
) -> Any:
    """A sampler whose networks train for about ``budget`` units (measured costs of a batch of each).

    ``one_stage`` is for GAMO as a classifier, whose convolutional players take as many batches as the budget.
    """
    from imblearn.over_sampling import SMOTE

    from equipoise.oversampling import AMDO, BAGAN, GAMO, MCCCR, MCRBO, AutoencoderOversampler, DeepSMOTE

    classical = {"SMOTE": SMOTE, "AMDO": AMDO, "MC-CCR": MCCCR, "MC-RBO": MCRBO}
    if method in classical:
        return classical[method](random_state=seed, sampling_strategy=strategy)
    common = {
        "image_shape": X.shape[1:],
        "batch_size": BATCH,
        "random_state": seed,
        "sampling_strategy": strategy,
    }
    # Budgets are small, so learning rates are above the papers'.
    makers: dict[str, Callable[[], Any]] = {
        "ours": lambda: AutoencoderOversampler(epochs=epochs_of(budget / 4, len(X)), **common),
        "DeepSMOTE": lambda: DeepSMOTE(
            widths=(32, 64, 128), epochs=epochs_of(budget / 4, len(X)), lr=1e-3, **common
        ),
        "GAMO": lambda: GAMO(epochs=epochs_of(budget / 1.0, len(X)), lr=5e-4, **common),
        "one-stage GAMO": lambda: GAMO(
            architecture="convolutional", epochs=epochs_of(budget, len(X)), lr=5e-4, **one_stage, **common
        ),
        "BAGAN": lambda: BAGAN(
            pretrain_epochs=epochs_of(budget / 5, len(X)),
            epochs=epochs_of(budget / 10, len(X)),
            lr=2e-4,
            **common,
        ),
    }
    return makers[method]()


def resampled(sampler: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """The images and those that a sampler makes of them, with all labels; bad quality is part of the result."""
    import warnings

    from equipoise.oversampling import LowQualityWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowQualityWarning)
        rows, labels = sampler.fit_resample(X.reshape(len(X), -1), y)
    return rows.reshape(-1, *X.shape[1:]).astype(np.float32), labels
