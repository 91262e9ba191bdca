"""Schedule and sampler against closed forms, the memorization test on planted data, the model end to end."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import cdist

from equipoise.generative import (
    DDPM,
    Assigner,
    NoiseSchedule,
    crossing_time,
    memorized_fraction,
    nearest_two,
    sample,
)
from equipoise.generative.monitor import log_spaced, window
from equipoise.networks.unet import PRESETS, UNet


def test_adding_noise_keeps_the_variance_of_a_unit_gaussian():
    schedule = NoiseSchedule()
    x, noise = torch.randn(2, 20_000, 1, generator=torch.Generator().manual_seed(0))
    for t in (1, 300, 1000):
        mixed = schedule.add_noise(x, noise, torch.full((20_000,), t))
        assert mixed.var().item() == pytest.approx(1, abs=0.04)
    kept = torch.cumprod(1 - torch.linspace(1e-4, 2e-2, 1000, dtype=torch.float64), 0)
    assert torch.allclose(schedule.alpha_bar(torch.arange(1, 1001)), kept)


@pytest.mark.parametrize(("stride", "eta"), [(None, None), (100, None), (100, 0.5), (50, 0.0)])
def test_the_exact_score_of_a_gaussian_gives_its_mean_and_covariance(stride, eta):
    """For N(m, S) the best noise prediction is √(1−ᾱ)·(ᾱS + 1−ᾱ)⁻¹(x − √ᾱ m): samples must be N(m, S)."""
    schedule = NoiseSchedule(steps=400, first=2.5e-4, last=5e-2)
    mean = torch.tensor([1.0, -0.5], dtype=torch.float64)
    factor = torch.tensor([[0.8, 0.0], [0.3, 0.4]], dtype=torch.float64)
    covariance = factor @ factor.T

    def exact(x, t):
        kept = schedule.alpha_bar(t)[0]
        blurred = kept * covariance + (1 - kept) * torch.eye(2, dtype=torch.float64)
        score = torch.linalg.solve(blurred, (x.double() - kept.sqrt() * mean).T).T
        return ((1 - kept).sqrt() * score).float()

    n = 4000
    generator = torch.Generator().manual_seed(1)
    drawn = sample(exact, n, (2,), schedule, generator, stride=stride, eta=eta, batch_size=n)
    spread = torch.tensor(np.sqrt(np.diag(covariance.numpy()) / n))
    slack = 4 * spread + (0.03 if stride else 0.01)  # the discretization's own bias, larger for fewer steps
    assert (abs(drawn.double().mean(0) - mean) < slack).all()
    assert np.allclose(np.cov(drawn.numpy().T), covariance.numpy(), atol=0.05)


@pytest.mark.parametrize("eta", [None, 0.0, 0.6, 1.0])
@pytest.mark.parametrize(("t", "previous"), [(900, 860), (300, 260), (60, 20), (400, 399)])
def test_a_step_of_any_length_keeps_the_law_of_a_memorized_image(t, previous, eta):
    """Whoever knows x_0 by heart must go from N(√ᾱ_t x_0, 1−ᾱ_t) to N(√ᾱ_s x_0, 1−ᾱ_s)."""
    schedule = NoiseSchedule()
    image, n = 0.7, 40_000
    noise, fresh = torch.randn(2, n, generator=torch.Generator().manual_seed(0))
    noisy = schedule.add_noise(torch.full((n,), image), noise, torch.full((n,), t))
    stepped = schedule.reverse(noisy, noise, t, previous, fresh, eta)
    kept = schedule.alpha_bar(torch.tensor(previous)).item()
    assert stepped.mean().item() == pytest.approx(image * kept**0.5, abs=4 * ((1 - kept) / n) ** 0.5)
    assert stepped.var().item() == pytest.approx(1 - kept, rel=0.03)


def test_ddim_is_decided_by_the_first_noise_alone():
    schedule, image = NoiseSchedule(steps=50), torch.tensor([0.7, -1.2])

    def memorized(x, t):
        kept = schedule.alpha_bar(t).to(x.dtype)[:, None]
        return (x - kept.sqrt() * image) / (1 - kept).sqrt()

    drawn = [
        sample(memorized, 3, (2,), schedule, torch.Generator().manual_seed(seed), stride=5, eta=0.0)
        for seed in (0, 1)
    ]
    assert torch.allclose(drawn[0], image.expand(3, 2), atol=1e-4)
    generator = torch.Generator().manual_seed(0)
    sample(memorized, 3, (2,), schedule, generator, stride=5, eta=0.0)
    fresh = torch.Generator().manual_seed(0)
    torch.randn(3, 2, generator=fresh)
    assert torch.equal(generator.get_state(), fresh.get_state()), "no noise is drawn on the way"


def test_guidance_moves_a_gaussian_class_away_from_the_whole():
    """With equal covariances (1 + w)·score(class) − w·score(all) is the score of N((1 + w)m − w·m_all, 1)."""
    schedule, means = NoiseSchedule(steps=300, first=3e-4, last=6e-2), torch.tensor([1.0, -0.5, 0.25])

    def exact(x, t, labels):
        kept = schedule.alpha_bar(t).to(x.dtype)[:, None]
        return (1 - kept).sqrt() * (x - kept.sqrt() * means[labels][:, None])

    n = 4000
    drawn = sample(
        exact, n, (1,), schedule, torch.Generator().manual_seed(0),
        labels=torch.zeros(n, dtype=torch.int64), guidance=2.0, null_label=2, batch_size=n,
    )  # fmt: skip
    assert drawn.mean().item() == pytest.approx(3 * 1.0 - 2 * 0.25, abs=0.08)
    assert drawn.std().item() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("preset", sorted(set(PRESETS) - {"paper"}))
@pytest.mark.parametrize("size", [14, 15])
def test_unet_keeps_the_size_and_knows_time_and_class(preset, size):
    network = UNet((1, size, size), preset, n_classes=2).eval()
    torch.nn.init.normal_(network.leave[2].weight)
    x = torch.randn(2, 1, size, size)
    early, late = (network(x, torch.tensor([t, t]), torch.tensor([0, 0])) for t in (1, 900))
    other = network(x, torch.tensor([1, 1]), torch.tensor([1, 1]))
    assert early.shape == x.shape
    assert not torch.allclose(early, late)
    assert not torch.allclose(early, other)
    with pytest.raises(ValueError, match="labels are needed"):
        network(x, torch.tensor([1, 1]))


def test_the_papers_unet_has_its_plan():
    with torch.device("meta"):
        network = UNet((1, 28, 28), "paper")
    blocks = [type(layer).__name__ for layer in network.down]
    assert blocks.count("_Block") == 8, "two a level, four levels"
    assert len(network.up) == 12, "three a level"
    assert sum(hasattr(layer, "attend") and "Attention" in str(layer.attend) for layer in network.down) == 4


def test_neighbors_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(30, 12)), rng.normal(size=(200, 12))
    found = nearest_two(a, b)
    apart = cdist(a.astype(np.float32), b.astype(np.float32))
    order = np.argsort(apart, axis=1)[:, :2]
    assert np.array_equal(found.index, order)
    assert np.allclose(found.distance, np.take_along_axis(apart, order, axis=1), rtol=1e-6)


def test_neighbors_among_many_copies_and_in_a_class_of_two():
    rng = np.random.default_rng(0)
    b = np.repeat(rng.normal(size=(15, 4)), 20, axis=0)
    found = nearest_two(b, b, skip=np.arange(300))
    assert (found.distance == 0).all()
    assert (found.index // 20 == np.arange(300)[:, None] // 20).all()
    alone = nearest_two(
        b[:2], b[:3], skip=[0, 1], sample_labels=[0, 0], training_labels=[0, 0, 1]
    )  # the skipped one and one more
    assert np.isinf(alone.distance[:, 1]).all()


def test_second_neighbor_of_the_same_class():
    b, labels = np.array([[0.0], [0.1], [3.0]]), np.array([0, 1, 0])
    found = nearest_two([[0.01]], b, sample_labels=[0], training_labels=labels)
    assert found.index.tolist() == [[0, 2]]
    with pytest.raises(ValueError, match="fewer than two training images"):
        nearest_two([[0.0]], b, sample_labels=[1], training_labels=labels)


def test_planted_copies_noisy_copies_and_fresh_draws_are_told_apart():
    rng = np.random.default_rng(0)
    training = rng.normal(size=(500, 64))
    exact, fresh = training[:50], rng.normal(size=(50, 64))
    noisy = training[:50] + rng.normal(scale=0.1, size=(50, 64))
    labels = np.repeat(["exact", "noisy", "fresh"], 50)
    found = nearest_two(np.concatenate([exact, noisy, fresh]), training)
    table = memorized_fraction(found.memorized(), labels).set_index("label")
    assert table.loc["exact", "fraction"] == table.loc["noisy", "fraction"] == 1
    assert table.loc["fresh", "fraction"] == 0


def test_fractions_have_honest_intervals():
    flags = np.r_[np.ones(20), np.zeros(80)]
    row = memorized_fraction(flags, np.zeros(100), random_state=1).iloc[0]
    expected = 1.96 * np.sqrt(0.2 * 0.8 / 100)
    assert row["low"] == pytest.approx(0.2 - expected, abs=0.03)
    assert row["high"] == pytest.approx(0.2 + expected, abs=0.03)
    assert np.isnan(memorized_fraction([1], ["a"], ["a", "b"])["fraction"][1])


def test_crossing_times_interpolate_in_log_steps():
    assert crossing_time([1, 10, 100], [0.5, 0.6, 0.7], 1 / 3) == 1
    assert crossing_time([1, 10, 100], [0, 0, 0.1], 1 / 3) == np.inf
    assert crossing_time([1, 100], [0.0, 1.0], 0.25) == pytest.approx(100**0.25)
    with pytest.raises(ValueError, match="increasing"):
        crossing_time([10, 1], [0, 1])
    assert log_spaced(1000, 5)[-1] == 1000


def images(n=36, size=8, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, "rare", "common")
    spread = np.where(y == "rare", 1.5, 0.5)[:, None, None]
    return rng.normal(size=(n, size, size)) * spread, y


def small(**options):
    settings = {"steps": 8, "batch_size": 16, "n_samples": 12, "stride": 5, "random_state": 0}
    return DDPM("tiny", **{**settings, **options})


def test_training_lowers_the_loss_and_records_every_class():
    X, y = images()
    model = small(steps=60, lr=2e-3).fit(X, y)
    assert model.history_["loss"].iloc[-5:].mean() < 0.9 * model.history_["loss"].iloc[0]
    looks = model.monitor_.table
    assert set(looks["label"]) == {0, 1}
    assert {"step", "fraction", "low", "high", "held_out_error"} <= set(looks)
    assert set(model.monitor_.crossing_times()) == {0, 1}
    assert model.window().opens >= 1


def test_same_seed_same_images_and_saved_is_loaded(tmp_path):
    X, y = images()
    model = small(monitor=False).fit(X, y)
    again = small(monitor=False).fit(X, y)
    assert np.array_equal(model.sample(2, stride=5), again.sample(2, stride=5))
    model.save(tmp_path / "model")
    assert np.array_equal(DDPM.load(tmp_path / "model").sample(2, stride=5), model.sample(2, stride=5))


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    X, y = images()
    whole = small(steps=16, monitor=False).fit(X, y)
    small(steps=16, monitor=False, checkpoint=tmp_path / "run").fit(X, y)
    resumed = small(steps=16, monitor=False, checkpoint=tmp_path / "run").fit(X, y)
    for a, b in zip(whole.network_.parameters(), resumed.network_.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(ValueError, match="holds another run"):
        small(steps=16, monitor=False, checkpoint=tmp_path / "run", random_state=5).fit(X, y)


def test_conditional_models_draw_by_class():
    X, y = images()
    model = small(conditional=True).fit(X, y)
    assert model.sample(2, ["rare", "common"], stride=5).shape == (2, 8, 8)
    with pytest.raises(ValueError, match="unknown"):
        model.sample(1, ["other"], stride=5)
    with pytest.raises(ValueError, match="needs labels"):
        model.sample(1, stride=5)


def test_guided_models_learn_what_no_class_looks_like(tmp_path):
    X, y = images()
    model = small(conditional=True, label_dropout=0.5, monitor=False).fit(X, y)
    asked = ["rare", "common"]
    plain, guided = (model.sample(2, asked, stride=5, guidance=w) for w in (0.0, 3.0))
    assert not np.allclose(plain, guided)
    model.save(tmp_path / "model")
    assert np.array_equal(DDPM.load(tmp_path / "model").sample(2, asked, stride=5, guidance=3.0), guided)
    with pytest.raises(ValueError, match="trained with label_dropout"):
        small(conditional=True, monitor=False).fit(X, y).sample(2, asked, stride=5, guidance=1.0)


def test_averaged_weights_are_off_by_default_and_survive_a_kill(tmp_path):
    X, y = images()
    plain, forgetful, averaged = (
        small(steps=12, monitor=False, average=decay).fit(X, y) for decay in (None, 0.0, 0.9)
    )
    weights = [model.network_.enter.weight for model in (plain, forgetful, averaged)]
    assert torch.equal(weights[0], weights[1]), "a decay of 0 keeps nothing of the past"
    assert not torch.equal(weights[0], weights[2])
    for _ in range(2):
        again = small(steps=12, monitor=False, average=0.9, checkpoint=tmp_path / "run").fit(X, y)
        assert torch.equal(again.network_.enter.weight, weights[2])
    with pytest.raises(ValueError, match="holds another run"):
        small(steps=12, monitor=False, checkpoint=tmp_path / "run").fit(X, y)


def test_the_device_is_found_and_precision_is_a_choice():
    X, y = images()
    plain = small(monitor=False, device="auto").fit(X, y)
    mixed = small(monitor=False, precision="bf16-mixed").fit(X, y)
    assert mixed.network_.enter.weight.dtype == torch.float32
    assert np.isfinite(mixed.sample(2, stride=5)).all()
    assert mixed.history_["loss"].iloc[-1] == pytest.approx(plain.history_["loss"].iloc[-1], rel=0.05)


def test_an_epoch_may_have_any_number_of_steps():
    X, y = images()
    model = small(steps=20, epoch_steps=5, looks=[5, 15], held_out_fraction=0.0).fit(X, y)
    assert sorted(set(model.monitor_.table["step"])) == [5, 15]
    assert len(model.history_) == 4


def test_the_assigner_may_learn_from_more_images_than_the_model():
    X, y = images()
    more = images(120, seed=1)
    model = small(n_samples=4).fit(X, y, assigner_data=more)
    assert model.assigner_accuracy_ > 0.9
    assert model.assigner_macro_f1_ > 0.9
    with pytest.raises(ValueError, match="unknown"):
        small().fit(X, y, assigner_data=(X, np.full(len(X), "other")))


@pytest.mark.slow
def test_a_resnet_tells_the_classes_too():
    X, y = images(40)
    found = Assigner(torch.tensor(X[:, None], dtype=torch.float32), y == "rare", network="resnet18")
    assert found.macro_f1 > 0.9


def test_forty_images_are_enough_to_tell_sandals_from_sneakers():
    """With fifteen steps, one for each epoch, half of the sandals were sneakers."""
    from equipoise.datasets import load_fashion_mnist

    try:
        data = load_fashion_mnist("test", pixels="uint8")
    except (OSError, ValueError) as problem:
        pytest.skip(f"needs Fashion-MNIST: {problem}")
    rows = np.concatenate([np.flatnonzero(np.asarray(data.y) == label)[:220] for label in (5, 7)])
    codes, first = np.repeat([0, 1], 220), np.tile(np.arange(220) < 20, 2)
    pixels = data.X[rows].reshape(-1, 1, 14, 2, 14, 2).mean(axis=(3, 5))
    images = torch.tensor((pixels - pixels.mean(axis=0)) / pixels.std(), dtype=torch.float32)
    assigner = Assigner(images[first], codes[first])
    right = assigner(images[~first]) == codes[~first]
    assert min(right[codes[~first] == code].mean() for code in (0, 1)) > 0.75


def test_class_shares_change_what_is_visited():
    X, y = images()
    small(class_shares=[0.5, 0.5], monitor=False).fit(X, y)
    with pytest.raises(ValueError, match="shares"):
        small(class_shares=[0.5, 0.6], monitor=False).fit(X, y)


def test_stopping_at_the_first_memorized_class():
    X, y = images(12)
    model = small(steps=40, stop="memorized")
    model.fit(X, y)
    assert len(model.history_) <= 40
    import pandas as pd

    table = pd.DataFrame(
        {
            "label": [0, 0, 0, 1, 1, 1],
            "step": [1, 10, 100] * 2,
            "fraction": [0, 0, 0.9, 0, 0, 0.1],
            "held_out_error": [1, 0.5, 0.6, 1, 0.9, 0.5],
        }
    )
    found = window(table)
    assert (found.opens, found.first_memorized, found.is_open) == (100, 0, False)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((4, 8)), None, "must be images"),
        (np.full((4, 8, 8), np.nan), None, "finite"),
        (np.zeros((4, 8, 8)), [0, 1], "same length"),
        (np.random.default_rng(0).normal(size=(6, 8, 8)), [0, 0, 0, 0, 0, 1], "too few"),
    ],
)
def test_bad_input_gets_a_sentence(X, y, message):
    with pytest.raises(ValueError, match=message):
        small().fit(X, y)


def test_another_models_folder_is_refused(tmp_path):
    from equipoise.training import save_state

    save_state(tmp_path / "x", {"kind": "else"})
    with pytest.raises(ValueError, match="must hold a DDPM"):
        DDPM.load(tmp_path / "x")


def test_monitoring_is_quick():
    start = time.process_time()
    rng = np.random.default_rng(0)
    nearest_two(rng.normal(size=(100, 784)), rng.normal(size=(2000, 784)))
    assert time.process_time() - start < 20


def test_two_processes_train_as_one_does():
    """What the processes return is larger than the 64 KB of a pipe, in which it once got stuck."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(43, 8, 8)), np.repeat([0, 1], [23, 20])
    params = {"conditional": True, "label_dropout": 0.2, "average": 0.9, "steps": 8, "batch_size": 13}
    params |= {"n_samples": 12, "stride": 4, "random_state": 0, "verbose": False}
    one, two = (DDPM("tiny", num_processes=n, **params).fit(X, y) for n in (1, 2))
    for alone, shared in zip(one.network_.parameters(), two.network_.parameters(), strict=True):
        assert torch.allclose(alone, shared, rtol=0, atol=1e-5)
    assert np.allclose(one.history_["loss"], two.history_["loss"], atol=1e-5)
    pd.testing.assert_frame_equal(one.monitor_.table, two.monitor_.table, rtol=1e-3)
