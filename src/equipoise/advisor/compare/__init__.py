"""Treatments compared fairly: nested, repeated, stratified, within a budget, and resumable.

>>> from equipoise.advisor.compare import compare
>>> from sklearn.datasets import make_classification
>>> X, y = make_classification(300, weights=[0.9], random_state=0)
>>> result = compare(X, y, treatments=["plain", "threshold"], repeats=1, random_state=0)
>>> sorted(result.scores["treatment"].unique())
['plain', 'threshold']
"""

from __future__ import annotations

from equipoise.advisor.compare.result import Comparison, compare

__all__ = ["Comparison", "compare"]
