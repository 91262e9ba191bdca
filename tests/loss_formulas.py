"""Every loss as its paper prints it, sample by sample, and a table of how far ours lie from that.

``python tests/loss_formulas.py`` writes docs/explanation/losses-agreement.md. The formulas use nothing of the
package.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equipoise.losses import get_loss

COUNTS = [900, 300, 100, 30, 10]
N, C, D = 60, 5, 6
_TOTAL = sum(COUNTS)


@dataclass
class Sample:
    """One of the batch: its logits, label and features, the head, and all of the batch for what needs classes."""

    z: Tensor
    y: int
    f: Tensor
    w: Tensor
    batch: tuple[Tensor, Tensor, Tensor]


def log_softmax(z: Tensor, y: int) -> Tensor:
    return z[y] - torch.log(torch.exp(z - z.max().detach()).sum()) - z.max().detach()


def cross_entropy(s: Sample) -> Tensor:
    return -log_softmax(s.z, s.y)


def weighted(s: Sample) -> Tensor:
    return _TOTAL / (C * COUNTS[s.y]) * cross_entropy(s)


def focal(s: Sample) -> Tensor:
    p = torch.exp(log_softmax(s.z, s.y))
    return -((1 - p) ** 2) * torch.log(p)


def poly(s: Sample) -> Tensor:
    return cross_entropy(s) + 2.0 * (1 - torch.exp(log_softmax(s.z, s.y)))


def class_balance(y: int, beta: float) -> float:
    weights = [(1 - beta) / (1 - beta**n) for n in COUNTS]
    return weights[y] * C / sum(weights)


def class_balanced(s: Sample) -> Tensor:
    return class_balance(s.y, 0.999) * cross_entropy(s)


def class_balanced_focal(s: Sample) -> Tensor:
    p = torch.exp(log_softmax(s.z, s.y))
    return -class_balance(s.y, 0.999) * (1 - p) ** 0.5 * torch.log(p)


def logit_adjusted(s: Sample) -> Tensor:
    shift = torch.tensor([math.log(n / _TOTAL) for n in COUNTS], dtype=s.z.dtype)
    return -log_softmax(s.z + shift, s.y)


def vector_scaling(s: Sample) -> Tensor:
    scale = torch.tensor([(n / max(COUNTS)) ** 0.2 for n in COUNTS], dtype=s.z.dtype)
    shift = torch.tensor([math.log(n / _TOTAL) for n in COUNTS], dtype=s.z.dtype)
    return -log_softmax(scale * s.z + shift, s.y)


def _less(z: Tensor, y: int, amount: Tensor | float) -> Tensor:
    return torch.stack([value - amount if c == y else value for c, value in enumerate(z)])


def ldam(s: Sample) -> Tensor:
    margins = [n**-0.25 for n in COUNTS]
    margin = 0.5 * margins[s.y] / max(margins)
    return -log_softmax(_less(s.z, s.y, 30 * margin), s.y)


def kps(s: Sample) -> Tensor:
    scale = torch.tensor([math.log(50 * n / min(COUNTS)) / math.log(50) for n in COUNTS], dtype=s.z.dtype)
    own = math.log(50 * max(COUNTS) / COUNTS[s.y]) / math.log(50 * max(COUNTS) / min(COUNTS))
    return -log_softmax(_less(scale * s.z, s.y, 15 * 0.5 * own), s.y)


def lpl(s: Sample) -> Tensor:
    """Rank c by falling count, border τ = C/2: −2.5(τ − c)/τ for the head, 2.5(c − τ)/(C − τ) for the tail."""
    rank, border = s.y + 1, C / 2
    bound = -2.5 * (border - rank) / border if rank < border else 2.5 * (rank - border) / (C - border)
    logits, labels, _ = s.batch
    direction = torch.zeros(C, dtype=s.z.dtype)
    for z, y in zip(logits.detach(), labels.tolist(), strict=True):
        if y == s.y:
            direction += torch.softmax(z, 0) - torch.eye(C, dtype=z.dtype)[y]
    return -log_softmax(s.z + bound * direction / direction.norm(), s.y)


def _covariance(s: Sample) -> Tensor:
    _, labels, features = s.batch
    mine = features[labels == s.y].detach()
    centered = mine - mine.mean(0)
    return centered.T @ centered / len(mine)


def _spread(s: Sample, sigma: Tensor) -> Tensor:
    return torch.stack([(s.w[c] - s.w[s.y]) @ sigma @ (s.w[c] - s.w[s.y]) for c in range(C)])


def isda(s: Sample) -> Tensor:
    return -log_softmax(s.z + 0.5 * 0.5 * _spread(s, _covariance(s)), s.y)


def _scatter(s: Sample) -> list[Tensor]:
    """DS_yc of Eq 16, from the covariance of the features of the class."""
    spread = _spread(s, _covariance(s))
    return [
        spread[c] / ((s.w[c] - s.w[s.y]) ** 2).sum() if c != s.y else spread[c].new_zeros(())
        for c in range(C)
    ]


def combined(s: Sample) -> Tensor:
    """Eq 20 with τ₁ = τ₂ = 1 and h ≡ 1."""
    moved = [z + 1 + ds if c != s.y else z for c, (z, ds) in enumerate(zip(s.z, _scatter(s), strict=True))]
    return class_balance(s.y, 0.9999) * -log_softmax(torch.stack(moved), s.y)


def nenum(s: Sample) -> Tensor:
    """Eqs 16 to 19; scatter and mean probabilities are of the epoch before, the same batch."""
    logits, labels, features = s.batch
    factors = []
    for c in range(C):
        there = _scatter(Sample(logits[0], c, features[0], s.w, s.batch))
        factors.append(float(torch.stack(there).detach().sum()) / (C - 1) * class_balance(c, 0.9999))
    p = torch.exp(log_softmax(s.z, s.y)).detach()
    own = [torch.exp(log_softmax(z, s.y)) for z, y in zip(logits.detach(), labels, strict=True) if y == s.y]
    doubt = 1 - (p if p >= 0.2 else torch.stack(own).mean())
    return factors[s.y] * C / sum(factors) * doubt**2 * cross_entropy(s)


def large_margin(s: Sample) -> Tensor:
    """ψ(θ) = (−1)^k cos(mθ) − 2k with m = 2, through the angle itself."""
    size = s.w[s.y].norm() * s.f.norm()
    angle = torch.arccos(s.w[s.y] @ s.f / size)
    k = int(angle >= math.pi / 2)
    psi = (-1) ** k * torch.cos(2 * angle) - 2 * k
    return -log_softmax(_less(s.z, s.y, s.z[s.y] - size * psi), s.y)


def center(s: Sample) -> Tensor:
    return cross_entropy(s) + 0.01 * (s.f**2).sum()  # all centers begin at zero


def lq(s: Sample) -> Tensor:
    return (1 - torch.exp(log_softmax(s.z, s.y)) ** 0.4) / 0.4


CASES: list[tuple[str, str, dict[str, Any], Callable[[Sample], Tensor], str]] = [
    ("cross-entropy", "ce", {}, cross_entropy, "−log p_y"),
    ("weighted", "wce", {}, weighted, "n/(C n_y) · −log p_y"),
    ("focal", "focal", {"gamma": 2}, focal, "−(1 − p_y)² log p_y, Lin et al. 2017"),
    ("Poly-1", "poly", {"epsilon": 2.0}, poly, "−log p_y + ε(1 − p_y), Leng et al. 2022"),
    ("class-balanced", "cb", {"beta": 0.999}, class_balanced, "(1−β)/(1−β^n_y) · −log p_y, Cui et al. 2019"),
    ("class-balanced focal", "cb", {"beta": 0.999, "gamma": 0.5}, class_balanced_focal, "of the focal loss, ibid."),
    ("logit adjustment", "la", {}, logit_adjusted, "z_c + log π_c, Menon et al. 2021"),
    ("vector scaling", "vs", {}, vector_scaling, "(n_c/n_max)^γ z_c + τ log π_c, Kini et al. 2021"),
    ("LDAM", "ldam", {}, ldam, "z_y − s m_y, m ∝ n^(−1/4), Cao et al. 2019"),
    ("KPS", "kps", {}, kps, "Li, Cheung & Hu 2023, and their code's constants"),
    ("LPL", "lpl", {}, lpl, "Li et al. 2022, one step of the bound's length"),
    ("ISDA", "isda", {}, isda, "z_c + ½λ(ω_c−ω_y)ᵀΣ_y(ω_c−ω_y), Wang et al. 2021"),
    ("NENum", "nenum", {}, nenum, "Wu & Li, Eqs 16 to 19"),
    ("combined", "combined", {}, combined, "Wu & Li, Eq 20 with h ≡ 1"),
    ("large margin", "largemargin", {}, large_margin, "‖ω_y‖‖f‖ψ(θ_y), through the angle, Liu et al. 2016"),
    ("center", "center", {}, center, "−log p_y + λ‖f − c_y‖², Wen et al. 2016"),
    ("Lq", "lq", {"q": 0.4}, lq, "(1 − p_y^q)/q, Zhang & Sabuncu 2018"),
]  # fmt: skip
"""Name, the call, its parameters, the formula, and where it is printed."""


def differences(
    name: str, params: dict[str, Any], formula: Callable[[Sample], Tensor]
) -> tuple[float, float]:
    """The largest difference of a sample's loss, and of a derivative by features and head weights.

    Each is divided by the largest value that the formula gives.
    """
    generator = torch.Generator().manual_seed(0)
    draw = {"generator": generator, "dtype": torch.float64}
    features, weight = torch.randn(N, D, **draw).requires_grad_(), torch.randn(C, D, **draw).requires_grad_()
    bias, labels = torch.randn(C, **draw), torch.arange(N) % C
    logits = features @ weight.T + (0 if name == "largemargin" else bias)
    loss = get_loss(name, COUNTS, **params).double()
    loss.reduction = "none"
    loss.start_epoch(0 if name == "nenum" else 9, 10)
    given = {"features": features, "head_weight": weight}
    needs = {key: given[key] for key in loss.requires}
    if name == "nenum":  # an epoch before, for the scatter and the mean probabilities
        loss(logits, labels, **needs)
        loss.end_epoch()
        loss.start_epoch(1, 10)
    ours = loss(logits, labels, **needs)
    batch = (logits, labels, features)
    samples = (Sample(logits[i], int(labels[i]), features[i], weight, batch) for i in range(N))
    theirs = torch.stack([formula(sample) for sample in samples])
    toward = torch.randn(N, **draw)
    mine, printed = (
        torch.autograd.grad(v @ toward, (features, weight), retain_graph=True) for v in (ours, theirs)
    )
    steep = max(_apart(a, b) for a, b in zip(mine, printed, strict=True))
    return _apart(ours.detach(), theirs.detach()), steep


def _apart(ours: Tensor, theirs: Tensor) -> float:
    return float((ours - theirs).abs().max() / theirs.abs().max())


_INTRODUCTION = f"""# Losses beside their papers' formulas

The largest difference between a loss of `equipoise.losses` and the formula of its paper, written anew sample by
sample in `tests/loss_formulas.py`, in double precision: {N} samples of {C} classes that have
{", ".join(map(str, COUNTS))} training samples. Values are of single samples; derivatives are by features and head
weights, of a random combination of all samples. Differences are divided by the largest value. Constants such as
class weights are kept in single precision, which is where differences of 1e-8 come from. Made by
`python tests/loss_formulas.py`; `tests/agreement/test_losses.py` holds all of them below 1e-6.

| loss | call | formula | largest difference of a value | of a derivative |
|---|---|---|---|---|
"""
_END = """
Not in the table: `DisturbLabelLoss` is cross-entropy with labels drawn anew (`tests/losses/test_formulas.py` counts
them); the gradients of the losses learned on a meta set are compared with a double backward and with differences in
`tests/training/test_bilevel.py`.
"""


def page() -> str:
    """The table as Markdown."""
    rows = ""
    for title, name, params, formula, source in CASES:
        value, steep = differences(name, params, formula)
        call = f'get_loss("{name}", counts' + "".join(f", {k}={v}" for k, v in params.items()) + ")"
        rows += f"| {title} | `{call}` | {source} | {value:.0e} | {steep:.0e} |\n"
    return _INTRODUCTION + rows + _END


if __name__ == "__main__":
    target = Path(__file__).parents[1] / "docs" / "explanation" / "losses-agreement.md"
    target.write_text(page(), encoding="utf-8")
    print(target)
