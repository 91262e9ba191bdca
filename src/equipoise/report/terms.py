"""Words that a page explains where they first stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Term:
    """A word or phrase and what it means, in a sentence.

    Attributes
    ----------
    name : str
        The word or phrase.
    meaning : str
        What it means.
    """

    name: str
    meaning: str


TERMS = (
    Term("recall", "Of all cases that should be found, the share that is found."),
    Term("precision", "Of all alerts, the share that is right."),
    Term("specificity", "Of all cases that should be left alone, the share that is left alone."),
    Term("balanced accuracy", "The mean of the recalls of all classes: every class counts the same, however rare."),
    Term("average precision", "The mean precision over all levels of recall; 1 is perfect, the share of the "
         "positives is what guessing reaches."),
    Term("ROC AUC", "The probability that a random positive scores above a random negative; guessing has 0.5."),
    Term("threshold", "The probability from which on a case raises an alert."),
    Term("prior", "How frequent a class is among all cases, before anything about a case is known."),
    Term("false alarm", "An alert for a case that should have been left alone."),
    Term("false alarms", "Alerts for cases that should have been left alone."),
    Term("held-out", "Not used in training, so the model has to answer as it will for new cases."),
    Term("calibrated", "Of the cases given a probability of 30%, 30% come true; and so for every number."),
    Term("95% interval", "The values that the data cannot rule out; it misses the truth one time in twenty."),
    Term("F1", "One number for precision and recall: their harmonic mean."),
    Term("log loss", "How surprised the probabilities are by the truth; smaller is better."),
    Term("class weight", "How much more an error on a rare class counts in training."),
    Term("oversampling", "Training on more rows of the rare class than there are, copied or made up."),
)  # fmt: skip


class Explainer:
    """Marks the first use of each term in a section, and remembers which were used."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self._terms = {term.name.lower(): term for term in terms}
        names = sorted(self._terms, key=len, reverse=True)
        self._pattern = re.compile(r"\b(" + "|".join(map(re.escape, names)) + r")\b", re.IGNORECASE)
        self._seen: set[str] = set()
        self.used: list[Term] = []

    def reset(self) -> str:
        """A new section begins."""
        self._seen.clear()
        return ""

    def address(self, term: Term) -> str:
        return "term-" + re.sub(r"[^a-z0-9]+", "-", term.name.lower())

    def __call__(self, text: object) -> Markup:
        """The text with its terms marked, all else escaped."""
        from markupsafe import Markup, escape

        if not self._terms:
            return escape(text)
        parts = self._pattern.split(str(text))
        marked = (self._mark(part) if i % 2 else escape(part) for i, part in enumerate(parts))
        return Markup("").join(marked)

    def _mark(self, word: str) -> Markup:
        from markupsafe import Markup, escape

        term = self._terms[word.lower()]
        if term.name in self._seen:
            return escape(word)
        self._seen.add(term.name)
        if term not in self.used:
            self.used.append(term)
        place = self.address(term)
        frame = '<dfn class="term" tabindex="0" data-term="{0}" aria-describedby="{0}">{1}</dfn>'
        return Markup(frame).format(place, word)
