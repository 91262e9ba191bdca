"""The random-features score model: one object that answers for a mixture, a diffusion time and two ratios."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from equipoise._core.checks import (
    FloatArray,
    check_array,
    check_choice,
    check_in_range,
    check_integer,
    check_positive,
)
from equipoise._core.progress import track
from equipoise._core.random import RandomState, derive_seed, draw_seed
from equipoise.theory.diffusion.centroid_edges import extensive_edges
from equipoise.theory.diffusion.centroids import solve_extensive
from equipoise.theory.diffusion.coefficients import Activation, noise_variance, spread
from equipoise.theory.diffusion.curves import (
    DEFAULT_STEP,
    LearningCurves,
    check_shares,
    default_times,
    instance_errors,
)
from equipoise.theory.diffusion.edges import AsymptoticEdges, Edges, asymptotic_edges, exact_edges
from equipoise.theory.diffusion.limit import LimitErrors
from equipoise.theory.diffusion.mixture import ClassMixture
from equipoise.theory.diffusion.outliers import outliers
from equipoise.theory.diffusion.spectrum import CenteredModel, Spectrum, assemble, solve_resolvents


@dataclass(frozen=True)
class Timescales:
    """When the global phases of training begin and end, in training time τ (Section 3.2).

    Attributes
    ----------
    tau_gen : float
        1/(2λ_gen), where generalization begins.
    tau_mem1 : float
        1/(2λ_mem⁽¹⁾), where generalization ends and memorization begins.
    tau_mem2 : float
        1/(2λ_mem⁽²⁾), where memorization is complete.
    """

    tau_gen: float
    tau_mem1: float
    tau_mem2: float

    @property
    def generalization_window(self) -> float:
        """w_g = τ_mem⁽¹⁾/τ_gen."""
        return self.tau_mem1 / self.tau_gen

    @property
    def memorization_window(self) -> float:
        """w_m = τ_mem⁽²⁾/τ_mem⁽¹⁾."""
        return self.tau_mem2 / self.tau_mem1


@dataclass(frozen=True)
class RandomFeatures:
    """A random-features score model trained by denoising score matching on a Gaussian mixture.

    Parameters
    ----------
    mixture : ClassMixture
        The data.
    diffusion_time : float
        t > 0.
    features_per_dim : float
        χ_p = P/N, hidden neurons per dimension.
    samples_per_dim : float
        χ_m = M/N, training samples per dimension.
    activation : callable
        φ, applied element-wise; vectorized.

    References
    ----------
    Nicoletti, Ma, Ventura, Saglietti, Sarao Mannelli, "The Interplay of Data Structure and Imbalance in the
    Learning Dynamics of Diffusion Models", Sections 2–3 and Appendices C–H.

    Examples
    --------
    >>> mix = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.25])
    >>> rf = RandomFeatures(mix, diffusion_time=0.001, features_per_dim=60, samples_per_dim=30)
    >>> [round(edge, 3) for edge in rf.edges().generalization], round(rf.edges().memorization_upper, 5)
    ([7.974, 19.856], 0.04461)
    >>> round(rf.timescales().generalization_window, 1)
    178.8
    """

    mixture: ClassMixture
    diffusion_time: float
    features_per_dim: float
    samples_per_dim: float
    activation: Activation = field(default=np.tanh)

    def __post_init__(self) -> None:
        if not isinstance(self.mixture, ClassMixture):
            raise TypeError(f"mixture must be a ClassMixture, got {self.mixture!r}")
        for name in ("diffusion_time", "features_per_dim", "samples_per_dim"):
            object.__setattr__(self, name, float(check_positive(name, getattr(self, name))))
        if not callable(self.activation):
            raise TypeError(f"activation must be callable, got {self.activation!r}")

    @property
    def noise_variance(self) -> float:
        """Δ_t."""
        return noise_variance(self.diffusion_time)

    @property
    def spread(self) -> FloatArray:
        """Γ_c(t), each class's standard deviation at the diffusion time."""
        return spread(self.mixture.variances, self.diffusion_time)

    @cached_property
    def centered_model(self) -> CenteredModel:
        """The scalar equations for centered classes; an error if the centroids are extensive."""
        if not self.mixture.centered:
            raise ValueError(
                "this formula needs centered classes (centroid_gram=None); "
                "for extensive centroids use edges(), spectrum() and limit_curves()"
            )
        self._need_overparametrization()
        return CenteredModel.build(
            self.mixture, self.diffusion_time, self.features_per_dim, self.samples_per_dim, self.activation
        )

    def _need_overparametrization(self) -> None:
        if self.features_per_dim <= 1:
            raise ValueError(f"features_per_dim must exceed 1 (P > N), got {self.features_per_dim:g}")

    def spectrum(self, grid: npt.ArrayLike, *, resolution: float = 0.0) -> Spectrum:
        """Density of the eigenvalues of the feature covariance U on a grid of λ (Eqs 114 and 107).

        Parameters
        ----------
        grid : array
            Eigenvalues λ at which to solve, in any order.
        resolution : float
            Smooth the density over a share of λ: every eigenvalue counts as a Lorentz curve of the half-width
            ``resolution``·λ. With centroids in three or more directions no quadrature resolves the density of the
            lowest eigenvalues, which sit on single neurons, on the real axis; smoothed it is solved there too.

        Returns
        -------
        Spectrum
            With a status for each point; a point that does not converge is flagged and nan.
        """
        lam = np.atleast_1d(check_array("grid", grid)).ravel()
        width = float(check_in_range("resolution", resolution, 0, 1))
        z = lam + 1j * width * np.abs(lam) if width else lam
        self._need_overparametrization()
        if not self.mixture.centered:
            solved = solve_extensive(self, z)
            return assemble(lam, solved.g, solved.omega, solved.status, None, 0.0)
        model = self.centered_model
        g, w, status, _ = solve_resolvents(model, z - model.floor)
        peak = model.peak_mass
        return assemble(lam, g, w, status, model.floor if peak > 0 else None, peak)

    def edges(self) -> Edges:
        """All bulk edges, exactly (Eqs 116–117), for centered classes; those of the gap for extensive centroids.

        Returns
        -------
        Edges
            With extensive centroids there are two bulks, below and above the gap, and the lower one has no lower
            edge (nan): saturated neurons give the density a tail towards zero.
        """
        if self.mixture.centered:
            return exact_edges(self.centered_model)
        self._need_overparametrization()
        return extensive_edges(self)

    def asymptotic_edges(self) -> AsymptoticEdges:
        """The edges for χ_p > χ_m ≫ 1 and small t (Eqs 118–128).

        Returns
        -------
        AsymptoticEdges
            The edges.
        """
        return asymptotic_edges(self.centered_model)

    def timescales(self) -> Timescales:
        """Onset and end of the global phases, from the edges; for extensive centroids τ_mem⁽²⁾ is nan.

        Returns
        -------
        Timescales
            The times.
        """
        edges = self.edges()
        return Timescales(
            1 / (2 * edges.generalization[0]),
            1 / (2 * edges.memorization_upper),
            1 / (2 * edges.memorization_lower),
        )

    def outliers(self, dimension: int) -> FloatArray:
        """Eigenvalues above the bulks that the centroids cause at a finite dimension N, ascending.

        Parameters
        ----------
        dimension : int
            N.

        Returns
        -------
        array
            The eigenvalues.
        """
        self._need_overparametrization()
        return outliers(self, dimension)

    def train_error(self, times: npt.ArrayLike) -> FloatArray:
        """Train error at each training time in the limit of large dimension (Eqs 134, 137).

        Parameters
        ----------
        times : array-like
            The training times τ.

        Returns
        -------
        array
            The error at each of them.

        Examples
        --------
        >>> mix = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.25])
        >>> rf = RandomFeatures(mix, diffusion_time=0.01, features_per_dim=20, samples_per_dim=8)
        >>> rf.train_error([1e-6, 1.0, 1e3]).round(3)
        array([1.   , 0.937, 0.657])
        """
        tau = np.atleast_1d(check_positive("times", times)).ravel()
        self._need_overparametrization()
        return LimitErrors(self).train(tau)

    def limit_curves(
        self, times: npt.ArrayLike | None = None, *, sample_shares: npt.ArrayLike | None = None
    ) -> LearningCurves:
        """Train and class test errors against training time for N → ∞, without any instance.

        Parameters
        ----------
        times : array-like, optional
            The training times τ; by default 120 of them from 10⁻³ to 10³.
        sample_shares : array-like of shape (C,), optional
            As in :meth:`learning_curves`.

        Returns
        -------
        LearningCurves
            With one run, of which all times and gaps are exact; class times have no spread.

        Notes
        -----
        The paper has the train error (Eqs 134, 137). The test error needs two resolvents, whose equations are
        derived in :mod:`equipoise.theory.diffusion.limit`. An instance differs by terms of order 1/N.

        Examples
        --------
        >>> mix = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.25])
        >>> rf = RandomFeatures(mix, diffusion_time=0.01, features_per_dim=20, samples_per_dim=8)
        >>> rf.limit_curves([0.1, 10.0]).test_per_class.round(3)
        array([[0.964, 1.004],
               [0.949, 0.937]])
        """
        tau = (
            np.geomspace(1e-3, 1e3, 120)
            if times is None
            else np.atleast_1d(check_positive("times", times)).ravel()
        )
        self._need_overparametrization()
        shares = None if sample_shares is None else check_shares(sample_shares, self.mixture.n_classes)
        errors = LimitErrors(self, shares)
        return self._curves(tau, errors.train(tau)[None], errors.test(tau)[None])

    def _curves(self, times: FloatArray, train: FloatArray, test: FloatArray) -> LearningCurves:
        mixture = self.mixture
        return LearningCurves(
            times, train, test, mixture.weights, self.spread, self.noise_variance, mixture.classes
        )

    def learning_curves(
        self,
        dimension: int = 100,
        times: npt.ArrayLike | None = None,
        n_instances: int = 1,
        random_state: RandomState = None,
        *,
        matrices: str = "true",
        step: float | None = DEFAULT_STEP,
        sample_shares: npt.ArrayLike | None = None,
        verbose: bool | None = None,
    ) -> LearningCurves:
        """Train and test errors against training time, in closed form after one diagonalization per instance.

        Parameters
        ----------
        dimension : int
            N; then there are P = χ_p·N neurons and M = χ_m·N samples.
        times : array-like, optional
            The training times τ; by default the paper's 600 log-spaced times up to 2·10⁶ epochs.
        n_instances : int
            Draws of projections and data.
        random_state : int, generator or None
            The seed. Instances and classes have streams of their own, so that models that differ only in
            their weights are compared on the same draws.
        matrices : {"true", "equivalent"}
            ``"true"`` for gradient descent on the empirical matrices of Eqs 7–8, with the noise averaged
            exactly; ``"equivalent"`` for the semi-analytical curves on Gaussian equivalents (Eqs 50,
            133).
        step : float, optional
            η̃ = ηΔ/N of gradient descent; times are rounded to whole steps. None for gradient flow.
        sample_shares : array-like of shape (C,), optional
            The classes' shares of the training samples where they differ from the mixture's weights,
            which then say how often a class is drawn: the same samples, visited more or less often.
        verbose : bool, optional
            Whether to show a progress bar.

        Returns
        -------
        LearningCurves
            The errors of all instances.

        Examples
        --------
        >>> mix = ClassMixture(weights=[0.5, 0.5], variances=[0.5, 0.25])
        >>> rf = RandomFeatures(mix, diffusion_time=0.01, features_per_dim=20, samples_per_dim=8)
        >>> curves = rf.learning_curves(dimension=20, n_instances=2, random_state=0)
        >>> wide, narrow = curves.memorization_time
        >>> bool(wide < narrow)
        True
        """
        check_integer("dimension", dimension, low=2)
        check_integer("n_instances", n_instances, low=1)
        check_choice("matrices", matrices, ["true", "equivalent"])
        tau = default_times() if times is None else np.atleast_1d(check_positive("times", times)).ravel()
        if step is not None:
            step = float(check_positive("step", step))
            tau = step * np.maximum(1, np.round(tau / step))  # whole numbers of steps
        self._need_overparametrization()
        if self.samples_per_dim * dimension < self.mixture.n_classes:
            raise ValueError(
                f"samples_per_dim {self.samples_per_dim:g} leaves fewer samples than classes at "
                f"dimension {dimension}"
            )
        shares = None if sample_shares is None else check_shares(sample_shares, self.mixture.n_classes)
        seed = draw_seed(random_state)
        seeds = [derive_seed(seed, "instance", i) for i in range(n_instances)]
        train, test = zip(
            *(
                instance_errors(self, dimension, tau, s, matrices, step, shares)
                for s in track(seeds, "instances", verbose=verbose)
            ),
            strict=True,
        )
        return self._curves(tau, np.array(train), np.array(test))
