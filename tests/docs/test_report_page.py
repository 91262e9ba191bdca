"""The examples on the front page and on the report's page run as printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/explanation/advisor.md"])
def test_python_examples_run(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), {})
    assert "average_precision" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["README.md", "docs/explanation/advisor.md"])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert ((ROOT / page).parent / link).exists(), link
