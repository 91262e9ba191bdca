"""What cannot be oversampled or trained on gets one sentence, and never a traceback of another library."""

from __future__ import annotations

import numpy as np
import pytest
from torch import nn

from equipoise.classifiers import AutoencoderClassifier, GenerativeClassifier
from equipoise.oversampling import (
    AMDO,
    BAGAN,
    GAMO,
    MCCCR,
    MCRBO,
    AutoencoderOversampler,
    DeepSMOTE,
    LowQualityError,
    LowQualityWarning,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 4)), np.repeat([0, 1, 2], [25, 12, 3])
IMAGES = RNG.random((40, 1, 8, 8)).astype(np.float32)
SMALL = {"widths": (8,), "latent": 3, "epochs": 1}
SAMPLERS = [
    AMDO(),
    MCCCR(),
    MCRBO(n_steps=10),
    DeepSMOTE(**SMALL),
    GAMO(width=8, epochs=1),
    BAGAN(**SMALL, pretrain_epochs=1),
    AutoencoderOversampler(epochs=1),
]
CLASSIFIERS = [AutoencoderClassifier(epochs=1, random_state=0), GenerativeClassifier(**SMALL, random_state=0)]
BY_NAME = {"ids": lambda method: type(method).__name__}
EACH_SAMPLER = pytest.mark.parametrize("sampler", SAMPLERS, **BY_NAME)
EACH_CLASSIFIER = pytest.mark.parametrize("classifier", CLASSIFIERS, **BY_NAME)


@EACH_SAMPLER
def test_a_class_of_one_row_is_told(sampler):
    y = np.repeat([0, 1], [39, 1])
    with pytest.warns(LowQualityWarning, match="class 1: it has one real row"):
        sampler.set_params(on_low_quality="warn").fit_resample(X, y)
    with pytest.raises(LowQualityError, match="one real row"):
        sampler.set_params(on_low_quality="raise").fit_resample(X, y)
    sampler.set_params(on_low_quality="warn")


def test_a_class_without_neighbors_of_its_own_is_told():
    far = np.concatenate([RNG.normal(size=(60, 3)), 100 + 1000 * RNG.normal(size=(3, 3))])
    with pytest.warns(LowQualityWarning, match="no row of a class of 3 has 5 neighbors of its own"):
        AMDO(random_state=0).fit_resample(far, np.repeat([0, 1], [60, 3]))


@EACH_SAMPLER
def test_samples_that_are_no_table_are_refused(sampler):
    with pytest.raises(ValueError, match=r"samples of one shape, got \(2, 2\) and \(1, 2\)"):
        sampler.fit_resample([np.ones((2, 2)), np.ones((1, 2))], [0, 1])
    with pytest.raises(
        ValueError, match=r"X must be a table, got samples of shape \(1, 8, 8\); take X.reshape"
    ):
        sampler.fit_resample(IMAGES, Y)


@EACH_CLASSIFIER
def test_images_of_unequal_shape_are_refused(classifier):
    ragged = [*np.ones((39, 8, 8)), np.ones((7, 8))]
    with pytest.raises(ValueError, match=r"samples of one shape, got \(8, 8\) and \(7, 8\)"):
        classifier.fit(ragged, Y)
    fitted = classifier.fit(IMAGES, Y)
    with pytest.raises(ValueError, match=r"samples of one shape, got \(8, 8\) and \(7, 8\)"):
        fitted.predict([np.ones((8, 8)), np.ones((7, 8))])
    for shape in ((3, 8, 8), (8, 8), (64,), (1, 9, 8)):
        with pytest.raises(ValueError, match=r"samples of shape \(1, 8, 8\), got \("):
            fitted.predict(np.ones((2, *shape)))


class Pair(nn.Module):
    """Returns two things where one is wanted."""

    def forward(self, x):
        return x, x


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (nn.Linear(4, 7), "must turn a sample into 8 numbers, got the shape .7,."),
        (nn.Linear(5, 8), r"the encoder cannot take samples of shape \(4,\): mat1 and mat2"),
        (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten()), r"the encoder cannot take samples of shape \(4,\)"),
        (Pair(), "the encoder must return a tensor, got tuple"),
        (lambda: nn.Linear(4, 8), r"module must be a factory that takes \(4,\), 8 and module_params"),
        (lambda shape, width: None, "module must make a torch.nn.Module, got None"),
    ],
)
def test_an_encoder_that_does_not_fit_is_refused(module, message):
    with pytest.raises((ValueError, TypeError), match=message):
        AutoencoderClassifier(module=module, epochs=1).fit(X, Y)


@pytest.mark.parametrize("shape", [8, "ab", (), (8, -8), (8, 8.0)])
def test_an_image_shape_is_whole_numbers(shape):
    with pytest.raises(ValueError, match="image_shape must be positive whole numbers"):
        GenerativeClassifier(image_shape=shape).fit(IMAGES.reshape(40, 64), Y)


def test_values_without_a_spread_are_refused():
    for method in CLASSIFIERS:
        with pytest.raises(ValueError, match=r"squares overflow \(up to .*e\+200\); scale its columns down"):
            method.fit(X * 1e200, Y)


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (MCCCR(p=0.5), "p must be 1 at least"),
        (MCCCR(p="x"), "p must be"),
        (MCRBO(step=0.1), "step must be at most gamma, got 0.1 and 0.05"),
        (DeepSMOTE(lr=-1.0), "lr must be positive"),
        (DeepSMOTE(**{**SMALL, "widths": ()}), "widths must be whole numbers, one a layer"),
        (DeepSMOTE(**SMALL, lr=1e30), "not finite; a lower lr may help"),
        (GAMO(lr=-1.0), "lr must be positive"),
        (GAMO(width=1), "width must be at least 2"),
        (GAMO(batch_size=0), "batch_size must be at least 1"),
        (BAGAN(batch_size=0), "batch_size must be at least 1"),
        (AutoencoderOversampler(plan_params={"x": 1}), "plan_params: unknown 'x'; there are"),
        (AMDO(sampling_strategy="x"), "sampling_strategy must be one of 'auto'"),
        (AMDO(sampling_strategy=None), "must be a word, a ratio, a dict or a function"),
        (AMDO(sampling_strategy={2: 30.5}), "sampling_strategy of class 2 must be an integer"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(sampler, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sampler.fit_resample(X, Y)


@EACH_CLASSIFIER
def test_outputs_that_are_not_finite_are_no_answer(classifier):
    fitted = type(classifier)(**{**classifier.get_params(), "lr": 1e30}).fit(X, Y)
    with pytest.raises(ValueError, match="outputs are not finite: fit again with a lower lr"):
        fitted.predict(X)


def test_augment_must_be_a_function():
    with pytest.raises(TypeError, match="augment must be a function of inputs and a generator, got 3"):
        GenerativeClassifier(**SMALL, augment=3).fit(X, Y)
