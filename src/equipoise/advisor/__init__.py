"""The main job: from a table to the best decision in the time you have."""

from __future__ import annotations

from equipoise.advisor._advisor import Advisor

__all__ = ["Advisor"]
