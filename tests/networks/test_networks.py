"""Every network: features, then a linear head."""

from __future__ import annotations

import pytest
import torch

from equipoise.networks import (
    Autoencoder,
    ConvNet,
    Network,
    ResNet,
    WideResNet,
    build_network,
    logits_and_features,
    network_names,
)

SHAPES = {
    "mlp": [(5,), (1, 4, 4)],
    "resnet34": [(3, 40, 40)],
    "resnet50": [(3, 40, 40)],
    "wrn28-10": [(3, 8, 8)],
}
IMAGES = [(1, 28, 28), (3, 32, 32)]
CASES = [(name, shape) for name in network_names() for shape in SHAPES.get(name, IMAGES)]


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_logits_are_head_of_features(name, shape):
    net = build_network(name, shape, 7).eval()
    x = torch.randn(2, *shape)
    features = net.features(x)
    assert isinstance(net, Network)
    assert features.shape == (2, net.head.in_features)
    assert torch.allclose(net(x), net.head(features), atol=1e-6)
    logits, seen = logits_and_features(net, x)
    assert torch.allclose(logits, net(x), atol=1e-6)
    assert torch.allclose(seen, features, atol=1e-6)
    assert not net.head._forward_pre_hooks


@pytest.mark.parametrize(("depth", "million"), [(20, 0.27), (32, 0.46), (44, 0.66)])
def test_resnet_sizes_are_the_papers(depth, million):
    """Table 6 of He et al. 2016, in millions of parameters."""
    size = sum(p.numel() for p in ResNet((3, 32, 32), 10, depth=depth).parameters())
    assert round(size / 1e6, 2) == pytest.approx(million, abs=0.006)


def test_wide_resnet_sizes_are_the_papers():
    """Table 4 of Zagoruyko & Komodakis 2016 has 36.5 million parameters for WRN-28-10, 2.7 for WRN-16-4."""
    with torch.device("meta"):
        sizes = [
            sum(p.numel() for p in WideResNet((3, 32, 32), 10, depth=depth, widen=widen).parameters())
            for depth, widen in ((28, 10), (16, 4))
        ]
    assert [round(size / 1e6, 1) for size in sizes] == [36.5, 2.7]


def test_dropout_of_a_wide_resnet_is_between_its_convolutions():
    x = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    net = WideResNet((3, 8, 8), 3, depth=10, widen=1, dropout=0.3)
    assert not torch.equal(net(x), net(x))
    net.eval()
    assert torch.equal(net(x), net(x))
    assert sum(isinstance(m, torch.nn.Dropout) for m in net.modules()) == 3


def test_shortcuts_of_option_a_have_no_parameters():
    a, b = (ResNet((3, 32, 32), 10, depth=8, shortcut=option) for option in "AB")
    grown = sum(p.numel() for p in b.parameters()) - sum(p.numel() for p in a.parameters())
    assert grown == 16 * 32 + 2 * 32 + 32 * 64 + 2 * 64


def test_every_parameter_learns():
    for name, shape in CASES:
        net = build_network(name, shape, 3)
        net(torch.randn(4, *shape)).square().sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in net.parameters()), name


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ResNet((3, 32, 32), 10, depth=9), r"depth must be 6n \+ 2 .* got 9"),
        (lambda: WideResNet((3, 32, 32), 10, depth=20), r"depth must be 6n \+ 4 .* got 20"),
        (lambda: ResNet((3, 32), 10), r"input_shape must be \(channels, height, width\)"),
        (lambda: ConvNet((1, 2, 2), 10), r"of at least 4×4, got \(1, 2, 2\)"),
        (lambda: build_network("vgg", (3,), 2), "module must be one of .* got 'vgg'"),
        (lambda: build_network("mlp", (3,), 0), "n_classes must be at least 1, got 0"),
        (lambda: build_network("mlp", (3,), 2, activation="step"), "activation must be one of"),
        (lambda: build_network("mlp", (3,), 2, dropout=1.0), r"dropout must lie in \[0, 1\), got 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_module_without_a_head_is_named():
    with pytest.raises(TypeError, match="a linear layer named head"):
        logits_and_features(torch.nn.ReLU(), torch.zeros(1))
    with pytest.raises(TypeError, match=r"must make a torch.nn.Module"):
        build_network(lambda shape, n: 3, (2,), 2)


@pytest.mark.parametrize(
    ("shape", "latent", "encoder", "decoder"),
    [((1, 28, 28), 64, 6_623_872, 6_914_561), ((3, 32, 32), 256, 8_788_800, 9_084_163)],
)
def test_the_paper_s_autoencoder_has_its_weights(shape, latent, encoder, decoder):
    """Tables 16 and 17 of Mondal et al.; the label adds one row of 1024 a class to a critic that is told it."""
    size = lambda module: sum(parameter.numel() for parameter in module.parameters())  # noqa: E731
    net = Autoencoder(shape, 10, latent=latent, size="paper")
    assert (size(net.encoder), size(net.decoder)) == (encoder, decoder)
    untold = Autoencoder(shape, 10, latent=latent, size="paper", critic_told=False)
    assert size(net.critic) - size(untold.critic) == 10_240


def test_an_autoencoder_of_large_pictures_stays_small():
    """Halved until a dense layer can bear it; what is decoded has the picture's size, odd sides too."""
    for shape in ((3, 256, 256), (1, 100, 71)):
        net = Autoencoder(shape, 3, latent=8).eval()
        assert sum(parameter.numel() for parameter in net.parameters()) < 14e6
        x = torch.zeros(2, *shape)
        assert net.decode(net.features(x), torch.tensor([0, 2])).shape == x.shape
        assert net.criticize(x, torch.tensor([0, 2])).shape == (2,)
