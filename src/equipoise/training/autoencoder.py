"""Algorithm 1 of Mondal et al. (2023) as a step: classify, mix, decode and criticize, every part on a switch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from equipoise._core.checks import (
    check_choice,
    check_in_range,
    check_integer,
    check_members,
    check_positive,
    check_type,
)
from equipoise.networks.autoencoder import Autoencoder
from equipoise.training.augment import AdaptiveAugmentation
from equipoise.training.data import Batch, TensorData
from equipoise.training.samplers import GroupSampler
from equipoise.training.steps import Outcome

if TYPE_CHECKING:
    from equipoise.training.loop import Run

_MIXINGS = ("uniform", "learned", "beta")
_BATCHES = ("balanced", "natural")


@dataclass(frozen=True)
class Plan:
    """What of the method is switched on, and how much of it.

    Parameters
    ----------
    classify : bool
        Train the encoder by the classifier (Eq 6). Without it the encoder only reconstructs, and the classifier
        learns on latents that it cannot change.
    oversample : bool
        Classify mixes of latents too (Eq 1).
    mixing : {"uniform", "learned", "beta"}
        Weights uniform on the simplex, from the mixer (Eq 3), or Dirichlet(2, …, 2), which is Beta(2, 2) for two.
    batches : {"balanced", "natural"}
        Groups from every class equally often, or as often as the class is in the data.
    reduction : {"mean", "sum"}
        How Eqs 6 and 7 add up. ``"mean"`` is what the authors ran: over rows and mixes alike, and over pixels.
        ``"sum"`` is what they print: t rows and one mix a group, and the L1 norm over the pixels. Both are
        divided by the number of cross-entropies of a group (t + 1 with mixes), which leaves the scale of
        the learning rate; at 28 × 28 pixels the reconstruction then pulls 523 times as hard.
    decode : bool
        Reconstruct (Eq 7). Without it there is neither decoder nor critic.
    adversarial : bool
        Train the decoder against the critic on mixes (Eqs 4, 5).
    clf_weight, mae_weight : float
        λ_clf and λ_mae of Eq 7.
    decoder_mae : float
        Weight of the reconstruction in the decoder's own loss. The paper has 0: its decoder learns from the
        critic alone, which takes some 10⁵ updates.
    decoder_ce : float
        Weight of the cross-entropy of classifier(encoder(fake)) in the decoder's adversarial loss.
    penalty : float
        λ of the gradient penalty.
    decode_share : float
        Share of a batch that is decoded and criticized. Decoding costs several times what encoding does.
    decode_rate : float
        Reconstructions for each update of the encoder.
    decoder_rate, critic_rate : float
        Adversarial updates of the decoder for each update of the encoder, and updates of the critic for each of
        those. The paper's runs have 4 and 5.
    lr : float
        Learning rate of decoder, critic and mixer.
    wrong_label : {"shuffled", "other"}
        What the mixer aims at: the batch's labels in another order, as the authors ran it, or always a class
        other than the parents' (j ≠ i in Eq 3).
    mixed_classes : {"all", "minority"}
        Whose mixes are classified: those of every class, or of the classes below the largest (S_imb).
    mixer_gradient : bool
        Let the encoder's gradient pass through the mixer's weights, as in the authors' runs.
    fakes : {"mixes", "both"}
        What the critic judges and the decoder answers for: decoded mixes, or reconstructions too.
    clean_targets : bool
        Reconstruct the image as it was before its augmentation.
    joint_decoder_step : bool
        Give the decoder's cross-entropy a step of its own with every update of the encoder, and leave the critic
        alone in the adversarial step.
    """

    classify: bool = True
    oversample: bool = True
    mixing: str = "uniform"
    batches: str = "balanced"
    reduction: str = "mean"
    decode: bool = True
    adversarial: bool = True
    clf_weight: float = 5.0
    mae_weight: float = 0.01
    decoder_mae: float = 1.0
    decoder_ce: float = 1.0
    penalty: float = 10.0
    decode_share: float = 0.25
    decode_rate: float = 0.1
    decoder_rate: float = 0.1
    critic_rate: float = 1.0
    lr: float = 5e-4
    wrong_label: str = "shuffled"
    mixed_classes: str = "all"
    mixer_gradient: bool = False
    fakes: str = "mixes"
    clean_targets: bool = False
    joint_decoder_step: bool = False

    def __post_init__(self) -> None:
        check_choice("mixing", self.mixing, _MIXINGS)
        check_choice("batches", self.batches, _BATCHES)
        check_choice("reduction", self.reduction, ("mean", "sum"))
        check_choice("wrong_label", self.wrong_label, ("shuffled", "other"))
        check_choice("mixed_classes", self.mixed_classes, ("all", "minority"))
        check_choice("fakes", self.fakes, ("mixes", "both"))
        for name in ("clf_weight", "mae_weight", "decoder_mae", "decoder_ce", "penalty"):
            check_in_range(name, getattr(self, name), 0)
        for name in ("decode_share", "decode_rate"):
            check_in_range(name, getattr(self, name), 0, 1, closed="right")
        for name in ("decoder_rate", "critic_rate"):
            check_in_range(name, getattr(self, name), 0)
        check_positive("lr", self.lr)
        if not self.classify and not self.decode:
            raise ValueError("nothing is left to train the encoder by: classify and decode are both off")


def check_plan_params(params: Any) -> None:
    """A dict of settings that a plan has, or None."""
    if params is not None:
        check_members(
            "plan_params", check_type("plan_params", params, dict), [one.name for one in fields(Plan)]
        )


def rotations(groups: Tensor) -> Tensor:
    """Every group (n, t, …) in its t cyclic orders, (n·t, t, …): as many mixes as there are rows.

    >>> rotations(torch.tensor([[1, 2]])).tolist()
    [[1, 2], [2, 1]]
    """
    t = groups.shape[1]
    return torch.stack([groups.roll(-turn, dims=1) for turn in range(t)], dim=1).flatten(0, 1)


def mix(groups: Tensor, weights: Tensor) -> Tensor:
    """z' = Σᵢ αᵢ·zᵢ (Eq 1) of groups (n, t, m)."""
    return (groups * weights.unsqueeze(2)).sum(dim=1)


def draw_weights(mixing: str, n: int, n_mixed: int) -> Tensor:
    """Weights from the simplex: ``"uniform"`` is Dirichlet(1, …), ``"beta"`` Dirichlet(2, …)."""
    drawn = -torch.rand(2 if mixing == "beta" else 1, n, n_mixed).clamp_min(1e-12).log()
    gamma = drawn.sum(dim=0)
    return gamma / gamma.sum(dim=1, keepdim=True)


def gradient_penalty(critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, share: Tensor) -> Tensor:
    """E(‖∇C(x̂)‖ − 1)² at x̂ = share·real + (1 − share)·fake (the last term of Eq 5)."""
    share = share.reshape(-1, *(1,) * (real.ndim - 1))
    between = (share * real + (1 - share) * fake).detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()


class AutoencoderStep:
    """One batch: the joint update of encoder and classifier, the mixer's, the decoder's, the critic's.

    The run's optimizer must be the one of encoder and classifier; the others are made here.
    """

    _run: Run

    def __init__(self, plan: Plan, sampler: GroupSampler) -> None:
        self.plan, self.sampler = plan, sampler
        self.updates, self.mae = 0, torch.zeros(())
        self._optimizers: dict[str, torch.optim.Optimizer] = {}

    def setup(self, run: Run) -> None:
        net, plan = self._network(run), self.plan
        self._run = run

        def adam(parts: nn.Module, betas: tuple[float, float]) -> torch.optim.Optimizer:
            return torch.optim.Adam(parts.parameters(), lr=plan.lr, betas=betas)

        if plan.oversample and plan.mixing == "learned":
            self._optimizers["mixer"] = adam(net.mixer, (0.9, 0.999))
        if plan.decode:
            self._optimizers["decoder"] = adam(net.decoder, (0.9, 0.999))
        if plan.decode and plan.adversarial:
            self._optimizers["adversary"] = adam(net.decoder, (0.5, 0.9))
            self._optimizers["critic"] = adam(net.critic, (0.5, 0.9))

    @staticmethod
    def _network(run: Run) -> Autoencoder:
        net = run.network
        if not isinstance(net, Autoencoder):
            raise TypeError(f"this step trains an Autoencoder, got {type(net).__name__}")
        return net

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        with self._run.fabric.autocast():
            return self._update(optimizer, batch)

    def _update(self, optimizer: Any, batch: Batch) -> Outcome:
        net, plan = self._network(self._run), self.plan
        labels = batch.labels()
        optimizer.zero_grad()
        z = net.features(batch.inputs)
        loss, accuracy, mixes = self._classify(net, z, labels)
        total = plan.clf_weight * loss
        metrics = {"accuracy": accuracy}
        if plan.decode:
            if self._due(plan.decode_rate, self.updates):
                self.mae, pull = self._reconstruct(net, z, self._images(batch), labels)
                total = total + pull
            metrics["mae"] = self.mae
        total.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if "mixer" in self._optimizers:
            self._update_mixer(net, z.detach(), labels)
        if plan.decode and plan.adversarial:
            self._play(net, batch, z.detach(), mixes.detach(), labels)
        self.updates += 1
        return Outcome(loss.detach(), metrics)

    def _groups(self, z: Tensor) -> Tensor:
        return rotations(z.reshape(-1, self.sampler.n_mixed, z.shape[1]))

    def _weights(self, net: Autoencoder, groups: Tensor, codes: Tensor) -> Tensor:
        if self.plan.mixing == "learned":
            with torch.set_grad_enabled(self.plan.mixer_gradient and torch.is_grad_enabled()):
                return net.mix_weights(groups, codes)
        return draw_weights(self.plan.mixing, len(groups), groups.shape[1]).to(groups)

    def _classify(self, net: Autoencoder, z: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Eq 6 over the latents and their mixes; a group's rows have one label, so its mixes do."""
        plan = self.plan
        known = z if plan.classify else z.detach()
        mixes = known
        logits, codes = net.head(known), labels
        if plan.oversample:
            groups = self._groups(known)
            mixes = mix(groups, self._weights(net, groups, labels))
            logits, codes = torch.cat([logits, net.head(mixes)]), torch.cat([labels, labels])
        with torch.no_grad():
            accuracy = (logits[: len(labels)].argmax(dim=1) == labels).float().mean()
        if not plan.oversample or (plan.reduction == "mean" and plan.mixed_classes == "all"):
            return F.cross_entropy(logits, codes), accuracy, mixes
        share = torch.cat([torch.ones_like(labels), self._mixed(labels)]).to(logits)
        if plan.reduction == "sum":  # a group's t cyclic orders share its one printed term
            share[len(labels) :] /= self.sampler.n_mixed
        each = F.cross_entropy(logits, codes, reduction="none")
        return (each * share).sum() / share.sum(), accuracy, mixes

    def _mixed(self, labels: Tensor) -> Tensor:
        """Whether the mixes of each label are classified."""
        if self.plan.mixed_classes == "all":
            return torch.ones_like(labels)
        counts = self._run.data.labels().bincount()
        return (counts < counts.max())[labels].to(labels)

    def _images(self, batch: Batch) -> Tensor:
        """What is to be reconstructed: the batch as the encoder saw it, or as it was before."""
        return self._run.data.inputs[batch.index] if self.plan.clean_targets else batch.inputs

    def _reconstruct(self, net: Autoencoder, z: Tensor, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Eq 7: the encoder is pulled by λ_mae, the decoder by its own weight."""
        plan, some = self.plan, self._some(len(z))
        latent = z[:some].detach().requires_grad_(True)
        mae = (net.decode(latent, labels[:some]) - x[:some]).abs().mean()
        decoder = self._optimizers["decoder"]
        decoder.zero_grad()
        mae.backward()  # type: ignore[no-untyped-call]
        assert latent.grad is not None
        weight = plan.mae_weight
        if plan.reduction == "sum":
            t = self.sampler.n_mixed
            weight *= x[0].numel() * (t / (t + 1) if plan.oversample else 1)
        pull = weight * (latent.grad * z[:some]).sum()  # the same gradient as λ·MAE has in z
        if plan.decoder_mae:
            for parameter in net.decoder.parameters():
                if parameter.grad is not None:
                    parameter.grad *= plan.decoder_mae
            decoder.step()
        return mae.detach(), pull

    def _some(self, rows: int) -> int:
        """How many rows are decoded: whole groups, two at least."""
        t = self.sampler.n_mixed
        return min(rows, max(2 * t, round(rows * self.plan.decode_share / t) * t))

    def _update_mixer(self, net: Autoencoder, z: Tensor, labels: Tensor) -> None:
        """Eq 3: weights that make a mix look like another class."""
        optimizer, groups = self._optimizers["mixer"], self._groups(z)
        optimizer.zero_grad()
        mixes = mix(groups, net.mix_weights(groups, labels))
        logits = F.linear(mixes, net.head.weight.detach(), net.head.bias.detach())
        if self.plan.wrong_label == "other":
            away = torch.randint(1, net.n_classes, labels.shape, device=labels.device)
            wrong = (labels + away) % net.n_classes
        else:
            wrong = labels[torch.randperm(len(labels), device=labels.device)]
        F.cross_entropy(logits, wrong).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def _due(self, rate: float, before: int) -> int:
        """How many updates at this rate come with the next one of the encoder; the first comes at once."""
        return math.ceil((before + 1) * rate) - math.ceil(before * rate)

    def _play(self, net: Autoencoder, batch: Batch, z: Tensor, mixes: Tensor, labels: Tensor) -> None:
        """The critic's and the decoder's turns; what is due follows from the count of updates."""
        plan, some = self.plan, self._some(len(mixes))
        now = self._decoded(batch.inputs[:some], z[:some], mixes[:some], labels[:some])
        chance = batch.generator
        if plan.joint_decoder_step and plan.decoder_ce:
            self._update_decoder(net, *now[1:], chance, "decoder")
        for turn in range(self._due(plan.decoder_rate, self.updates)):
            played = math.ceil(self.updates * plan.decoder_rate) + turn
            for again in range(self._due(plan.critic_rate, played)):
                fresh = turn or again
                self._update_critic(net, *(self._fresh(net, some, chance) if fresh else now), chance)
            self._update_decoder(net, *now[1:], chance, "adversary")

    def _decoded(self, x: Tensor, z: Tensor, mixes: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Reals, the latents whose decodings stand against them, and the labels of both."""
        if self.plan.fakes == "mixes":
            return x, mixes, labels
        return torch.cat([x, x]), torch.cat([mixes, z]), torch.cat([labels, labels])

    @torch.no_grad()
    def _fresh(
        self, net: Autoencoder, some: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        run = self._run
        rows = self.sampler.draw(1, generator)[:some].to(run.fabric.device)
        x, labels = run.data.inputs[rows], run.data.labels()[rows]
        if run.augment is not None:
            x = run.augment(x, generator)
        net.encoder.eval()
        z = net.features(x)
        net.encoder.train()
        groups = self._groups(z)
        return self._decoded(x, z, mix(groups, self._weights(net, groups, labels)), labels)

    def _changed(self, fake: Tensor, generator: torch.Generator) -> Tensor:
        """Fakes, augmented as reals are where the augmentation follows the critic."""
        adaptive = self._adaptive
        return fake if adaptive is None else adaptive(fake, generator)

    @property
    def _adaptive(self) -> AdaptiveAugmentation | None:
        augment = self._run.augment
        return augment if isinstance(augment, AdaptiveAugmentation) else None

    def _update_critic(
        self, net: Autoencoder, x: Tensor, mixes: Tensor, labels: Tensor, generator: torch.Generator
    ) -> None:
        """Eq 5."""
        optimizer = self._optimizers["critic"]
        optimizer.zero_grad()
        with torch.no_grad():
            fake = self._changed(net.decode(mixes, labels), generator)
        verdict = net.criticize(torch.cat([fake, x]), torch.cat([labels, labels]))
        gap = verdict[: len(x)].mean() - verdict[len(x) :].mean()
        if self._adaptive is not None:
            self._adaptive.hear(verdict[len(x) :].detach())
        share = torch.rand(len(x), device=x.device)
        rough = gradient_penalty(lambda between: net.criticize(between, labels), x, fake, share)
        (gap + self.plan.penalty * rough).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def _update_decoder(
        self, net: Autoencoder, z: Tensor, labels: Tensor, generator: torch.Generator, step: str
    ) -> None:
        """Eq 4, and the cross-entropy of what the encoder and the classifier make of the fakes."""
        joint = self.plan.joint_decoder_step
        fake = self._changed(net.decode(z, labels), generator)
        loss = torch.zeros((), device=fake.device)
        if step == "adversary":
            loss = loss - net.criticize(fake, labels).mean()
        if self.plan.decoder_ce and (step == "decoder" or not joint):
            net.encoder.eval()  # its running statistics are of reals
            loss = loss + self.plan.decoder_ce * F.cross_entropy(net(fake), labels)
            net.encoder.train()
        grads = torch.autograd.grad(loss, list(net.decoder.parameters()))
        for parameter, grad in zip(net.decoder.parameters(), grads, strict=True):
            parameter.grad = grad
        self._optimizers[step].step()

    def state_dict(self) -> dict[str, Any]:
        return {
            "updates": self.updates,
            "mae": self.mae,
            "augmented": 0.0 if self._adaptive is None else self._adaptive.share,
            "optimizers": {name: part.state_dict() for name, part in self._optimizers.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.updates, self.mae = state["updates"], state["mae"]
        if self._adaptive is not None:
            self._adaptive.share = float(state["augmented"])
        for name, part in self._optimizers.items():
            part.load_state_dict(state["optimizers"][name])


def train_autoencoder(
    network: Autoencoder,
    data: TensorData,
    plan: Plan,
    *,
    batch_size: int,
    lr: float,
    weight_decay: float,
    **settings: Any,
) -> Run:
    """Train by the plan with batches of groups; returns the run.

    ``batch_size`` is rounded up to whole groups."""
    from equipoise.training.loop import fit

    if data.targets is None:
        raise ValueError("the class-preserving auto-encoder needs targets")
    t = network.n_mixed
    batch_size = -(-check_integer("batch_size", batch_size, low=2 * t) // t) * t
    sampler = GroupSampler(data.targets, t, batch_size, data.weight, natural=plan.batches == "natural")
    optimizer = torch.optim.AdamW(
        [*network.encoder.parameters(), *network.head.parameters()],
        lr=float(check_positive("lr", lr)),
        weight_decay=float(check_in_range("weight_decay", weight_decay, 0)),
    )
    step, trained = AutoencoderStep(plan, sampler), TensorData(data.inputs, data.targets)
    settings.update(batch_size=batch_size, sampler=sampler)
    return fit(network, step, trained, optimizer=optimizer, **settings)
