"""``equipoise theory MODEL --figure N``: the figures of the theory papers, each computed by the solvers.

A model's figures stand beside the studies, outside the package, in ``studies/theory-MODEL/figures.py``: a function
``figure_N() -> Figure`` each, found by name, its docstring's first line the caption. ``STUDIES`` there names the
study behind each figure of the paper that is an experiment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

JSON = True
HELP = "draw a figure of the exactly solvable models"

_PREFIX = "theory-"


def models() -> list[str]:
    """The models that have figures; none where there is no folder of studies."""
    from equipoise.studies.locate import studies_folder

    folder = studies_folder()
    found = folder.glob(f"{_PREFIX}*/figures.py") if folder else ()
    return sorted(path.parent.name.removeprefix(_PREFIX) for path in found)


def _module(model: str) -> ModuleType:
    from equipoise._core.checks import check_choice
    from equipoise.studies.locate import FOLDER_VARIABLE, study_module

    known = models()
    if not known:
        raise ValueError(
            "the figures of the papers come with the studies, outside the installed package: run this command "
            f"in a clone of the repository, or name its folder of studies in {FOLDER_VARIABLE}"
        )
    return study_module(_PREFIX + check_choice("MODEL", model, known), "figures")


def _settings(name: str, draw: Callable[..., Figure], given: Sequence[str]) -> dict[str, Any]:
    """What ``--set`` changes of a figure, of the type of its default."""
    known = {key: one.default for key, one in signature(draw).parameters.items()}
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key not in known:
            listed = ", ".join(known) or "none"
            raise ValueError(f"--set: figure {name} has no setting {key!r}; it has {listed}")
        try:
            found[key] = type(known[key])(value)
        except ValueError:
            kind = "whole number" if isinstance(known[key], int) else "number"
            raise ValueError(f"--set: {key} must be a {kind}, got {value!r}") from None
    return found


def figures(model: str) -> dict[str, Callable[..., Figure]]:
    """The drawing functions of a model, by figure name, in the order of their numbers."""
    module = _module(model)
    found = {
        name.removeprefix("figure_"): draw for name, draw in vars(module).items() if name[:7] == "figure_"
    }
    return dict(sorted(found.items(), key=lambda item: (int(item[0]) if item[0].isdigit() else 0, item[0])))


def studies(model: str) -> dict[str, str]:
    """The figures of a model that are experiments, and the study of each."""
    return dict(_module(model).STUDIES)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="which model: anomaly, diffusion or effective_number")
    parser.add_argument(
        "--figure", action="append", metavar="N", help="which figure, again for more; 'all' for every one"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", dest="settings",
        help="a size or a parameter of the figure, again for more; --list tells which there are",
    )  # fmt: skip
    parser.add_argument("--out", default="out", metavar="DIR", help="where to write (default: out)")
    parser.add_argument("--list", action="store_true", help="say which figures there are, and draw none")


def run(args: argparse.Namespace) -> int:
    from equipoise._core.checks import check_choice
    from equipoise._core.files import check_writable, replacing

    known, experiments = figures(args.model), studies(args.model)
    if args.list or not args.figure:
        return _list(args, known, experiments)
    wanted = list(known) if "all" in args.figure else args.figure
    for name in wanted:
        check_choice("--figure", name, [*known, *experiments])
        if name in experiments:
            study = experiments[name].split()[0]
            args.output.say(
                f"Figure {name} is an experiment: study {experiments[name]}. Run it by: equipoise bench run {study}"
            )
    wanted = [name for name in wanted if name in known]
    import matplotlib

    matplotlib.use("agg")  # drawn to a file: no window is needed, nor a display
    check_writable(args.out)
    drawn = []
    for name in wanted:
        path = Path(args.out) / f"theory-{args.model}-figure-{name}.png"
        figure = known[name](**_settings(name, known[name], args.settings))
        with replacing(path) as temporary:
            figure.savefig(temporary, format="png", dpi=130)
        args.output.say(str(path))
        drawn.append({"figure": name, "caption": _caption(known[name]), "file": path})
    args.output.give(drawn)
    return 0


def _list(
    args: argparse.Namespace, known: dict[str, Callable[..., Figure]], experiments: dict[str, str]
) -> int:
    listed: list[dict[str, Any]] = []
    for name, draw in known.items():
        settings = {key: one.default for key, one in signature(draw).parameters.items()}
        listed.append({"figure": name, "caption": _caption(draw), "settings": settings})
        if not args.output.json:
            changes = ", ".join(f"{key}={value}" for key, value in settings.items())
            print(f"{name:>11}  {_caption(draw)}{f' [{changes}]' if changes else ''}")
    for name, study in experiments.items():
        listed.append({"figure": name, "study": study})
        if not args.output.json:
            print(f"{name:>11}  an experiment: study {study}")
    args.output.give(listed)
    return 0


def _caption(draw: Callable[..., Figure]) -> str:
    return (draw.__doc__ or "").strip().splitlines()[0]
