"""Training of the samplers DeepSMOTE, GAMO and BAGAN and of the generative classifier, each as a step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise._core.checks import check_positive
from equipoise.training.data import Batch
from equipoise.training.steps import Outcome

if TYPE_CHECKING:
    from equipoise.training.loop import Run


class ObjectiveStep(ABC):
    """A step that lowers one number; ``objective`` returns its terms by name, which are added up."""

    run: Run

    def setup(self, run: Run) -> None:
        self.run = run

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        optimizer.zero_grad()
        terms = self.objective(model, batch)
        loss = torch.stack(list(terms.values())).sum()
        self.run.fabric.backward(loss)
        optimizer.step()
        several = len(terms) > 1
        return Outcome(loss.detach(), {name: term.detach() for name, term in terms.items() if several})

    @abstractmethod
    def objective(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        """The terms of the loss of a batch."""


class ReconstructionStep(ObjectiveStep):
    """Mean squared error of a reconstruction: the first stage of BAGAN."""

    def objective(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        return {"reconstruction": F.mse_loss(model(batch.inputs), batch.inputs)}


class DeepSMOTEStep(ReconstructionStep):
    """Reconstruct a batch, and once more a batch of one class (Dablain et al. 2022, Algorithm 1).

    With ``permute`` the second loss compares each decoded sample with another of its class, as the paper
    writes it; the authors' program compares it with itself.
    """

    def __init__(self, targets: Tensor, permute: bool = False) -> None:
        self.permute = permute
        present = torch.unique(targets)
        self._rows = [torch.nonzero(targets == code).flatten() for code in present]

    def objective(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        terms = super().objective(model, batch)
        rows = self._rows[int(torch.randint(len(self._rows), ()))]
        some = rows[torch.randperm(len(rows))[: len(batch)]]
        penalty = torch.zeros_like(terms["reconstruction"])
        if len(some) > 1:
            own = self.run.data.inputs[some.to(batch.inputs.device)]
            aim = own[torch.randperm(len(own))] if self.permute else own
            penalty = F.mse_loss(model(own), aim)
        return {**terms, "penalty": penalty}


class DensityStep(ObjectiveStep):
    """The objective that a network of joint density brings itself."""

    def objective(self, model: Any, batch: Batch) -> dict[str, Tensor]:
        network: Any = self.run.network
        with self.run.fabric.autocast():
            return {"objective": network.objective(batch.inputs, batch.labels())}


class _Game(ABC):
    """Players that move in turn, each with its own Adam (β₁ = 0.5), which is part of a checkpoint."""

    players: tuple[str, ...]
    network: Any
    run: Run

    def __init__(self, lr: float) -> None:
        self.lr = float(check_positive("lr", lr))
        self._optimizers: dict[str, torch.optim.Optimizer] = {}

    def setup(self, run: Run) -> None:
        self.run, self.network, self._autocast = run, run.network, run.fabric.autocast
        for name in self.players:
            self._optimizers[name] = torch.optim.Adam(self._moved(name), lr=self.lr, betas=(0.5, 0.999))

    def _moved(self, name: str) -> list[torch.nn.Parameter]:
        return list(getattr(self.network, name).parameters())

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        with self._autocast():
            return self._play(batch.inputs, batch.labels())

    @abstractmethod
    def _play(self, x: Tensor, labels: Tensor) -> Outcome:
        """Let every player move once."""

    def _update(self, name: str, loss: Tensor) -> Tensor:
        self._optimizers[name].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizers[name].step()
        return loss.detach()

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._optimizers.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in self._optimizers.items():
            part.load_state_dict(state[name])


class GAMOStep(_Game):
    """Classifier, discriminator and generator in turn, all by squared errors (Mullick et al. 2019, Algorithm 1).

    The generator wants its points to be taken for real by the discriminator and for another class by the
    classifier, so they gather where classes meet, without leaving the hull of their own. A convolutional extractor
    moves with the classifier, on real images alone; the points that are mixed are its features at the start of
    each epoch. (The authors' program lets epochs of the extractor and of the game take turns.)
    """

    players = ("classifier", "discriminator", "generator")

    def __init__(self, counts: Tensor, lr: float = 2e-4) -> None:
        super().__init__(lr)
        missing = (counts.max() - counts).double()
        self.chances = missing / missing.sum().clamp_min(1)

    def _fakes(self, real: Tensor) -> tuple[Tensor, Tensor]:
        generator, n = self.network.generator, len(real)
        codes = torch.multinomial(self.chances, n, replacement=True).to(real.device)
        return generator(torch.randn(n, generator.noise).to(real), codes), codes

    def _moved(self, name: str) -> list[torch.nn.Parameter]:
        learns_along = name == "classifier" and self.network.extractor is not None
        return super()._moved(name) + (super()._moved("extractor") if learns_along else [])

    def _play(self, x: Tensor, labels: Tensor) -> Outcome:
        players = self.network
        if self.run.batch == 0:
            players.look_again(self.run.data.inputs, self.run.data.targets)
        x = players.seen(x)
        with torch.no_grad():
            fake, codes = self._fakes(x)
        both, wanted = torch.cat([x, fake]), F.one_hot(torch.cat([labels, codes]), players.n_classes).to(x)
        classified = self._update("classifier", F.mse_loss(players.classify(both), wanted))
        x = x.detach()
        judged = ((players.judge(x, labels) - 1) ** 2).mean() + (players.judge(fake, codes) ** 2).mean()
        judged = self._update("discriminator", judged)
        fake, codes = self._fakes(x)
        flipped = 1 - F.one_hot(codes, players.n_classes).to(x)
        fooled = ((players.judge(fake, codes) - 1) ** 2).mean()
        made = self._update("generator", fooled + F.mse_loss(players.classify(fake), flipped))
        return Outcome(classified, {"discriminator": judged, "generator": made})


class BAGANStep(_Game):
    """Discriminator with C + 1 outputs, the last for fakes; classes of the fakes uniform (Mariani et al. 2018)."""

    players = ("discriminator", "generator")

    def __init__(self, draw: Callable[[Tensor], Tensor], lr: float = 5e-5) -> None:
        super().__init__(lr)
        self.draw = draw

    def _play(self, x: Tensor, labels: Tensor) -> Outcome:
        gan = self.network
        fakes = max(2, round(len(x) / gan.n_classes))  # as many fakes as a class has reals, on average
        codes = torch.randint(gan.n_classes, (fakes,))
        with torch.no_grad():
            made = gan.generator(self.draw(codes).to(x))
        told = torch.cat([labels, labels.new_full((fakes,), gan.n_classes)])
        loss = self._update("discriminator", F.cross_entropy(gan.discriminator(torch.cat([x, made])), told))
        codes = torch.randint(gan.n_classes, (len(x),))
        called = gan.discriminator(gan.generator(self.draw(codes).to(x)))
        made = self._update("generator", F.cross_entropy(called, codes.to(labels.device)))
        return Outcome(loss, {"generator": made})
