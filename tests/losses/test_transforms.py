"""The equations under vmap, grad and compile; statistics; what only single losses have."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from equipoise.losses import functional as L
from equipoise.losses._statistics import ClassStatistics
from equipoise.theory.effective_number import ScatterStatistics, class_factor, effective_number_weights
from loss_cases import batch, call, counts_of, make

COUNTS = counts_of(5)
LOG_PRIOR = torch.tensor(np.log(COUNTS / COUNTS.sum()))
WEIGHT = torch.tensor([0.2, 0.5, 1.0, 1.3, 2.0], dtype=torch.float64)
SIGMA = torch.rand(5, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

EQUATIONS = {
    "cross_entropy": lambda z, y, f, w: L.cross_entropy(z, y),
    "weighted": lambda z, y, f, w: L.cross_entropy(z, y, class_weight=WEIGHT),
    "focal": lambda z, y, f, w: L.focal_loss(z, y, phi=0.5, alpha=WEIGHT),
    "class_balanced": lambda z, y, f, w: L.class_balanced_loss(z, y, WEIGHT, phi=1.0),
    "lq": lambda z, y, f, w: L.lq_loss(z, y),
    "nenum": lambda z, y, f, w: L.nenum_loss(z, y, WEIGHT, WEIGHT / 3, offset="none"),
    "center": lambda z, y, f, w: L.center_loss(z, y, f, w),
    "logit_adjusted": lambda z, y, f, w: L.logit_adjusted_loss(z, y, LOG_PRIOR),
    "vs": lambda z, y, f, w: L.vs_loss(z, y, LOG_PRIOR),
    "ldam": lambda z, y, f, w: L.ldam_loss(z, y, WEIGHT / 4),
    "kps": lambda z, y, f, w: L.kps_loss(z, y, 1 + WEIGHT, WEIGHT / 4),
    "isda_diagonal": lambda z, y, f, w: L.isda_loss(z, y, w, SIGMA),
    "large_margin": lambda z, y, f, w: L.large_margin_loss(z, y, f, w, margin=3),
    "combined": lambda z, y, f, w: L.combined_loss(
        z, y, WEIGHT, offset=z.detach().sigmoid(), scatter=(w @ w.T).detach()[y]
    ),
    "lpl": lambda z, y, f, w: L.lpl_loss(z, y, 2 * WEIGHT - 1),
    "lpl_steps": lambda z, y, f, w: L.lpl_loss(z, y, 2 * WEIGHT - 1, step_size=0.5, steps=6),
}


def inputs(seed=0, n=7):
    logits, target, extras = batch(n, 5, d=6, seed=seed)
    return logits, target, extras["features"], extras["head_weight"]


@pytest.mark.parametrize("name", EQUATIONS)
def test_vmap_over_batches_is_a_loop(name):
    stacked = [torch.stack(parts) for parts in zip(*(inputs(seed) for seed in range(3)), strict=True)]
    mapped = torch.vmap(EQUATIONS[name])(*stacked)
    torch.testing.assert_close(mapped, torch.stack([EQUATIONS[name](*inputs(seed)) for seed in range(3)]))


@pytest.mark.parametrize("name", [n for n in EQUATIONS if not n.startswith("lpl")])
def test_per_sample_gradients(name):
    """vmap of grad over samples, as for influence functions or private training."""
    z, y, f, w = inputs()

    def one(z, y, f, w):
        return EQUATIONS[name](z.unsqueeze(0), y.unsqueeze(0), f.unsqueeze(0), w)

    gradients = torch.vmap(torch.func.grad(one), in_dims=(0, 0, 0, None))(z, y, f, w)
    for i in range(3):
        alone = torch.func.grad(one)(z[i], y[i], f[i], w)
        torch.testing.assert_close(gradients[i], alone)


@pytest.mark.parametrize("name", [n for n in EQUATIONS if not n.startswith(("lpl", "combined"))])
def test_gradients_of_the_equations(name):
    z, y, f, w = inputs()
    for leaf in (z, f, w):
        leaf.requires_grad_()
    assert torch.autograd.gradcheck(lambda z, f, w: EQUATIONS[name](z, y, f, w), (z, f, w))


def test_gradient_runs_through_offset_and_scatter():
    """Meta-learning needs the derivative of Eq 20 by h and DS."""
    z, y, _, _ = inputs()
    h = torch.rand(7, 5, dtype=torch.float64, requires_grad=True)
    scatter = torch.rand(7, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda h, s: L.combined_loss(z, y, WEIGHT, offset=h, scatter=s), (h, scatter)
    )


@pytest.mark.parametrize(
    "name", ["vs", *(pytest.param(n, marks=pytest.mark.slow) for n in EQUATIONS if n != "vs")]
)
def test_compiles_to_one_graph(name):
    values = inputs()
    values[0].requires_grad_()
    compiled = torch.compile(EQUATIONS[name], backend="aot_eager", fullgraph=True)
    value = compiled(*values)
    torch.testing.assert_close(value, EQUATIONS[name](*values))
    (gradient,) = torch.autograd.grad(value, values[0])
    torch.testing.assert_close(gradient, torch.autograd.grad(EQUATIONS[name](*values), values[0])[0])
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # the compiler's own
def test_compiles_with_the_default_backend():
    values = inputs()
    for name in ("focal", "nenum", "kps"):
        torch.testing.assert_close(torch.compile(EQUATIONS[name])(*values), EQUATIONS[name](*values))
    torch._dynamo.reset()


def test_statistics_agree_with_theory_and_merge():
    logits, target, extras = batch(200, 5, seed=4)
    weight = extras["head_weight"]
    theory = ScatterStatistics.empty(5)
    theory.update(logits.numpy(), target.numpy())
    parts = [ClassStatistics(5) for _ in range(2)]
    for number, rows in enumerate(torch.arange(200).split(33)):
        surprise = F.cross_entropy(logits[rows], target[rows], reduction="none")
        parts[number % 2].update(logits[rows], target[rows], surprise)
    for part in parts:
        part.flush()
    merged = ClassStatistics(5)
    for name in ("count", "probability", "total", "square"):
        setattr(merged, name, getattr(parts[0], name) + getattr(parts[1], name))
    rows = merged.scatter_rows(torch.arange(5), weight)
    np.testing.assert_allclose(rows, theory.scatter(weight.numpy()), rtol=1e-8)
    np.testing.assert_allclose(merged.mean_scatter(weight), theory.mean_scatter(weight.numpy()), rtol=1e-8)
    p = F.softmax(logits, 1).gather(1, target[:, None])[:, 0]
    mean = torch.stack([p[target == c].mean() for c in range(5)])
    torch.testing.assert_close(merged.mean_probability(torch.zeros(5).double()), mean)
    merged.reset()
    assert not any(getattr(merged, name).any() for name in ("count", "probability", "total", "square"))


@pytest.mark.parametrize(("samples", "classes"), [(1500, 730), (900, 400), (300, 1000)])
def test_statistics_of_a_large_batch_agree_with_theory(samples, classes):
    """In several parts; sorted by class where the sums are larger than a cache and classes repeat."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(samples, classes, generator=generator)
    target = torch.randint(classes, (samples,), generator=generator)
    ours, theory = ClassStatistics(classes), ScatterStatistics.empty(classes)
    for _ in range(2):
        ours.update(logits, target, F.cross_entropy(logits, target, reduction="none"))
        theory.update(logits.numpy().astype(np.float64), target.numpy())
    ours.flush()
    assert torch.equal(ours.count, 2.0 * torch.bincount(target, minlength=classes))
    head = torch.randn(classes, 4, generator=generator)
    np.testing.assert_allclose(
        ours.mean_scatter(head), theory.mean_scatter(head.numpy()), rtol=1e-5, atol=1e-9
    )


@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_statistics_keep_their_digits(offset):
    """A long epoch and a large margin: sums in float32 read a variance of 24.6, or nothing at all."""
    generator = torch.Generator().manual_seed(0)
    statistics = ClassStatistics(2)
    statistics.count[0] = 2**24  # as if an epoch were long under way
    statistics.total[0, 1], statistics.square[0, 1] = 2**24 * offset, 2**24 * (offset**2 + 9)
    for _ in range(50):
        z = torch.zeros(1000, 2)
        z[:, 0] = offset + 3 * torch.randn(1000, generator=generator)
        statistics.update(z, torch.zeros(1000, dtype=torch.int64), torch.full((1000,), 0.5))
    statistics.flush()
    assert statistics.count[0] == 2**24 + 50_000
    (scatter,) = statistics.scatter_rows(torch.tensor([0]), torch.tensor([[1.0], [0.0]]))[0, 1:].tolist()
    assert scatter == pytest.approx(9, rel=1e-3)


def test_an_epoch_with_a_large_margin_has_the_right_variance():
    """Forty batches of logits far apart, in float32 as networks give them."""
    generator = torch.Generator().manual_seed(0)
    loss = make("nenum", 3, [100, 100, 100], beta=0.0, offset="none")
    loss.start_epoch(0, 2)
    head = torch.eye(3)
    for _ in range(40):
        target = torch.arange(90) % 3
        z = torch.zeros(90, 3)
        z[torch.arange(90), target] = 1000.0 + torch.tensor([1.0, 2.0, 4.0])[target] * torch.randn(
            90, generator=generator
        )
        loss(z, target, head_weight=head)
    loss.end_epoch()
    expected = 3 * torch.tensor([1.0, 4.0, 16.0]) / 21
    torch.testing.assert_close(loss.class_factor, expected, rtol=0.1, atol=0.0)


def test_nenum_learns_scatter_from_an_epoch():
    logits, target, extras = batch(300, 5, seed=4)
    loss = make("nenum", 5, COUNTS, beta=0.99).double()
    loss.start_epoch(0, 2)
    for rows in torch.arange(300).split(50):
        call(
            loss,
            logits[rows],
            target[rows],
            {k: v if k == "head_weight" else v[rows] for k, v in extras.items()},
        )
    loss.end_epoch()
    theory = ScatterStatistics.empty(5)
    theory.update(logits.numpy(), target.numpy())
    scatter = theory.mean_scatter(extras["head_weight"].numpy())
    expected = class_factor(scatter, effective_number_weights(COUNTS, 0.99))
    np.testing.assert_allclose(loss.class_factor, expected, rtol=1e-6)
    assert loss.class_factor.sum() == pytest.approx(5)


def test_nenum_with_equal_scatter_stays_class_balanced():
    """Logits that differ by the same spread for every pair leave the factor at the class-balanced weights."""
    loss = make("nenum", 2, [90, 10], beta=0.99, r=0.0, scatter=True).double()
    spread = torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64)
    logits = torch.zeros(6, 2, dtype=torch.float64)
    logits[:3, 0], logits[3:, 1] = spread, spread
    target = torch.tensor([0, 0, 0, 1, 1, 1])
    head = torch.eye(2, dtype=torch.float64)
    loss(logits, target, head_weight=head)
    loss.end_epoch()
    balanced = make("classbalanced", 2, [90, 10], beta=0.99).double()
    torch.testing.assert_close(loss(logits, target, head_weight=head), balanced(logits, target))


def test_evaluation_gathers_nothing():
    for name in ("nenum", "combined", "isda", "center"):
        loss = make(name, 5).double()
        call(loss, *batch(20, 5))
        loss.eval()
        before = copy.deepcopy(loss.state_dict())
        call(loss, *batch(20, 5, seed=9))
        loss.train()
        loss.gathers = False
        call(loss, *batch(20, 5, seed=9))
        for key, value in loss.state_dict().items():
            torch.testing.assert_close(value, before[key])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_statistics_of_a_large_batch_leave_its_logits_as_they_are(dtype: torch.dtype) -> None:
    logits, target = torch.randn(700, 100, dtype=dtype), torch.randint(100, (700,))
    before = logits.clone()
    ClassStatistics(100).update(logits, target, torch.zeros(700, dtype=dtype))
    assert torch.equal(logits, before)


def test_an_epoch_of_empty_batches_changes_nothing():
    loss = make("nenum", 3, [30, 20, 10])
    before = loss.class_factor.clone()
    loss.start_epoch(0, 1)
    loss(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), head_weight=torch.eye(3))
    loss.end_epoch()
    torch.testing.assert_close(loss.class_factor, before)
