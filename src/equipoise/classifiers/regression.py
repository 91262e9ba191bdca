"""Regression with an imbalanced target: one network for every strength of balancing."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from equipoise._core.checks import FloatArray, check_choice, check_positive
from equipoise._core.random import draw_seed
from equipoise.classifiers._lambda_search import Tuning, default_grid, default_of
from equipoise.classifiers._training_job import build_optimizer, initial_network
from equipoise.losses.functional import balanced_mse
from equipoise.networks import ConditionalNetwork, build_network
from equipoise.training import Batch, LearningRate, Outcome, Run, TensorData, Uniform, fit, make_fabric
from equipoise.training.distributions import check_distributions, draw
from equipoise.training.inputs import Preparation


def errors_by_target(y: FloatArray, predicted: FloatArray, bins: int = 10) -> FloatArray:
    """Mean absolute error in each of ``bins`` equal ranges of the target; NaN where there is no target.

    >>> errors_by_target(np.array([0.0, 1.0]), np.array([0.5, 1.0]), bins=2)
    array([0.5, 0. ])
    """
    edges = np.linspace(y.min(), y.max(), bins + 1)
    place = np.clip(np.searchsorted(edges, y, side="right") - 1, 0, bins - 1)
    total = np.bincount(place, np.abs(predicted - y), minlength=bins)
    count = np.bincount(place, minlength=bins)
    return np.divide(total, count, out=np.full(bins, np.nan), where=count > 0)


_METRICS = {
    "mae": lambda y, p: float(np.abs(p - y).mean()),
    "mse": lambda y, p: float(((p - y) ** 2).mean()),
    "balanced_mae": lambda y, p: float(np.nanmean(errors_by_target(y, p))),
    "worst_range_mae": lambda y, p: float(np.nanmax(errors_by_target(y, p))),
}


def _kept_rows(
    X: npt.NDArray[Any], y: npt.ArrayLike, sample_weight: npt.ArrayLike | None
) -> tuple[npt.NDArray[Any], FloatArray, Tensor | None]:
    """Rows of positive weight, and their weights; a row of weight 0 is no row."""
    target = np.array(y, dtype=np.float64)
    if sample_weight is None:
        return X, target, None
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    kept = weight > 0
    if not kept.any():
        raise ValueError("sample_weight must have a positive sum, got 0")
    return X[kept], target[kept], torch.tensor(weight[kept].tolist(), dtype=torch.float32)


class _BalancedStep:
    """Draw τ, tell the network and the loss, and descend."""

    def __init__(self, distribution: dict[str, Any], sigma: float) -> None:
        self.distribution, self.sigma = distribution, sigma

    def setup(self, run: Run) -> None:
        self.backward = run.fabric.backward

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        values = [float(draw(law, batch.generator)) for law in self.distribution.values()]
        told: Any = (batch.inputs, torch.tensor(values, dtype=torch.float32).to(batch.labels().device))
        batch = replace(batch, inputs=told)
        optimizer.zero_grad()
        loss = balanced_mse(
            model(batch.inputs)[:, 0], batch.labels(), tau=values[0], sigma=self.sigma, reduction="none"
        )
        mean = loss.mean() if batch.weight is None else (loss * batch.weight).sum() / batch.weight.sum()
        self.backward(mean)
        optimizer.step()
        return Outcome(mean.detach())


@dataclass(repr=False, eq=False)
class ConditionalRegressor(RegressorMixin, BaseEstimator):
    """A conditioned balanced MSE: trained over strengths τ of balancing, the strength chosen afterwards.

    τ = 0 answers as least squares does, well where targets are dense; τ = 1 answers as if all targets were
    equally frequent (Ren et al. 2022). The way from one to the other is one call of :meth:`tune`.

    Parameters
    ----------
    distribution : distribution or number, optional
        Of τ; uniform on [0, 1] by default.
    sigma : float
        The noise σ of the balanced MSE, in units of the target's standard deviation.
    module : str, factory or nn.Module
        The network, as in :class:`NeuralClassifier`.
    module_params : dict, optional
        Its parameters.
    epochs : int
        The number of passes over the data.
    batch_size : int
        The rows of a batch.
    lr : float
        The learning rate.
    image_shape : tuple, optional
        The shape of rows that are images, as in :class:`NeuralClassifier`.
    device, precision : str
        Where and in which precision to train, as in :class:`NeuralClassifier`.
    random_state : int, generator or None
        The source of all randomness.
    verbose : bool, optional
        Whether to show a progress bar; by default if somebody is looking.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.exponential(size=300)
    >>> X = np.c_[y + rng.normal(size=300), rng.normal(size=300)]
    >>> reg = ConditionalRegressor(epochs=20, lr=0.01, random_state=0).fit(X, y)
    >>> bool(reg.predict(X, tau=1.0)[y > 2].mean() > reg.predict(X, tau=0.0)[y > 2].mean())
    True
    """

    distribution: Any = None
    _: KW_ONLY
    sigma: float = 0.5
    module: Any = "auto"
    module_params: dict[str, Any] | None = None
    epochs: int = 50
    batch_size: int = 64
    lr: float = 1e-3
    image_shape: Any = None
    device: str = "cpu"
    precision: str = "32-true"
    random_state: Any = None
    verbose: bool | None = None

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> ConditionalRegressor:
        """Train over the distribution of τ.

        Parameters
        ----------
        X : array-like
            Training samples.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), optional
            The weight of each row.

        Returns
        -------
        ConditionalRegressor
            The fitted regressor itself.
        """
        checked, target = validate_data(self, X, y, allow_nd=True, dtype="numeric", y_numeric=True)
        check_positive("sigma", self.sigma)
        law = Uniform(0, 1) if self.distribution is None else self.distribution
        self.distribution_ = check_distributions({"tau": law})
        checked, target, weight = _kept_rows(checked, target, sample_weight)
        self.center_, self.scale_ = float(target.mean()), float(target.std()) or 1.0
        self.preparation_ = Preparation.fit(checked, self.image_shape)
        seed = draw_seed(self.random_state)
        self.tau_ = default_of(self.distribution_["tau"])
        self.network_: Any = initial_network(
            self._conditional_module, self.preparation_.input_shape, 1, self.module_params, seed
        )
        scaled = torch.as_tensor((target - self.center_) / self.scale_, dtype=torch.float32)
        run = fit(
            self.network_,
            _BalancedStep(self.distribution_, float(self.sigma)),
            TensorData(self.preparation_(checked), scaled, weight),
            optimizer=build_optimizer("adamw", list(self.network_.parameters()), float(self.lr), {}),
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=seed,
            callbacks=[LearningRate("cosine")],
            fabric=make_fabric(self.device, self.precision),
            verbose=self.verbose,
        )
        self.history_ = pd.DataFrame(run.history)
        self.network_.cpu().eval()
        return self

    def _conditional_module(self, input_shape: Any, n_out: int, **params: Any) -> ConditionalNetwork:
        return ConditionalNetwork(build_network(self.module, input_shape, n_out, **params), [self.tau_])

    @torch.inference_mode()
    def _features(self, X: npt.ArrayLike) -> Tensor:
        check_is_fitted(self)
        checked: Any = validate_data(self, X, reset=False, allow_nd=True, dtype="numeric")
        inputs = self.preparation_(checked)
        return torch.cat([self.network_.features(part) for part in torch.split(inputs, 1024)])

    def _answer(self, features: Tensor, tau: float) -> FloatArray:
        out = self.network_.exact_answer(features, torch.tensor([tau]))[:, 0]
        return np.asarray(out.numpy() * self.scale_ + self.center_)

    def predict(self, X: npt.ArrayLike, tau: float | None = None) -> FloatArray:
        """The target, under a strength of balancing (the tuned one by default).

        Parameters
        ----------
        X : array-like
            Samples like those that the regressor was fitted to.
        tau : float, optional
            The strength τ; by default the tuned one.

        Returns
        -------
        array of shape (n,)
            The answers.
        """
        return self._answer(self._features(X), self.tau_ if tau is None else float(tau))

    def tune(self, X: npt.ArrayLike, y: npt.ArrayLike, metric: str = "balanced_mae") -> Tuning:
        """Choose τ on validation data.

        Parameters
        ----------
        X : array-like
            Validation samples.
        y : array-like of shape (n,)
            Their targets.
        metric : {"balanced_mae", "mae", "mse", "worst_range_mae"}
            What to make small; ``"balanced_mae"`` is the mean over ten ranges of the target.

        Returns
        -------
        Tuning
            The best τ and what each is worth.
        """
        check_choice("metric", metric, _METRICS)
        features, target = self._features(X), np.asarray(y, dtype=np.float64)
        grid = default_grid(self.distribution_, points=21)
        error = [_METRICS[metric](target, self._answer(features, params["tau"])) for params in grid]
        best = int(np.argmin(error))
        self.tau_ = grid[best]["tau"]
        return Tuning(grid[best], float(error[best]), None, None, pd.DataFrame(grid).assign(value=error))
