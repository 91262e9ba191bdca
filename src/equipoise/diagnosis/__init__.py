"""One question a file, each answered by a Finding.

A file here that defines ``ORDER`` and ``ask(sample) -> Finding`` joins every diagnosis by itself.

>>> from equipoise.diagnosis import diagnose
>>> from sklearn.datasets import make_classification
>>> X, y = make_classification(400, weights=[0.9], random_state=0)
>>> result = diagnose(X, y, questions=["counts"], random_state=0)
>>> result.findings[0].question
'How rare is the rarest class?'
"""

from __future__ import annotations

from equipoise.diagnosis._contract import Finding, Sample
from equipoise.diagnosis._run import Diagnosis, diagnose, question_names

__all__ = ["Diagnosis", "Finding", "Sample", "diagnose", "question_names"]
