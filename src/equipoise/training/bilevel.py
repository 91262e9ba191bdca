"""Learning a loss on a meta set: virtual update, meta gradient by forward-mode differentiation, real update.

With Θ̂(Ω) = U(Θ, ∇_Θ L_train(Θ; Ω)) the weights after one step, the meta gradient is

    ∇_Ω L_meta(Θ̂(Ω)) = ∂/∂Ω ⟨w, ∇_Θ L_train(Θ; Ω)⟩ = ∂/∂Ω [ d/dε L_train(Θ + εw; Ω) ],   w = (∂U/∂∇L)ᵀ ∇L_meta(Θ̂).

The derivative along w is one forward-mode pass through the network, which gives the tangents of the logits; Ω
only enters the loss on top of them, a graph of n × C numbers. So the gradient is exact, and no graph of the
network's backward pass is ever made. For plain SGD w = −λ∇L_meta (Wu & Li, Eqs 23–25).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from equipoise._core.checks import check_choice, check_in_range, check_integer, check_positive
from equipoise.losses._learned import LearnedLoss, SeenBatch
from equipoise.losses.functional.shared import negative_log_likelihood, promote, reduce_loss
from equipoise.networks import logits_and_features
from equipoise.training.data import Batch
from equipoise.training.metaset import MetaSet, balanced_weights
from equipoise.training.processes import gather_rows, several_processes, sum_over_processes
from equipoise.training.sam import statistics_kept
from equipoise.training.steps import Outcome
from equipoise.training.tangents import Recorder, logits_tangent
from equipoise.training.virtual_update import Tensors, VirtualUpdate, virtual_update

if TYPE_CHECKING:
    from equipoise.training.loop import Run


def _learned_gradients(
    loss: LearnedLoss,
    seen: SeenBatch,
    head: Tensor,
    *,
    tangents: tuple[Tensor, Tensor],
    omega: Sequence[Tensor],
) -> list[Tensor | None]:
    """∂/∂Ω of the loss's derivative along tangents of the logits and the head's weights."""
    logits, weight = seen.logits.detach().requires_grad_(), head.detach().requires_grad_()
    with torch.enable_grad():
        value = loss(logits, seen, weight)
        slopes = torch.autograd.grad(value, (logits, weight), create_graph=True, allow_unused=True)
        along = [
            (slope * tangent.to(slope.dtype)).sum()
            for slope, tangent in zip(slopes, tangents, strict=True)
            if slope is not None
        ]
        return list(torch.autograd.grad(sum(along), list(omega), allow_unused=True))  # type: ignore[arg-type]


class BilevelStep:
    """A step that also learns the loss (Wu & Li, Algorithm 1; Shu et al. 2019).

    Parameters
    ----------
    loss : LearnedLoss
        Such as :class:`~equipoise.losses.MetaENumLoss`.
    meta : MetaSet
        Rows of the training data.
    meta_loss : {"ce", "literal"}
        Class-balanced cross-entropy at Θ̂, or the learned loss itself as Eqs 24 and 25 are printed. The
        latter also has a direct gradient, which shrinks h and Σ whatever they are good for.
    layers : {"all", "head"}
        Let the virtual update move every layer, or the head alone: an approximation at little more than
        the price of a plain step. Clipping is not replicated there.
    virtual : {"optimizer", "plain"}
        Replicate SGD's momentum and weight decay in the virtual update, or take a plain SGD step.
    meta_batch_size : int, optional
        Meta samples per step, class by class in turn; as many as the batch has by default.
    meta_lr : float
        λ₃, of Adam on the loss's networks.
    warmup : float
        Part of the run with plain cross-entropy (T₁ of Algorithm 1).
    clip : float, optional
        Largest norm of the gradient.

    Attributes
    ----------
    class_pull : list of Tensor
        For each epoch, the mean weight of each class: the loss's pull on the true logit over
        cross-entropy's, Σ|∂L/∂ν_y| / Σ(1 − p_y)/n.
    """

    def __init__(
        self,
        loss: LearnedLoss,
        meta: MetaSet,
        *,
        meta_loss: str = "ce",
        layers: str = "all",
        virtual: str = "optimizer",
        meta_batch_size: int | None = None,
        meta_lr: float = 1e-3,
        warmup: float = 0.0,
        clip: float | None = None,
    ) -> None:
        if not isinstance(loss, LearnedLoss):
            raise TypeError(
                f"loss must be a LearnedLoss, with parameters to learn on the meta set, got {loss!r}"
            )
        self.loss, self.meta = loss, meta
        self.meta_loss = check_choice("meta_loss", meta_loss, ["ce", "literal"])
        self.layers = check_choice("layers", layers, ["all", "head"])
        self.virtual = check_choice("virtual", virtual, ["optimizer", "plain"])
        self.meta_batch_size = (
            None if meta_batch_size is None else check_integer("meta_batch_size", meta_batch_size, low=1)
        )
        self.warmup = float(check_in_range("warmup", warmup, 0, 1))
        self.clip = None if clip is None else float(check_positive("clip", clip))
        parameters = list(loss.parameters())
        lr = float(check_positive("meta_lr", meta_lr))
        self.meta_optimizer = torch.optim.Adam(parameters, lr=lr) if parameters else None
        self.warming = False
        self.class_pull: list[Tensor] = []
        self._run: Run | None = None
        self._pull: Tensor | None = None

    # The loop's calls

    def setup(self, run: Run) -> None:
        """Get ready for a run; the loop calls it once.

        Parameters
        ----------
        run : Run
            The run.
        """
        scaled = getattr(run.fabric, "_precision", run.fabric)
        if scaled.precision == "16-mixed":
            raise ValueError("precision '16-mixed' scales gradients, which a bilevel step makes by itself; "
                             "take 'bf16-mixed'")  # fmt: skip
        self._run = run
        self.loss.to(run.fabric.device)
        for p in self.loss.parameters():  # spawned processes share memory, and each updates its own
            p.data = p.data.clone()
        self.meta.to(run.fabric.device)
        targets = run.data.labels()
        if not torch.isin(self.meta.targets, targets).any():
            raise ValueError("the meta set shares no class with the training data")
        self.loss.prepare(_head(run.network).in_features, len(run.data))

    def start_epoch(self, epoch: int, epochs: int) -> None:
        """An epoch begins; the loop calls it.

        Parameters
        ----------
        epoch : int
            The number of the epoch, from 0.
        epochs : int
            How many there are.
        """
        self.warming = epoch < math.ceil(self.warmup * epochs)
        self.loss.start_epoch(epoch, epochs)
        self._pull = None

    def end_epoch(self) -> None:
        """An epoch has ended; the loop calls it."""
        if self._pull is not None:
            self.class_pull.append((self._pull[0] / self._pull[1].clamp_min(1e-12)).cpu())

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold.

        Returns
        -------
        dict
            The learned loss, its optimizer and the weights of the classes so far.
        """
        optimizer = self.meta_optimizer
        return {
            "loss": self.loss.state_dict(),
            "meta_optimizer": None if optimizer is None else optimizer.state_dict(),
            "class_pull": list(self.class_pull),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint.

        Parameters
        ----------
        state : dict
            What :meth:`state_dict` returned.
        """
        self.loss.load_state_dict(state["loss"])
        if self.meta_optimizer is not None:
            self.meta_optimizer.load_state_dict(state["meta_optimizer"])
        self.class_pull = list(state["class_pull"])

    # One step

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        network = model if self._run is None else self._run.network
        if self._run is None:
            self.loss.prepare(_head(network).in_features, int(batch.index.max()) + 1)
        parameters: Tensors = {name: p for name, p in network.named_parameters() if p.requires_grad}
        inputs = self._cast(batch.inputs, network)
        randomness = torch.get_rng_state()
        with self._autocast(), Recorder(network, self._learns) as record:
            logits, features = logits_and_features(network, inputs)
        seen, own = _see(logits, features, batch)
        self.loss.observe(seen)
        meta_value: Tensor | None = None
        if self._learns:
            omega = [*self.loss.begin(), *self.loss.parameters()]
            gradients = self._gradients(logits, seen, own, parameters, network, keep=True)[1]

            def tangent(w: Tensors) -> Tensor:
                if self.layers == "head":
                    return _head_tangent(_head(network), features.detach(), w)
                return logits_tangent(network, inputs, w, record, randomness, self._autocast)

            ahead = self._look_ahead(parameters, gradients, optimizer)
            meta_value = self._learn(network, ahead, batch, seen, omega, tangent)
        elif not self.warming:
            self.loss.learn([None] * len(self.loss.begin()))
        record.clear()
        value, gradients = self._gradients(logits, seen, own, parameters, network, keep=False)
        self._update(network, parameters, gradients, optimizer)
        accuracy = (logits.detach().argmax(dim=1) == batch.labels()).float().mean()
        metrics = (
            {"accuracy": accuracy} if meta_value is None else {"accuracy": accuracy, "meta_loss": meta_value}
        )
        return Outcome(value, metrics)

    @property
    def _learns(self) -> bool:
        return not self.warming and self.loss.learns

    def _train_loss(self, logits: Tensor, seen: SeenBatch, head: Tensor) -> Tensor:
        if self.warming:
            return reduce_loss(negative_log_likelihood(logits, seen.target), "mean", seen.weight)
        return self.loss(logits, seen, head)

    def _gradients(
        self,
        logits: Tensor,
        seen: SeenBatch,
        own: slice,
        parameters: Tensors,
        network: nn.Module,
        *,
        keep: bool,
    ) -> tuple[Tensor, Tensors]:
        """The training loss and its gradient by Θ, from the graph of one forward pass.

        The loss is computed on the rows of all processes by each of them, the network's part on one's own.
        """
        whole = seen.logits.detach().requires_grad_()
        head = _head(network).weight.detach().requires_grad_()
        value = self._train_loss(whole, seen, head)
        pull, direct = torch.autograd.grad(value, (whole, head), allow_unused=True)
        wanted = parameters
        if keep and self.layers == "head":  # the virtual update needs no more
            wanted = {name: p for name, p in parameters.items() if name.startswith("head.")}
        found = torch.autograd.grad(
            logits, list(wanted.values()), pull[own].to(logits.dtype), retain_graph=keep, allow_unused=True
        )
        gradients = {
            name: torch.zeros_like(p) if g is None else g
            for (name, p), g in zip(wanted.items(), found, strict=True)
        }
        sum_over_processes(list(gradients.values()))
        if direct is not None and "head.weight" in gradients:
            gradients["head.weight"] = gradients["head.weight"] + direct
        if not keep and not self.warming:
            self._note_pull(pull, seen)
        return value.detach(), gradients

    def _look_ahead(self, parameters: Tensors, gradients: Tensors, optimizer: Any) -> VirtualUpdate:
        moved = {name: p for name, p in parameters.items() if name in gradients}
        clip = self.clip if self.layers == "all" else None
        return virtual_update(moved, gradients, optimizer, replicate=self.virtual == "optimizer", clip=clip)

    def _learn(
        self,
        network: nn.Module,
        ahead: VirtualUpdate,
        batch: Batch,
        seen: SeenBatch,
        omega: list[Tensor],
        tangent: Callable[[Tensors], Tensor],
    ) -> Tensor:
        """Update Ω; returns the meta loss at the virtual weights."""
        value, meta_gradient, direct = self._meta_gradient(
            network, ahead.weights, self._meta_rows(batch, len(seen.target)), omega
        )
        w = ahead.direction(meta_gradient)
        (whole,), _ = gather_rows(promote(tangent(w)))
        head = _head(network).weight
        slope = w.get("head.weight", torch.zeros_like(head))
        through = _learned_gradients(self.loss, seen, head, tangents=(whole, slope), omega=omega)
        self._step_omega(
            [a if b is None else b if a is None else a + b for a, b in zip(through, direct, strict=True)]
        )
        return value

    def _meta_rows(self, batch: Batch, size: int) -> Tensor:
        """The same in all processes: a few rows are not worth sharing."""
        rows = self.meta.draw(self.meta_batch_size or size, batch.generator)
        return rows.to(self.meta.targets.device)

    def _meta_gradient(
        self, network: nn.Module, weights: Tensors, rows: Tensor, omega: list[Tensor]
    ) -> tuple[Tensor, Tensors, list[Tensor | None]]:
        """The meta loss at Θ̂, its gradient by Θ̂, and by Ω directly (nothing for cross-entropy)."""
        targets = self.meta.targets[rows]
        leaves = {name: p.detach().requires_grad_() for name, p in weights.items()}
        with statistics_kept(network, nn.Identity()), self._autocast():
            inputs = self._cast(self.meta.inputs[rows], network)
            logits, features = _call_with(network, leaves, inputs)
        weight = balanced_weights(targets)
        if self.meta_loss == "ce":
            value = reduce_loss(negative_log_likelihood(promote(logits), targets), "mean", weight)
        else:
            plain = promote(logits).detach()
            seen = SeenBatch(plain, targets, features.detach(), self.meta.index[rows], weight)
            self.loss.observe(seen, training=False)
            value = self.loss(promote(logits), seen, leaves.get("head.weight", _head(network).weight))
        wanted = [*leaves.values(), *(omega if self.meta_loss == "literal" else [])]
        found = torch.autograd.grad(value, wanted, allow_unused=True)
        by_weights = {
            name: torch.zeros_like(p) if g is None else g
            for (name, p), g in zip(leaves.items(), found, strict=False)
        }
        direct: list[Tensor | None] = [None] * len(omega)
        if self.meta_loss == "literal":
            direct = list(found[len(leaves) :])
        return value.detach(), by_weights, direct

    def _step_omega(self, gradients: list[Tensor | None]) -> None:
        count = len(gradients) - len(list(self.loss.parameters()))
        self.loss.learn(gradients[:count])
        if self.meta_optimizer is not None:
            for p, g in zip(self.loss.parameters(), gradients[count:], strict=True):
                p.grad = g
            self.meta_optimizer.step()
            self.meta_optimizer.zero_grad(set_to_none=True)

    def _update(self, network: nn.Module, parameters: Tensors, gradients: Tensors, optimizer: Any) -> None:
        for name, p in parameters.items():
            p.grad = gradients[name]
        if self.clip is not None:
            nn.utils.clip_grad_norm_(list(parameters.values()), self.clip)
        optimizer.step()
        optimizer.zero_grad()

    @torch.no_grad()
    def _note_pull(self, pull: Tensor, seen: SeenBatch) -> None:
        """Add up what the loss and cross-entropy pull at the true logits, class by class."""
        target, n = seen.target, len(seen.target)
        ours = -pull.gather(1, target[:, None]).flatten() * n
        plain = 1 - torch.softmax(seen.logits, dim=1).gather(1, target[:, None]).flatten()
        if self._pull is None:
            self._pull = torch.zeros(2, seen.logits.shape[1], dtype=torch.float64, device=pull.device)
        self._pull.index_add_(1, target, torch.stack([ours, plain]).double())

    # Precision

    def _autocast(self) -> Any:
        return contextlib.nullcontext() if self._run is None else self._run.fabric.autocast()

    def _cast(self, inputs: Tensor, network: nn.Module) -> Tensor:
        """In true half or double precision the weights say what the inputs are."""
        return inputs.to(next(network.parameters()).dtype) if inputs.is_floating_point() else inputs


def _head(network: Any) -> nn.Linear:
    head = getattr(network, "head", None)
    if not isinstance(head, nn.Linear):
        raise TypeError(
            f"the network must have a linear layer named head, got {type(network).__name__} without"
        )
    return head


def _see(logits: Tensor, features: Tensor, batch: Batch) -> tuple[SeenBatch, slice]:
    """The batch over all processes, and the rows that are one's own."""
    parts = [promote(logits.detach()), batch.labels(), promote(features.detach()), batch.index]
    if batch.weight is not None:
        parts.append(batch.weight)
    whole, own = gather_rows(*parts) if several_processes() else (parts, slice(0, len(logits)))
    return SeenBatch(*whole), own


def _call_with(network: nn.Module, weights: Tensors, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and features of the network with some of its weights replaced."""
    seen: list[Tensor] = []
    handle = _head(network).register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        if all(name.startswith("head.") for name in weights):
            with torch.no_grad():
                network(inputs)
            own = {name.removeprefix("head."): value for name, value in weights.items()}
            return functional_call(_head(network), own, (seen[-1],)), seen[-1]
        return functional_call(network, weights, (inputs,)), seen[-1]
    finally:
        handle.remove()


def _head_tangent(head: nn.Linear, features: Tensor, w: Tensors) -> Tensor:
    own = {name.removeprefix("head."): value for name, value in w.items()}
    return logits_tangent(head, features.to(head.weight.dtype), own, Recorder(head, active=False))
