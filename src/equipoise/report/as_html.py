"""One self-contained page: style, script and plotly inside it, locked by a content security policy.

The policy allows only the two scripts that this module puts in (by their hash), so that a script
smuggled into a label could not run even if escaping failed, and no request can leave the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from equipoise.report.blocks import Block, Details, Figure, Interval, Row, format_cell, is_number

if TYPE_CHECKING:
    from equipoise.report.document import Report


def _asset(name: str) -> str:
    return (resources.files("equipoise.report") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _figures(blocks: Any) -> list[Figure]:
    found: list[Figure] = []
    for block in blocks:
        if isinstance(block, Figure):
            found.append(block)
        elif isinstance(block, (Row, Details)):
            found += _figures(block.blocks)
    return found


def embed_json(value: Any) -> str:
    """JSON that can stand inside a ``<script>`` element: no sign that could end it.

    >>> embed_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _is_numeric(cell: Any) -> bool:
    return is_number(cell) or isinstance(cell, Interval)


def render(report: Report) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    figures = [figure for section in report.sections for figure in _figures(section.blocks)]
    plotly = ""
    if figures:
        from plotly.offline import get_plotlyjs

        plotly = get_plotlyjs()
    script = _asset("page.js")
    numbers: dict[int, int] = {id(figure): index for index, figure in enumerate(figures)}

    def number(block: Block) -> int:
        return numbers[id(block)]

    environment = Environment(
        loader=PackageLoader("equipoise.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(format_cell=format_cell, is_numeric=_is_numeric, figure_number=number)
    environment.tests["interval"] = lambda cell: isinstance(cell, Interval)
    slugs = [f"{index + 1}-{section.slug}" for index, section in enumerate(report.sections)]
    return environment.get_template("page.html").render(
        report=report,
        tabs=list(zip(slugs, report.sections, strict=True)),
        style=_asset("style.css"),
        plotly=plotly,
        script=script,
        script_hashes=" ".join(_hash(text) for text in (plotly, script) if text),
        figures=embed_json([figure.payload() for figure in figures]),
    )
