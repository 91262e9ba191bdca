"""A scikit-learn classifier over any network, loss and step."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from equipoise._core.checks import check_positive
from equipoise._core.random import draw_seed
from equipoise.classifiers._prediction import _NetworkClassifier
from equipoise.classifiers._training_job import (
    Job,
    LinkedCrossEntropy,
    build_loss,
    exact_link,
    initial_network,
    train,
)
from equipoise.classifiers.ledger import implied_prior, sampled_prior
from equipoise.classifiers.recipes import with_recipe
from equipoise.classifiers.targets import Targets, check_training_data
from equipoise.networks import use_cosine_head
from equipoise.training import (
    Callback,
    ClassSampler,
    EarlyStopping,
    LearningRate,
    TensorData,
    build_step,
    class_shares,
    make_fabric,
)
from equipoise.training.inputs import Preparation
from equipoise.training.processes import launched


@dataclass(repr=False, eq=False)
class NeuralClassifier(_NetworkClassifier):
    """A network trained by any loss and any step, on tables or images.

    Parameters
    ----------
    module : str, factory or nn.Module
        ``"auto"`` (an MLP for tables, a small convnet for images), ``"mlp"``, ``"convnet"``, ``"resnet8"``,
        ``"resnet20"``, ``"resnet32"``, ``"resnet110"``, ``"wrn28-10"``, ``"resnet18"``, ``"resnet34"``,
        ``"resnet50"``, ``"torchvision/…"`` or ``"timm/…"`` where these are installed, a factory
        ``factory(input_shape, n_classes, **module_params)``, or a module, which is copied.
    module_params : dict, optional
        For the network, such as ``{"hidden": (64, 64), "dropout": 0.1}``. For a module or one of another library:
        ``head`` (the name of its last linear layer), ``weights`` (a safetensors file or a state dict) and
        ``frozen`` (train the head alone), see :func:`equipoise.networks.adapt`.
    loss : str, nn.Module or factory
        A loss of :mod:`equipoise.losses` by name, an instance, which is copied, or a factory
        ``factory(class_counts, **loss_params)``. Losses made for cosines
        (LDAM, KPS) also replace the network's head by one that normalizes.
    loss_params : dict, optional
        For a loss by name.
    step : str or factory
        How a batch becomes an update: a name of :data:`equipoise.training.STEPS`, or a factory
        ``factory(loss, **step_params)``.
    step_params : dict, optional
        For the step, such as ``{"clip": 1.0}``.
    sampler : None, str, float or array
        Which classes an epoch visits: as they are, ``"balanced"``, ``"sqrt"``, ``"effective_number"``, a number
        (the share of the rarest class), or an array of shares.
    class_weight : None, "balanced" or dict
        Weights of the classes in the loss.
    epochs : int
        The number of passes over the data.
    batch_size : int
        The rows of a batch.
    lr : float
        The learning rate at the start of the schedule.
    optimizer : {"adamw", "adam", "sgd"} or factory
        ``factory(parameters, lr=lr, **optimizer_params)``.
    optimizer_params : dict, optional
        Over the defaults: weight decay 1e-4, and for SGD Nesterov momentum 0.9.
    schedule : str, callable or LearningRate
        ``"constant"``, ``"cosine"``, ``"linear"``, ``"drops"``, a function of the part done, or a
        :class:`~equipoise.training.LearningRate`, which can also warm up.
    augment : callable, optional
        ``augment(inputs, generator)`` on every training batch, such as
        :class:`~equipoise.training.FlipAndShift`.
    early_stopping : bool or EarlyStopping
        Hold out ``validation_fraction`` of the data, stratified; stop when ``val_loss`` no longer falls, and keep
        the best weights. That loss is the cross-entropy of the probabilities, at the prior that training aims at.
    validation_fraction : float
        The share of the rows that early stopping holds out.
    callbacks : sequence of Callback
        More to be called, such as :class:`~equipoise.training.DeferredReweighting`; copied for every fit.
    image_shape : tuple, optional
        For a 2-D ``X`` whose rows are images: (height, width), (channels, height, width) or
        (height, width, channels).
    decision_prior : {"train", "data"} or array
        The class prior under which ``predict`` decides. Training under a changed prior is done for the
        sake of the decision, so the training prior is the default.
    device, precision : str
        As Lightning Fabric names them: ``"cpu"``, ``"cuda"``, ``"auto"``; ``"32-true"``, ``"bf16-mixed"``.
    num_processes : int
        Data-parallel processes, started by spawning: a script then needs ``if __name__ == "__main__":``.
    checkpoint : path, optional
        A folder. A fit that was killed goes on from there, to the same bits.
    random_state : int, generator or None
        The source of all randomness.
    verbose : bool, optional
        Show a progress bar; None for: if somebody is looking.
    recipe : {None, "equipoise"}
        Settings than which the studies found none better on long-tailed images, beyond the interval, for all
        that is left at its default: LDAM with weights deferred to the last fifth of the run, a normalizing head,
        and SGD. See ``docs/how-to/losses.md``.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted.
    network_ : nn.Module
        The trained network.
    history_ : DataFrame
        A row per epoch.
    data_prior_ : ndarray
        Class shares of the data; sample weights count.
    training_prior_ : ndarray
        The prior that the posterior was trained to, through sampler, class weights and loss.
    link_ : Link or None
        The exact way from the logits that minimize the loss to probabilities (:meth:`equipoise.losses.Loss.link`);
        None where there is none, and the softmax of the logits is used.
    step_state_ : dict or None
        What the step knew in the end, as in a checkpoint; a loaded classifier has none.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(400, weights=[0.9], class_sep=2, flip_y=0, random_state=0)
    >>> clf = NeuralClassifier(sampler="balanced", epochs=20, lr=0.01, random_state=0).fit(X, y)
    >>> clf.training_prior_
    array([0.5, 0.5])
    >>> bool(clf.score(X, y) > 0.9)
    True
    >>> clf.history_.columns.tolist()
    ['epoch', 'loss', 'accuracy', 'lr']
    """

    module: str | Callable[..., nn.Module] | nn.Module = "auto"
    _: KW_ONLY
    module_params: dict[str, Any] | None = None
    loss: str | nn.Module | Callable[..., nn.Module] = "ce"
    loss_params: dict[str, Any] | None = None
    step: str | Callable[..., Any] = "plain"
    step_params: dict[str, Any] | None = None
    sampler: str | float | npt.ArrayLike | None = None
    class_weight: str | dict[Any, float] | None = None
    epochs: int = 50
    batch_size: int = 64
    lr: float = 1e-3
    optimizer: str | Callable[..., Any] = "adamw"
    optimizer_params: dict[str, Any] | None = None
    schedule: str | Callable[[float], float] | LearningRate = "cosine"
    augment: Callable[..., Any] | None = None
    early_stopping: bool | EarlyStopping = False
    validation_fraction: float = 0.1
    callbacks: Sequence[Callback] = ()
    image_shape: Sequence[int] | None = None
    decision_prior: str | npt.ArrayLike = "train"
    device: str = "cpu"
    precision: str = "32-true"
    num_processes: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    random_state: Any = None
    verbose: bool | None = None
    recipe: str | None = None

    # Fitting

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> NeuralClassifier:
        """Train the network.

        Parameters
        ----------
        X : array-like
            A table (n, columns), or images: (n, height, width), (n, channels, height, width) or
            (n, height, width, channels).
        y : array-like of shape (n,)
            Labels of any kind: strings, booleans, integers with gaps.
        sample_weight : array-like of shape (n,), optional
            A row of weight 2 counts as two rows, one of weight 0 as none.

        Returns
        -------
        NeuralClassifier
            The fitted classifier itself.
        """
        X, y, weight = check_training_data(self, X, y, sample_weight)
        check_positive("lr", self.lr)
        targets = Targets.fit(y, weight, self.class_weight)
        self.classes_, self.n_features_in_ = targets.classes, X.shape[1]
        self.preparation_ = Preparation.fit(X, self.image_shape)
        planned = with_recipe(self, self.recipe)
        job = planned._job(self.preparation_(X), targets, draw_seed(self.random_state))
        done = launched(make_fabric(self.device, self.precision, self.num_processes), train, job)
        job.network.load_state_dict(done["weights"])
        self.network_ = job.network.to("cpu", torch.float32).eval()
        self.history_ = pd.DataFrame(done["history"])
        self.data_prior_ = targets.prior()
        self.class_counts_, self.sampled_prior_ = job.class_counts, np.asarray(done["sampled_prior"])
        self.training_prior_, self.link_ = np.asarray(done["training_prior"]), exact_link(job.loss)
        self.step_state_ = done["step_state"]
        return self

    def _job(self, inputs: Tensor, targets: Targets, seed: int) -> Job:
        fraction = float(self.validation_fraction) if self.early_stopping else None
        train, held_out = targets.split(fraction, seed)
        counts, mass = targets.counts(train), targets.mass(train)
        loss = build_loss(self.loss, counts, self.loss_params)
        shares = None if self.sampler is None else class_shares(self.sampler, counts)
        data = TensorData(inputs[train], targets.codes[train], targets.tensor_weight(train))
        held = None
        if held_out is not None:
            seen = sampled_prior(mass, shares=shares, counts=counts, class_weight=targets.class_weight)
            aim = implied_prior(loss, seen)
            held = TensorData(inputs[held_out], targets.codes[held_out], targets.weight_for(held_out, aim))
        link = exact_link(loss)
        judge = None if link is None else LinkedCrossEntropy(link)
        return Job(
            network=self._network(loss, seed),
            step=build_step(self.step, loss, **(self.step_params or {})),
            loss=loss,
            data=data,
            class_counts=counts,
            class_mass=mass,
            optimizer=self.optimizer,
            optimizer_params=self.optimizer_params or {},
            lr=float(self.lr),
            settings={
                "epochs": self.epochs,
                "batch_size": self.batch_size,
                "seed": seed,
                "sampler": None if shares is None else ClassSampler(data.labels(), shares),
                "augment": self.augment,
                "class_weight": targets.class_weight,
                "callbacks": self._callbacks(held, data, seed, loss=judge),
                "verbose": self.verbose,
            },
        )

    def _network(self, loss: nn.Module, seed: int) -> nn.Module:
        shape = self.preparation_.input_shape
        network = initial_network(self.module, shape, len(self.classes_), self.module_params, seed)
        if getattr(loss, "head", None) == "cosine":
            use_cosine_head(network, getattr(loss, "scale", 30.0))
        return network

    def _empty_network(self) -> nn.Module:
        shape, n_classes = self.preparation_.input_shape, len(self.classes_)
        return initial_network(self.module, shape, n_classes, self.module_params, seed=0)
