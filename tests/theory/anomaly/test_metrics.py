"""Scores in closed form against direct integration and simulation, and their laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from equipoise.theory.anomaly import (
    boundary_densities,
    classification_metrics,
    intrinsic_fraction,
    teacher_bias,
)
from equipoise.theory.anomaly.metrics import area_under_curve, both_positive


def by_quadrature(r, a, b):
    """∫_{y>-b} Dy Φ((a + ry)/√(1-r²)), as in Eq 93."""
    root = np.sqrt(1 - r * r)
    points = sorted(p for p in (-a / r if r else 0.0, 0.0, 3.0) if -b < p < 12)

    def f(y):
        return np.exp(-0.5 * y * y) / np.sqrt(2 * np.pi) * ndtr((a + r * y) / root)

    return quad(f, -b, max(-b, 0) + 12, points=points or None, epsabs=0, epsrel=1e-11, limit=400)[0]


@given(st.floats(-0.99, 0.99), st.floats(-3, 3), st.floats(-3, 3))
def test_orthant_agrees_with_quadrature(r, a, b):
    assert float(both_positive(r, a, b)) == pytest.approx(by_quadrature(r, a, b), abs=3e-9)


@pytest.mark.parametrize(
    "case",
    [(0.5, 1.0, 0.5), (-0.5, 1.0, -0.5), (0, 0, 0), (0.3, 0, 0), (0.5, 0, -1), (0, -1, 2), (0, 1, -0.0)],
)
def test_orthant_at_its_corners(case):
    assert float(both_positive(*case)) == pytest.approx(by_quadrature(*case), abs=1e-12)


def test_orthant_keeps_its_digits_when_rare():
    assert float(both_positive(0.9, -1.0, -6.0)) == pytest.approx(by_quadrature(0.9, -1.0, -6.0), rel=1e-10)


def test_orthant_of_a_dummy():
    assert both_positive(0.0, -np.inf, -1.0) == 0
    assert both_positive(0.0, np.inf, -1.0) == ndtr(-1.0)


def test_scores_agree_with_counts():
    rng = np.random.default_rng(0)
    r, b, b0, share, n = 0.7, -0.8, -1.2, 0.3, 400_000
    teacher = rng.standard_normal(n)
    student = r * teacher + np.sqrt(1 - r * r) * rng.standard_normal(n)
    positive, called = teacher + b0 > 0, student + b > 0
    m = classification_metrics(r, b, b0, share)
    recall, specificity = called[positive].mean(), (~called[~positive]).mean()
    assert float(m.recall) == pytest.approx(recall, abs=4 * np.sqrt(0.25 / positive.sum()))
    assert float(m.specificity) == pytest.approx(specificity, abs=4 * np.sqrt(0.25 / n))
    r, s = float(m.recall), float(m.specificity)
    p = r / (r + (1 - share) / share * (1 - s))  # Eq 12
    p_minus = s / (s + share / (1 - share) * (1 - r))  # Eq 104
    assert float(m.accuracy) == pytest.approx(share * r + (1 - share) * s)
    assert float(m.balanced_accuracy) == pytest.approx((r + s) / 2)
    assert float(m.precision) == pytest.approx(p)
    assert float(m.f1) == pytest.approx(2 * p * r / (p + r))
    assert float(m.negative_precision) == pytest.approx(p_minus)
    assert float(m.negative_f1) == pytest.approx(2 * p_minus * s / (p_minus + s))
    assert float(m.error) == pytest.approx(1 - float(m.accuracy))


def test_area_under_curve():
    rng = np.random.default_rng(1)
    teacher = rng.standard_normal(200_000)
    student = 0.6 * teacher + 0.8 * rng.standard_normal(teacher.size)
    ranks = student.argsort().argsort() + 1
    positive = teacher > 1.0
    count = positive.sum()
    area = (ranks[positive].sum() - count * (count + 1) / 2) / count / (~positive).sum()
    assert float(area_under_curve(0.6, -1.0)) == pytest.approx(area, abs=4e-3)
    assert (np.diff(area_under_curve(np.linspace(0, 0.99, 9), -1.0)) > 0).all()


def test_dummy_scores():
    m = classification_metrics([0.0, 0.0], [-np.inf, np.inf], -1.0, 0.3)
    assert m.recall.tolist() == [0, 1]
    assert m.specificity.tolist() == [1, 0]
    assert m.f1[0] == 0
    assert np.isnan(m.precision[0])


def test_a_perfect_student_nearly_scores_one():
    m = classification_metrics(1 - 1e-12, -1.0, -1.0, 0.5)
    assert float(m.accuracy) == pytest.approx(1, abs=1e-5)


def test_fraction_and_bias_are_inverse():
    b0 = np.array([0.0, -0.6, -3.0, -6.0])
    np.testing.assert_allclose(teacher_bias(intrinsic_fraction(b0)), b0, atol=1e-9)


def test_boundary_densities():
    positive, negative = boundary_densities(np.array([0.0, -2.0]))
    assert positive[0] == pytest.approx(negative[0])
    rng = np.random.default_rng(0)
    y = rng.standard_normal(2_000_000)
    near = (y > 2) & (y < 2.02)
    assert positive[1] == pytest.approx(near.sum() / (y > 2).sum() / 0.02, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, -1.0, -1.0, 1.0), r"test_fraction must lie in \(0, 1\), got 1"),
        ((1.0, -1.0, -1.0, 0.5), r"overlap must lie in \(-1, 1\), got 1"),
        ((0.5, np.nan, -1.0, 0.5), "bias must be a number, got nan"),
        ((0.5, -1.0, np.nan, 0.5), "teacher_bias must be finite"),
    ],
)
def test_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        classification_metrics(*arguments)
    with pytest.raises(ValueError, match="intrinsic_fraction must lie in"):
        teacher_bias(1.5)
