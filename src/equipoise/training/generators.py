"""Training of the samplers DeepSMOTE, GAMO and BAGAN, each as a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

from equipoise.networks.bagan import BalancingGAN
from equipoise.networks.gamo import Players
from equipoise.training.data import Batch
from equipoise.training.steps import Outcome

if TYPE_CHECKING:
    from equipoise.training.loop import Run


class DeepSMOTEStep:
    """Reconstruct a batch, and once more a batch of one class (Dablain et al. 2022, Algorithm 1).

    With ``permute`` the second loss compares each decoded sample with another of its class, as the paper
    writes it; the authors' program compares it with itself.
    """

    def __init__(self, targets: Tensor, permute: bool = False) -> None:
        self.permute = permute
        present = torch.unique(targets)
        self._rows = [torch.nonzero(targets == code).flatten() for code in present]
        self._run: Run | None = None

    def setup(self, run: Run) -> None:
        self._run = run

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        assert self._run is not None
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch.inputs), batch.inputs)
        rows = self._rows[int(torch.randint(len(self._rows), ()))]
        some = rows[torch.randperm(len(rows))[: len(batch)]]
        if len(some) > 1:
            own = self._run.data.inputs[some.to(batch.inputs.device)]
            aim = own[torch.randperm(len(own))] if self.permute else own
            penalty = F.mse_loss(model(own), aim)
        else:
            penalty = loss.new_zeros(())
        self._run.fabric.backward(loss + penalty)
        optimizer.step()
        return Outcome(
            (loss + penalty).detach(), {"reconstruction": loss.detach(), "penalty": penalty.detach()}
        )


class GAMOStep:
    """Classifier, discriminator and generator in turn, all by squared errors (Mullick et al. 2019, Algorithm 1).

    The generator wants its points to be taken for real by the discriminator and for another class by the
    classifier, so they gather where classes meet, without leaving the hull of their own.
    """

    def __init__(self, counts: Tensor, lr: float = 2e-4) -> None:
        missing = (counts.max() - counts).double()
        self.chances, self.lr = missing / missing.sum().clamp_min(1), lr
        self._optimizers: dict[str, torch.optim.Optimizer] = {}
        self._players: Players | None = None
        self._run: Run | None = None

    def setup(self, run: Run) -> None:
        players = run.network
        assert isinstance(players, Players)
        self._players, self._run = players, run
        for name in ("classifier", "discriminator", "generator"):
            parameters = getattr(players, name).parameters()
            self._optimizers[name] = torch.optim.Adam(parameters, lr=self.lr, betas=(0.5, 0.999))

    def _fakes(self, real: Tensor) -> tuple[Tensor, Tensor]:
        assert self._players is not None
        generator, n = self._players.generator, len(real)
        codes = torch.multinomial(self.chances, n, replacement=True).to(real.device)
        return generator(torch.randn(n, generator.noise).to(real), codes), codes

    def _update(self, name: str, loss: Tensor) -> None:
        self._optimizers[name].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizers[name].step()

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        assert self._run is not None
        with self._run.fabric.autocast():
            return self._play(batch)

    def _play(self, batch: Batch) -> Outcome:
        players, x, labels = self._players, batch.inputs, batch.labels()
        assert players is not None
        with torch.no_grad():
            fake, codes = self._fakes(x)
        both, wanted = torch.cat([x, fake]), F.one_hot(torch.cat([labels, codes]), players.n_classes).to(x)
        classified = F.mse_loss(players.classify(both), wanted)
        self._update("classifier", classified)
        judged = ((players.judge(x, labels) - 1) ** 2).mean() + (players.judge(fake, codes) ** 2).mean()
        self._update("discriminator", judged)
        fake, codes = self._fakes(x)
        flipped = 1 - F.one_hot(codes, players.n_classes).to(x)
        fooled = ((players.judge(fake, codes) - 1) ** 2).mean()
        made = fooled + F.mse_loss(players.classify(fake), flipped)
        self._update("generator", made)
        return Outcome(classified.detach(), {"discriminator": judged.detach(), "generator": made.detach()})

    def state_dict(self) -> dict[str, Any]:
        return {name: part.state_dict() for name, part in self._optimizers.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, part in self._optimizers.items():
            part.load_state_dict(state[name])


class BAGANStep:
    """Discriminator with C + 1 outputs, the last for fakes; classes of the fakes uniform (Mariani et al. 2018)."""

    def __init__(self, draw: Callable[[Tensor], Tensor], lr: float = 5e-5) -> None:
        self.draw, self.lr = draw, lr
        self._optimizers: list[torch.optim.Optimizer] = []
        self._gan: BalancingGAN | None = None
        self._run: Run | None = None

    def setup(self, run: Run) -> None:
        gan = run.network
        assert isinstance(gan, BalancingGAN)
        self._gan, self._run = gan, run
        self._optimizers = [
            torch.optim.Adam(part.parameters(), lr=self.lr, betas=(0.5, 0.999))
            for part in (gan.discriminator, gan.generator)
        ]

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        assert self._run is not None
        with self._run.fabric.autocast():
            return self._play(batch)

    def _play(self, batch: Batch) -> Outcome:
        gan, x, labels = self._gan, batch.inputs, batch.labels()
        assert gan is not None
        fakes = max(2, round(len(x) / gan.n_classes))  # as many fakes as a class has reals, on average
        codes = torch.randint(gan.n_classes, (fakes,))
        with torch.no_grad():
            made = gan.generator(self.draw(codes).to(x))
        told = torch.cat([labels, labels.new_full((fakes,), gan.n_classes)])
        loss = F.cross_entropy(gan.discriminator(torch.cat([x, made])), told)
        self._optimizers[0].zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self._optimizers[0].step()
        codes = torch.randint(gan.n_classes, (len(x),))
        made = F.cross_entropy(
            gan.discriminator(gan.generator(self.draw(codes).to(x))), codes.to(labels.device)
        )
        self._optimizers[1].zero_grad()
        made.backward()  # type: ignore[no-untyped-call]
        self._optimizers[1].step()
        return Outcome(loss.detach(), {"generator": made.detach()})

    def state_dict(self) -> dict[str, Any]:
        return {"optimizers": [part.state_dict() for part in self._optimizers]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for part, saved in zip(self._optimizers, state["optimizers"], strict=True):
            part.load_state_dict(saved)


class ReconstructionStep:
    """Mean squared error of a reconstruction: the first stage of BAGAN."""

    def __init__(self) -> None:
        self._run: Run | None = None

    def setup(self, run: Run) -> None:
        self._run = run

    def __call__(self, model: Any, optimizer: Any, batch: Batch) -> Outcome:
        assert self._run is not None
        optimizer.zero_grad()
        loss = F.mse_loss(model(batch.inputs), batch.inputs)
        self._run.fabric.backward(loss)
        optimizer.step()
        return Outcome(loss.detach())
