"""Settings of a paper's own runs, to start from: ``ConditionalClassifier(**conditional_preset("paper"))``."""

from __future__ import annotations

from typing import Any

from equipoise._core.checks import check_choice, check_integer
from equipoise.classifiers.neural import NeuralClassifier
from equipoise.training import ExponentialAverage, FlipAndShift, LearningRate, drops

_KINDS = ("cifar", "melanoma", "aptos")
_LATENTS = {"gray": 64, "svhn": 128, "color": 256, "imagenet": 512, "table": 8}


def conditional_preset(
    name: str = "paper", kind: str = "cifar", *, sam: bool = False, **changes: Any
) -> dict[str, Any]:
    """Settings for :class:`~equipoise.classifiers.ConditionalClassifier` as Lieberman et al. trained.

    Parameters
    ----------
    name : {"paper"}
        Whose settings.
    kind : {"cifar", "melanoma", "aptos"}
        Which of the paper's three recipes: a ResNet-32 from scratch for 500 epochs of SGD, or 10 epochs of SGD and
        35 of Adam for a pre-trained backbone, which the user brings as ``module``.
    sam : bool
        Sharpness-aware steps of radius 0.1 (VS + SAM).
    **changes : Any
        For the inner :class:`~equipoise.classifiers.NeuralClassifier`, such as ``epochs=100`` or ``module=…``.

    Returns
    -------
    dict
        Keywords of :class:`~equipoise.classifiers.ConditionalClassifier`.

    Notes
    -----
    Where the text and the authors' code differ, this follows the text: drops of the learning rate to 1e-3 and 1e-5
    (the code goes to 1e-2 and 1e-3). Weight decay 2e-4, five epochs of warm-up, crops padded with zeros, mirroring,
    and weights averaged once an epoch are in the code alone. The first layer has 16 channels, as in the code; the
    text's 64 is the width of the last. The melanoma learning rate is not printed; 0.01 stands in. The modulation
    starts from torch's default initialization.

    References
    ----------
    Lieberman et al., section 5.1 and Table 2.

    Examples
    --------
    >>> settings = conditional_preset("paper", epochs=2)
    >>> settings["estimator"].optimizer, settings["estimator"].epochs, settings["step_params"]
    ('sgd', 2, {'clip': 0.5})
    """
    check_choice("preset", name, ["paper"])
    check_choice("kind", kind, _KINDS)
    base: dict[str, Any] = {
        "batch_size": 128,
        "optimizer": "sgd",
        "optimizer_params": {"momentum": 0.9, "nesterov": False, "weight_decay": 2e-4},
        "augment": FlipAndShift(shift=4, padding="zero"),
        "callbacks": (ExponentialAverage(0.99, every="epoch"),),
    }
    base |= {
        "cifar": {
            "module": "resnet32",
            "epochs": 500,
            "lr": 0.1,
            "schedule": LearningRate(drops((0.8, 0.9), 0.01), warmup=5),
        },
        "melanoma": {"epochs": 10, "lr": 0.01, "schedule": "cosine"},
        "aptos": {
            "epochs": 35,
            "lr": 5e-5,
            "optimizer": "adam",
            "optimizer_params": {"weight_decay": 0.0},
            "schedule": "cosine",
        },
    }[kind]
    return {
        "estimator": NeuralClassifier(**{**base, **changes}),
        "step": "sam" if sam else "plain",
        "step_params": {"clip": 0.5, **({"rho": 0.1} if sam else {})},
        "film_residual": False,
    }


def autoencoder_preset(
    name: str = "paper", kind: str = "gray", *, n_rows: int, **changes: Any
) -> dict[str, Any]:
    """Settings for :class:`~equipoise.classifiers.AutoencoderClassifier` as Mondal et al. trained.

    Parameters
    ----------
    name : {"paper"}
        Whose settings.
    kind : {"gray", "svhn", "color", "imagenet", "table"}
        Sets the latent's width: 64 for MNIST and Fashion-MNIST, 128 for SVHN, 256 for CIFAR and CelebA, 512 for
        ImageNet-100 (whose encoder the user brings as ``module``), 8 for tables.
    n_rows : int
        Rows of the training data, by which 20,000 updates of the encoder become epochs.
    **changes : Any
        Other keywords of the classifier, such as ``device="cuda"`` or ``epochs=10``.

    Returns
    -------
    dict
        Keywords of :class:`~equipoise.classifiers.AutoencoderClassifier`.

    Notes
    -----
    Where the text and the authors' runs differ, this follows the runs: losses are means, the mixer's wrong label is
    a shuffle, the critic is told the class, and the decoder also learns from the cross-entropy of its fakes, in a
    step of its own beside the encoder's. The text's choices are ``critic_told=False`` and ``plan_params`` with
    ``wrong_label="other"``, ``mixed_classes="minority"`` and ``reduction="sum"``. Colors and cut-outs of the
    authors' augmentation are missing. The weight decay is 5 because torch multiplies it by the learning rate: a
    step takes off the printed 1e-3. The mixer and the decoder's own step keep Adam's usual momenta (0.9, 0.999),
    where the text has (0.5, 0.9) for all but the encoder. The run takes some 120 core-hours on a CPU: it is one for
    a GPU (``device="cuda"``).

    References
    ----------
    Mondal et al., AISTATS 2023, appendix A.6 and Tables 16–19.

    Examples
    --------
    >>> settings = autoencoder_preset("paper", n_rows=9_000)
    >>> settings["latent"], settings["epochs"] * -(-9_000 // settings["batch_size"])
    (64, 20022)
    """
    check_choice("preset", name, ["paper"])
    check_choice("kind", kind, list(_LATENTS))
    updates_an_epoch = -(-check_integer("n_rows", n_rows, low=1) // 128)
    plan = {
        "decoder_mae": 0.0,
        "decode_share": 1.0,
        "decode_rate": 1.0,
        "decoder_rate": 4.0,
        "critic_rate": 5.0,
        "lr": 2e-4,
        "mixer_gradient": True,
        "fakes": "both",
        "clean_targets": True,
        "joint_decoder_step": True,
    }
    plan |= changes.pop("plan_params", None) or {}
    return {
        "latent": _LATENTS[kind],
        "size": "paper",
        "mixing": "learned",
        "plan_params": plan,
        "epochs": -(-20_000 // updates_an_epoch),
        "batch_size": 128,
        "lr": 2e-4,
        "weight_decay": 5.0,
        "schedule": "constant",
        "augment": None if kind == "table" else "adaptive",
        "average": 0.99,
        **changes,
    }
