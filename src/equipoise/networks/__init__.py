"""Networks as features and a linear head, so that losses can see features and head weights."""

from equipoise.networks.adaptor import AdaptedNetwork, adapt
from equipoise.networks.autoencoder import Autoencoder
from equipoise.networks.base import Network, build_network, logits_and_features, network_names
from equipoise.networks.convnet import ConvNet
from equipoise.networks.extraction import extract_features
from equipoise.networks.film import ConditionalNetwork, FiLM
from equipoise.networks.heads import CosineLinear, use_cosine_head
from equipoise.networks.imagenet_resnet import ImageNetResNet
from equipoise.networks.mlp import MLP
from equipoise.networks.resnet import ResNet
from equipoise.networks.wide_resnet import WideResNet

__all__ = [
    "MLP",
    "AdaptedNetwork",
    "Autoencoder",
    "ConditionalNetwork",
    "ConvNet",
    "CosineLinear",
    "FiLM",
    "ImageNetResNet",
    "Network",
    "ResNet",
    "WideResNet",
    "adapt",
    "build_network",
    "extract_features",
    "logits_and_features",
    "network_names",
    "use_cosine_head",
]
