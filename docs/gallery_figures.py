"""Pictures of the gallery: every matplotlib figure that a block of an example leaves in a variable."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape_figures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the new figures of a block and return the directives that show them."""
    seen = block_vars.setdefault("figures_seen", [])
    saved = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and not any(value is other for other in seen):
            seen.append(value)
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=110)
            saved.append(path)
    return figure_rst(saved, gallery_conf["src_dir"])
