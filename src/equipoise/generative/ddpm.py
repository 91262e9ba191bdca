"""A denoising diffusion model with a clock for each class."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from equipoise._core.checks import check_array, check_integer, check_positive, check_same_length
from equipoise._core.files import DamagedFileError
from equipoise._core.random import derive_seed, draw_seed
from equipoise._core.sealed import SealedFolder, open_sealed
from equipoise.generative.assignment import Assigner
from equipoise.generative.denoising import DenoisingStep
from equipoise.generative.monitor import Look, MemorizationMonitor, Window, log_spaced
from equipoise.generative.sampling import sample
from equipoise.generative.schedule import NoiseSchedule
from equipoise.networks.unet import UNet
from equipoise.training import (
    Callback,
    Checkpoint,
    ClassSampler,
    ExponentialAverage,
    TensorData,
    check_finite,
    fit,
    load_state,
    make_fabric,
    save_state,
)
from equipoise.training.processes import launched


def held_out_rows(codes: npt.NDArray[np.int64], fraction: float, seed: int) -> npt.NDArray[np.bool_]:
    """Which rows are kept from training: the same share of every class, a function of the seed."""
    held = np.zeros(len(codes), dtype=bool)
    rng = np.random.default_rng(derive_seed(seed, "held out"))
    for label in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == label)
        held[rng.choice(rows, round(fraction * len(rows)), replace=False)] = True
    return held


@dataclass
class _Job:
    """All that a training process needs; it can travel to a spawned one."""

    network: UNet
    step: DenoisingStep
    data: TensorData
    sampler: ClassSampler | None
    callbacks: list[Callback]
    settings: dict[str, Any]
    lr: float


def _train(fabric: Any, job: _Job) -> dict[str, Any]:
    optimizer = torch.optim.Adam(job.network.parameters(), lr=job.lr, fused=True)
    run = fit(
        job.network,
        job.step,
        job.data,
        optimizer=optimizer,
        sampler=job.sampler,
        callbacks=job.callbacks,
        fabric=fabric,
        **job.settings,
    )
    looks = [row for seen in job.callbacks if isinstance(seen, MemorizationMonitor) for row in seen.records]
    return {"weights": dict(run.network.state_dict()), "looks": looks, "history": run.history}


def _one_class(drawn: Tensor) -> npt.NDArray[np.int64]:
    return np.zeros(len(drawn), dtype=np.int64)


@dataclass(repr=False, eq=False)
class DDPM(BaseEstimator):
    """A diffusion model of images that says, class by class, when it begins to copy.

    Parameters
    ----------
    preset : {"small", "tiny", "paper"}
        The network's size; ``paper`` is the U-Net of Nicoletti et al., App. J.1.
    conditional : bool
        Draw by class.
    label_dropout : float
        Share of the labels that are hidden from a conditional model in training, so that it can be guided
        (Ho and Salimans 2022; 0.1 is usual).
    steps : int
        Training steps, rounded up to whole epochs.
    batch_size : int
        Images a step.
    lr : float
        Adam's learning rate; 1e-4 in the paper.
    average : float, optional
        Decay of a moving average of the weights, such as 0.999, which then samples, is looked at and is saved. The
        paper has none.
    class_shares : array, optional
        How often each class is drawn for training, such as
        ``equipoise.theory.diffusion.equalizing_weights`` prescribes; the data's own shares by default.
    epoch_steps : int, optional
        Steps of an epoch, for which images are drawn again and again in ``class_shares``; by default an epoch
        visits every image once. Looks and checkpoints are at the ends of epochs.
    monitor : bool
        Watch memorization at log-spaced steps.
    looks_per_decade : int
        Looks in a factor of ten of steps.
    n_samples : int
        Samples a look.
    stride : int, optional
        Steps of the monitoring sampler; None for all.
    held_out_fraction : float
        Share of the images kept from training, for the generalization window.
    stop : {None, "memorized", "all memorized"}
        End when the first class, or every class, begins to be memorized.
    second : {"any", "class"}
        Which second neighbor a copy is judged by.
    assigner : str
        The network that tells the classes of samples: ``"convnet"``, or the paper's ``"resnet18"``.
    noise_steps : int
        T of the noise schedule.
    checkpoint : path, optional
        Folder from which a killed fit goes on, to the same bits.
    looks : sequence of int, optional
        Steps to look at (the ends of the epochs that hold them); log-spaced ones by default.
    keep : callable, optional
        Called with the step and the :class:`~equipoise.generative.monitor.Look`, to keep what was seen; with
        several processes in the first of them, to which it must be able to travel (no lambda).
    device : str
        Where to train: ``"cpu"``, ``"cuda"``, ``"mps"`` or ``"auto"``.
    precision : str
        In what precision, such as ``"32-true"`` or ``"bf16-mixed"``.
    num_processes : int
        Processes that share each batch, through Lightning Fabric; they train as one does, to rounding. A script
        that asks for more than one guards its start by ``if __name__ == "__main__":``.
    random_state : int, generator or None
        All randomness.
    verbose : bool, optional
        Show a progress bar; by default where somebody is looking.

    Attributes
    ----------
    network_ : nn.Module
        The trained network.
    classes_ : ndarray
        The labels, sorted.
    mean_ : array of shape (channels, height, width)
        The mean image, which is subtracted.
    scale_ : float
        What the images are divided by.
    history_ : DataFrame
        A row per epoch.
    monitor_ : MemorizationMonitor
        The looks: ``monitor_.table``, ``monitor_.crossing_times()``, ``monitor_.window()``.
    assigner_accuracy_ : float
        The balanced accuracy of the classifier that tells samples' classes.
    assigner_macro_f1_ : float
        Its macro F1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["low", "high"], 20)
    >>> X = rng.normal(scale=np.where(y == "low", 0.2, 1.0)[:, None, None], size=(40, 8, 8))
    >>> model = DDPM("tiny", steps=4, batch_size=20, n_samples=8, stride=4, random_state=0).fit(X, y)
    >>> model.sample(3, stride=4).shape
    (3, 8, 8)
    """

    preset: str = "small"
    _: KW_ONLY
    conditional: bool = False
    label_dropout: float = 0.0
    steps: int = 2000
    batch_size: int = 64
    lr: float = 1e-4
    average: float | None = None
    class_shares: npt.ArrayLike | None = None
    epoch_steps: int | None = None
    monitor: bool = True
    looks_per_decade: int = 5
    n_samples: int = 200
    stride: int | None = 50
    held_out_fraction: float = 0.1
    stop: str | None = None
    second: str = "any"
    assigner: str = "convnet"
    noise_steps: int = 1000
    checkpoint: str | os.PathLike[str] | None = None
    looks: Sequence[int] | None = None
    keep: Callable[[int, Look], None] | None = None
    device: str = "cpu"
    precision: str = "32-true"
    num_processes: int = 1
    random_state: Any = None
    verbose: bool | None = None

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike | None = None,
        *,
        assigner_data: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> DDPM:
        """Train on images and their labels.

        Parameters
        ----------
        X : array of shape (n, height, width) or (n, channels, height, width)
            The images.
        y : array of shape (n,), optional
            Their classes.
        assigner_data : tuple of arrays, optional
            More images of the classes and their labels, for the classifier that tells what samples show; by
            default it learns from the training images.

        Returns
        -------
        DDPM
            The fitted model itself.
        """
        images, codes = self._read(X, y)
        check_positive("lr", self.lr)
        seed = draw_seed(self.random_state)
        held = held_out_rows(codes, self.held_out_fraction, seed)
        train, labels = images[~held], codes[~held]
        check_integer("steps", self.steps, low=1)
        check_integer("batch_size", self.batch_size, low=1)
        batches = -(-len(train) // self.batch_size)
        if self.epoch_steps is not None:
            batches = check_integer("epoch_steps", self.epoch_steps, low=1)
        epochs = -(-self.steps // batches)
        self.schedule_ = NoiseSchedule(steps=self.noise_steps)
        self.network_ = self._new_network(tuple(images.shape[1:]), seed)
        callbacks: list[Callback] = [] if self.average is None else [ExponentialAverage(self.average)]
        if self.monitor:
            marks = log_spaced(epochs, self.looks_per_decade)
            if self.looks is not None:
                marks = [-(-check_integer("looks", step, low=1) // batches) for step in self.looks]
            judged = None if assigner_data is None else self._scaled(*assigner_data)
            self.monitor_ = self._new_monitor(train, labels, (images[held], codes[held]), marks, seed, judged)
            callbacks.append(self.monitor_)
        if self.checkpoint is not None:
            identity = self._identity(images, codes, seed)
            callbacks.append(Checkpoint(self.checkpoint, every=max(1, epochs // 20), identity=identity))
        job = _Job(
            self.network_,
            DenoisingStep(self.schedule_, len(self.classes_) * self.conditional, self.label_dropout),
            TensorData(train, torch.from_numpy(labels)),
            self._sampler(labels, batches),
            callbacks,
            {"epochs": epochs, "batch_size": self.batch_size, "seed": seed, "verbose": self.verbose},
            float(self.lr),
        )
        fabric = make_fabric(self.device, self.precision, self.num_processes)
        done = launched(fabric, _train, job)
        if fabric.world_size > 1:  # trained elsewhere
            self.network_.load_state_dict(done["weights"])
            if self.monitor:
                self.monitor_.load_state_dict({"records": done["looks"]})
        self.network_.eval()
        self.history_ = pd.DataFrame(done["history"])
        return self

    def _sampler(self, labels: npt.NDArray[np.int64], batches: int) -> ClassSampler | None:
        shares = self._shares()
        if self.epoch_steps is None and shares is None:
            return None
        own = np.bincount(labels) / len(labels)
        draws = None if self.epoch_steps is None else batches * self.batch_size
        return ClassSampler(torch.from_numpy(labels), own if shares is None else shares, draws)

    def _shares(self) -> npt.NDArray[np.float64] | None:
        return None if self.class_shares is None else np.asarray(self.class_shares, dtype=np.float64)

    def _identity(self, images: Tensor, codes: npt.NDArray[np.int64], seed: int) -> dict[str, Any]:
        """What a checkpoint must agree in to be this run's."""
        shares = self._shares()
        digest = hashlib.blake2b(images.numpy().tobytes() + codes.tobytes(), digest_size=12)
        more = {
            "label_dropout": self.label_dropout or None,
            "average": self.average,
            "epoch_steps": self.epoch_steps,
        }
        return {
            **{name: value for name, value in more.items() if value is not None},
            "preset": self.preset,
            "conditional": self.conditional,
            "seed": seed,
            "shape": list(images.shape[1:]),
            "data": digest.hexdigest(),
            "batch_size": self.batch_size,
            "lr": float(self.lr),
            "class_shares": None if shares is None else shares.tolist(),
            "noise_steps": self.noise_steps,
        }

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Tensor, npt.NDArray[np.int64]]:
        array = check_array("X", X)
        if array.ndim not in (3, 4):
            raise ValueError(
                f"X must be images (n, height, width) or (n, channels, height, width), got {array.shape}"
            )
        self.gray_ = array.ndim == 3
        array = array[:, None] if self.gray_ else array
        labels = np.zeros(len(array), dtype=np.int64) if y is None else np.asarray(y)
        check_same_length(X=array, y=labels)
        self.classes_ = np.unique(labels)
        self.mean_, self.scale_ = array.mean(axis=0), float(array.std()) or 1.0
        return self._scaled(array, labels)

    def _scaled(self, X: npt.ArrayLike, y: npt.ArrayLike) -> tuple[Tensor, npt.NDArray[np.int64]]:
        """Images as the network sees them, and codes of classes that it knows."""
        array, labels = np.asarray(X), np.asarray(y)
        array = array.reshape(-1, *self.mean_.shape)
        check_same_length(X=array, y=labels)
        scaled = torch.tensor((array - self.mean_) / self.scale_, dtype=torch.float32)
        return scaled, self._codes(labels)

    def _codes(self, labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        unknown = sorted(set(labels.tolist()) - set(self.classes_.tolist()))
        if unknown:
            raise ValueError(f"labels: unknown {unknown}; there are {self.classes_.tolist()}")
        return np.searchsorted(self.classes_, labels).astype(np.int64)

    def _new_network(self, shape: Sequence[int], seed: int) -> UNet:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(derive_seed(seed, "network"))
            told = len(self.classes_) + (self.label_dropout > 0)  # and one code for "no class"
            return UNet(shape, self.preset, told if self.conditional else 0)

    def new_monitor(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> MemorizationMonitor:
        """The monitor that a fit on these images would have, to look at trained networks again.

        Parameters
        ----------
        X : array of shape (n, height, width) or (n, channels, height, width)
            The images.
        y : array of shape (n,), optional
            Their labels; without any all images are of one class.

        Returns
        -------
        MemorizationMonitor
            The monitor.
        """
        images, codes = self._read(X, y)
        seed = draw_seed(self.random_state)
        held = held_out_rows(codes, self.held_out_fraction, seed)
        self.schedule_ = NoiseSchedule(steps=self.noise_steps)
        return self._new_monitor(images[~held], codes[~held], (images[held], codes[held]), [], seed)

    def _new_monitor(
        self,
        images: Tensor,
        codes: npt.NDArray[np.int64],
        held: tuple[Tensor, Any],
        marks: list[int],
        seed: int,
        judged: tuple[Tensor, Any] | None = None,
    ) -> MemorizationMonitor:
        assign: Any = _one_class
        if len(self.classes_) > 1 and not self.conditional:
            assigner = Assigner(
                *(judged or (images, codes)), network=self.assigner, seed=derive_seed(seed, "assigner")
            )
            self.assigner_accuracy_, self.assigner_macro_f1_ = assigner.balanced_accuracy, assigner.macro_f1
            assign = assigner
        return MemorizationMonitor(
            images,
            codes,
            assign,
            self.schedule_,
            marks,
            n_samples=self.n_samples,
            stride=self.stride,
            held_out=held if len(held[0]) else None,
            second=self.second,
            stop=self.stop,
            conditional=self.conditional,
            keep=self.keep,
        )

    def sample(
        self,
        n: int,
        labels: npt.ArrayLike | None = None,
        *,
        stride: int | None = None,
        eta: float | None = None,
        guidance: float = 0.0,
        random_state: Any = 0,
    ) -> npt.NDArray[np.float32]:
        """Draw images, of the classes asked for if the model is conditional.

        Parameters
        ----------
        n : int
            How many.
        labels : array of shape (n,), optional
            Their classes.
        stride : int, optional
            Number of reverse steps; all of them by default.
        eta : float, optional
            0 is DDIM, for few steps; by default the ancestral sampler.
        guidance : float
            Strength of classifier-free guidance, for a model trained with ``label_dropout``.
        random_state : int, generator or None
            All randomness.

        Returns
        -------
        array of shape (n, height, width) or (n, channels, height, width)
            The images, on the scale of those that were fitted.
        """
        check_is_fitted(self)
        check_integer("n", n, low=1)
        asked = None
        if self.conditional:
            if labels is None:
                raise ValueError("a conditional model needs labels, one an image")
            wanted = np.asarray(labels)
            check_same_length(images=range(n), labels=wanted)
            asked = torch.from_numpy(self._codes(wanted))
        generator = torch.Generator().manual_seed(draw_seed(random_state))
        drawn = sample(
            self.network_,
            n,
            self.mean_.shape,
            self.schedule_,
            generator,
            labels=asked,
            stride=stride,
            eta=eta,
            guidance=guidance,
            null_label=len(self.classes_) if self.label_dropout else None,
            verbose=self.verbose,
        )
        images = drawn.numpy() * self.scale_ + self.mean_
        return np.asarray(images[:, 0] if self.gray_ else images, dtype=np.float32)

    def window(self, threshold: float = 1 / 3) -> Window:
        """The steps in which every class generalizes and none is memorized yet.

        Parameters
        ----------
        threshold : float
            The memorized fraction at which a class counts as memorized.

        Returns
        -------
        Window
            The steps at which the window opens and closes.
        """
        check_is_fitted(self, "monitor_")
        return self.monitor_.window(threshold)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write network, preprocessing and looks to a folder, nothing pickled.

        Parameters
        ----------
        folder : path
            Where to write.
        """
        check_is_fitted(self)
        save_state(
            folder,
            {
                "kind": "DDPM",
                "settings": {
                    "preset": self.preset,
                    "conditional": self.conditional,
                    "label_dropout": self.label_dropout,
                    "noise_steps": self.noise_steps,
                },
                "classes": self.classes_.tolist(),
                "gray": self.gray_,
                "mean": self.mean_,
                "scale": self.scale_,
                "looks": self.monitor_.records if hasattr(self, "monitor_") else [],
                "weights": dict(self.network_.state_dict()),
            },
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str] | SealedFolder) -> DDPM:
        """Read what :meth:`save` wrote; another model's folder is refused.

        Parameters
        ----------
        folder : path
            The folder.

        Returns
        -------
        DDPM
            The fitted model.

        Raises
        ------
        DamagedFileError
            If the folder is damaged or holds something else.
        """
        saved = open_sealed(folder)
        state = load_state(saved)
        if not isinstance(state, dict) or state.get("kind") != "DDPM":
            raise DamagedFileError(f"{saved.path} must hold a DDPM")
        with saved.reading("tree.json"):
            model = cls(**state["settings"])
            model.classes_ = np.array(state["classes"])
            model.gray_, model.scale_ = bool(state["gray"]), float(check_positive("scale", state["scale"]))
            model.mean_ = state["mean"].numpy()
            check_array("mean", model.mean_)
            model.schedule_ = NoiseSchedule(steps=model.noise_steps)
            model.network_ = model._new_network(model.mean_.shape, 0)
            check_finite(state["weights"])
            model.network_.load_state_dict(state["weights"])
            model.network_.eval()
            model.looks_ = pd.DataFrame(state["looks"])
        return model
