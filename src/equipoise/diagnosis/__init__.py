"""One question a file, each answered by numbers and a verdict; ``_render`` makes the sentences and figures.

A file here that defines ``ORDER``, ``QUESTION`` and ``ask(sample) -> Answer`` joins every diagnosis by
itself, with a function of the same name in ``_render``.

>>> from equipoise.diagnosis import diagnose
>>> from sklearn.datasets import make_classification
>>> X, y = make_classification(400, weights=[0.9], random_state=0)
>>> result = diagnose(X, y, questions=["counts"], random_state=0)
>>> result.findings[0].question
'How rare is the rarest class?'
"""

from __future__ import annotations

from equipoise.diagnosis._contract import Answer, Finding, Sample
from equipoise.diagnosis._run import Diagnosis, diagnose, question_names

__all__ = ["Answer", "Diagnosis", "Finding", "Sample", "diagnose", "question_names"]
