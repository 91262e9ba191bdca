"""Random-features theory against eigenvalues and trained instances."""

import numpy as np
import pytest

from equipoise.datasets import load_fashion_mnist
from equipoise.theory.diffusion import ClassMixture, RandomFeatures, predict_order
from equipoise.theory.diffusion.centroids import ExtensiveModel, solve
from equipoise.theory.diffusion.instances import draw, equivalent_matrix

pytestmark = pytest.mark.agreement

CENTERED = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25]), 0.01, 30, 15)
TWO = RandomFeatures(ClassMixture([0.6, 0.4], [0.5, 0.25], [[1, 0.3], [0.3, 1.5]]), 0.01, 20, 10)
THREE = RandomFeatures(
    ClassMixture([0.5, 0.3, 0.2], [0.5, 0.3, 0.8], [[1, 0.2, 0], [0.2, 0.6, -0.1], [0, -0.1, 1.2]]),
    0.01,
    20,
    10,
)


def counts_above(model, levels, n_points):
    """Share of eigenvalues above each level, from the density."""
    grid = np.geomspace(min(levels), 40, n_points)
    sp = model.spectrum(grid)
    assert sp.converged.all()
    mass = np.concatenate([[0], np.cumsum((sp.density[1:] + sp.density[:-1]) / 2 * np.diff(grid))])
    return mass[-1] - np.interp(levels, grid, mass)


@pytest.mark.parametrize(("model", "outliers", "n_points"), [(CENTERED, 0, 1500), (TWO, 2, 200)])
def test_density_counts_the_eigenvalues_of_the_equivalent_matrix(model, outliers, n_points):
    levels = np.array([0.006, 0.01, 0.02, 0.04, 0.1, 0.5, 1.5])
    n = 40
    found = np.array([np.linalg.eigvalsh(equivalent_matrix(model, draw(model, n, s))) for s in range(2)])
    p = found.shape[1]
    counts = (found[:, :, None] > levels).sum(axis=1).mean(axis=0) - outliers
    predicted = p * counts_above(model, levels, n_points)
    np.testing.assert_allclose(counts, predicted, atol=3 + 0.012 * predicted.max())


class PrintedFactor(ExtensiveModel):
    """Eq 104 as printed, with 2/χ_p where Eqs 92–98 give 2."""

    def features(self, nodes):
        floor, psi, psi_d = super().features(nodes)
        psi_d = psi_d.copy()
        psi_d[:, self.b.size :] /= self.chi
        return floor, psi, psi_d


@pytest.mark.parametrize("model", [TWO, THREE])
def test_resolvent_of_extensive_centroids_and_the_factor_of_equation_104(model):
    z = np.array([0.01 + 0.004j, 0.03 + 0.01j, 0.1 + 0.05j, 0.5 + 0.3j, 3 + 1j])
    n = 40
    values = np.array([np.linalg.eigvalsh(equivalent_matrix(model, draw(model, n, s))) for s in range(3)])
    found = (1 / (values[:, :, None] - z)).mean(axis=1)
    mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(3)
    predicted = solve(ExtensiveModel(model), z)[0]
    printed = solve(PrintedFactor(model), z)[0]
    np.testing.assert_array_less(np.abs(predicted - mean), 4 * np.abs(error) + 0.006 * np.abs(mean))
    assert np.abs(printed / mean - 1).max() > 0.1


def test_delta_peak_and_edges_of_the_centered_matrix():
    edges = CENTERED.edges()
    n = 50
    values = np.linalg.eigvalsh(equivalent_matrix(CENTERED, draw(CENTERED, n, 0)))
    at_peak = np.abs(values - edges.delta_peak) < 1e-9
    assert at_peak.sum() == 30 * n - 15 * n - n  # P − M − N: not P − M − 2N
    assert (values > 1).sum() == n
    for bulk in edges.bulks:
        inside = (values > bulk.lower * 0.99) & (values < bulk.upper * 1.01) & ~at_peak
        assert inside.sum() / values.size == pytest.approx(bulk.mass, abs=2.5 / values.size)
    assert values.max() == pytest.approx(edges.generalization[1], rel=0.1)


def test_mean_of_the_generalization_bulk():
    """Γ without its 2 or γ without its factor (Eqs 41, 113 as printed) would move it far off."""
    n = 50
    values = np.linalg.eigvalsh(equivalent_matrix(CENTERED, draw(CENTERED, n, 1)))
    upper = values[-n:]
    within = np.linspace(*CENTERED.edges().generalization, 2001)[1:-1]  # at an edge two solutions meet
    sp = CENTERED.spectrum(within)
    mean = np.trapezoid(sp.density * sp.grid, sp.grid) / np.trapezoid(sp.density, sp.grid)
    assert upper.mean() == pytest.approx(mean, rel=0.02)


def test_outliers_of_the_centroids():
    n = 40
    tops = np.array([np.linalg.eigvalsh(equivalent_matrix(TWO, draw(TWO, n, s)))[-2:] for s in range(6)])
    predicted = TWO.outliers(n)
    assert predicted.size == 2
    error = tops.std(axis=0, ddof=1) / np.sqrt(len(tops))
    np.testing.assert_array_less(np.abs(tops.mean(axis=0) - predicted), 3.5 * error + 0.02 * predicted)
    np.testing.assert_allclose(tops.sum(axis=1).mean(), predicted.sum(), rtol=0.03)


@pytest.mark.parametrize("model", [CENTERED, TWO])
def test_three_train_errors_agree(model):
    """Asymptotic (Eqs 134, 137), semi-analytical (Eq 133) and gradient descent on the true matrices."""
    tau = np.geomspace(1e-2, 1e2, 9)
    theory = model.train_error(tau)
    semi = model.learning_curves(40, tau, n_instances=2, random_state=0, matrices="equivalent")
    true = model.learning_curves(40, tau, n_instances=2, random_state=0)
    np.testing.assert_allclose(semi.train, theory, atol=6e-3)
    np.testing.assert_allclose(true.train[tau < 3], semi.train[tau < 3], atol=4e-3)
    np.testing.assert_allclose(true.train, semi.train, atol=0.05)  # 1/N effects at late times
    np.testing.assert_allclose(true.test_per_class[:, tau < 3], semi.test_per_class[:, tau < 3], atol=0.01)


@pytest.mark.slow
def test_order_of_memorization_of_fashion_mnist():
    """Fig 6: the gap to sneakers grows with the variance of the other class: bags, pullovers, trousers."""
    try:
        found = load_fashion_mnist()
    except (FileNotFoundError, OSError) as missing:
        pytest.skip(f"no Fashion-MNIST here: {missing}")
    images, labels = found.X.reshape(len(found.X), -1), found.y
    keep = np.concatenate([np.flatnonzero(labels == c)[:150] for c in (1, 2, 7, 8)])
    X, y = (
        images[keep],
        np.array(["", "trouser", "pullover", "", "", "", "", "sneaker", "bag"])[labels[keep]],
    )
    pairs = [("sneaker", other) for other in ("bag", "pullover", "trouser")]
    order = predict_order(X, y, preprocess=lambda x: 2 * x - 1, pairs=pairs, n_bootstrap=0, random_state=0)
    assert order.gap[0] > order.gap[1] > order.gap[2]
    assert order.gap[1] > 0
    assert order.order[0] == "bag"
