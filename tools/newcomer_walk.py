"""From nothing to a first decision, each command timed: the table at the end of docs/start/ten-minutes.md.

Run: python tools/newcomer_walk.py
"""

from __future__ import annotations

import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "start" / "ten-minutes.md"
REPORT, PREDICT, _, RETUNE = re.findall(
    r"^equipoise .*?(?=\s*(?:#|$))", GUIDE.read_text("utf-8"), re.MULTILINE
)
STEPS = {
    "the source": f"git clone --quiet {ROOT} equipoise",
    "an environment": f"{sys.executable} -m venv env",
    "the package": "env/bin/pip install --quiet ./equipoise[report]",
    "the file of this page": "env/bin/python make_claims.py",
    "**the first decision**": f"env/bin/{REPORT}",
    "predictions": f"env/bin/{PREDICT}",
    "another decision": f"env/bin/{RETUNE}",
}


def timed(command: str, folder: Path) -> tuple[float, float]:
    """Seconds of the processor and of the clock."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(shlex.split(command), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command}\n{done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.monotonic() - started


def main() -> None:
    """Print a line for each step."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        block = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
        assert block is not None
        (folder / "make_claims.py").write_text(block[1], "utf-8")
        print("| step | command | processor | clock |\n|---|---|---:|---:|")
        for step, command in STEPS.items():
            used, passed = timed(command, folder)
            shown = command.replace(str(ROOT), "…").replace(sys.executable, "python")
            print(f"| {step} | `{shown}` | {used:.1f} s | {passed:.0f} s |", flush=True)


if __name__ == "__main__":
    main()
