"""The equations against independent formulas (numpy in float64, torch's own losses) and their limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_expit, log_softmax, softmax
from torch.nn import functional as F

from equipoise.losses import LPLLoss
from equipoise.losses import functional as L
from loss_cases import batch, call, counts_of, make

COUNTS = counts_of(5)
PRIOR = COUNTS / COUNTS.sum()


@pytest.fixture
def data():
    return batch(40, 5, seed=7)


def each(name, data, **params):
    logits, target, extras = data
    return call(make(name, 5, COUNTS, reduction="none", **params).double(), logits, target, extras).numpy()


def own(logits, target):
    """−log p(y|x) by scipy."""
    return -log_softmax(logits.numpy(), axis=1)[np.arange(len(target)), target.numpy()]


def test_cross_entropy_and_weights_are_torch_s(data):
    logits, target, _ = data
    weight = torch.tensor([0.5, 1, 2, 3, 4], dtype=torch.float64)
    np.testing.assert_allclose(each("crossentropy", data), F.cross_entropy(logits, target, reduction="none"))
    mine = L.cross_entropy(logits, target, class_weight=weight)
    torch.testing.assert_close(mine, F.cross_entropy(logits, target, weight=weight))
    mine = each("weightedcrossentropy", data, class_weight=weight.numpy())
    np.testing.assert_allclose(mine, weight.numpy()[target] * own(logits, target))


@pytest.mark.parametrize("phi", [0.0, 0.3, 1.0, 2.0])
def test_focal(data, phi):
    logits, target, _ = data
    alpha = np.linspace(0.2, 1, 5)
    p = np.exp(-own(logits, target))
    expected = alpha[target] * (1 - p) ** phi * own(logits, target)
    np.testing.assert_allclose(each("focal", data, phi=phi, alpha=alpha), expected, rtol=1e-6)


def test_binary_focal_in_both_forms(data):
    """One logit through the sigmoid is two through the softmax, and equals the formula in logs."""
    z = torch.linspace(-30, 30, 41, dtype=torch.float64)
    y = torch.arange(41) % 2
    s = np.where(y == 1, 1, -1) * z.numpy()
    alpha = np.where(y == 1, 0.25, 0.75)
    expected = -alpha * np.exp(2 * log_expit(-s)) * log_expit(s)
    mine = L.sigmoid_focal_loss(z, y, phi=2.0, alpha=0.25, reduction="none")
    np.testing.assert_allclose(mine, expected, rtol=1e-12)
    two = torch.stack([torch.zeros_like(z), z], dim=1)
    weights = torch.tensor([0.75, 0.25], dtype=torch.float64)
    softmax_form = L.focal_loss(two, y, phi=2.0, alpha=weights, reduction="none")
    torch.testing.assert_close(softmax_form, mine, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_sigmoid_focal_at_the_extremes(dtype):
    z = torch.tensor([-1e4, 1e4, -1e4, 1e4], dtype=dtype, requires_grad=True)
    y = torch.tensor([1, 1, 0, 0])
    loss = L.sigmoid_focal_loss(z, y, reduction="none")
    loss.sum().backward()
    expected = abs(float(z[0].detach()))
    assert loss.tolist() == [expected, 0, 0, expected]
    assert z.grad.tolist() == [-1, 0, 0, 1]


def test_class_balanced(data):
    logits, target, _ = data
    beta = 0.99
    weight = (1 - beta) / (1 - beta ** COUNTS.astype(float))
    weight *= 5 / weight.sum()
    np.testing.assert_allclose(
        each("classbalanced", data, beta=beta), weight[target] * own(logits, target), rtol=1e-6
    )
    p = np.exp(-own(logits, target))
    expected = weight[target] * (1 - p) ** 0.5 * own(logits, target)
    np.testing.assert_allclose(each("classbalanced", data, beta=beta, phi=0.5), expected, rtol=1e-6)
    np.testing.assert_allclose(each("classbalanced", data, beta=0.0), own(logits, target), rtol=1e-6)
    inverse = 1 / COUNTS * 5 / (1 / COUNTS).sum()
    np.testing.assert_allclose(
        each("classbalanced", data, beta=1.0), inverse[target] * own(logits, target), rtol=1e-6
    )


def test_logit_adjustment_and_vector_scaling(data):
    logits, target, _ = data
    moved = logits.numpy() + 0.7 * np.log(PRIOR)
    np.testing.assert_allclose(
        each("logitadjusted", data, tau=0.7), own(torch.tensor(moved), target), rtol=1e-6
    )
    scaled = logits.numpy() * (COUNTS / COUNTS.max()) ** 0.3 + 0.7 * np.log(PRIOR)
    np.testing.assert_allclose(
        each("vs", data, gamma=0.3, tau=0.7), own(torch.tensor(scaled), target), rtol=1e-6
    )
    np.testing.assert_allclose(each("vs", data, gamma=0, tau=0), own(logits, target), rtol=1e-6)
    np.testing.assert_allclose(
        each("vs", data, gamma=0, tau=0.7), each("logitadjusted", data, tau=0.7), rtol=1e-6
    )


def test_binary_vector_scaling_is_the_multiclass_one():
    logits, target, _ = batch(30, 2, seed=1)
    log_prior = torch.tensor([20 / 21, 1 / 21], dtype=torch.float64).log()
    wide = L.vs_loss(logits, target, log_prior, gamma=0.3, tau=1.5, reduction="none")
    narrow = L.binary_vs_loss(logits, target, 20.0, gamma=0.3, tau=1.5, reduction="none")
    torch.testing.assert_close(wide, narrow)
    plain = L.binary_vs_loss(logits, target, 20.0, gamma=0.0, tau=0.0)
    torch.testing.assert_close(plain, F.cross_entropy(logits, target))


def test_ldam_and_kps(data):
    logits, target, _ = data
    rows = np.arange(40)
    margin = 0.4 * (COUNTS / COUNTS.min()) ** -0.25
    moved = logits.numpy().copy()
    moved[rows, target] -= 7 * margin[target]
    np.testing.assert_allclose(
        each("ldam", data, max_margin=0.4, scale=7.0), own(torch.tensor(moved), target), rtol=1e-6
    )
    np.testing.assert_allclose(each("ldam", data, max_margin=0.0), own(logits, target), rtol=1e-6)
    scales = np.log(50 * COUNTS / COUNTS.min()) / np.log(50)
    margins = 0.5 * np.log(50 * COUNTS.max() / COUNTS) / np.log(50 * COUNTS.max() / COUNTS.min())
    moved = logits.numpy() * scales
    moved[rows, target] -= 15 * margins[target]
    np.testing.assert_allclose(each("kps", data), own(torch.tensor(moved), target), rtol=1e-6)


def test_kps_margins_mirror_the_scales_in_an_exponential_profile():
    counts = 1000 * 100.0 ** (-np.arange(6) / 5)
    loss = make("kps", 6, counts)
    mirrored = loss.class_scales.flip(0)
    torch.testing.assert_close(loss.margins, 0.5 * mirrored / mirrored.max())


def test_lq(data):
    logits, target, _ = data
    p = np.exp(-own(logits, target))
    np.testing.assert_allclose(each("lq", data, q=0.4), (1 - p**0.4) / 0.4)
    np.testing.assert_allclose(each("lq", data, q=0.0), own(logits, target))
    np.testing.assert_allclose(each("lq", data, q=1e-9), own(logits, target), rtol=1e-6)
    np.testing.assert_allclose(each("lq", data, q=1.0), 1 - p)


def test_nenum_weights_and_gradient(data):
    logits, target, extras = data
    loss = make("nenum", 5, COUNTS, reduction="none", beta=0.999).double()
    loss.mean_probability.copy_(torch.tensor([0.5, 0.6, 0.7, 0.3, 0.2]))
    loss.class_factor.copy_(torch.tensor([0.5, 1.5, 1.0, 1.2, 0.8]))
    p = np.exp(-own(logits, target))
    mean = loss.mean_probability.numpy()[target]
    g = np.where(p >= 0.2, (1 - p) ** 2, (1 - mean) ** 2)
    weight = loss.class_factor.numpy()[target] * g
    logits = logits.clone().requires_grad_()
    value = call(loss, logits, target, extras)
    np.testing.assert_allclose(value.detach(), weight * own(logits.detach(), target), rtol=1e-6)
    value.sum().backward()
    onehot = np.eye(5)[target]
    expected = weight[:, None] * (softmax(logits.detach().numpy(), axis=1) - onehot)
    np.testing.assert_allclose(logits.grad, expected, rtol=1e-6, atol=1e-12)


def test_nenum_ablations_and_limits(data):
    logits, target, _ = data
    p = np.exp(-own(logits, target))
    cb = each("classbalanced", data, beta=0.999)
    np.testing.assert_allclose(each("nenum", data, beta=0.999, r=0.0), cb, rtol=1e-6)
    np.testing.assert_allclose(each("nenum", data, beta=0.999, offset="none"), cb, rtol=1e-6)
    np.testing.assert_allclose(each("nenum", data, beta=0.999, offset="focal"), cb * (1 - p) ** 2, rtol=1e-5)
    np.testing.assert_allclose(
        each("nenum", data, beta=0.999, offset="inverse"), cb / np.maximum(p, 1e-4), rtol=1e-5
    )
    np.testing.assert_allclose(
        each("nenum", data, beta=0.999, scatter=False), each("nenum", data, beta=0.999), rtol=1e-12
    )


def test_lpl_moves_along_the_class_gradient(data):
    logits, target, _ = data
    loss = make("lpl", 5, COUNTS, reduction="none").double()
    z, y, bounds = logits.numpy(), target.numpy(), loss.bounds.numpy()
    gradient = softmax(z, axis=1) - np.eye(5)[y]
    shift = np.zeros_like(z)
    for c in range(5):
        mean = gradient[y == c].mean(axis=0)
        shift[y == c] = bounds[c] * mean / np.linalg.norm(mean)
    leaf = logits.clone().requires_grad_()
    value = loss(leaf, target)
    np.testing.assert_allclose(value.detach(), own(torch.tensor(z + shift), target), rtol=1e-6)
    value.sum().backward()
    np.testing.assert_allclose(leaf.grad, softmax(z + shift, axis=1) - np.eye(5)[y], atol=1e-7)
    assert (bounds < 0).any()
    plain = own(logits, target)
    for c in range(5):  # the tail's loss is raised, the head's lowered
        change = (value.detach().numpy() - plain)[y == c].mean()
        assert change * bounds[c] > 0 or bounds[c] == 0


def test_lpl_steps_stay_within_the_bound(data):
    logits, target, _ = data
    bounds = torch.tensor([-1.0, 0.0, 0.25, 1.0, 2.5], dtype=torch.float64)
    shift = L.lpl_perturbation(logits, target, bounds, step_size=0.2)
    length = shift.norm(dim=1)
    assert (length <= bounds.abs()[target] + 1e-9).all()
    single = L.lpl_perturbation(logits, target, bounds, step_size=5.0)
    torch.testing.assert_close(single, L.lpl_perturbation(logits, target, bounds))
    few = L.lpl_perturbation(logits[:3], target[:3], bounds)  # more classes than samples
    assert torch.isfinite(few).all()
    torch.testing.assert_close(few.norm(dim=1), bounds.abs()[target[:3]])


def test_lpl_of_balanced_data_augments_what_is_predicted_badly(data):
    """Li et al. 2022 on standard data: the sign is that of the mean prediction beside the average over classes."""
    logits, y = data[0].detach(), data[1]
    p = torch.softmax(logits, 1)[torch.arange(len(y)), y]
    classes = logits.shape[1]
    means = torch.stack([p[y == c].mean() for c in range(classes)])
    short = means.mean() - means
    bounds = L.prediction_bounds(logits, y, bound=0.4, spread=0.1)
    assert torch.equal(bounds.sign(), short.sign())
    for side in (short > 0, short < 0):
        torch.testing.assert_close(
            bounds[side].abs(), 0.4 + 0.1 * (short / short[side].abs().max())[side].abs()
        )
    loss = LPLLoss([50] * classes, split="prediction", bound=0.4, spread=0.1).double()
    torch.testing.assert_close(loss(logits, y), L.lpl_loss(logits, y, bounds))
    steps = LPLLoss([50] * classes, split="prediction", bound=0.4, spread=0.1, step_size=0.25).double()
    assert steps.steps == 2
    absent = L.prediction_bounds(logits[y != 0], y[y != 0], bound=0.4, spread=0.1)
    assert absent[0] == 0
    assert (absent[1:] != 0).all()


def test_isda_against_explicit_covariances(data):
    logits, target, extras = data
    f, w = extras["features"].numpy(), extras["head_weight"].numpy()
    for kind in ("full", "diagonal"):
        loss = make("isda", 5, COUNTS, reduction="none", strength=0.3, covariance=kind).double()
        order = torch.arange(40)
        for rows in (order[:11], order[11:]):  # the second batch merges with the first
            part = {"features": extras["features"][rows], "head_weight": extras["head_weight"]}
            call(loss, logits[rows], target[rows], part)
        value = call(loss.eval(), logits, target, extras).numpy()
        moved = logits.numpy().copy()
        for i, y in enumerate(target.tolist()):
            sigma = np.cov(f[target == y].T, bias=True)
            sigma = np.diag(np.diag(sigma)) if kind == "diagonal" else sigma
            for c in range(5):
                moved[i, c] += 0.15 * (w[c] - w[y]) @ sigma @ (w[c] - w[y])
        np.testing.assert_allclose(value, own(torch.tensor(moved), target), rtol=1e-6)


def test_isda_grows_with_the_epoch(data):
    logits, target, extras = data
    loss = make("isda", 5, COUNTS, strength=0.5).double()
    call(loss, logits, target, extras)
    loss.eval()
    values = []
    for epoch in (0, 4, 9):
        loss.start_epoch(epoch, 10)
        values.append(float(call(loss, logits, target, extras)))
    assert F.cross_entropy(logits, target) < values[0] < values[1] < values[2]


def test_combined_loss_is_equation_20(data):
    logits, target, _ = data
    rng = np.random.default_rng(0)
    h, scatter, weight = rng.random((40, 5)), rng.random((5, 5)), rng.random(5)
    moved = logits.numpy() + 0.5 * h + 2.0 * scatter[target]
    rows = np.arange(40)
    moved[rows, target] = logits.numpy()[rows, target]
    mine = L.combined_loss(
        logits,
        target,
        torch.tensor(weight),
        offset=torch.tensor(h),
        scatter=torch.tensor(scatter)[target],
        tau1=0.5,
        tau2=2.0,
        reduction="none",
    )
    np.testing.assert_allclose(mine, weight[target] * own(torch.tensor(moved), target))


def test_combined_loss_expands_to_equation_22(data):
    """To first order the perturbation adds Σ_{z≠y} q_z (τ₁ h + τ₂ DS)."""
    logits, target, _ = data
    generator = torch.Generator().manual_seed(0)
    h = torch.rand(40, 5, generator=generator, dtype=torch.float64)
    scatter = torch.rand(5, 5, generator=generator, dtype=torch.float64)
    ones = torch.ones(5, dtype=torch.float64)
    small = 1e-5
    change = L.combined_loss(
        logits, target, ones, offset=h, scatter=scatter[target], tau1=small, tau2=small, reduction="none"
    ) - F.cross_entropy(logits, target, reduction="none")
    q = logits.softmax(1).scatter(1, target[:, None], 0.0)
    torch.testing.assert_close(change / small, (q * (h + scatter[target])).sum(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("margin", [1, 2, 3, 4])
def test_large_margin_against_angles(data, margin):
    logits, target, extras = data
    loss = make("largemargin", 5, COUNTS, margin=margin, reduction="none").double()
    f, w = extras["features"].numpy(), extras["head_weight"].numpy()[target]
    size = np.linalg.norm(f, axis=1) * np.linalg.norm(w, axis=1)
    theta = np.arccos((f * w).sum(1) / size)
    k = np.floor(margin * theta / np.pi)
    psi = (-1) ** k * np.cos(margin * theta) - 2 * k
    moved = logits.numpy().copy()
    moved[np.arange(40), target] = size * psi
    np.testing.assert_allclose(
        call(loss, logits, target, extras), own(torch.tensor(moved), target), rtol=1e-6, atol=1e-9
    )
    if margin == 1:
        np.testing.assert_allclose(call(loss, logits, target, extras), own(logits, target))


def test_large_margin_forms(data):
    logits, target, _ = data
    plain = F.cross_entropy(logits, target)
    additive = call(make("largemargin", 5, COUNTS, margin=0.2, form="additive").double(), *data)
    assert additive > plain
    blended = make("largemargin", 5, COUNTS, margin=2, blend=1e9).double()
    blended.start_epoch(0, 10)
    torch.testing.assert_close(call(blended, *data), plain)
    with pytest.raises(TypeError, match=r"margin must be an integer, got 0\.2"):
        make("largemargin", 5, margin=0.2)


def test_center_loss_follows_its_classes(data):
    logits, target, extras = data
    loss = make("center", 5, COUNTS, strength=0.1, rate=1.0).double()
    for _ in range(400):
        value = call(loss, logits, target, extras)
    f = extras["features"]
    means = torch.stack([f[target == c].mean(0) for c in range(5)])
    torch.testing.assert_close(loss.centers, means)
    distance = (f - means[target]).square().sum(1).mean()
    torch.testing.assert_close(value, F.cross_entropy(logits, target) + 0.1 * distance)


def test_disturbed_labels_are_as_many_as_asked_for():
    loss = make("disturblabel", 4, [10, 10, 10, 10], rate=0.3, reduction="none")
    sure = torch.eye(4)[torch.arange(4000) % 4] * 50
    target = torch.arange(4000) % 4
    first, second = loss(sure, target), loss(sure, target)
    moved = (first > 1).double().mean()
    assert moved == pytest.approx(0.3 * 3 / 4, abs=4 * np.sqrt(0.225 * 0.775 / 4000))
    assert not torch.equal(first, second)
    again = make("disturblabel", 4, [10, 10, 10, 10], rate=0.3, reduction="none")
    torch.testing.assert_close(again(sure, target), first)
    assert (loss.eval()(sure, target) < 1).all()


def test_implied_priors():
    prior = np.array([0.8, 0.15, 0.05])
    counts = 1000 * prior
    uniform = np.full(3, 1 / 3)
    np.testing.assert_allclose(make("logitadjusted", 3, counts).implied_prior(prior), uniform)
    np.testing.assert_allclose(make("logitadjusted", 3, counts, tau=0.0).implied_prior(prior), prior)
    np.testing.assert_allclose(make("classbalanced", 3, counts, beta=1.0).implied_prior(prior), uniform)
    np.testing.assert_allclose(make("weightedcrossentropy", 3, counts).implied_prior(prior), uniform)
    np.testing.assert_allclose(make("focal", 3, counts).implied_prior(prior), prior)
    alpha = make("focal", 2, [9, 1], alpha=0.9)
    np.testing.assert_allclose(alpha.implied_prior([0.9, 0.1]), [0.5, 0.5])
    disturbed = make("disturblabel", 3, counts, rate=0.3).implied_prior(prior)
    np.testing.assert_allclose(disturbed, 0.7 * prior + 0.1)
