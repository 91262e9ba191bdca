"""``python -m equipoise``."""

import sys

from equipoise.cli import main

sys.exit(main())
