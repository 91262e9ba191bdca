"""What every network is: features, then a linear head. And how one is found by its name."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor, nn

from equipoise._core.checks import check_choice, check_integer, check_type
from equipoise._core.memory import available_memory, spoken_size

M = TypeVar("M", bound=nn.Module)


@runtime_checkable
class Network(Protocol):
    """The contract: ``forward(x) = head(features(x))``. Any module with these two names is a network."""

    head: nn.Linear

    def features(self, x: Tensor) -> Tensor:
        """What goes into the head.

        Parameters
        ----------
        x : Tensor of shape (n, …)
            A batch of inputs.

        Returns
        -------
        Tensor of shape (n, d)
            The features.
        """


class FeaturesAndHead(nn.Module):
    """The shell of the networks here: they only say what their features are.

    Parameters
    ----------
    n_features : int
        Width of the last hidden layer, the head's input.
    n_classes : int
        Number of logits.
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(n_features, check_integer("n_classes", n_classes, low=1))

    def features(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """The logits of a batch: ``head(features(x))``.

        Parameters
        ----------
        x : Tensor of shape (n, …)
            A batch of inputs.

        Returns
        -------
        Tensor of shape (n, C)
            The logits.
        """
        return self.head(self.features(x))


def start_as_he(network: M) -> M:
    """Draw the convolutions as He et al. 2015 do, for ReLUs."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


class PooledMaps(FeaturesAndHead):
    """A body of convolutions, then the mean over the image, and dropout."""

    body: nn.Sequential

    def __init__(self, n_features: int, n_classes: int, dropout: float = 0.0) -> None:
        super().__init__(n_features, n_classes)
        self.drop = nn.Dropout(dropout) if dropout else nn.Identity()

    def _set_body(self, body: nn.Sequential) -> None:
        """Take the convolutions, laid out as they are fastest."""
        self.body = body.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def features(self, x: Tensor) -> Tensor:
        """The last feature maps, averaged over the image.

        Parameters
        ----------
        x : Tensor of shape (n, channels, height, width)
            A batch of images.

        Returns
        -------
        Tensor of shape (n, d)
            The features.
        """
        maps: Tensor = self.body(x.contiguous(memory_format=torch.channels_last))
        return self.drop(maps.mean(dim=(2, 3)))


def logits_and_features(model: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
    """Both outputs of one forward pass, whatever the model is wrapped in (data parallel, mixed precision).

    A hook on the head sees its input, so the model is called once and through its wrapper.

    Parameters
    ----------
    model : nn.Module
        A network with a layer ``head``.
    *inputs : Any
        What the network is called with.

    Returns
    -------
    Tensor of shape (n, C)
        The logits.
    Tensor of shape (n, d)
        The features.

    Examples
    --------
    >>> import torch
    >>> net = build_network("mlp", (4,), 3)
    >>> logits, features = logits_and_features(net, torch.zeros(2, 4))
    >>> torch.equal(logits, net.head(features))
    True
    """
    head = getattr(model, "head", None)
    if not isinstance(head, nn.Module):
        raise TypeError(
            f"the network must have a linear layer named head, got {type(model).__name__} without"
        )
    seen: list[Tensor] = []
    handle = head.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        logits = model(*inputs)
    finally:
        handle.remove()
    if not seen:
        raise RuntimeError("the network's forward never called its head; it must be head(features(x))")
    return logits, seen[-1].to(logits.dtype)


def _builders() -> dict[str, Callable[..., nn.Module]]:
    from equipoise.networks.adaptor import adapt
    from equipoise.networks.convnet import ConvNet
    from equipoise.networks.imagenet_resnet import ImageNetResNet
    from equipoise.networks.mlp import MLP
    from equipoise.networks.resnet import ResNet
    from equipoise.networks.wide_resnet import WideResNet

    def imagenet(depth: int) -> Callable[..., nn.Module]:
        def build(
            shape: Sequence[int],
            n_classes: int,
            *,
            weights: Any = None,
            frozen: bool = False,
            width: int = 64,
        ) -> nn.Module:
            outputs = n_classes if weights is None else 1000
            network = ImageNetResNet(shape, outputs, depth=depth, width=width)
            return adapt(network, n_classes, weights=weights, frozen=frozen)

        return build

    def resnet(depth: int) -> Callable[..., nn.Module]:
        return lambda shape, n_classes, **params: ResNet(shape, n_classes, depth=depth, **params)

    return {
        "mlp": MLP,
        "convnet": ConvNet,
        "resnet8": resnet(8),
        "resnet20": resnet(20),
        "resnet32": resnet(32),
        "resnet110": resnet(110),
        "wrn28-10": WideResNet,
        **{f"resnet{depth}": imagenet(depth) for depth in (18, 34, 50)},
    }


def network_names() -> list[str]:
    """The names that :func:`build_network` knows.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> "mlp" in network_names()
    True
    """
    return list(_builders())


def build_network(
    module: str | Callable[..., nn.Module] | nn.Module,
    input_shape: Sequence[int],
    n_classes: int,
    **params: Any,
) -> nn.Module:
    """A network by name, from a factory ``factory(input_shape, n_classes, **params)``, or a copy of a module.

    ``"auto"`` is an MLP for tables, shape ``(columns,)``, and a small convnet for images, shape
    ``(channels, height, width)``. ``"torchvision/resnet18"`` and ``"timm/convnext_tiny"`` name backbones of those
    libraries. For these and for a module, ``params`` are those of :func:`~equipoise.networks.adapt`.

    Parameters
    ----------
    module : str, callable or nn.Module
        A name out of :func:`network_names`, a factory, or a module, which is copied.
    input_shape : sequence of int
        The shape of one input.
    n_classes : int
        The number of classes.
    **params : Any
        Parameters of the network, or those of :func:`~equipoise.networks.adapt`.

    Returns
    -------
    nn.Module
        The network.

    Raises
    ------
    ValueError
        If the name is not known or a parameter does not fit.

    Examples
    --------
    >>> build_network("auto", (1, 28, 28), 10).head.out_features
    10
    """
    from equipoise.networks.adaptor import adapt, build_from_library, check_options, has_head

    shape = tuple(int(size) for size in input_shape)
    if isinstance(module, nn.Module):
        check_options(params)
        network = copy.deepcopy(module)
        return adapt(network, n_classes, **params) if params or has_head(network) else network
    if callable(module):
        try:
            network = module(shape, n_classes, **params)
        except TypeError as error:
            raise TypeError(
                f"module must be a factory that takes {shape}, {n_classes} and module_params: {error}"
            ) from error
        if not isinstance(network, nn.Module):
            raise TypeError(f"module must make a torch.nn.Module, got {network!r}")
        return adapt(network, n_classes) if has_head(network) else network
    if check_type("module", module, str).startswith(("torchvision/", "timm/")):
        check_options(params)
        return build_from_library(module, shape, n_classes, **params)
    name = ("mlp" if len(shape) == 1 else "convnet") if module == "auto" else module
    builders = _builders()
    check_choice("module", name, ["auto", *builders])
    build = functools.partial(builders[name], shape, n_classes, **params)
    if params.get("weights") is None and torch.get_default_device().type != "meta":
        _refuse_beyond_memory(build)
    return build()


def _refuse_beyond_memory(build: Callable[[], nn.Module]) -> None:
    """Count the weights before any memory is taken for them."""
    with torch.device("meta"):
        size = sum(part.numel() * part.element_size() for part in build().parameters())
    available = available_memory()
    if available is not None and size > available:
        raise ValueError(
            f"the network's weights take {spoken_size(size)} and {spoken_size(available)} of memory are free: "
            "try smaller layers (hidden, width)"
        )


def check_image_shape(shape: Sequence[int], smallest: int) -> tuple[int, int, int]:
    """(channels, height, width), large enough for the network's poolings."""
    if len(shape) != 3 or min(shape[1:]) < smallest:
        raise ValueError(
            f"input_shape must be (channels, height, width) of at least {smallest}×{smallest}, "
            f"got {tuple(shape)}"
        )
    return int(shape[0]), int(shape[1]), int(shape[2])
