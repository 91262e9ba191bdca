"""The parts of the page of a diffusion run: verdict, samples, theory, method."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from equipoise.generative.clock import Clock, in_words, steps
from equipoise.generative.gallery import gallery
from equipoise.generative.plots import distance_curves, error_curves, memorized_curves
from equipoise.generative.run_summary import RunSummary
from equipoise.report import Code, Details, Facts, Figure, Headline, Interval, Note, Row, Table, Text
from equipoise.report.blocks import Block

COLUMNS = 8  # samples shown of a class at a look


def verdict(one: RunSummary) -> list[Block]:
    clock, words = one.clock, in_words(one.clock)
    found = clock.window
    open_window = found is not None and found.is_open
    level = "warning" if clock.advised is None or not (open_window or found is None) else "good"
    if clock.first is None:
        level = "note"
    title = "Nothing is memorized yet" if clock.first is None else f"{clock.first} is memorized first"
    window = "unknown" if found is None else f"{steps(found.opens)} – {_end(found.closes)}"
    facts = [
        ("Memorized first", clock.first or "none", _sure(clock)),
        (
            "Window",
            window if open_window or found is None else "none",
            "every class generalizes, none is copied",
        ),
        ("Checkpoint to use", steps(clock.advised) if clock.advised else "none", "step"),
        ("Copies at the end", *_copies(clock)),
    ]
    blocks: list[Block] = [
        Headline(title, _first_screen(clock, words), level),
        Facts(facts),
        Figure(
            memorized_curves(one.table, clock),
            "Share of samples that are copies of a training image, with 95 % bootstrap bands. "
            "Dashed: the threshold of "
            "one third; dotted: where each class crosses it; shaded: the window in which to stop.",
            "Memorized fraction of each class over training steps",
        ),
        _times_table(one),
    ]
    if len(one.names) > 1:
        gaps = _gaps_table(clock)
        blocks.append(gaps if len(gaps.rows) <= 6 else Details("Gaps between all pairs of classes", [gaps]))
    if clock.advised is not None:
        blocks += [Text("Draw from the checkpoint to use:"), Code(_how_to_draw(one))]
    return blocks


def _first_screen(clock: Clock, words: list[str]) -> list[tuple[str, str]]:
    sure = "Steps and shares have 95 % intervals, from redrawing the samples"
    return [
        ("What was asked", "When does the model begin to copy training images, class by class?"),
        ("What came out", words[0]),
        ("What to do", " ".join(words[1:])),
        ("How sure", f"{sure}." if clock.first is None else f"{sure}; the order holds {_sure(clock)}."),
    ]


def _sure(clock: Clock) -> str:
    return "" if clock.first is None else f"in {clock.sureness:.0%} of the redraws"


def _copies(clock: Clock) -> tuple[str, str]:
    shares = [final.value for final in clock.final]
    if len(shares) <= 3:
        return " · ".join("–" if share != share else f"{share:.0%}" for share in shares), " · ".join(
            clock.names
        )
    most = int(np.nanargmax(shares))
    return f"{shares[most]:.0%}", f"of {clock.names[most]}, the most of any class"


def _end(value: float) -> str:
    return steps(value) if np.isfinite(value) else "end"


def _how_to_draw(one: RunSummary) -> str:
    path = one.folder.checkpoint(one.clock.advised or 0)
    asked = f", [{one.names[0]!r}] * 16" if one.folder.settings["conditional"] else ""
    return f"from equipoise.generative import DDPM\n\nimages = DDPM.load({str(path)!r}).sample(16{asked})"


def time_cell(time: Interval, last: int) -> str:
    """A crossing time with its interval, as text."""
    if not np.isfinite(time.value):
        return f"not by {last:,}"
    high = steps(time.high) if np.isfinite(time.high) else f"over {last:,}"
    return f"{steps(time.value)} ({steps(time.low)} to {high})"


def _times_table(one: RunSummary) -> Table:
    clock = one.clock
    counts, variances = one.data.counts, None if one.mixture is None else one.mixture.variances
    rows = []
    for code, name in enumerate(one.names):
        final = clock.final[code]
        rows.append(
            [
                name,
                int(counts[code]),
                f"{one.shares[code]:.0%}",
                None if variances is None else float(variances[code]),
                steps(clock.generalized[code]) if np.isfinite(clock.generalized[code]) else "–",
                time_cell(clock.memorized[code], clock.last),
                f"{final.value:.0%} ({final.low:.0%} to {final.high:.0%})"
                if final.value == final.value
                else "–",
            ]
        )
    first = [one.names.index(clock.first)] if clock.first else []
    return Table(
        ["class", "images", "drawn", "variance", "generalizes from", "memorized at", "copies at the end"],
        rows,
        "Steps, interpolated in log steps, with 95 % bootstrap intervals. The class set off comes first.",
        {"variance": ".3f"},
        first,
    )


def _thresholds_table(one: RunSummary) -> Table:
    """How much the times depend on what counts as memorized."""
    kinds = {"1/12": 1 / 12, "1/6": 1 / 6, "1/3": 1 / 3}
    rows = [
        [name, *(time_cell(one.other[share].memorized[code], one.clock.last) for share in kinds.values())]
        for code, name in enumerate(one.names)
    ]
    caption = "The step at which a twelfth, a sixth and a third of the samples are copies."
    return Table(["class", *(f"{kind} copies" for kind in kinds)], rows, caption)


def _gap_cell(clock: Clock, a: str, b: str) -> str:
    """Who of two classes comes first, and by how much, in words."""
    gap = clock.gaps[a, b]
    if np.isnan(gap.value):
        return "neither is memorized within the run"
    first = b if gap.value > 0 else a
    if np.isinf(gap.value):
        least = clock.last - clock.memorized[clock.names.index(first)].value
        return f"{first} first, by at least {steps(least)} steps"
    text = f"{first} first, by {steps(abs(gap.value))} steps"
    if gap.low <= 0 <= gap.high:
        return f"{text}, but the interval holds zero"
    near, far = sorted(abs(end) for end in (gap.low, gap.high))
    return (
        f"{text} ({steps(near)} to {steps(far)})" if np.isfinite(far) else f"{text} (from {steps(near)} on)"
    )


def _gaps_table(clock: Clock) -> Table:
    rows = [[f"{a} – {b}", _gap_cell(clock, a, b)] for a, b in clock.gaps]
    return Table(["classes", "gap between their memorization"], rows)


def samples(one: RunSummary, prefix: str = "") -> list[Block]:
    low, high = float(one.data.images.min()), float(one.data.images.max())
    blocks: list[Block] = [
        Text(
            "Each column is one sample with the nearest and the second nearest training image below "
            "it. A sample is a copy, "
            "and framed, if the nearest is less than a third as far as the second; the number below "
            "is that ratio."
        )
    ]
    for step, caption in _worth_showing(one):
        look = one.folder.look(step)
        ratio = np.divide(
            look.distance[:, 0],
            look.distance[:, 1],
            out=np.ones(len(look.codes)),
            where=look.distance[:, 1] > 0,
        )
        strips: list[Block] = []
        for code, name in enumerate(one.names):
            rows = np.flatnonzero(look.codes == code)[:COLUMNS]
            own = look.table[look.table["label"] == code].iloc[0]
            if not len(rows):
                strips.append(Text(f"{name}: the model drew no sample of this class."))
                continue
            strips.append(
                gallery(
                    f"{prefix}samples-{step}-{code + 1}",
                    f"{name}: {own['fraction']:.0%} of {int(own['n'])} are copies",
                    look.samples[rows],
                    one.trained_on[look.index[rows, 0]],
                    one.trained_on[look.index[rows, 1]],
                    ratio[rows],
                    1 / 3,
                    (low, high),
                )
            )
        blocks += [Note("", "note", f"Step {step:,}: {caption}"), Row(strips)]
    if {"nearest", "second"} <= set(one.table):
        blocks.append(
            Figure(
                distance_curves(one.table, one.clock),
                "Mean distance of the samples of each class to the nearest (solid) and the second "
                "nearest (dashed) training "
                "image: the two part where copying begins.",
                "Mean neighbor distances over training steps",
                320,
            )
        )
    return blocks


def _worth_showing(one: RunSummary) -> list[tuple[int, str]]:
    """The checkpoint to use, the first look after a class was memorized, and the end."""
    available, clock = one.folder.look_steps(), one.clock
    wanted: dict[int, str] = {}
    if clock.advised is not None:
        wanted[clock.advised] = "the checkpoint to use"
    if clock.first is not None:
        first = clock.memorized[clock.names.index(clock.first)].value
        after = [step for step in available if step >= first]
        if after:
            wanted.setdefault(after[0], f"{clock.first} is memorized")
    wanted.setdefault(clock.last, "the last look")
    return sorted(wanted.items())


def theory(one: RunSummary) -> list[Block]:
    if one.predicted is None or one.mixture is None:
        return [Text(f"The theory has no word on these images: {one.why_not}.")]
    predicted, clock = one.predicted, one.clock
    measured = [time.value for time in clock.memorized]
    norms = one.mixture.centroid_norms
    rows = []
    for code, name in enumerate(one.names):
        time, (low, high) = predicted.memorization_time[code], predicted.memorization_interval[:, code]
        rows.append(
            [
                name,
                f"{one.shares[code]:.0%}",
                float(one.mixture.variances[code]),
                float(norms[code]),
                _theory_time(time, low, high),
                _rank(predicted.memorization_time, code),
                time_cell(clock.memorized[code], clock.last),
                _rank(np.array(measured), code),
            ]
        )
    table = Table(
        ["class", "drawn", "variance", "centroid norm", "predicted time", "predicted place", "measured step",
         "measured place"],
        rows,
        "Times of the theory are in its own units (the network is a random-features model): compare "
        "the order and the ratios.",
        {"variance": ".3f", "centroid norm": ".3f"},
    )  # fmt: skip
    blocks: list[Block] = [_agreement(one), table]
    if one.folder.record.get("prescription"):
        blocks.append(_prescribed(one))
    if "held_out_error" in one.table:
        blocks.append(
            Figure(
                error_curves(one.table, one.names),
                "Denoising error on images kept from training: a class generalizes from where its "
                "error is within 5 % of its "
                "lowest, and the error rises again where it is memorized.",
                "Held-out error of each class over training steps",
                320,
            )
        )
    return blocks


def _theory_time(time: float, low: float, high: float) -> str:
    if not np.isfinite(time):
        return "never"
    if np.isnan(low):
        return f"{time:.3g}"
    return f"{time:.3g} ({low:.3g} to {high:.3g})" if np.isfinite(high) else f"{time:.3g} (from {low:.3g} on)"


def _rank(times: np.ndarray[Any, Any], code: int) -> str:
    if not np.isfinite(times[code]):
        return "–"
    return str(1 + int((times < times[code]).sum()))


def _agreement(one: RunSummary) -> Note:
    assert one.predicted is not None
    expected = f"{one.predicted.in_words()} (≈: a tie)"
    found = one.clock.order
    if not found:
        return Note(
            f"Predicted order: {expected}. Nothing has been memorized yet to compare it with.",
            "note",
            "Predicted",
        )
    never = [name for name in one.names if name not in found]
    measured = " → ".join(found) + (f" ({', '.join(never)} not within the run)" if never else "")
    settled = [
        one.predicted.first(a, b) == a for a, b in combinations([*found, *never[:1]], 2)
        if one.predicted.first(a, b) is not None
    ]  # fmt: skip
    title, kind = "The theory expects ties only", "note"
    if settled:
        title, kind = "The measured order is the one that the theory expects", "good"
        if not all(settled):
            title, kind = "The measured order is not the one that the theory expects", "warning"
    return Note(f"Predicted: {expected}. Measured: {measured}.", kind, title)


def _prescribed(one: RunSummary) -> Note:
    record = one.folder.record["prescription"]
    shares = ", ".join(f"{name} {share:.1%}" for name, share in zip(one.names, record["shares"], strict=True))
    times = [time.value for time in one.clock.memorized]
    ratio = f"{max(times) / min(times):.2f}" if np.isfinite(times).all() else "not known yet"
    return Note(
        "The classes were drawn as the theory prescribes for equal "
        f"{record['quantity'].replace('z', 's')} times: {shares}. It "
        f"expected the latest over the earliest to go from {record['gain'][0]:.2f} to "
        f"{record['gain'][1]:.2f}; measured "
        f"memorization times have a ratio of {ratio}.",
        "note",
        "Prescribed shares",
    )


def method(one: RunSummary) -> list[Block]:
    settings, look = one.folder.settings, one.folder.look(one.clock.last)
    accuracy = look.how.get("accuracy")
    told = "the class asked for" if settings["conditional"] else "a small convnet trained on the same images"
    if accuracy is not None:
        told += f" (balanced accuracy {accuracy:.1%} on a held-out tenth)"
    reverse = look.how["stride"] or settings["noise_steps"]
    rows = [
        ["images", str(one.data)],
        ["kept from training", f"{settings['held_out_fraction']:.0%} of each class"],
        ["network", f"{settings['preset']} U-Net, T = {settings['noise_steps']:,}"],
        ["training", f"Adam at {settings['lr']:g}, batches of {settings['batch_size']}, seed {settings['seed']}"],
        ["stopping", {None: "after the steps asked for", "memorized": "when the first class is memorized"}.get(
            settings["stop"], "when every class is memorized")],
        ["each look", f"{look.how['n_samples']} samples, {reverse:,} reverse steps"],
        ["second neighbor", {"any": "any training image", "class": "of the sample's class"}[look.how["second"]]],
        ["class of a sample", told],
    ]  # fmt: skip
    text = (
        "A class is memorized when a third of its samples are copies. It generalizes from the first "
        "look at which its error on "
        "held-out images is within 5 % of its lowest. Intervals redraw the samples of every look; "
        "they do not hold the "
        "chance of another training run: train again with another --seed and report the runs "
        "together for that."
    )
    return [Text(text), Table(["", "this run"], rows), _thresholds_table(one)]
