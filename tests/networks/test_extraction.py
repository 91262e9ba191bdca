"""From folders of images in the layouts of MVTec AD and BTAD to a pretrained network's features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from equipoise.datasets import find_anomaly_images
from equipoise.networks import ImageNetResNet, build_network, extract_features


def save_pictures(folder, count, level, suffix="png"):
    folder.mkdir(parents=True)
    random = np.random.default_rng(level)
    for i in range(count):
        pixels = random.integers(level - 30, level + 30, (20, 24, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:03}.{suffix}")


@pytest.fixture
def mvtec(tmp_path):
    for part, count, level in (("train/good", 5, 80), ("test/good", 2, 80), ("test/crack", 3, 160)):
        save_pictures(tmp_path / part, count, level)
    save_pictures(tmp_path / "ground_truth/crack", 3, 200)
    return tmp_path


@pytest.fixture
def network():
    """A narrow ResNet-18, as whoever trained it left it: its statistics are not those of a new one."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = ImageNetResNet((3, 32, 32), 1000, depth=18, width=4)
        made(torch.randn(8, 3, 32, 32))
    return made.eval()


def torchvision_names(network):
    return {name.replace("head.", "fc."): value for name, value in network.state_dict().items()}


def test_mvtec_features_are_the_networks_own(mvtec, network, tmp_path):
    found = find_anomaly_images(mvtec, side=32)
    assert found.y.tolist() == [0] * 5 + [1] * 3 + [0] * 2, "masks are no pictures of the product"
    assert found.split.tolist() == ["train"] * 5 + ["test"] * 5
    assert set(found.kind[found.y == 1]) == {"crack"}
    path = tmp_path / "weights.safetensors"
    save_file(torchvision_names(network), path)
    blank = ImageNetResNet((3, 32, 32), 1000, depth=18, width=4)
    features = extract_features(found.files, path, blank, batch_size=3)
    pixels = found.files.read([0, 7]) / 255
    scaled = (pixels.transpose(0, 2, 3, 1) - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    expected = network.features(torch.tensor(scaled.transpose(0, 3, 1, 2), dtype=torch.float32))
    assert features.shape == (10, 32)
    assert features[[0, 7]] == pytest.approx(expected.detach().numpy(), abs=1e-5)


def test_btad_is_read_too(tmp_path):
    for part, count, level in (("train/ok", 2, 80), ("test/ok", 1, 80), ("test/ko", 2, 160)):
        save_pictures(tmp_path / "01" / part, count, level, "bmp")
    found = find_anomaly_images(tmp_path / "01")
    assert found.y.sum() == 2
    assert found.files.shape == (5, 3, 224, 224)
    with pytest.raises(ValueError, match=r"train/ok and test/ko.*its folders are 01"):
        find_anomaly_images(tmp_path)


@pytest.mark.parametrize(("depth", "million"), [(18, 11.69), (34, 21.80), (50, 25.56)])
def test_sizes_are_those_of_the_networks_whose_weights_are_brought(depth, million):
    with torch.device("meta"):
        made = ImageNetResNet((3, 224, 224), 1000, depth=depth)
    assert sum(p.numel() for p in made.parameters()) / 1e6 == pytest.approx(million, abs=0.006)
    assert {"layer4.1.conv2.weight", "layer2.0.downsample.1.running_var"} <= set(made.state_dict())


def test_a_frozen_body_keeps_its_weights_and_gets_a_new_head(network):
    made = build_network("resnet18", (3, 32, 32), 2, weights=torchvision_names(network), frozen=True, width=4)
    assert made.head.out_features == 2
    assert [name for name, value in made.named_parameters() if value.requires_grad] == [
        "head.weight",
        "head.bias",
    ]
    assert torch.equal(made.body.conv1.weight, network.conv1.weight)


def test_weights_of_another_network_are_refused(mvtec, network):
    wrong = {name: value for name, value in network.state_dict().items() if "layer4" not in name}
    with pytest.raises(ValueError, match="weights do not fit"):
        extract_features(find_anomaly_images(mvtec, side=32).files, wrong, network)
    with pytest.raises(ValueError, match=r"images must be \(n, 3, height, width\)"):
        extract_features(np.zeros((2, 1, 32, 32)), {}, network)
