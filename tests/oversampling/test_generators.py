"""DeepSMOTE, GAMO, BAGAN: what their papers promise of each row, and the room's contract."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from imblearn.pipeline import make_pipeline
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate

from equipoise.metrics import balanced_accuracy
from equipoise.networks.bagan import ClassGaussians
from equipoise.networks.gamo import ConvexGenerator, Players
from equipoise.oversampling import BAGAN, GAMO, DeepSMOTE
from equipoise.training import RandomAffine
from sampler_cases import blobs, mixed

pytestmark = pytest.mark.filterwarnings("ignore::equipoise.oversampling.LowQualityWarning")
SAMPLERS = [
    DeepSMOTE(latent=3, widths=(32,), epochs=25, batch_size=50, lr=0.01, random_state=0),
    GAMO(width=32, epochs=10, lr=0.002, random_state=0),
    BAGAN(
        latent=3, widths=(32,), pretrain_epochs=40, epochs=2, batch_size=50, pretrain_lr=0.01, random_state=0
    ),
]
EACH = pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda s: type(s).__name__)


@EACH
def test_balances_every_class_near_its_own(sampler):
    X, y = blobs()
    X_new, y_new = sampler.fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [120, 120, 120]
    assert np.array_equal(X_new[: len(X)], X)
    for code in (1, 2):
        new = X_new[len(X) :][y_new[len(X) :] == code]
        distances = [np.linalg.norm(new.mean(axis=0) - X[y == other].mean(axis=0)) for other in range(3)]
        assert int(np.argmin(distances)) == code


@EACH
def test_trains_in_the_precision_that_was_asked_for(sampler):
    """Half the digits give other rows, which are as wide and finite; the network is back on the CPU in full."""
    pytest.importorskip("lightning_fabric")
    X, y = blobs()
    whole = clone(sampler).fit_resample(X, y)[0]
    half = clone(sampler).set_params(precision="bf16-mixed")
    rows = half.fit_resample(X, y)[0]
    assert rows.shape == whole.shape
    assert np.isfinite(rows).all()
    assert not np.array_equal(rows, whole)
    assert {weight.dtype for weight in half.network_.parameters()} == {torch.float32}


@EACH
def test_parents_have_the_class_and_shares_are_shares(sampler):
    X, y = blobs()
    _, y_new = sampler.fit_resample(X, y)
    made = sampler.provenance_
    own = y_new[made.synthetic]
    if isinstance(sampler, BAGAN):
        assert (made.parents == -1).all()
    else:
        assert (y[made.parents] == own[:, None]).all()
        assert (made.weights >= 0).all()
        assert (made.weights.sum(axis=1) <= 1 + 1e-6).all()


@EACH
def test_mixed_tables_and_one_sample_classes(sampler):
    frame, y = mixed(60)
    new, labels = sampler.fit_resample(frame, y)
    assert (new.dtypes == frame.dtypes).all()
    assert (labels == "fraud").sum() == (labels == "fine").sum()
    X, y = blobs((30, 1))
    X[:, 1] = 4.0
    X_new, y_new = sampler.fit_resample(X, y)
    assert np.bincount(y_new).tolist() == [30, 30]
    assert np.isfinite(X_new).all()
    assert np.allclose(X_new[:, 1], 4.0)


@EACH
def test_images_and_a_shape_that_does_not_fit(sampler):
    X, y = load_digits(n_class=2, return_X_y=True)
    keep = (y == 0) | (np.arange(len(y)) < 60)
    X, y = X[keep], y[keep]
    X_new, _ = sampler.set_params(image_shape=(8, 8)).fit_resample(X, y)
    assert X_new.min() >= 0
    assert X_new.max() <= 16
    with pytest.raises(ValueError, match=r"image_shape \(3, 3\) does not fit"):
        sampler.set_params(image_shape=(3, 3)).fit_resample(X, y)
    sampler.set_params(image_shape=None)


@EACH
def test_works_in_a_pipeline(sampler):
    X, y = blobs((60, 20))
    assert cross_validate(make_pipeline(sampler, LogisticRegression()), X, y, cv=2)["test_score"].mean() > 0.7


def test_gamo_stays_in_the_hull_of_its_class():
    points = [torch.rand(6, 2), torch.rand(4, 2) + 5]
    generator = ConvexGenerator(points, noise=3, width=8).eval()
    noise, codes = torch.randn(10, 3), torch.tensor([0, 1] * 5)
    made = generator(noise, codes)
    for code in (0, 1):
        own = made[codes == code]
        assert (own >= points[code].min(dim=0).values - 1e-6).all()
        assert (own <= points[code].max(dim=0).values + 1e-6).all()
        weights = generator.weights(noise[codes == code], code)
        assert torch.allclose(weights @ points[code], own, atol=1e-6)


def test_gaussians_have_the_moments_of_their_class():
    torch.manual_seed(0)
    root = torch.tensor([[2.0, 0.0], [1.0, 0.5]])
    z = torch.cat([torch.randn(500, 2) @ root.T + 3, torch.randn(400, 2)])
    codes = torch.tensor([0] * 500 + [1] * 400)
    drawn = ClassGaussians(z, codes).draw(torch.zeros(20_000, dtype=torch.long))
    assert torch.allclose(drawn.mean(dim=0), z[:500].mean(dim=0), atol=0.08)
    assert torch.allclose(drawn.T.cov(), z[:500].T.cov(), rtol=0.08, atol=0.08)


def test_deep_smote_clamps_its_neighbors_to_the_class():
    X, y = blobs((30, 3))
    sampler = DeepSMOTE(k_neighbors=50, latent=2, widths=(8,), epochs=1, random_state=0)
    sampler.fit_resample(X, y)
    parents = sampler.provenance_.parents
    assert (parents[:, 0] != parents[:, 1]).all()
    with pytest.raises(ValueError, match="k_neighbors must be at least 1"):
        DeepSMOTE(k_neighbors=0, latent=2, widths=(8,), epochs=1).fit_resample(X, y)


def rare_digits():
    """Digits 0 to 2, of which there are 60, 20 and 4."""
    X, y = load_digits(n_class=3, return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == code)[:count] for code, count in enumerate((60, 20, 4))])
    return X[rows], y[rows]


def convolutional(**more):
    settings = {"width": 32, "epochs": 3, "batch_size": 16, "lr": 0.002, "random_state": 0} | more
    return GAMO(architecture="convolutional", image_shape=(8, 8), **settings)


def test_convolutional_gamo_classifies_images_and_mixes_their_pixels():
    X, y = rare_digits()
    sampler = convolutional(augment=RandomAffine(shift=0.1), epochs=40)
    X_new, y_new = sampler.fit_resample(X, y)
    made = sampler.provenance_
    rarest = np.flatnonzero(y_new[made.synthetic] == 2)
    mixed = np.einsum("np,npx->nx", made.weights[rarest], X[made.parents[rarest]])
    assert np.allclose(mixed, X_new[made.synthetic][rarest], atol=1e-4), "four parents are all there are"
    signed = torch.from_numpy(X / 8 - 1).float().reshape(-1, 1, 8, 8)
    with torch.no_grad():
        told = sampler.network_(signed).argmax(dim=1).numpy()
    assert balanced_accuracy(y, told) > 0.9


def test_gamo_mixes_the_features_of_the_present():
    X, y = rare_digits()
    images, codes = torch.from_numpy(X).float().reshape(-1, 1, 8, 8), torch.from_numpy(y)
    points = [images[codes == code].flatten(1) for code in range(3)]
    players = Players(points, 16, image_shape=(1, 8, 8))
    players.look_again(images, codes)
    made = players.generator(torch.randn(5, players.generator.noise), torch.full((5,), 2))
    shares = players.generator.weights(torch.randn(5, players.generator.noise), 2)
    assert made.shape == (5, 32)
    assert shares.shape == (5, 4)
    assert torch.allclose(players.generator.points2, players.seen(images[codes == 2]), atol=1e-6)


def test_averaged_weights_of_gamos_classifier_leave_its_rows_alone():
    X, y = rare_digits()
    own, averaged = convolutional(), convolutional(average=0.9)
    assert np.array_equal(own.fit_resample(X, y)[0], averaged.fit_resample(X, y)[0])
    weights = [next(sampler.network_.classifier.parameters()) for sampler in (own, averaged)]
    assert not torch.equal(*weights)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (GAMO(architecture="deep"), "architecture must be one of"),
        (GAMO(architecture="convolutional"), "needs images; give image_shape"),
        (GAMO(augment=RandomAffine()), "needs architecture='convolutional'"),
    ],
)
def test_gamo_says_what_does_not_go_together(sampler, message):
    with pytest.raises(ValueError, match=message):
        sampler.fit_resample(*blobs((30, 10)))
