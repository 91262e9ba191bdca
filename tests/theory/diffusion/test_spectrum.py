import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from equipoise._core.solution import ConvergenceWarning, Status
from equipoise.theory.diffusion import ClassMixture, DiagonalFeatures, RandomFeatures
from equipoise.theory.diffusion import spectrum as spectrum_module
from equipoise.theory.diffusion.centroids import ExtensiveModel, solve
from equipoise.theory.diffusion.instances import draw, equivalent_matrix

PAPER = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25]), 0.001, 60, 30)


def test_check_values_of_the_edges():
    edges = PAPER.edges()
    assert edges.memorization_upper == pytest.approx(0.04461, rel=1e-3)
    assert edges.generalization[0] == pytest.approx(7.974, rel=1e-4)
    assert edges.generalization[1] == pytest.approx(19.86, rel=1e-3)


def test_masses_of_the_bulks_count_the_eigenvalues():
    edges = PAPER.edges()
    assert [bulk.mass for bulk in edges.bulks] == pytest.approx([1 / 60, 29 / 60, 1 / 60], rel=1e-5)
    assert edges.delta_mass == pytest.approx(1 - 31 / 60)
    assert edges.delta_peak is not None
    assert edges.delta_peak < edges.memorization_lower


def test_density_vanishes_exactly_outside_the_bulks():
    edges = PAPER.edges()
    for bulk in edges.bulks:
        width = bulk.upper - bulk.lower
        inside = PAPER.spectrum([bulk.lower + 1e-3 * width, bulk.upper - 1e-3 * width])
        outside = PAPER.spectrum([bulk.lower - 1e-3 * width, bulk.upper + 1e-3 * width])
        assert (inside.density > 0).all()
        assert (outside.density == 0).all()


def test_density_and_feature_density_have_mass_one():
    grid = np.geomspace(1e-5, 1e2, 20_001)
    sp = PAPER.spectrum(grid)
    assert sp.converged.all()
    assert np.trapezoid(sp.density, grid) + sp.delta_mass == pytest.approx(1, abs=2e-4)
    assert np.trapezoid(sp.feature_density, grid) == pytest.approx(1, abs=2e-4)


def test_equal_classes_are_one_class():
    grid = np.geomspace(1e-4, 50, 300)
    one = RandomFeatures(ClassMixture([1.0], [0.4]), 0.01, 20, 8).spectrum(grid)
    three = RandomFeatures(ClassMixture([0.2, 0.5, 0.3], [0.4] * 3), 0.01, 20, 8).spectrum(grid)
    np.testing.assert_allclose(one.density, three.density, rtol=1e-8, atol=1e-12)


def test_linear_activation_is_marchenko_pastur():
    """Without nonlinear noise U = (sample covariance seen through W) + …; with χ_m → ∞ only W is random."""
    rf = RandomFeatures(ClassMixture([1.0], [0.5]), 0.1, 4.0, 1e7, activation=lambda u: u)
    scale = float(rf.spread[0] ** 2)
    low, high = rf.edges().all[-2:]
    assert low == pytest.approx(scale * (2 - 1) ** 2, rel=1e-2)
    assert high == pytest.approx(scale * (2 + 1) ** 2, rel=1e-2)


@settings(max_examples=6, deadline=None)
@given(
    b=st.floats(0.05, 0.95),
    v=st.floats(0.05, 1.0),
    log_t=st.floats(-5, 0.7),
    p=st.floats(1.5, 500),
    m=st.floats(0.5, 200),
)
@example(b=0.5, v=0.17578125, log_t=-0.5, p=72.0, m=79.0)  # two bulks that have just met
def test_masses_always_add_up(b, v, log_t, p, m):
    edges = RandomFeatures(ClassMixture([b, 1 - b], [0.5, v]), 10**log_t, p, m).edges()
    assert edges.missing_mass == pytest.approx(0, abs=1e-6)  # more would also be a warning, here an error
    assert (np.diff(edges.all) > 0).all()


def test_asymptotic_edges_approach_the_exact_ones():
    def errors(scale):
        rf = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25]), 1e-4, 60 * scale, 30 * scale)
        exact, form = rf.edges(), rf.asymptotic_edges()
        return np.array(
            [
                form.generalization[0] / exact.generalization[0] - 1,
                form.memorization_upper / exact.memorization_upper - 1,
                (form.leftmost[0] - exact.delta_peak) / (exact.memorization_lower - exact.delta_peak) - 1,
            ]
        )

    near, far = np.abs(errors(1)), np.abs(errors(8))
    assert (far[:2] < 0.6 * near[:2]).all()
    assert near[2] < 0.01
    assert (far < [0.1, 0.01, 0.01]).all()


def test_windows_follow_the_variance_ratio_and_the_weights():
    def windows(v, b):
        times = RandomFeatures(ClassMixture([b, 1 - b], [0.5, 0.5 * v]), 1e-3, 60, 30).timescales()
        return times.generalization_window, times.memorization_window

    uniform = windows(1.0, 0.5)
    diverse = windows(0.2, 0.5)
    assert diverse[0] < uniform[0]
    assert diverse[1] > uniform[1]
    assert windows(0.2, 0.8)[0] > diverse[0] > windows(0.2, 0.3)[0]


def test_final_memorization_time_scales_with_inverse_diffusion_time():
    late = [RandomFeatures(PAPER.mixture, t, 60, 30).timescales().tau_mem2 for t in (1e-4, 1e-5)]
    assert late[1] / late[0] == pytest.approx(10, rel=0.01)


def test_unconverged_points_are_flagged_and_nan(monkeypatch):
    monkeypatch.setattr(spectrum_module, "_NEWTON_STEPS", 1)
    with pytest.warns(ConvergenceWarning, match="no convergence at"):
        sp = PAPER.spectrum(np.geomspace(1e-4, 20, 50))
    failed = sp.status != Status.CONVERGED
    assert failed.any()
    assert np.isnan(sp.density[failed]).all()


def test_merged_bulks_are_named():
    rf = RandomFeatures(ClassMixture([1.0], [0.5]), 0.01, 1.2, 1.0)
    assert len(rf.edges().bulks) == 1
    with pytest.raises(ValueError, match="not separated"):
        rf.timescales()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"diffusion_time": 0}, "diffusion_time must be positive"),
        ({"features_per_dim": -1}, "features_per_dim must be positive"),
        ({"samples_per_dim": float("nan")}, "samples_per_dim must be finite"),
    ],
)
def test_bad_model(change, message):
    arguments = {"diffusion_time": 0.01, "features_per_dim": 60, "samples_per_dim": 30} | change
    with pytest.raises(ValueError, match=message):
        RandomFeatures(PAPER.mixture, **arguments)


def test_too_few_features_are_named():
    with pytest.raises(ValueError, match="features_per_dim must exceed 1"):
        RandomFeatures(PAPER.mixture, 0.01, 0.9, 30).edges()


def test_equal_coordinates_are_the_isotropic_model():
    mixture = ClassMixture([0.7, 0.3], [0.5, 0.25])
    plain = RandomFeatures(mixture, 0.01, 30, 12)
    even = DiagonalFeatures([0.7, 0.3], [[0.5] * 3, [0.25] * 3], 0.01, 30, 12)
    grid = np.concatenate([np.geomspace(0.004, 0.2, 12), np.linspace(3, 9, 12)])
    found, expected = even.spectrum(grid), plain.spectrum(grid)
    assert found.converged.all()
    np.testing.assert_allclose(found.resolvent, expected.resolvent, rtol=1e-8)
    np.testing.assert_allclose(found.feature_resolvent, expected.feature_resolvent, rtol=1e-8)
    np.testing.assert_allclose(even.edges().generalization, plain.edges().generalization, rtol=1e-4)
    assert even.edges().memorization_upper == pytest.approx(plain.edges().memorization_upper, rel=1e-4)


def test_unequal_coordinates_against_eigenvalues():
    """The gap parts N eigenvalues from the others, and the resolvent is that of a drawn matrix."""
    n, p, m, t = 48, 12, 6, 0.05
    variances = np.array([[1.2, 0.3, 0.3, 0.6] * 12, [0.1, 0.5, 0.1, 0.1] * 12])
    model = DiagonalFeatures([0.5, 0.5], variances, t, p, m)
    rng = np.random.default_rng(0)
    w = rng.standard_normal((p * n, n)) / np.sqrt(n)
    s = model.scalars
    columns = []
    for c in (0, 1):  # the Gaussian equivalent of each class's features
        count = m * n // 2
        unit = np.sqrt(variances[c] / variances[c].mean())[:, None] * rng.standard_normal((n, count))
        linear, noise = np.sqrt(s.slope2[c]) * w @ unit, rng.standard_normal((p * n, count))
        columns.append((linear + np.sqrt(s.noise[c]) * noise) / np.sqrt(m * n))
    x = np.hstack(columns)
    values = np.linalg.eigvalsh(x @ x.T + s.diffusion_slope * w @ w.T) + s.floor
    edges = model.edges()
    middle = np.sqrt(edges.memorization_upper * edges.generalization[0])
    assert edges.separated
    assert (values > middle).sum() == n
    assert values[-1] == pytest.approx(edges.generalization[1], rel=0.1)
    z = np.array([0.05 + 0.02j, 0.3 + 0.1j, 2 + 0.5j])
    found = (1 / (values[:, None] - z)).mean(axis=0)
    np.testing.assert_allclose(model.resolvent(z), found, rtol=0.03)
    isotropic = RandomFeatures(ClassMixture([0.5, 0.5], variances.mean(axis=1)), t, p, m)
    assert isotropic.edges().generalization[1] < 0.9 * edges.generalization[1], "unequal coordinates matter"


def test_bad_covariances_are_named():
    with pytest.raises(ValueError, match=r"variances must have shape \(2, n_coordinates\), got \(2,\)"):
        DiagonalFeatures([0.5, 0.5], [1.0, 2.0], 0.01, 30, 12)
    with pytest.raises(ValueError, match="must exceed 1"):
        DiagonalFeatures([1.0], [[1.0]], 0.01, 0.5, 12)


def test_the_lowest_eigenvalues_of_extensive_centroids_are_solved_on_the_real_axis():
    """No quadrature over real neurons resolves them; along a path into the complex plane they are smooth."""
    model = RandomFeatures(ClassMixture([0.6, 0.4], [0.5, 0.25], [[1, 0.3], [0.3, 1.5]]), 0.01, 10, 5)
    grid = np.geomspace(2e-5, 3, 12)
    sharp = model.spectrum(grid)
    assert sharp.converged.all()
    assert (sharp.density[:4] > 0).all()
    smooth = model.spectrum(grid, resolution=0.1)
    assert smooth.converged.all()
    values = np.linalg.eigvalsh(equivalent_matrix(model, draw(model, 40, 0)))
    found = (1 / (values[:, None] - grid * (1 + 0.1j))).mean(axis=0)
    error = np.abs(smooth.resolvent - found) / np.abs(found)
    assert error[grid > 1e-4].max() < 0.1
    z = grid * (1 + 1j)  # where both rules resolve the average the path does not matter
    straight, bent = (solve(ExtensiveModel(model, bend=bend), z)[0] for bend in (0.0, 0.4))
    np.testing.assert_allclose(bent, straight, rtol=1e-3)
    with pytest.raises(ValueError, match="resolution"):
        model.spectrum(grid, resolution=-1)


def test_the_lowest_density_counts_the_lowest_eigenvalues():
    model = RandomFeatures(ClassMixture([0.6, 0.4], [0.5, 0.25], [[1, 0.3], [0.3, 1.5]]), 0.01, 10, 5)
    grid = np.geomspace(5e-6, 6e-4, 16)
    share = np.trapezoid(model.spectrum(grid).density * grid, np.log(grid))
    matrices = [equivalent_matrix(model, draw(model, 60, seed)) for seed in range(4)]
    values = np.concatenate([np.linalg.eigvalsh(matrix) for matrix in matrices])
    low = np.mean((values > grid[0]) & (values < grid[-1]))
    assert low * len(values) > 10
    assert share == pytest.approx(low, abs=3 * np.sqrt(low / len(values)))
