"""What every loss must do; classes are found, not listed."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

import equipoise.losses as room
from equipoise.losses import available_losses, get_loss
from loss_cases import NAMES, batch, call, counts_of, make

# Parts of these are constants of the gradient on purpose; finite differences would see them move.
DETACHED = {"nenum", "lpl"}


WARNED = pytest.mark.filterwarnings(
    "ignore:.*Loss wants logits:UserWarning"
)  # of LDAM and KPS: more than s·cos


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


def test_every_loss_is_exported_and_documented(name):
    cls = available_losses()[name]
    assert getattr(room, cls.__name__) is cls
    assert ">>>" in cls.__doc__


@WARNED
@pytest.mark.parametrize("n_classes", [1, 2, 7])
def test_finite_with_extreme_logits(name, n_classes):
    loss = make(name, n_classes)
    _, target, extras = batch(6, n_classes, dtype=torch.float32)
    signs = torch.randn(6, n_classes, generator=torch.Generator().manual_seed(1)).sign()
    logits = (1e4 * signs).requires_grad_()
    value = call(loss, logits, target, extras)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()
    exact = call(make(name, n_classes).double(), logits.detach().double(), target, _double(extras))
    assert float(value.detach()) == pytest.approx(float(exact), rel=1e-5, abs=1e-4)


@WARNED
@pytest.mark.parametrize("sign", [1, -1])
def test_the_hardest_sample_is_not_free(name, sign):
    """At a margin of −2·10⁴ every loss but the bounded one is of that order, and its gradient does not
    vanish.
    """
    loss = make(name, 2, counts=[50, 50], **({"q": 1e-6} if name == "lq" else {}))
    target = torch.tensor([0 if sign < 0 else 1])
    logits = torch.tensor([[1e4 * sign, -1e4 * sign]], requires_grad=True)
    extras = {"features": torch.zeros(1, 3), "head_weight": torch.zeros(2, 3)}
    value = call(loss, logits, target, extras)
    value.backward()
    assert value > 4e3
    assert logits.grad.abs().max() > 0.2


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_under_autocast_equals_float64(name, dtype):
    logits, target, extras = batch(32, 6, seed=3)
    half = logits.to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = call(make(name, 6), half, target, {k: v.to(dtype) for k, v in extras.items()})
    value.backward()
    wide = half.detach().double().requires_grad_()
    exact = call(make(name, 6).double(), wide, target, {k: v.to(dtype).double() for k, v in extras.items()})
    exact.backward()
    value, exact = value.detach(), exact.detach()
    assert value.dtype == torch.float32
    assert half.grad.dtype == dtype
    assert float(value) == pytest.approx(float(exact), rel=2e-5)
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(half.grad.double(), wide.grad, rtol=2 * eps, atol=1e-3 * eps + 1e-7)


@pytest.mark.parametrize("n_classes", [1, 3, 100, 10_000])
def test_number_of_classes_and_batch_of_one(name, n_classes):
    loss = make(name, n_classes)
    logits, target, extras = batch(1, n_classes, dtype=torch.float32)
    logits.requires_grad_()
    value = call(loss, logits, target, extras)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


def test_classes_absent_from_the_batch_or_from_the_data(name):
    counts = np.array([100, 0, 10, 5])
    logits, _, extras = batch(8, 4, dtype=torch.float32)
    logits.requires_grad_()
    target = torch.tensor([0, 0, 0, 0, 2, 2, 0, 0])
    loss = make(name, 4, counts=counts, empty_classes="floor")
    for hook in ("start_epoch", "end_epoch"):
        if hasattr(loss, hook):
            getattr(loss, hook)(*((0, 2) if hook == "start_epoch" else ()))
        value = call(loss, logits, target, extras)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(logits.grad).all()


def test_gradcheck(name):
    if name in DETACHED:
        pytest.skip(
            "weights are constants of the gradient; checked against a formula in losses/test_formulas.py"
        )
    loss = make(name, 4).double().eval()
    logits, target, extras = batch(5, 4, seed=2)
    if name in ("isda", "combined"):  # the covariances of the batch
        call(loss.train(), logits, target, extras)
        loss.eval()
    names = sorted(loss.requires)
    inputs = [logits.requires_grad_(), *(extras[k].requires_grad_() for k in names)]

    def value(z, *rest):
        return loss(z, target, **dict(zip(names, rest, strict=True)))

    assert torch.autograd.gradcheck(value, inputs)


def test_label_permutation_changes_nothing(name):
    counts = counts_of(6)
    logits, target, extras = batch(20, 6)
    order = torch.tensor([3, 5, 0, 1, 4, 2])
    place = order.argsort()
    moved = {"features": extras["features"], "head_weight": extras["head_weight"][order]}
    one, two = make(name, 6, counts=counts).double(), make(name, 6, counts=counts[order.numpy()]).double()
    for _ in range(2):  # the second time with statistics of the first
        for loss in (one, two):
            if hasattr(loss, "start_epoch"):
                loss.start_epoch(1, 3)
        first = call(one, logits, target, extras)
        second = call(two, logits[:, order], place[target], moved)
        torch.testing.assert_close(first, second)
        for loss in (one, two):
            if hasattr(loss, "end_epoch"):
                loss.end_epoch()


def test_row_order_changes_nothing(name):
    logits, target, extras = batch(20, 6)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(0))
    shuffled = {**extras, "features": extras["features"][order]}
    each = call(make(name, 6, reduction="none").double(), logits, target, extras)
    again = call(make(name, 6, reduction="none").double(), logits[order], target[order], shuffled)
    torch.testing.assert_close(each[order], again)


def test_reductions_and_sample_weight(name):
    logits, target, extras = batch(12, 3)
    weight = torch.rand(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    each = call(make(name, 3, reduction="none").double(), logits, target, extras)
    assert each.shape == (12,)
    total = call(make(name, 3, reduction="sum").double(), logits, target, extras)
    torch.testing.assert_close(total, each.sum())
    mean = call(make(name, 3).double(), logits, target, extras, sample_weight=weight)
    torch.testing.assert_close(mean, (weight * each).sum() / weight.sum())


def test_ignored_rows_leave_no_trace(name):
    logits, target, extras = batch(12, 3)
    keep = torch.arange(12) % 3 != 0
    masked = torch.where(keep, target, torch.tensor(-100))
    logits.requires_grad_()
    value = call(make(name, 3).double(), logits, masked, extras)
    value.backward()
    assert (logits.grad[~keep] == 0).all()
    rest = {**extras, "features": extras["features"][keep]}
    torch.testing.assert_close(value, call(make(name, 3).double(), logits[keep], target[keep], rest))
    each = call(make(name, 3, reduction="none").double(), logits, masked, extras)
    assert (each[~keep] == 0).all()
    nothing = call(make(name, 3).double(), logits, torch.full((12,), -100), extras)
    assert nothing == 0


@pytest.mark.parametrize(("wrong", "ignored"), [(3, -100), (-1, -100), (-100, 255)])
def test_a_batch_with_a_wrong_target_is_refused_and_leaves_no_trace(name, wrong, ignored):
    loss, twin = (make(name, 3, ignore_index=ignored).double() for _ in range(2))
    logits, target, extras = batch(12, 3)
    bad = target.clone()
    bad[4] = wrong
    for part in (loss, twin):
        part.start_epoch(0, 2)
        call(part, logits, target, extras)
    with pytest.raises(ValueError, match=rf"target must lie in \[0, 3\), got {wrong}"):
        call(loss, logits, bad, extras)
    for part in (loss, twin):
        part.end_epoch()
    for key, value in loss.state_dict().items():
        assert torch.equal(value, twin.state_dict()[key]), key


def test_a_class_can_be_the_ignored_one(name):
    logits, target, extras = batch(12, 3)
    keep = target != 1
    rest = {**extras, "features": extras["features"][keep]}
    value = call(make(name, 3, ignore_index=1).double(), logits, target, extras)
    torch.testing.assert_close(value, call(make(name, 3).double(), logits[keep], target[keep], rest))


def test_more_axes_and_a_single_sample(name):
    loss = make(name, 3, reduction="none").double()
    if loss.requires - {"head_weight"}:
        pytest.skip("features come one a sample")
    logits, target, extras = batch(12, 3)
    each = call(make(name, 3, reduction="none").double(), logits, target, extras)
    image = logits.reshape(2, 2, 3, 3).permute(0, 3, 1, 2)
    torch.testing.assert_close(call(loss, image, target.reshape(2, 2, 3), extras), each.reshape(2, 2, 3))
    single = call(make(name, 3, reduction="none").double(), logits[0], target[0], extras)
    alone = call(make(name, 3, reduction="none").double(), logits[:1], target[:1], extras)
    torch.testing.assert_close(single, alone[0])


def test_soft_labels_at_the_corners_are_hard_labels(name):
    loss = make(name, 4).double()
    logits, target, extras = batch(9, 4)
    soft = torch.nn.functional.one_hot(target, 4).double()
    if not loss.soft_targets:
        with pytest.raises(TypeError, match="class indices"):
            call(loss, logits, soft, extras)
        return
    torch.testing.assert_close(call(loss, logits, soft, extras), call(loss, logits, target, extras))
    half = (soft + soft.roll(1, dims=1)) / 2
    mixed = (call(loss, logits, target, extras) + call(loss, logits, (target + 1) % 4, extras)) / 2
    torch.testing.assert_close(call(loss, logits, half, extras), mixed)


def test_copies_and_saved_state(name):
    loss = make(name, 3)
    logits, target, extras = batch(12, 3, dtype=torch.float32)
    call(loss, logits, target, extras)
    if hasattr(loss, "end_epoch"):
        loss.end_epoch()
    twin = copy.deepcopy(loss)
    fresh = make(name, 3)
    fresh.load_state_dict(loss.state_dict())
    for module in (loss, twin, fresh):
        module.eval()
    value = call(loss, logits, target, extras)
    torch.testing.assert_close(call(twin, logits, target, extras), value)
    torch.testing.assert_close(call(fresh, logits, target, extras), value)
    assert "class_counts" in dict(loss.named_buffers())


@pytest.mark.slow
def test_compiles(name):
    loss = make(name, 3)
    logits, target, extras = batch(12, 3, dtype=torch.float32)
    expected = call(make(name, 3), logits, target, extras)
    compiled = torch.compile(loss, backend="aot_eager")
    torch.testing.assert_close(call(compiled, logits, target, extras), expected)
    torch._dynamo.reset()


def test_implied_prior_is_a_distribution(name):
    prior = np.array([0.7, 0.2, 0.1])
    implied = make(name, 3, counts=[70, 20, 10]).implied_prior(prior)
    assert implied.shape == (3,)
    assert implied.sum() == pytest.approx(1)
    assert (implied > 0).all()


def test_bad_input_is_answered_with_the_value(name):
    logits, target, extras = batch(6, 3)
    loss = make(name, 3).double()
    with pytest.raises(ValueError, match=r"target must lie in \[0, 3\), got 3"):
        call(loss, logits, target.clone().fill_(3), extras)
    with pytest.raises(ValueError, match=r"got -1"):
        call(loss, logits, target.clone().fill_(-1), extras)
    with pytest.raises(ValueError, match="class_counts has 4 classes, but input has 3 columns"):
        call(make(name, 3, counts=[4, 3, 2, 1]).double(), logits, target, extras)
    with pytest.raises(ValueError, match="class_counts must be positive, got 0 for class 1"):
        make(name, 3, counts=[4, 0, 2])
    with pytest.raises(ValueError, match="class_counts must be positive, got -2 for class 2"):
        make(name, 3, counts=[4, 1, -2], empty_classes="floor")
    spoiled = logits.clone()
    spoiled[2, 1] = float("nan")
    with pytest.raises(ValueError, match="input must be finite, got nan in row 2"):
        call(make(name, 3).double(), spoiled, target, extras)
    with pytest.raises(ValueError, match="as many rows"):
        call(loss, logits, target[:4], extras)
    with pytest.raises(ValueError, match="reduction"):
        make(name, 3, reduction="median")
    with pytest.raises(TypeError, match="takes no keyword"):
        loss(logits, target, **{k: extras[k] for k in loss.requires}, nonsense=logits)
    if loss.requires:
        with pytest.raises(TypeError, match="needs the keyword"):
            loss(logits, target)


def test_lookup_by_name():
    assert type(get_loss("Logit-Adjusted", class_counts=[2, 1])).__name__ == "LogitAdjustedLoss"
    assert get_loss("cb", class_counts=[2, 1], beta=0.5).beta == 0.5
    with pytest.raises(ValueError, match=r"'nenum'.*got 'hinge'"):
        get_loss("hinge")
    with pytest.raises(ValueError, match="NENumLoss needs class_counts"):
        get_loss("nenum")


def _double(extras):
    return {name: value.double() for name, value in extras.items()}
