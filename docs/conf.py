"""The site: guides in Markdown, a reference from docstrings, a gallery of ``examples/``, results of ``studies/``.

``make docs`` builds it into ``docs/_build`` and needs no network. The pages of the reference and of the results are
written anew at every build, from the packages' ``__all__`` and from the studies' own pages.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(HERE))


os.environ.setdefault("OMP_NUM_THREADS", "1")

project = "Equipoise"
author = "The Equipoise developers"
copyright = author
release = version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M)[1]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "README.md", "gallery/**/*.ipynb"]
suppress_warnings = ["config.cache", "myst.xref_missing_heading"]

# Guides
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

# Reference
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autodoc_default_options = {"members": True, "show-inheritance": True, "no-value": True}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),
    "nested_sections": True,
    "image_scrapers": ("gallery_figures.scrape_figures",),
    "reset_modules": (),
}

# Look
html_theme = "pydata_sphinx_theme"
html_title = f"Equipoise {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 7,
    "use_edit_page_button": False,
    "show_toc_level": 2,
    "pygments_light_style": "friendly",
    "pygments_dark_style": "monokai",
}

REFERENCE = {
    "equipoise": "The main job: diagnose, compare, decide",
    "equipoise.advisor": "The advisor and its treatments",
    "equipoise.diagnosis": "Questions to a table",
    "equipoise.metrics": "Scores, thresholds, costs, intervals",
    "equipoise.metrics.significance": "Is a difference one?",
    "equipoise.losses": "Losses as torch modules",
    "equipoise.losses.functional": "The equations of the losses",
    "equipoise.classifiers": "scikit-learn classifiers",
    "equipoise.oversampling": "scikit-learn samplers",
    "equipoise.generative": "Diffusion models and their clock",
    "equipoise.theory.anomaly": "Which training ratio is best?",
    "equipoise.theory.diffusion": "Which class is memorized, and when?",
    "equipoise.theory.effective_number": "What is one more sample worth?",
    "equipoise.theory.mixing": "What does mixing do to the risk?",
    "equipoise.datasets": "Makers, loaders and generators",
    "equipoise.networks": "Features and a linear head",
    "equipoise.training": "One loop, steps, callbacks, samplers",
    "equipoise.report": "Blocks to pages",
    "equipoise.studies": "Resumable grids of experiments",
}


def escape_text(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bars, lone stars and powers in docstrings are text, not markup: |b − b0|, f(x, *, y), ``beta``²."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(``[^`]+``)", line)
            parts[::2] = [re.sub(r"\||(?<=\s)\*(?=[,)])", r"\\\g<0>", part) for part in parts[::2]]
            lines[number] = re.sub(r"(``[^`\s][^`]*``)(?=[\w²³])", r"\1\\ ", "".join(parts))


def skip_foreign(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what other libraries add to a class, and fields whose default is numpy's function."""
    return True if isinstance(obj, np.ufunc) or re.fullmatch(r"set_\w+_request", name) else None


def public_names(module_name: str) -> list[str]:
    """What a package exports, without its subpackages."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module_name]
    values = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return sorted(name for name, value in values.items() if not isinstance(value, type(re)))


def write_reference() -> None:
    """One page a package, listing every exported name; autosummary then writes one page a name."""
    folder, known = HERE / "reference", set()
    for module_name, title in REFERENCE.items():
        names = public_names(module_name)
        lines = [f"``{module_name}``", "=" * (len(module_name) + 4), "", f"{title}.", ""]
        if module_name == "equipoise":  # its names have their pages where they come from
            lines += [".. autosummary::"]
            made = [getattr(importlib.import_module("equipoise"), name) for name in names]
            rooms = [".".join(one.__module__.split(".")[:2]) for one in made]
            names = [f"~{room}.{name}" for room, name in zip(rooms, names, strict=True)]
        else:
            lines += [f".. currentmodule:: {module_name}", "", ".. autosummary::", "   :toctree: generated"]
            known |= {f"{module_name}.{name}" for name in names}
        text = "\n".join([*lines, "", *(f"   {name}" for name in names), ""])
        _write_if_changed(folder / f"{module_name}.rst", text)
    for page in (folder / "generated").glob("*.rst"):
        if page.stem not in known:  # of a name that is no longer exported
            page.unlink()


def write_results() -> None:
    """The studies' own pages and pictures, as pages of the site, and their list as its index."""
    folder = HERE / "results"
    folder.mkdir(exist_ok=True)
    index = (ROOT / "studies" / "README.md").read_text(encoding="utf-8").replace("# Studies", "# Results", 1)
    names = list(dict.fromkeys(re.findall(r"\]\(([\w-]+)/\1\.md\)", index)))
    toctree = "\n".join(["", "```{toctree}", ":hidden:", "", *names, "```", ""])
    _write_if_changed(folder / "index.md", re.sub(r"\]\(([\w-]+)/\1\.md\)", r"](\1.md)", index) + toctree)
    for page in sorted((ROOT / "studies").glob("*/*.md")):
        if page.stem == page.parent.name:
            _write_if_changed(folder / page.name, page.read_text(encoding="utf-8"))
            for picture in page.parent.glob("*.svg"):
                shutil.copyfile(picture, folder / picture.name)


LINKS = {  # where links to files of the repository lead on the site
    r"\]\((?:\.\./)+studies/README\.md": "](/results/index.md",
    r"\]\((?:\.\./)+studies/[\w-]+/([\w-]+)\.md": r"](/results/\1.md",
    r"\]\((?:\.\./)+docs/": "](/",
    r"\]\((?:\.\./)+examples/README\.txt": "](/gallery/index.rst",
    r"\]\((?:\.\./)+examples/([\w/]+)\.py": r"](/gallery/\1.rst",
    r"\[([^\]]+)\]\((?:\.\./)+CONTRIBUTING[^)]*\)": r"\1",
}


def lead_to_the_site(app: Any, docname: str, source: list[str]) -> None:
    """Links that lead to files of the repository lead to their pages on the site."""
    for pattern, replacement in LINKS.items():
        source[0] = re.sub(pattern, replacement, source[0])


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> None:
    write_reference()  # at once, since the builder lists the pages before any event
    write_results()
    app.connect("source-read", lead_to_the_site)
    app.connect("autodoc-process-docstring", escape_text)
    app.connect("autodoc-skip-member", skip_foreign)
