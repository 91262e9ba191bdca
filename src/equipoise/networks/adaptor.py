"""Any network as features and a linear head: a user's module, its weights, its named head, frozen or not."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from equipoise._core.checks import check_type
from equipoise.networks.base import FeaturesAndHead

_HEADS = ("head", "fc", "classifier", "heads", "output", "last_linear")


class AdaptedNetwork(FeaturesAndHead):
    """A module whose last linear layer was taken out and stands apart as the head; see :func:`adapt`.

    Parameters
    ----------
    body : nn.Module
        The module without its head.
    head : nn.Linear
        The layer that was taken out; it is kept if it has ``n_classes`` outputs.
    n_classes : int
        The number of classes.
    frozen : bool
        Whether the body is not trained.
    """

    def __init__(self, body: nn.Module, head: nn.Linear, n_classes: int, frozen: bool) -> None:
        super().__init__(head.in_features, n_classes)
        if head.out_features == n_classes:
            self.head = head
        self.body, self.frozen = body, frozen
        if frozen:
            body.requires_grad_(False)
            body.eval()

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
        found: Tensor = self.body(x)
        if found.ndim != 2 or found.shape[1] != self.head.in_features:
            raise ValueError(
                f"the head of {type(self.body).__name__} must be its last layer and take "
                f"{self.head.in_features} features, but without it a batch has the shape {tuple(found.shape)}"
            )
        return found

    def train(self, mode: bool = True) -> AdaptedNetwork:
        """A frozen body stays as it is: its normalization keeps the statistics it came with.

        Parameters
        ----------
        mode : bool
            Whether to train or to evaluate.

        Returns
        -------
        AdaptedNetwork
            The network itself.
        """
        super().train(mode)
        if self.frozen:
            self.body.eval()
        return self


def adapt(
    module: nn.Module,
    n_classes: int,
    *,
    head: str | None = None,
    weights: str | os.PathLike[str] | Mapping[str, Tensor] | None = None,
    frozen: bool = False,
) -> nn.Module:
    """A module as a network with ``features(x)`` and a linear ``head`` of ``n_classes`` outputs.

    Parameters
    ----------
    module : nn.Module
        Changed in place: its head is taken out. A module that is such a network already, and that no option
        changes, is returned as it is.
    n_classes : int
        A head with another number of outputs is replaced by a fresh one.
    head : str, optional
        The name of the last linear layer, such as ``"fc"`` or ``"classifier.2"``, or of a sequence that ends in it.
        By default one of the usual names, else the last linear layer of all.
    weights : path or mapping, optional
        Weights for the module as it was given: a safetensors file, or a state dict.
    frozen : bool
        Train the head alone.

    Returns
    -------
    nn.Module
        The network.

    Raises
    ------
    TypeError
        If the head is not linear.

    Examples
    --------
    >>> import torch
    >>> net = adapt(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1000)), 3, frozen=True)
    >>> net.features(torch.zeros(2, 4)).shape, net.head.out_features
    (torch.Size([2, 8]), 3)
    >>> [name for name, value in net.named_parameters() if value.requires_grad]
    ['head.weight', 'head.bias']
    """
    check_type("module", module, nn.Module)
    if weights is not None:
        _load(module, weights)
    if head is None and not frozen and _is_network(module) and _outputs(module) == n_classes:
        return module
    name = _head_name(module) if head is None else _inner(module, head)
    place, _, last = name.rpartition(".")
    owner = module.get_submodule(place)
    layer = owner.get_submodule(last)
    if not isinstance(layer, nn.Linear):
        raise TypeError(f"the head {name!r} must be a linear layer, got {type(layer).__name__}")
    setattr(owner, last, nn.Identity())
    return AdaptedNetwork(module, layer, n_classes, frozen)


def _outputs(module: Any) -> int:
    return int(module.head.out_features)


def _is_network(module: Any) -> bool:
    """Whether a module keeps the contract of :class:`~equipoise.networks.Network`."""
    features = getattr(module, "features", None)
    return (
        callable(features)
        and not isinstance(features, nn.Module)
        and isinstance(getattr(module, "head", None), nn.Linear)
    )


def has_head(module: nn.Module) -> bool:
    """Whether a module has a head by a usual name, or ends in a linear layer."""
    ends = isinstance(module, nn.Sequential) and len(module) and isinstance(module[-1], nn.Linear)
    return bool(ends) or _usual_name(module) is not None


def _usual_name(module: nn.Module) -> str | None:
    for name in _HEADS:
        part = getattr(module, name, None)
        if isinstance(part, nn.Module) and any(isinstance(layer, nn.Linear) for layer in part.modules()):
            return name
    return None


def _head_name(module: nn.Module) -> str:
    usual = _usual_name(module)
    if usual is not None:
        return _inner(module, usual)
    linear = [name for name, part in module.named_modules() if isinstance(part, nn.Linear)]
    if not linear:
        raise TypeError(
            f"{type(module).__name__} has no linear layer that could be its head: name one with head"
        )
    return linear[-1]


def _inner(module: nn.Module, name: str) -> str:
    """The last linear layer of a named part; the part itself if it has no other."""
    try:
        part = module.get_submodule(name)
    except AttributeError:
        parts = ", ".join(key for key, _ in module.named_children()) or "none"
        raise ValueError(f"{type(module).__name__} has no part {name!r}; its parts are {parts}") from None
    children = [key for key, _ in part.named_children()]
    return _inner(module, f"{name}.{children[-1]}") if children else name


def _load(module: nn.Module, weights: Any) -> None:
    if isinstance(weights, Mapping):
        state = dict(weights)
    else:
        from safetensors.torch import load_file

        path = Path(weights)
        if path.suffix != ".safetensors":
            raise ValueError(
                f"weights must be a .safetensors file or a state dict, got {path.name}: other files can run code "
                "when they are read"
            )
        state = load_file(str(path))
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise ValueError(f"the weights do not fit {type(module).__name__}: {first}") from None


def build_from_library(name: str, input_shape: Sequence[int], n_classes: int, **options: Any) -> nn.Module:
    """A backbone of torchvision or timm by name, such as ``"torchvision/resnet18"``, without weights.

    Parameters
    ----------
    name : str
        ``"torchvision/…"`` or ``"timm/…"``.
    input_shape : (channels, height, width)
    n_classes : int
    **options
        Those of :func:`adapt`.
    """
    library, _, model = name.partition("/")
    channels = int(input_shape[0])
    try:
        if library == "timm":
            import timm  # type: ignore[import-not-found]

            made: nn.Module = timm.create_model(model, pretrained=False, in_chans=channels)
        else:
            import torchvision  # type: ignore[import-not-found]

            made = torchvision.models.get_model(model, weights=None)
    except ModuleNotFoundError:
        raise ModuleNotFoundError(f"module {name!r} needs {library}: pip install {library}") from None
    return adapt(made, n_classes, **options)


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse what :func:`adapt` does not take, by name."""
    unknown = sorted(set(options) - {"head", "weights", "frozen"})
    if unknown:
        raise ValueError(f"module_params of a module are head, weights and frozen, got {', '.join(unknown)}")


__all__ = ["AdaptedNetwork", "adapt", "build_from_library", "check_options", "has_head"]
