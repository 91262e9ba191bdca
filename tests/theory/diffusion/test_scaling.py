"""The scaling laws of Appendix F (Eqs 119–128, Fig 9) against the exact edges, with their ranges."""

import numpy as np
import pytest

from equipoise.theory.diffusion import ClassMixture, RandomFeatures
from equipoise.theory.diffusion.instances import draw, equivalent_matrix, populations

MIX = ClassMixture([0.5, 0.5], [0.5, 0.25])


def model(p, m, t=1e-3):
    return RandomFeatures(MIX, t, p, m)


def slopes(x, y):
    return np.diff(np.log(y)) / np.diff(np.log(x))


def test_generalization_time_goes_with_the_inverse_of_the_features():
    """Eq 122."""
    p = np.array([40, 160, 640])
    found = slopes(p, [model(x, 15).timescales().tau_gen for x in p])
    assert ((found > -1.08) & (found < -0.99)).all()


def test_memorization_begins_later_with_more_samples_but_not_in_proportion():
    """Eq 119 says τ_mem⁽¹⁾ ∝ χ_m/χ_p: the exact exponents are 0.69 to 0.9, nearest to one for χ_p ≫ χ_m."""
    m, p = np.array([5, 12, 28, 67, 160]), np.array([40, 160, 640])
    with_samples = slopes(m, [model(400, x).timescales().tau_mem1 for x in m])
    with_features = slopes(p, [model(x, 15).timescales().tau_mem1 for x in p])
    assert ((with_samples > 0.65) & (with_samples < 0.95)).all()
    assert (np.diff(with_samples) < 0).all()
    assert ((with_features > -0.95) & (with_features < -0.7)).all()


def test_the_generalization_window_grows_about_as_the_samples():
    """Eq 123 says w_g ∝ χ_m: the exact exponent falls through one, from 1.45 at few samples to 0.8 at many."""
    m = np.array([5, 12, 28, 67, 160])
    found = slopes(m, [model(400, x).timescales().generalization_window for x in m])
    assert 1.2 < found[0] < 1.6
    assert 0.7 < found[-1] < 0.95


def test_the_memorization_window_goes_with_the_inverse_time_but_not_with_the_ratio():
    """Eq 128 says w_m ∝ χ_p/(χ_m t): eight times the features per sample give 1.5 times the window, not 8."""
    short, long = (model(60, 30, t).timescales().memorization_window for t in (1e-3, 1e-5))
    assert long / short == pytest.approx(100, rel=0.01)
    ratio = model(480, 30).timescales().memorization_window / model(60, 30).timescales().memorization_window
    assert ratio == pytest.approx(1.48, abs=0.03)


def test_the_leftmost_bulk_narrows_with_the_square_of_the_samples_at_fixed_features():
    """Fig 9 and Eq 126 at χ_p = 60. Along χ_p = 2χ_m the exponent is another one."""

    def width(p, m):
        leftmost = model(p, m).edges().bulks[0]
        return leftmost.upper - leftmost.lower

    m = np.array([5.0, 8.0, 12.6, 20.0])
    fixed = slopes(m, [width(60, x) for x in m])
    assert ((fixed > -2.05) & (fixed < -1.8)).all()
    together = slopes(m, [width(2 * x, x) for x in m])
    assert ((together > -0.9) & (together < -0.5)).all()


@pytest.mark.parametrize(("p", "m", "error"), [(60, 30, 0.24), (480, 240, 0.07), (1000, 500, 0.05)])
def test_the_large_ratio_form_of_the_generalization_edge_is_off_by_so_much(p, m, error):
    """Eq 121 needs more samples than the paper's 30 per dimension."""
    rf = model(p, m)
    off = rf.asymptotic_edges().generalization[0] / rf.edges().generalization[0] - 1
    assert off == pytest.approx(error, abs=0.01)


@pytest.mark.parametrize("t", [1.0, 3.0, 5.0])
def test_edges_reach_diffusion_times_at_which_the_sample_noise_is_tiny(t):
    """At t = 5 the bulks of the samples are 1e-15 wide, next to the delta peak."""
    mixture = ClassMixture([0.4, 0.3, 0.2, 0.1], [0.9, 0.5, 0.25, 0.05])
    edges = RandomFeatures(mixture, t, 60, 30).edges()
    assert abs(edges.missing_mass) < 1e-6
    assert edges.bulks[-1].mass == pytest.approx(1 / 60, abs=1e-6)
    assert edges.separated


def test_edges_of_vanishing_centroids_are_those_of_centered_classes():
    exact = model(60, 30).edges()
    found = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25], 1e-6 * np.eye(2)), 1e-3, 60, 30).edges()
    assert found.separated
    np.testing.assert_allclose(found.generalization, exact.generalization, rtol=1e-3)
    assert found.memorization_upper == pytest.approx(exact.memorization_upper, rel=1e-3)


def test_the_gap_of_extensive_centroids_holds_no_eigenvalues():
    n = 50
    rf = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25], np.eye(2)), 0.01, 20, 10)
    edges, values = rf.edges(), np.linalg.eigvalsh(equivalent_matrix(rf, draw(rf, n, 0)))
    low, high = edges.memorization_upper, edges.generalization[0]
    assert ((values > 1.1 * low) & (values < 0.95 * high)).sum() == 0
    assert (values > 0.95 * high).sum() == n  # two of them are outliers
    assert edges.bulks[1].mass == pytest.approx(1 / 20, rel=1e-2)
    times = rf.timescales()
    assert times.tau_gen < times.tau_mem1
    assert np.isnan(times.tau_mem2)


def test_what_memorizes_is_smaller_than_what_generalizes_by_the_root_of_the_samples():
    """Eq 56: ‖Ũ‖ grows as χ_p and ‖U − Ũ‖ as χ_p/√χ_m, in the Frobenius norm."""

    def norms(p, m):
        model = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25]), 0.01, p, m)
        instance = draw(model, 24, 0)
        whole = sum(0.5 * part.form() for part in populations(model, instance, equivalent=True))
        rest = equivalent_matrix(model, instance) - whole
        return np.linalg.norm(whole), np.linalg.norm(rest)

    base, wider, larger = norms(8, 8), norms(24, 8), norms(8, 72)
    assert wider[0] / base[0] == pytest.approx(3, rel=0.1)
    assert wider[1] / base[1] == pytest.approx(3, rel=0.1)
    assert larger[1] / base[1] == pytest.approx(1 / 3, rel=0.1)
