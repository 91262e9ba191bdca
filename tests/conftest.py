"""What all tests share."""

import os
from pathlib import Path

from hypothesis import settings

os.environ["EQUIPOISE_STUDIES"] = str(
    Path(__file__).parents[1] / "studies"
)  # from wherever the tests are started

settings.register_profile("equipoise", deadline=None)  # a busy machine is not a failure
settings.load_profile("equipoise")
