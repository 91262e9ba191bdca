"""One self-contained page: style, scripts and data inside it, locked by a content security policy.

The policy allows only the scripts that this module puts in (by their hash), so that a script
smuggled into a label could not run even if escaping failed, and no request can leave the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

from equipoise._core.text import printable
from equipoise.report import palette
from equipoise.report.as_json import to_plain
from equipoise.report.blocks import (
    Block,
    Figure,
    Interval,
    clip,
    format_cell,
    inner_blocks,
    is_number,
    opening,
)
from equipoise.report.operating import LiveOperatingPoint
from equipoise.report.terms import Explainer

if TYPE_CHECKING:
    from equipoise.report.document import Report


def _asset(name: str) -> str:
    return (resources.files("equipoise.report") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"


def _embed_json(value: Any) -> str:
    """JSON that can stand inside a ``<script>`` element: no sign that could end it.

    >>> _embed_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _is_numeric(cell: Any) -> bool:
    return is_number(cell) or isinstance(cell, Interval)


def _style() -> str:
    day, night = palette.style_variables(palette.COLORS), palette.style_variables(palette.DARK)
    dark = f"{{color-scheme:dark;{night}}}"
    return (
        f":root{{color-scheme:light;{day}}}\n"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){dark}}}\n"
        f"@media screen{{:root[data-theme=dark]{dark}}}\n" + _asset("style.css")
    )


def _settings(figures: list[Figure]) -> dict[str, Any]:
    """What the page's script needs to draw in the house's look, by day and by night."""
    return {
        "figures": [figure.payload() for figure in figures],
        "light": palette.COLORS,
        "dark": palette.DARK,
        "palette": palette.PALETTE,
        "night": palette.night_colors(),
        "font": palette.FONT,
    }


def render(report: Report) -> str:
    """The page as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    blocks = list(inner_blocks(block for section in report.sections for block in section.blocks))
    figures = [block for block in blocks if isinstance(block, Figure)]
    lives = [block for block in blocks if isinstance(block, LiveOperatingPoint)]
    names = ["plotly-cartesian.min.js"] * bool(figures or lives) + ["page.js"] + ["live.js"] * bool(lives)
    scripts = [_asset(name) for name in names]
    numbers = {id(block): i for kind in (figures, lives) for i, block in enumerate(kind)}

    def number(block: Block) -> int:
        return numbers[id(block)]

    def shown(value: Any) -> Any:
        """Text without control signs; the page's own scripts stay as they were hashed."""
        return value if not isinstance(value, str) or value in scripts else type(value)(printable(value))

    environment = Environment(
        loader=PackageLoader("equipoise.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        format_cell=format_cell,
        is_numeric=_is_numeric,
        figure_number=number,
        live_number=number,
        explain=Explainer(report.terms),
    )
    environment.tests["interval"] = lambda cell: isinstance(cell, Interval)
    environment.filters.update(clip=clip, opening=opening)
    slugs = [f"{index + 1}-{section.slug}" for index, section in enumerate(report.sections)]
    return environment.get_template("page.html").render(
        report=report,
        tabs=list(zip(slugs, report.sections, strict=True)),
        style=_style(),
        scripts=scripts,
        script_hashes=" ".join(map(_hash, scripts)),
        figures=_embed_json(_settings(figures)),
        lives=_embed_json(to_plain([block.payload() for block in lives])) if lives else "",
    )
