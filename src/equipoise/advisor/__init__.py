"""The main job: from a table to the best decision in the time you have."""

from __future__ import annotations

from equipoise.advisor._advisor import Advisor
from equipoise.advisor.comparing import compare
from equipoise.advisor.model import load
from equipoise.advisor.treatments import Treatment, treatment_names

__all__ = ["Advisor", "Treatment", "compare", "load", "treatment_names"]
