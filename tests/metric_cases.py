"""Hypothesis strategies that the tests of the metrics share."""

from __future__ import annotations

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st


@st.composite
def labelings(draw, max_classes=4):
    n, c = draw(st.integers(4, 40)), draw(st.integers(2, max_classes))
    labels = st.lists(st.integers(0, c - 1), min_size=n, max_size=n)
    true, predicted = np.array(draw(labels)), np.array(draw(labels))
    assume(np.unique(true).size > 1)
    return true, predicted


@st.composite
def scorings(draw):
    n = draw(st.integers(3, 40))
    true = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=int)
    score = np.array(draw(st.lists(st.integers(-8, 8), min_size=n, max_size=n))) / 4
    assume(np.unique(true).size == 2)
    return true, score
