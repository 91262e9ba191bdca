"""What all tests share."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

os.environ["EQUIPOISE_STUDIES"] = str(
    Path(__file__).parents[1] / "studies"
)  # from wherever the tests are started

settings.register_profile(  # a busy machine is not a failure, and two runs try the same examples
    "equipoise", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("equipoise")
