"""The main job: from a table or images to a diagnosis, a treatment, an operating point and a model."""

from __future__ import annotations

from equipoise.advisor.job.model import FittedModel, load_model, save_model
from equipoise.advisor.job.run import Options, run_job

__all__ = ["FittedModel", "Options", "load_model", "run_job", "save_model"]
