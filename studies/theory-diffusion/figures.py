"""The theory figures of the diffusion paper (Nicoletti et al.), each computed by the solvers at a modest size.

Lines are theory, in the limit of large dimension where there is one, and dots are instances. Sizes are smaller than
the paper's, so that each figure takes about a minute on one core; ``--set dimension=100`` and the like change them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise._core.checks import FloatArray, check_integer
from equipoise.report import COLORS, PALETTE, new_axes
from equipoise.theory.diffusion import ClassMixture, RandomFeatures, centroid_overlaps, speciation_time
from equipoise.theory.diffusion.instances import draw, equivalent_matrix, true_decomposition

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, RED, GRAY = PALETTE[7], PALETTE[1], PALETTE[6], PALETTE[5], COLORS["muted"]


def _grid(columns: int, rows: int = 1, width: float = 4.4, height: float = 3.4) -> tuple[Figure, Any]:
    figure, axes = new_axes(width * columns, height * rows, rows, columns)
    return figure, np.reshape(axes, (rows, columns))


def _pair(
    b: float = 0.5, v: tuple[float, float] = (0.5, 0.5), r: tuple[float, float] | None = (1.0, 1.0)
) -> Any:
    return ClassMixture([b, 1 - b], v, None if r is None else np.diag(r))


STUDIES = {
    "5": "diffusion-clock (at a small size)",
    "6": "diffusion-pairs (the theory's side; diffusion-clock for the network's)",
    **{str(number): "diffusion-clock (at a small size)" for number in range(11, 21)},
    "21": "diffusion-clock (right; the class variances on the left, of any data: equipoise diffusion predict DATA)",
    "22": "diffusion-clock (CIFAR-10 at the size paper only: few images were not memorized)",
    "23": "diffusion-clock (its table of thresholds)",
    "24": "diffusion-pairs",
}  # figures of experiments

SETTINGS = {
    "variance 0.5, 0.25": _pair(v=(0.5, 0.25)),
    "centroid norm 1, 1.5": _pair(r=(1.0, 2.25)),
    "weights 0.8, 0.2": _pair(b=0.8),
}


def figure_1(dimension: int = 300, instances: int = 2, features_per_dim: float = 2.0) -> Figure:
    """Overlaps of the projected centroids with the top eigenvectors: strong imbalance separates the classes."""
    figure, axes = _grid(3)
    panels = (("weak imbalance: b₂ = 0.3", None), ("b₂ = N^-0.3", 0.3), ("b₂ = N^-0.6", 0.6))
    for ax, (title, a) in zip(axes[0], panels, strict=True):
        for n, alpha, repeats in ((50, 0.35, 6), (dimension, 0.9, instances)):
            mix = _pair(b=0.7 if a is None else 1 - n**-a)
            scaled = np.linspace(0.05, 0.75, 11)
            found = centroid_overlaps(
                mix,
                scaled * np.log(n),
                n,
                features_per_dim,
                samples_per_dim=2000 / n,
                n_instances=repeats,
                random_state=0,
            )
            fine = np.linspace(0.02, 0.78, 300)
            line = centroid_overlaps(mix, fine * np.log(n), n, features_per_dim).theory
            assert found.simulation is not None
            for c, color in enumerate((BLUE, ORANGE)):
                ax.plot(fine, line[:, c], color=color, alpha=alpha)
                label = f"class {c + 1}, N = {n}"
                ax.plot(scaled, found.simulation[:, c], "o", ms=4, color=color, alpha=alpha, label=label)
                at = speciation_time(mix, n, features_per_dim).appearance[c] / np.log(n)
                ax.axvline(at, color=color, alpha=0.3 * alpha, ls="--")
        ax.set(title=title, xlabel="diffusion time t / log N", ylim=(-0.03, 1.05))
    axes[0][0].set_ylabel("RMS overlap with the top eigenvectors")
    axes[0][0].legend(fontsize=7, loc="lower left")
    return figure


def figure_2(
    dimension: int = 30,
    instances: int = 2,
    diffusion_time: float = 0.001,
    features_per_dim: float = 60.0,
    samples_per_dim: float = 30.0,
) -> Figure:
    """Spectrum and errors of two centered classes, and the windows against their variance ratio."""
    figure, axes = _grid(2, 2)
    rf = RandomFeatures(
        ClassMixture([0.5, 0.5], [0.5, 0.25]), diffusion_time, features_per_dim, samples_per_dim
    )
    _spectrum_panel(axes[0][0], rf, dimension)
    edges, times = rf.edges(), rf.timescales()
    for value, name in (
        (edges.generalization[0], "λ_gen"),
        (edges.memorization_upper, "λ_mem⁽¹⁾"),
        (edges.memorization_lower, "λ_mem⁽²⁾"),
    ):
        axes[0][0].axvline(value, color=GRAY, ls="--", lw=1)
        axes[0][0].text(value, axes[0][0].get_ylim()[1], name, fontsize=7, ha="center", va="bottom")
    tau = np.geomspace(1e-3, 1e5, 90)
    limit = rf.limit_curves(tau)
    true = rf.learning_curves(dimension, tau[::4], instances, 0, step=None)
    ax = axes[0][1]
    for name, color in (("train", BLUE), ("test", ORANGE)):
        ax.semilogx(tau, getattr(limit, name), color=color, label=f"{name}, N → ∞")
        label = f"{name}, true matrices, N = {dimension}"
        ax.semilogx(true.times, getattr(true, name), "o", ms=3.5, color=color, label=label)
    for at in (times.tau_gen, times.tau_mem1, times.tau_mem2):
        ax.axvline(at, color=GRAY, ls="--", lw=1)
    ax.set(xlabel="training time τ", ylabel="error", ylim=(0.72, 1.4))
    ax.legend(fontsize=7)
    _window_panels(axes[1])
    return figure


def _spectrum_panel(ax: Any, rf: RandomFeatures, dimension: int) -> None:
    """λρ(λ) against log λ with histograms of the eigenvalues of U and of its equivalent."""
    true = true_decomposition(rf, draw(rf, dimension, 0)).eigenvalues
    edges = rf.edges()
    grid = np.geomspace(edges.all[0] * 0.7, edges.all[-1] * 1.3, 1500)
    sp = rf.spectrum(grid)
    _histogram(ax, _eigenvalues(rf, dimension), grid, f"equivalent U, N = {dimension}")
    _histogram(ax, true, grid, f"true U, N = {dimension}", fill=False)
    ax.plot(grid, sp.density * grid, color=BLUE, label="theory")
    ax.set(xscale="log", yscale="log", ylim=(2e-4, 3), xlabel="eigenvalue λ", ylabel="λ ρ(λ)")
    ax.legend(fontsize=7)


def _eigenvalues(rf: RandomFeatures, dimension: int) -> FloatArray:
    """Eigenvalues of an instance of Eq 50."""
    return np.asarray(np.linalg.eigvalsh(equivalent_matrix(rf, draw(rf, dimension, 0))), dtype=np.float64)


def _histogram(ax: Any, values: FloatArray, grid: FloatArray, label: str, fill: bool = True) -> None:
    bins = np.geomspace(grid[0], grid[-1], 70)
    counts, _ = np.histogram(values, bins)
    height = counts / values.size / np.diff(np.log(bins))
    ax.stairs(height, bins, fill=fill, color=GRAY if fill else RED, alpha=0.35 if fill else 0.7, label=label)


def _window_panels(axes: Any) -> None:
    ratios = np.linspace(0.03, 1.0, 14)
    for b, color in zip((0.2, 0.5, 0.8), (BLUE, ORANGE, GREEN), strict=True):
        found = [RandomFeatures(_pair(b, (0.5, 0.5 * v), None), 1e-3, 60, 30).timescales() for v in ratios]
        axes[0].plot(ratios, [f.generalization_window for f in found], color=color, label=f"b₁ = {b}")
        axes[1].plot(ratios, [f.memorization_window for f in found], color=color)
    one = RandomFeatures(ClassMixture([1.0], [0.5]), 1e-3, 60, 30).timescales()
    for ax, level, name in (
        (axes[0], one.generalization_window, "generalization window w_g"),
        (axes[1], one.memorization_window, "memorization window w_m"),
    ):
        ax.axhline(level, color=GRAY, ls="--", lw=1)
        ax.set(xlabel="variance ratio σ₂²/σ₁²", ylabel=name)
    axes[0].legend(fontsize=8)


def figure_3(
    dimension: int = 30, instances: int = 1, features_per_dim: float = 60.0, samples_per_dim: float = 30.0
) -> Figure:
    """Class-conditional test errors under three ablations: lines are the limit, dots the true matrices."""
    figure, axes = _grid(3)
    curves = _ablations(dimension, instances, features_per_dim, samples_per_dim)
    _ablation_panels(axes[0], curves, "test_per_class", "test error")
    return figure


def _ablations(dimension: int, instances: int, p: float, m: float) -> dict[str, Any]:
    """The limit and the true matrices of each setting."""
    tau = np.geomspace(1e-3, 1e3, 100)
    found = {}
    for title, mix in SETTINGS.items():
        rf = RandomFeatures(mix, 0.01, p, m)
        found[title] = rf.limit_curves(tau), rf.learning_curves(dimension, tau[::4], instances, 0, step=None)
    return found


def _ablation_panels(axes: Any, curves: dict[str, Any], quantity: str, ylabel: str) -> None:
    for ax, (title, (limit, true)) in zip(axes, curves.items(), strict=True):
        for c, color in enumerate((BLUE, ORANGE)):
            ax.semilogx(limit.times, getattr(limit, quantity)[c], color=color, label=f"class {c + 1}")
            ax.semilogx(true.times, getattr(true, quantity)[c], "o", ms=3.5, color=color)
            ax.axvline(limit.generalization_time[c], color=color, ls=":", lw=1)
            ax.axvline(limit.memorization_time[c], color=color, ls="--", lw=1)
        ax.set(title=title, xlabel="training time τ")
        if quantity == "test_per_class":
            ax.axhline(1, color=GRAY, lw=0.8)
            ax.set_ylim(0.9, 1.25)
        else:
            ax.set_ylim(0, 1.3 * float(getattr(limit, quantity)[:, 0].max()))
    axes[0].set_ylabel(ylabel)
    axes[0].legend(fontsize=8)


def figure_4(
    dimension: int = 20,
    instances: int = 1,
    weights: int = 7,
    features_per_dim: float = 60.0,
    samples_per_dim: float = 30.0,
) -> Figure:
    """Gaps between the classes' times against the weight of class 1: the limit, and true matrices as crosses."""
    check_integer("weights", weights, low=2)
    figure, axes = _grid(3, 2)
    shares = np.linspace(0.05, 0.95, weights)
    cases = (
        ("variance 0.5, 0.25", (0.5, 0.25), (1.0, 1.0)),
        ("variance 0.5, 0.45", (0.5, 0.45), (1.0, 1.0)),
        ("centroid norm 1, 1.5", (0.5, 0.5), (1.0, 2.25)),
    )
    for column, (title, v, r) in enumerate(cases):
        models = [RandomFeatures(_pair(b, v, r), 0.01, features_per_dim, samples_per_dim) for b in shares]
        limits = [rf.limit_curves(np.geomspace(1e-2, 3e2, 60)) for rf in models]
        tau = np.geomspace(1e-3, 3e3, 160)
        drawn = [rf.learning_curves(dimension, tau, instances, 0, step=None) for rf in models]
        for found, style, label in ((limits, "-", "N → ∞"), (drawn, "x", f"true matrices, N = {dimension}")):
            for row, (name, color) in enumerate((("generalization_gap", BLUE), ("memorization_gap", RED))):
                ax = axes[row][column]
                ax.plot(shares, [getattr(one, name)[0, 1] for one in found], style, color=color, label=label)
                ax.axhline(0, color=GRAY, lw=0.8)
        axes[0][column].set_title(title)
        axes[1][column].set_xlabel("weight of class 1")
    axes[0][0].set_ylabel("generalization gap τ₁ − τ₂")
    axes[1][0].set_ylabel("memorization gap τ₁ − τ₂")
    axes[0][0].legend(fontsize=8)
    return figure


def figure_7(dimension: int = 50, features_per_dim: float = 20.0, samples_per_dim: float = 10.0) -> Figure:
    """Eigenvalues of the true U against those of its Gaussian equivalent (Eq 50), with extensive centroids."""
    figure, axes = _grid(2)
    for ax, t in zip(axes[0], (0.01, 0.1), strict=True):
        rf = RandomFeatures(_pair(v=(0.5, 0.25)), t, features_per_dim, samples_per_dim)
        n = dimension
        instance = draw(rf, n, 0)
        true = true_decomposition(rf, instance).eigenvalues
        equivalent = _eigenvalues(rf, n)
        grid = np.geomspace(equivalent.min() * 0.8, equivalent.max() * 1.3, 2)
        _histogram(ax, equivalent, grid, "equivalent (Eq 50)")
        _histogram(ax, true, grid, "true U (Eq 7)", fill=False)
        for at in rf.outliers(n):
            ax.axvline(at, color=RED, ls="--", lw=1)
        ax.set(xscale="log", yscale="log", xlabel="eigenvalue λ", title=f"t = {t}")
    axes[0][0].set_ylabel("λ ρ(λ)")
    axes[0][0].legend(fontsize=8)
    return figure


def figure_8(dimension: int = 60, features_per_dim: float = 20.0, samples_per_dim: float = 10.0) -> Figure:
    """Densities against eigenvalues: of Eq 114 for centroids of norm 0 and 1, of Eq 107 for extensive ones."""
    check_integer("dimension", dimension, low=2)
    figure, axes = _grid(3)
    centered = ClassMixture([0.5, 0.5], [0.5, 0.25])
    short = ClassMixture([0.5, 0.5], [0.5, 0.25], np.eye(2) / dimension)
    extensive = _pair(b=0.6, v=(0.5, 0.25), r=(1.0, 1.5))
    for ax, drawn, mix, title in (
        (axes[0][0], centered, centered, "centered (Eq 114)"),
        (axes[0][1], short, centered, "centroids of norm 1 (Eq 114)"),
        (axes[0][2], extensive, extensive, "extensive centroids (Eq 107)"),
    ):
        values = _eigenvalues(RandomFeatures(drawn, 0.01, features_per_dim, samples_per_dim), dimension)
        rf = RandomFeatures(mix, 0.01, features_per_dim, samples_per_dim)
        grid = np.geomspace(3e-3 if not mix.centered else 8e-4, 12, 300 if not mix.centered else 2000)
        sp = rf.spectrum(grid)
        _histogram(ax, values, grid, f"eigenvalues, N = {dimension}")
        ax.plot(grid, sp.density * grid, color=BLUE, label="theory")
        ax.set(xscale="log", yscale="log", ylim=(1e-3, 3), xlabel="eigenvalue λ", title=title)
    axes[0][0].set_ylabel("λ ρ(λ)")
    axes[0][0].legend(fontsize=8)
    return figure


def figure_9() -> Figure:
    """The leftmost bulk: its lower edge and width against diffusion time, features and samples."""
    figure, axes = _grid(3)

    def bulk(t: float, p: float, m: float) -> tuple[float, float, float]:
        rf = RandomFeatures(ClassMixture([0.5, 0.5], [0.5, 0.25]), t, p, m)
        left = rf.edges().bulks[0]
        return left.lower, left.upper - left.lower, rf.asymptotic_edges().leftmost[0]

    scans = (
        ("diffusion time t", [(t, 60.0, 30.0) for t in np.geomspace(1e-6, 1e-2, 9)], 0),
        ("features per dimension χ_p", [(1e-3, p, 30.0) for p in np.geomspace(40, 640, 8)], 1),
        ("samples per dimension χ_m", [(1e-3, 60.0, m) for m in np.geomspace(4, 24, 8)], 2),
    )
    for ax, (name, points, axis) in zip(axes[0], scans, strict=True):
        found = np.array([bulk(*point) for point in points])
        xs = [point[axis] for point in points]
        ax.loglog(xs, found[:, 0], "o-", color=BLUE, label="lower edge λ_mem⁽²⁾")
        ax.loglog(xs, found[:, 2], "--", color=GRAY, label="its large-ratio form")
        ax.loglog(xs, found[:, 1], "s-", color=ORANGE, label="width")
        ax.set_xlabel(name)
        ax.xaxis.set_minor_formatter("")
        ax.yaxis.set_minor_formatter("")
    samples = np.array([4.0, 24.0])
    start = bulk(1e-3, 60.0, 4.0)[1]
    axes[0][2].loglog(samples, start * (samples / 4) ** -2, ":", color=ORANGE, label="χ_m⁻²")
    axes[0][2].set_title("χ_p = 60")
    axes[0][2].legend(fontsize=8)
    axes[0][0].legend(fontsize=8)
    return figure


def figure_10(
    dimension: int = 30, instances: int = 1, features_per_dim: float = 60.0, samples_per_dim: float = 30.0
) -> Figure:
    """Test error and mean squared error of the score, class by class."""
    figure, axes = _grid(3, 2)
    curves = _ablations(dimension, instances, features_per_dim, samples_per_dim)
    _ablation_panels(axes[0], curves, "test_per_class", "test error")
    _ablation_panels(axes[1], curves, "score_error_per_class", "score error")
    return figure
