"""Which class does a generator copy, and how much? An audit of samples against the images it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from equipoise._core.checks import (
    IntArray,
    check_array,
    check_choice,
    check_fraction,
    check_same_length,
    check_type,
)
from equipoise.datasets.labeled_images import LabeledImages, Pixels
from equipoise.generative.memorization import Neighbors, nearest_two
from equipoise.report import Interval

FEWEST = 10  # samples of a class below which nothing is said of it
_BASELINE = 1000  # training images of a class that the baseline looks at
_SCALES = 4.0  # pixel spreads of samples and training images may differ by this factor


@dataclass(frozen=True)
class ClassAudit:
    """What an audit found of one class.

    Attributes
    ----------
    name : str
        The class.
    n_training : int
        Its training images, each counted once.
    n_samples : int
        The samples of the class.
    copies : int
        How many of them are copies.
    fraction : Estimate
        Their share, with an exact binomial interval.
    baseline : Estimate
        The share of the class's own training images that would pass for copies of another one, with its
        interval: what duplicates and near-duplicates in the data alone would give.
    reproduced : int
        How many training images of the class appear among the copies.
    """

    name: str
    n_training: int
    n_samples: int
    copies: int
    fraction: Interval
    baseline: Interval
    reproduced: int

    @property
    def known(self) -> bool:
        """Whether there are enough samples to say anything."""
        return self.n_samples >= FEWEST

    @property
    def copied(self) -> bool:
        """Whether the class is copied beyond what its own near-duplicates explain."""
        return self.known and self.fraction.low > self.baseline.high


@dataclass(frozen=True)
class CopyAudit:
    """The result of :func:`audit_copies`.

    Attributes
    ----------
    classes : tuple of ClassAudit
        What was found of each class.
    threshold : float
        A sample is a copy if d(nn1)/d(nn2) is below it.
    confidence : float
        Of the intervals.
    duplicates : int
        Training images that were dropped because they equal another one exactly.
    samples : array of shape (n, channels, height, width)
        The samples.
    codes : array of int of shape (n,)
        Their classes.
    training : LabeledImages
        The training images, each once.
    neighbors : Neighbors
        The two nearest training images of each sample.
    labels_from : str
        Where the classes of the samples come from.
    """

    classes: tuple[ClassAudit, ...]
    threshold: float
    confidence: float
    duplicates: int
    samples: Pixels
    codes: IntArray
    training: LabeledImages
    neighbors: Neighbors
    labels_from: str

    @property
    def most_copied(self) -> str | None:
        """The class that is copied more than every other one; None if the intervals do not tell."""
        known = sorted((one for one in self.classes if one.known), key=lambda one: -one.fraction.value)
        if not known or not known[0].copied:
            return None
        return (
            known[0].name if all(known[0].fraction.low > other.fraction.high for other in known[1:]) else None
        )

    def closest(self, code: int, count: int) -> IntArray:
        """Rows of the class's samples, those most like a copy first.

        Parameters
        ----------
        code : int
            The class code.
        count : int
            How many rows at most.

        Returns
        -------
        array of int
            Row numbers of samples.
        """
        rows = np.flatnonzero(self.codes == code)
        return rows[np.argsort(self.neighbors.ratio[rows], kind="stable")][:count]

    def in_words(self) -> list[str]:
        """The verdict in plain sentences.

        Returns
        -------
        list of str
            The sentences.
        """
        copied = [one for one in self.classes if one.copied]
        few = [one.name for one in self.classes if not one.known]
        if not copied:
            sentences = ["No class is copied beyond what near-duplicates in the training images explain."]
        else:
            each = "; ".join(
                f"{one.name!r} {_share(one.fraction)} of {one.n_samples} samples" for one in copied
            )
            sentences = [f"The samples hold copies of training images: {each}."]
            most = self.most_copied
            if most is not None and len(self.classes) > 1:
                sentences.append(f"{most!r} is copied more than every other class.")
            elif len(self.classes) > 1:
                sentences.append("Which class is copied most cannot be told from this many samples.")
            shown = ", ".join(f"{one.reproduced} of {one.n_training} of {one.name!r}" for one in copied)
            sentences.append(f"Training images that appear at least once: {shown}.")
        if few:
            listed = ", ".join(map(repr, few))
            sentences.append(f"There are fewer than {FEWEST} samples of {listed}: too few to say anything.")
        return sentences


def _share(estimate: Interval) -> str:
    return f"{estimate.value:.0%} ({estimate.low:.0%} to {estimate.high:.0%})"


def audit_copies(
    samples: npt.ArrayLike,
    training: LabeledImages,
    labels: Sequence[str] | npt.NDArray[Any] | None = None,
    *,
    assign: str | None = None,
    threshold: float = 1 / 3,
    second: str = "any",
    confidence: float = 0.95,
    seed: int = 0,
) -> CopyAudit:
    """Tell which class a generator copies, from samples that anybody made.

    Parameters
    ----------
    samples : array of shape (n, channels, height, width)
        The samples, in the units of the training images.
    training : LabeledImages
        The images that the generator was trained on, with their classes.
    labels : sequence of str, optional
        The class of each sample, by name.
    assign : {"nearest", "classifier"}, optional
        How to tell the classes of samples without labels: by the class of the nearest training image, or
        by a small network trained on the training images (needs torch).
    threshold : float
        A sample is a copy if its nearest training image is nearer than this share of the second.
    second : {"any", "class"}
        Whether the second neighbor is any image, or one of the sample's class.
    confidence : float
        Of the exact binomial intervals.
    seed : int
        The seed of the classifier and of the images that the baseline looks at.

    Returns
    -------
    CopyAudit
        What was found of each class.

    Raises
    ------
    ValueError
        If images do not have one size or one scale, a class has fewer than two training images, there are too few
        samples of every class, or the classes of the samples are not known.

    Notes
    -----
    Exact duplicates among the training images are dropped first: they would make both neighbors equally near and
    hide every copy. Near-duplicates remain and are what the baseline measures.

    References
    ----------
    Nicoletti et al., Section 4, for the criterion d(nn1)/d(nn2) < 1/3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> images = rng.normal(size=(60, 1, 6, 6)).astype(np.float32)
    >>> known = LabeledImages(images, np.repeat([0, 1], 30), ("common", "rare"), "example")
    >>> fresh = rng.normal(size=(30, 1, 6, 6))
    >>> drawn = np.concatenate([fresh, images[30:] + 0.05 * fresh])  # the rare class is copied
    >>> found = audit_copies(drawn, known, ["common"] * 30 + ["rare"] * 30)
    >>> found.most_copied, found.classes[1].reproduced
    ('rare', 30)
    """
    check_fraction("threshold", threshold)
    check_choice("second", second, ["any", "class"])
    check_fraction("confidence", confidence)
    drawn = np.asarray(check_array("samples", samples), dtype=np.float32)
    _check_alike(drawn, training)
    unique = _without_duplicates(training)
    codes, labels_from = _codes(drawn, unique, labels, assign, seed)
    own = {"sample_labels": codes, "training_labels": unique.codes} if second == "class" else {}
    found = nearest_two(drawn, unique.images, **own)
    copies = found.memorized(threshold)
    classes = []
    for code, name in enumerate(unique.classes):
        mine = codes == code
        copied = mine & copies
        source = found.index[copied, 0]
        classes.append(
            ClassAudit(
                name,
                int(unique.counts[code]),
                int(mine.sum()),
                int(copied.sum()),
                _proportion(copied.sum(), mine.sum(), confidence),
                _baseline(unique, code, threshold, second, confidence, seed),
                len(np.unique(source[unique.codes[source] == code])),
            )
        )
    if not any(one.known for one in classes):
        raise ValueError(f"there are fewer than {FEWEST} samples of every class: too few to say anything")
    dropped = len(training.images) - len(unique.images)
    return CopyAudit(tuple(classes), threshold, confidence, dropped, drawn, codes, unique, found, labels_from)


def _check_alike(samples: Pixels, training: LabeledImages) -> None:
    check_type("training", training, LabeledImages)
    if samples.shape[1:] != training.images.shape[1:]:
        raise ValueError(
            f"samples and training images must have one shape, got {samples.shape[1:]} and "
            f"{training.images.shape[1:]}; --size scales both"
        )
    ours, theirs = float(samples.std()), float(training.images.std())
    if not theirs / _SCALES < ours < theirs * _SCALES:
        raise ValueError(
            f"samples have values from {samples.min():g} to {samples.max():g}, training images from "
            f"{training.images.min():g} to {training.images.max():g}: bring them to one scale"
        )
    for name, count in zip(training.classes, training.counts, strict=True):
        if count < 2:
            raise ValueError(f"class {name!r} has {count} training images: too few to say anything")


def _without_duplicates(training: LabeledImages) -> LabeledImages:
    """The images, each once, in their order."""
    flat = np.ascontiguousarray(training.images.reshape(len(training.images), -1))
    rows = np.sort(np.unique(flat, axis=0, return_index=True)[1])
    unique = LabeledImages(training.images[rows], training.codes[rows], training.classes, training.name)
    if (unique.counts < 2).any():
        name = training.classes[int(unique.counts.argmin())]
        raise ValueError(f"the training images of class {name!r} are all the same: too few to say anything")
    return unique


def _codes(
    samples: Pixels,
    training: LabeledImages,
    labels: Sequence[str] | npt.NDArray[Any] | None,
    assign: str | None,
    seed: int,
) -> tuple[IntArray, str]:
    if labels is not None:
        check_same_length(samples=samples, labels=labels)
        unknown = sorted(set(map(str, labels)) - set(training.classes))
        if unknown:
            listed = ", ".join(map(repr, training.classes))
            raise ValueError(f"samples of class {unknown[0]!r} have no training images; there are {listed}")
        return np.array([training.classes.index(str(label)) for label in labels], dtype=np.int64), "given"
    if len(training.classes) == 1:
        return np.zeros(len(samples), dtype=np.int64), "the only class"
    check_choice("assign", assign, [None, "nearest", "classifier"])
    if assign is None:
        raise ValueError(
            "the samples have no labels: give them, or say how to tell their classes (--assign nearest, by the "
            "nearest training image, or --assign classifier)"
        )
    if assign == "nearest":
        return training.codes[nearest_two(samples, training.images).index[:, 0]], "the nearest training image"
    import torch

    from equipoise.generative.assignment import Assigner

    told = Assigner(torch.from_numpy(training.images), training.codes, seed=seed)
    return told(torch.from_numpy(samples)), f"a classifier of balanced accuracy {told.balanced_accuracy:.1%}"


def _proportion(copies: int, n: int, confidence: float) -> Interval:
    """A share with its exact (Clopper–Pearson) interval; 0 of 50 is "at most 7 %", not "none"."""
    if n == 0:
        return Interval(float("nan"), 0.0, 1.0)
    ends = stats.binomtest(int(copies), int(n)).proportion_ci(confidence, method="exact")
    return Interval(float(copies / n), float(ends.low), float(ends.high))


def _baseline(
    training: LabeledImages, code: int, threshold: float, second: str, confidence: float, seed: int
) -> Interval:
    """How many training images of a class pass for copies of another one."""
    rows = np.flatnonzero(training.codes == code)
    if len(training.images) < 3 or (second == "class" and len(rows) < 3):
        return _proportion(0, 0, confidence)
    rows = np.random.default_rng(seed).permutation(rows)[:_BASELINE]
    own = (
        {"sample_labels": training.codes[rows], "training_labels": training.codes}
        if second == "class"
        else {}
    )
    found = nearest_two(training.images[rows], training.images, skip=rows, **own)
    return _proportion(int(found.memorized(threshold).sum()), len(rows), confidence)
