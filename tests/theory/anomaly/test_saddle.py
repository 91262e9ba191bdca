"""The saddle point: check values, an independent extremisation, symmetries, limits, range and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.optimize import root
from scipy.special import log_ndtr, ndtr

from equipoise._core.solution import ConvergenceError, ConvergenceWarning
from equipoise.theory.anomaly import SaddlePoint, saddle, solve_saddle

# (samples_per_dim, temperature, teacher_bias, train_fraction) → q, R, b, by direct extremisation elsewhere.
KNOWN = {
    (1.1, 0.5, -0.6, 0.5): (0.34653, 0.42165, -0.1598),
    (8.0, 0.5, -1.5, 0.45): (0.87888, 0.91297, -1.0752),
    (1.1, 0.5, -5.0, 0.5): (0.24301, 0.46185, -1.2495),
    (1.1, 0.1, -0.6, 0.3): (0.47629, 0.47840, -0.5479),
}


def paper_log_partition(order, setting, nodes=96):
    """-βF as Eqs 62-63 and 70 write it: a plain double integral over (y, t), with no shared code."""
    q, r, b = order
    alpha, temperature, b0, rho = setting
    x, w = leggauss(nodes)

    def panel(low, high):
        return 0.5 * (high - low) * x + 0.5 * (high + low), 0.5 * (high - low) * w

    t, wt = panel(-9.0, 9.0)
    wt = wt * np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)
    total = 0.5 * np.log(1 - q) + (q - r**2) / (2 * (1 - q))
    top = np.sqrt(b0**2 + 80.0)
    for share, mass, low, high, sign in (
        (rho, ndtr(b0), -b0, top, 1),
        (1 - rho, ndtr(-b0), -top, -b0, -1),
    ):
        y, wy = panel(low, high)
        wy = wy * np.exp(-0.5 * y**2) / np.sqrt(2 * np.pi)
        u = (np.sqrt(q - r**2) * t[:, None] - r * y - b) / np.sqrt(1 - q)
        if temperature:
            beta = 1 / temperature
            inner = np.logaddexp(-beta, np.log1p(-np.exp(-beta)) + log_ndtr(-sign * u))
        else:
            inner = log_ndtr(-sign * u)
        total += alpha * share / mass * (wt @ inner @ wy)
    return total


def gradient(order, setting, h=1e-3):
    """Five-point differences: no derivative formula is shared either."""
    order = np.asarray(order, dtype=float)

    def along(i):
        step = h * np.eye(3)[i]
        f = [paper_log_partition(order + k * step, setting) for k in (-2, -1, 1, 2)]
        return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h)

    return [along(i) for i in range(3)]


@pytest.mark.parametrize(("setting", "expected"), KNOWN.items())
def test_known_values(setting, expected):
    s = solve_saddle(*setting)
    assert s.converged
    assert (s.self_overlap, s.overlap) == pytest.approx(expected[:2], abs=5.1e-6)  # the digits that are known
    assert s.bias == pytest.approx(expected[2], abs=5.1e-5)


@pytest.mark.parametrize("setting", [*KNOWN, (2.0, 0.0, -1.0, 0.4), (3.0, 1.0, -2.0, 0.6)])
def test_stationary_point_of_the_papers_free_energy(setting):
    s = solve_saddle(*setting)
    found = np.array([s.self_overlap, s.overlap, s.bias])
    direct = root(gradient, found + np.array([0.01, -0.01, 0.02]), args=(setting,), tol=1e-13)
    assert np.abs(direct.x - found).max() < 1e-7
    assert paper_log_partition(found, setting) == pytest.approx(float(s.log_partition), abs=1e-9)
    assert s.free_energy == pytest.approx(-setting[1] * float(s.log_partition))


def test_train_error_is_the_derivative_of_the_free_energy():
    """Eq 77: ε_t = ∂(βF)/∂β/α, through the whole solver."""
    beta, h, alpha = 2.0, 1e-4, 1.7
    s = solve_saddle(alpha, 1 / np.array([beta - h, beta, beta + h]), -0.8, 0.4)
    slope = -(s.log_partition[2] - s.log_partition[0]) / (2 * h) / alpha
    assert s.train_error[1] == pytest.approx(slope, abs=1e-7)


def test_mirror_symmetry():
    rho = np.linspace(0.2, 0.8, 5)
    s = solve_saddle(2.0, [[0.0], [0.4]], -1.2, rho)
    m = solve_saddle(2.0, [[0.0], [0.4]], 1.2, 1 - rho)
    np.testing.assert_allclose(m.overlap, s.overlap, atol=1e-10)
    np.testing.assert_allclose(m.bias, -s.bias, atol=1e-10)
    np.testing.assert_allclose(m.metrics(0.3).recall, s.metrics(0.7).specificity, atol=1e-10)


def test_no_bias_at_balance_and_bayes_line_at_zero_temperature():
    s = solve_saddle([0.5, 5.0], 0.0, 0.0, 0.5)
    np.testing.assert_allclose(s.bias, 0.0, atol=1e-10)
    np.testing.assert_allclose(s.overlap, s.self_overlap, atol=1e-9)  # teacher and student exchangeable
    np.testing.assert_allclose(s.train_error, 0.0, atol=0)
    np.testing.assert_allclose(s.free_energy, 0.0, atol=0)


@pytest.mark.parametrize(("alpha", "b0"), [(0.3, -0.5), (2.0, -1.5), (20.0, -1.0)])
def test_without_noise_the_natural_share_learns_the_teachers_bias_exactly(alpha, b0):
    """At T = 0 and ρ = ρ0 the teacher is a typical student: b = b0 and q = R, so ρ0 is the best share for b."""
    s = solve_saddle(alpha, 0.0, b0, ndtr(b0))
    assert s.bias == pytest.approx(b0, abs=1e-9)
    assert s.self_overlap == pytest.approx(float(s.overlap), abs=1e-9)


def weighted_log_partition(order, setting, weights):
    """-βF with class weights: each class of the paper's double integral at its own temperature T/w."""
    alpha, temperature, b0, rho = setting
    volume = paper_log_partition(order, (0.0, temperature, b0, rho))
    parts = [
        paper_log_partition(order, (alpha, temperature / w, b0, share)) - volume
        for w, share in zip(weights, (1 - 1e-300, 1e-300), strict=True)
    ]
    return volume + rho * parts[0] + (1 - rho) * parts[1]


def test_weights_extremize_the_weighted_free_energy():
    """By differences of a double integral that shares no code with the solver."""
    setting, weights = (4.0, 0.5, -0.8, 0.2), (2.5, 0.625)
    s = solve_saddle(*setting, positive_weight=2.5, negative_weight=0.625)
    order = np.array([s.self_overlap, s.overlap, s.bias])
    assert weighted_log_partition(order, setting, weights) == pytest.approx(float(s.log_partition), abs=1e-9)
    for step in 2e-4 * np.eye(3):
        up, down = (weighted_log_partition(order + sign * step, setting, weights) for sign in (1, -1))
        assert abs(up - down) / 4e-4 < 2e-6


def test_equal_weights_are_a_temperature_and_no_noise_needs_no_weights():
    doubled = solve_saddle(2.0, 0.8, -1.0, 0.3, positive_weight=2.0, negative_weight=2.0)
    plain = solve_saddle(2.0, 0.4, -1.0, 0.3)
    assert (doubled.overlap, doubled.bias) == pytest.approx(
        (float(plain.overlap), float(plain.bias)), abs=1e-9
    )
    frozen = solve_saddle(2.0, 0.0, -1.0, 0.3, positive_weight=[0.2, 1.0, 5.0])
    np.testing.assert_allclose(frozen.overlap, frozen.overlap[1], atol=1e-10)


def test_weights_mirror_with_the_classes():
    a = solve_saddle(3.0, 0.5, -1.0, 0.2, positive_weight=3.0, negative_weight=0.7)
    b = solve_saddle(3.0, 0.5, 1.0, 0.8, positive_weight=0.7, negative_weight=3.0)
    assert (float(b.overlap), float(b.bias)) == pytest.approx((float(a.overlap), -float(a.bias)), abs=1e-10)


def test_the_dummy_of_a_weighted_problem():
    """Heavy weights on the rare class turn the dummy around; the energy counts weights, the error does not."""
    s = solve_saddle(1.0, 1.0, -0.5, [0.1, 0.4], positive_weight=[1.0, 6.0], negative_weight=[1.0, 0.2])
    assert s.phase.tolist() == ["dummy", "dummy"]
    assert s.bias.tolist() == [-np.inf, np.inf]
    assert s.train_error == pytest.approx([0.1, 0.6])
    assert s.dummy_log_partition == pytest.approx([-0.1, -0.12])


def independent_stability(order, setting, h=1e-3):
    """1 - α(1-q)²·E[(∂²log z/∂h²)²]: second differences in b of the double integral's inner logarithm."""
    q, r, b = order
    alpha, temperature, b0, rho = setting
    x, w = leggauss(120)
    t, wt = 9 * x, 9 * w * np.exp(-0.5 * (9 * x) ** 2) / np.sqrt(2 * np.pi)
    total, top = 0.0, 9.5
    for share, mass, low, high, sign in ((rho, ndtr(b0), -b0, top, 1), (1 - rho, ndtr(-b0), -top, -b0, -1)):
        y, wy = 0.5 * (high - low) * x + 0.5 * (high + low), 0.5 * (high - low) * w
        wy = wy * np.exp(-0.5 * y**2) / np.sqrt(2 * np.pi)

        def log_z(bias, y=y, sign=sign):
            u = (np.sqrt(q - r**2) * t[:, None] - r * y - bias) / np.sqrt(1 - q)
            beta = 1 / temperature
            return np.logaddexp(-beta, np.log1p(-np.exp(-beta)) + log_ndtr(-sign * u))

        second = (log_z(b + h) - 2 * log_z(b) + log_z(b - h)) / h**2
        total += share / mass * (wt @ second**2 @ wy)
    return 1 - alpha * (1 - q) ** 2 * total


@pytest.mark.parametrize("setting", [(1.1, 0.5, -0.6, 0.5), (8.0, 0.5, -1.5, 0.45), (3.0, 0.2, -1.0, 0.3)])
def test_replica_stability_against_a_double_integral(setting):
    s = solve_saddle(*setting)
    expected = independent_stability((float(s.self_overlap), float(s.overlap), float(s.bias)), setting)
    assert s.replica_stability == pytest.approx(expected, abs=1e-5)


def test_replica_symmetry_is_stable_and_tends_to_one_half():
    """Without noise the stability falls to ½ as the data grow, and never below."""
    s = solve_saddle(np.geomspace(0.1, 300, 10), [[0.0], [0.3]], 0.0, 0.5)
    assert (s.replica_stability > 0.5).all()
    assert s.replica_stability[0, -1] == pytest.approx(0.5, abs=0.01)


def test_a_held_bias_has_the_learned_one_as_its_best():
    learned = solve_saddle(2.0, 0.5, -1.0, 0.4)
    held = solve_saddle(2.0, 0.5, -1.0, 0.4, student_bias=float(learned.bias) + np.array([-0.1, 0.0, 0.1]))
    assert held.overlap[1] == pytest.approx(float(learned.overlap), abs=1e-9)
    assert held.log_partition.argmax() == 1


def test_overlap_grows_with_data_and_falls_with_noise():
    assert (np.diff(solve_saddle(np.geomspace(0.05, 100, 12), 0.3, -1.0, 0.5).overlap) > 0).all()
    assert (np.diff(solve_saddle(1.1, np.linspace(0.2, 3.0, 12), -1.0, 0.5).overlap) < 0).all()


def test_low_noise_regime_is_flat():
    s = solve_saddle(1.1, [0.01, 0.05], -1.0, 0.5)
    assert s.overlap[0] == pytest.approx(s.overlap[1], abs=1e-5)


def test_known_bias_is_flat_without_intrinsic_imbalance():
    """Appendix E: b = b0 = 0 makes the classes exchangeable, so R does not depend on ρ."""
    s = solve_saddle(0.7, 0.5, 0.0, np.linspace(0.02, 0.98, 9), learn_bias=False)
    np.testing.assert_allclose(s.overlap, s.overlap[4], atol=1e-10)
    s = solve_saddle(0.7, 0.5, -0.6, np.linspace(0.02, 0.98, 9), learn_bias=False)
    assert (np.diff(s.overlap) > 0).all()  # the rare class informs more
    assert (s.bias == -0.6).all()


def test_known_bias_returns_the_better_of_two_coexisting_students():
    s = solve_saddle(1.2523912, 0.5, -3.1090284, 0.5, learn_bias=False)
    assert s.converged
    assert s.overlap > 0.3  # the student that ignores the teacher, at R ≈ 0.1, has the higher free energy


def test_the_dummy_is_named():
    s = solve_saddle(1.1, 0.5, -0.6, [0.05, 0.5, 0.95])
    assert s.phase.tolist() == ["dummy", "learned", "dummy"]
    assert s.status.tolist() == ["no_solution", "converged", "no_solution"]
    assert s.converged.tolist() == [False, True, False]
    assert s.bias[0] == -np.inf
    assert s.bias[2] == np.inf
    assert (s.overlap[[0, 2]] == 0).all()
    assert s.train_error[0] == pytest.approx(0.05)
    assert s.free_energy[0] == pytest.approx(1.1 * 0.05)
    s.raise_if_failed()  # a named dummy is an answer


def test_metastable_students_are_named():
    rho = np.geomspace(0.02, 0.3, 25)
    s = solve_saddle(6.0, 0.5, -1.0, rho)
    assert {"dummy", "metastable", "learned"} >= set(s.phase.tolist())
    meta = s.phase == "metastable"
    assert meta.any()
    assert (s.log_partition[meta] < s.dummy_log_partition[meta]).all()
    assert (s.log_partition[s.phase == "learned"] >= s.dummy_log_partition[s.phase == "learned"]).all()


def test_dummy_is_never_returned_where_it_is_unstable():
    """Inside (1/(1+e^β), e^β/(1+e^β)) the bias is pushed back from infinity, so a learned student exists."""
    s = solve_saddle([[0.05], [1.0]], 1.0, -2.0, np.linspace(0.28, 0.72, 9))
    assert (s.phase != "dummy").all()


def check_range(count, seed, learn_bias):
    rng = np.random.default_rng(seed)
    alpha = np.geomspace(0.05, 100, 7)[rng.integers(7, size=count)]
    temperature = np.array([0, 0.01, 0.1, 0.5, 1, 2, 5])[rng.integers(7, size=count)]
    b0 = np.array([0, -0.1, -1, -2.5, -4, -6])[rng.integers(6, size=count)]
    rho = np.array([0.005, 0.02, 0.1, 0.3, 0.45, 0.6, 0.9, 0.98, 0.995])[rng.integers(9, size=count)]
    s = solve_saddle(alpha, temperature, b0, rho, learn_bias=learn_bias)
    learned = s.phase != "dummy"
    assert (s.residual[learned] <= 1e-9).all()
    assert np.isfinite(s.overlap).all()
    assert (s.overlap[learned] > 0).all()
    assert (s.self_overlap[learned] < 1).all()
    assert (s.overlap**2 <= s.self_overlap).all()
    if not learn_bias:
        assert learned.all()


@pytest.mark.parametrize("learn_bias", [True, False])
def test_range(learn_bias):
    check_range(60, 0, learn_bias)


@pytest.mark.slow
@pytest.mark.parametrize("learn_bias", [True, False])
def test_whole_range(learn_bias):
    check_range(4000, 1, learn_bias)


def test_everything_broadcasts():
    s = solve_saddle(np.ones((3, 1, 1)), 0.5, [[-0.5], [-1.0]], [0.3, 0.4, 0.5, 0.6])
    assert s.overlap.shape == s.phase.shape == s.metrics().f1.shape == (3, 2, 4)
    one = solve_saddle(1.0, 0.5, -1.0, 0.6)
    assert one.overlap.shape == ()
    assert s.overlap[1, 1, 3] == pytest.approx(float(one.overlap), abs=1e-11)


def test_blocks_do_not_change_the_answer(monkeypatch):
    rho = np.linspace(0.1, 0.9, 9)
    whole = solve_saddle(2.0, 0.5, -1.0, rho)
    monkeypatch.setattr("equipoise.theory.anomaly._branch.BLOCK", 2)
    np.testing.assert_allclose(solve_saddle(2.0, 0.5, -1.0, rho).overlap, whole.overlap, atol=1e-11)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_fraction": 0.0}, r"train_fraction must lie in \(0, 1\), got 0"),
        ({"train_fraction": [0.5, 1.2]}, r"train_fraction must lie in \(0, 1\), got 1.2"),
        ({"temperature": -0.1}, "temperature must lie in"),
        ({"temperature": np.nan}, "temperature must be finite, got nan"),
        ({"samples_per_dim": 0.0}, "samples_per_dim must be positive, got 0"),
        ({"samples_per_dim": np.inf}, "samples_per_dim must be finite, got inf"),
        ({"teacher_bias": np.nan}, "teacher_bias must be finite, got nan"),
        ({"teacher_bias": -60.0}, "teacher_bias must lie in"),
        ({"positive_weight": 0.0}, "positive_weight must be positive, got 0"),
        ({"negative_weight": -2.0}, "negative_weight must be positive, got -2"),
        ({"student_bias": 99.0}, "student_bias must lie in"),
    ],
)
def test_bad_input_names_the_argument(change, message):
    good = {"samples_per_dim": 1.0, "temperature": 0.5, "teacher_bias": -1.0, "train_fraction": 0.5}
    with pytest.raises(ValueError, match=message):
        solve_saddle(**(good | change))


def test_not_converging_warns_and_raises(monkeypatch):
    def stuck(setting):
        branch = real(setting)
        branch.residual[:] = np.inf
        return branch

    real = saddle.solve_learned_bias
    monkeypatch.setattr(saddle, "solve_learned_bias", stuck)
    with pytest.warns(
        ConvergenceWarning, match="1 of 1 saddle points did not converge, the first at samples_per"
    ):
        s = solve_saddle(1.0, 0.5, -1.0, 0.5)
    assert isinstance(s, SaddlePoint)
    assert s.status == "stalled"
    with pytest.raises(ConvergenceError):
        s.raise_if_failed()
