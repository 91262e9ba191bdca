"""``equipoise diffusion``."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from equipoise._core.files import check_writable
from equipoise.cli._options import InputPath

HELP = "train a diffusion model on images and see which class it memorizes first, and when to stop"

_STOPS = {"first-memorized": "memorized", "all-memorized": "all memorized"}
_QUANTITIES = ("memorization", "generalization")
_SETTINGS = (  # of a training run, by the names that its record has
    "preset", "conditional", "label_dropout", "average", "device", "precision", "assigner", "num_processes",
    "steps", "batch_size", "lr", "looks_per_decade", "n_samples", "stride", "second", "held_out_fraction", "seed",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_train(actions.add_parser("train", help="train, watching each class; resumable"))
    again = actions.add_parser("monitor", help="look again at every checkpoint, with more or better samples")
    again.add_argument("folder", metavar="FOLDER", help="the run")
    again.add_argument(
        "data", nargs="?", metavar="DATA", help="its images, if images.npz was taken out of it"
    )
    _add_sampling(again.add_argument, "samples a look (default: as in training)", "as in training")
    _add_predict(actions.add_parser("predict", help="expect an order of memorization, without any training"))
    _add_audit(actions.add_parser("audit", help="tell which class a generator copies, and how much"))
    page = actions.add_parser("report", help="write a run's page, or that of several runs together")
    page.add_argument("folders", nargs="+", metavar="FOLDER", help="the runs")
    page.add_argument("--out", metavar="PAGE.html", help="where to write (default: FOLDER/report.html)")
    page.add_argument("--reference", metavar="CLASS", help="the class that gaps are measured from")


_IMAGES = "idx images (or their folder), an npz with X and y, or a folder of images by class"


def _add_reading(add: Any) -> None:
    """How labeled images are read."""
    add("--labels", metavar="FILE", help="idx labels, if their name does not follow from that of the images")
    add("--classes", metavar="A,B", help="only these; 7=sneaker,8=bag also names them")
    add("--size", type=int, metavar="PIXELS", help="scale images to so many pixels a side")
    limited = "images of each class at most; sneaker=75,bag=225 for single ones"
    add("--limit-per-class", dest="limit", metavar="N", help=limited)


def _add_sampling(
    add: Any,
    samples: str,
    told: str,
    n: int | None = None,
    stride: int | None = None,
    second: str | None = None,
) -> None:
    """How a trained network is sampled, and what its samples are measured against."""
    add("--samples", dest="n_samples", type=int, default=n, metavar="N", help=samples)
    steps = f"steps of the sampler; 0: all (default: {told})"
    add("--reverse-steps", dest="stride", type=int, default=stride, metavar="N", help=steps)
    near = "second neighbor: any, or of the same class"
    add("--second", choices=["any", "class"], default=second, help=near)


def _add_predict(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", type=InputPath, metavar="DATA", help=f"{_IMAGES}; or a table (CSV, Parquet) with --target")
    add("--target", metavar="COLUMN", help="the column of a table that holds the classes")
    _add_reading(add)
    add("--pairs", metavar="all|A:B,C:D", help="a model of each pair alone, as in the paper's Fig 6")
    size = "of the model; smaller is quicker (default: 100)"
    add("--dimension", type=int, default=100, metavar="N", help=size)
    add("--instances", type=int, default=4, metavar="N", help="draws of the model (default: 4)")
    add("--bootstrap", type=int, default=40, metavar="N", help="resamples of the data (default: 40)")
    add("--threshold", type=float, default=1.2, help="test error that counts as memorized (default: 1.2)")
    add("--out", metavar="PAGE.html", help="also write a page")
    add("--seed", type=int, default=0)


def _add_audit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "source",
        metavar="MODEL|SAMPLES",
        help="an npz with X (and y), a folder of images (by class, or all together), the folder of a run or of a "
        "saved DDPM, or a diffusers pipeline",
    )
    add("--train", metavar="DATA", help=f"what it was trained on: {_IMAGES}; a run knows its own")
    _add_reading(add)
    add(
        "--assign",
        choices=["nearest", "classifier"],
        help="how to tell the classes of samples without labels: by the nearest training image or a classifier",
    )
    add("--threshold", type=float, default=1 / 3, help="of d(nn1)/d(nn2) (default: 1/3)")
    _add_sampling(add, "samples to draw from a model (default: 500)", "50", 500, 50, "any")
    add("--step", type=int, metavar="N", help="checkpoint of a run (default: the last)")
    add("--out", default="audit.html", metavar="PAGE.html", help="where the page goes (default: audit.html)")
    add("--seed", type=int, default=0)


def _add_train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", nargs="?", type=InputPath, metavar="DATA", help=f"{_IMAGES}; not needed with --resume")
    add("--out", required=True, metavar="FOLDER", help="where the run goes")
    add("--resume", action="store_true", help="go on with the run in FOLDER; --steps may grow")
    _add_reading(add)
    add("--preset", choices=["tiny", "small", "paper"], help="size of the network (default: small)")
    add("--conditional", action="store_true", default=None, help="draw by class")
    add("--label-dropout", type=float, metavar="SHARE",
        help="labels hidden from a conditional model, so that it can be guided (default: 0)")  # fmt: skip
    add("--average", type=float, metavar="DECAY", help="use a moving average of the weights, such as 0.999")
    add("--device", choices=["cpu", "cuda", "mps", "auto"], help="where to train (default: cpu)")
    add(
        "--processes",
        dest="num_processes",
        type=int,
        metavar="N",
        help="processes that share each batch (default: 1)",
    )
    add("--precision", choices=["32-true", "bf16-mixed", "16-mixed"], help="default: 32-true")
    add("--assigner", choices=["convnet", "resnet18"], help="network that tells the classes of samples "
        "(default: convnet)")  # fmt: skip
    add("--steps", type=int, metavar="N", help="training steps (default: 5000)")
    add("--batch-size", type=int, metavar="N", help="default: 64")
    add("--lr", type=float, help="default: 1e-3 tiny, 5e-4 small, 1e-4 paper")
    add("--shares", metavar="A=0.3,B=0.7", help="how often each class is drawn (default: as the data has it)")
    add("--equalize", nargs="?", const="memorization", choices=_QUANTITIES,
        help="draw the classes as the theory prescribes, to be memorized (or to generalize) together")  # fmt: skip
    add("--equalize-by", metavar="RUN", help="draw the classes so that those of an earlier run would have been "
        "memorized together")  # fmt: skip
    add("--stop", choices=list(_STOPS), help="end when the first class, or every class, is memorized")
    add("--looks-per-decade", type=int, metavar="N", help="looks in a factor of ten of steps (default: 5)")
    _add_sampling(add, "samples a look (default: 200; paper: 500)", "50; paper: all")
    kept = "images kept from training (default: 0.1)"
    add("--held-out", dest="held_out_fraction", type=float, metavar="SHARE", help=kept)
    add("--seed", type=int, help="default: 0")


def run(args: argparse.Namespace) -> int:
    actions = {"train": _train, "monitor": _monitor, "report": _report, "predict": _predict, "audit": _audit}
    return actions[args.action](args)


def _predict(args: argparse.Namespace) -> int:
    from equipoise.generative.theory_advice import standardized_table
    from equipoise.theory.diffusion import predict_order

    if args.out:
        check_writable(Path(args.out).parent)
    if args.target is not None:
        X, y, about = standardized_table(args.data, args.target)
        preprocess: dict[str, Any] = {"preprocess": None}
    elif Path(args.data).suffix in (".csv", ".parquet"):
        raise ValueError(f"{args.data} is a table: name the column that holds its classes by --target")
    else:
        data = _read_images(args.data, args)
        X, y, about, preprocess = data.images, data.labels, str(data), {}
    args.output.say(about)
    found = predict_order(
        X,
        y,
        pairs=_class_pairs(args.pairs),
        dimension=args.dimension,
        n_instances=args.instances,
        n_bootstrap=args.bootstrap,
        threshold=args.threshold,
        random_state=args.seed,
        **preprocess,
    )
    print(f"\n{found}")
    if args.out:
        from equipoise.generative.prediction_page import write_prediction

        write_prediction(found, about, args.out)
        print(f"Report: {args.out}")
    return 0


def _class_pairs(text: str | None) -> Any:
    if text is None or text == "all":
        return text
    pairs = [tuple(part.split(":")) for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"--pairs must be all or A:B,C:D, got {text!r}")
    return pairs


def _audit(args: argparse.Namespace) -> int:
    from equipoise.generative.audit import audit_copies
    from equipoise.generative.audit_page import write_audit
    from equipoise.generative.sample_sources import find_samples

    check_writable(Path(args.out).parent)
    training = None if args.train is None else _read_images(args.train, args)
    found = find_samples(
        args.source,
        n=args.n_samples,
        stride=args.stride or None,
        step=args.step,
        size=args.size,
        seed=args.seed,
    )
    training = training or found.training
    if training is None:
        raise ValueError("name the images that the generator was trained on: --train DATA")
    audit = audit_copies(
        found.images,
        training,
        found.labels,
        assign=args.assign,
        threshold=args.threshold,
        second=args.second,
        seed=args.seed,
    )
    for sentence in audit.in_words():
        print(sentence)
    write_audit(audit, found.source, args.out)
    print(f"Report: {args.out}")
    return 0


def _read_images(path: str, args: argparse.Namespace) -> Any:
    from equipoise.datasets.labeled_images import read_labeled_images

    return read_labeled_images(path, seed=args.seed, **_reading(args))


def _reading(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "size": args.size,
        "labels": args.labels,
        "classes": None if args.classes is None else _classes(args.classes),
        "limit": None if args.limit is None else _limit(args.limit),
    }


def _train(args: argparse.Namespace) -> int:
    if args.data is None and not args.resume:
        raise ValueError("name the images to train on, or go on with a run by --resume")
    shares = None if args.shares is None else _pairs("--shares", args.shares, float)
    options = {**{name: getattr(args, name) for name in _SETTINGS}, **_reading(args)}
    options["stop"] = _STOPS[args.stop] if args.stop else None
    from equipoise.generative import training_runs

    try:
        if args.resume:
            if shares is not None or args.equalize or args.equalize_by:
                raise ValueError(
                    "a run goes on with the shares it has: drop --shares, --equalize, --equalize-by"
                )
            folder = training_runs.resume_run(args.out, options, args.data, tell=_telling(args))
        else:
            folder = training_runs.start_run(
                args.data,
                args.out,
                options,
                shares=shares,
                equalize=args.equalize,
                equalize_by=args.equalize_by,
                tell=_telling(args),
            )
    except KeyboardInterrupt:
        print(f"\nGo on: equipoise diffusion train --resume --out {args.out}", file=sys.stderr)
        raise
    return _close(folder)


def _monitor(args: argparse.Namespace) -> int:
    from equipoise.generative import training_runs

    stride: Any = "same" if args.stride is None else args.stride or None
    folder = training_runs.look_again(
        args.folder,
        args.data,
        n_samples=args.n_samples,
        stride=stride,
        second=args.second,
        tell=_telling(args),
    )
    return _close(folder)


def _report(args: argparse.Namespace) -> int:
    from equipoise.generative.folder import RunFolder
    from equipoise.generative.page import write_report

    folders = [RunFolder.open(folder) for folder in args.folders]
    out = args.out or (folders[0].path / "report.html" if len(folders) == 1 else "diffusion.html")
    write_report(folders, out, reference=args.reference)
    print(f"Report: {out}")
    return 0


def _close(folder: Any) -> int:
    """Say in plain words what was found, and where to look."""
    from equipoise.generative.clock import in_words, read_clock
    from equipoise.generative.page import write_report

    clock = read_clock(folder.table(), folder.names)
    print()
    for sentence in in_words(clock):
        print(sentence)
    if clock.advised is not None:
        print(f"Checkpoint: {folder.checkpoint(clock.advised)}")
    if clock.first is None:
        further = f"equipoise diffusion train --resume --out {folder.path} --steps {10 * clock.last}"
        print(f"To see when copying begins: {further}")
    page = folder.path / "report.html"
    try:
        write_report([folder], page)
    except ImportError as error:  # the run itself is whole
        print(f"Its page could not be written: {error}", file=sys.stderr)
        return 0
    print(f"Report:     {page}")
    return 0


def _classes(text: str) -> list[str] | dict[str, str]:
    if "=" in text:
        return _pairs("--classes", text, str)
    return [name.strip() for name in text.split(",")]


def _limit(text: str) -> int | dict[str, int]:
    if "=" in text:
        return _pairs("--limit-per-class", text, int)
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--limit-per-class must be a number or CLASS=NUMBER,…, got {text!r}") from None


def _pairs(option: str, text: str, kind: type[Any]) -> dict[str, Any]:
    found = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.rpartition("="))
        try:
            if not (name and equals):
                raise ValueError
            found[name] = kind(value)
        except ValueError:
            raise ValueError(f"{option} must be CLASS=VALUE,…, got {part!r}") from None
    return found


def _telling(args: argparse.Namespace) -> Callable[[str], None]:
    return _tell if args.output.verbosity >= 0 else _say_nothing


def _say_nothing(line: str) -> None:
    """Like a lambda, but it can travel to another process."""


def _tell(line: str) -> None:
    """A line of its own, also where a progress bar is on the screen."""
    if sys.stderr.isatty():
        blank = " " * (shutil.get_terminal_size().columns - 1)
        print(f"\r{blank}\r", end="", file=sys.stderr, flush=True)
    print(line, flush=True)
