"""Data sets by name: imbalanced-learn's benchmark, MVTec's features, KEEL's tables, the embedded sets."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from equipoise._core.checks import check_choice
from equipoise.datasets import (
    IMBLEARN_BENCHMARK,
    Dataset,
    available_imblearn_benchmark,
    available_keel,
    available_mvtec_features,
    find_celeba_hair_files,
    find_imagenet100_files,
    load_breast_cancer_imbalanced,
    load_cifar10,
    load_cifar100,
    load_digits_imbalanced,
    load_fashion_mnist,
    load_imblearn_benchmark,
    load_keel,
    load_medmnist,
    load_mnist,
    load_mvtec_features,
    load_svhn,
    load_wine_imbalanced,
)
from equipoise.datasets.home import data_home

_EMBEDDED: Mapping[str, Callable[[], Dataset]] = {
    "digits": load_digits_imbalanced,
    "breast_cancer": load_breast_cancer_imbalanced,
    "wine": load_wine_imbalanced,
}
_MULTICLASS = frozenset({"digits", "wine"})
_MVTEC, _KEEL = "mvtec-", "keel-"


def _dataset_names() -> list[str]:
    """Every name that can be asked for, whether its file is here or not.

    >>> "digits" in _dataset_names() and "ecoli" in _dataset_names()
    True
    """
    mvtec = [f"{_MVTEC}{category}" for category in available_mvtec_features()]
    keel = [f"{_KEEL}{name}" for name in available_keel()]
    return [*_EMBEDDED, *IMBLEARN_BENCHMARK, *mvtec, *keel]


def available_datasets() -> list[str]:
    """The names whose data is on this machine."""
    here = {*available_imblearn_benchmark(), *_EMBEDDED}
    return [name for name in _dataset_names() if name in here or name.startswith((_MVTEC, _KEEL))]


def check_available(names: list[str]) -> None:
    """Every data set is known and here, or say which is not."""
    known = _dataset_names()
    for name in names:
        check_choice("data set", name, known)
    absent = sorted(set(names) - set(available_datasets()))
    if absent:
        raise ValueError(
            f"the data of {', '.join(absent)} is not under {data_home()} (see EQUIPOISE_DATA); "
            f"there are {', '.join(available_datasets())}"
        )


_IMAGES: Mapping[str, Callable[[], object]] = {
    "mnist": lambda: load_mnist("test", pixels="uint8"),
    "fashion-mnist": lambda: load_fashion_mnist("test", pixels="uint8"),
    "cifar10": lambda: load_cifar10("test", pixels="uint8"),
    "cifar100": lambda: load_cifar100("test", pixels="uint8"),
    "pneumoniamnist": lambda: load_medmnist("pneumoniamnist", "test", pixels="uint8"),
    "svhn": lambda: load_svhn("test", pixels="uint8"),
    "celeba": lambda: find_celeba_hair_files("test"),
    "imagenet100": lambda: find_imagenet100_files("test"),
}


def check_required(names: Sequence[str]) -> None:
    """The data that a study says it needs, tables or images, is here and readable."""
    for name in names:
        check_choice("required data", name, [*_IMAGES, *_dataset_names()])
        if name in _IMAGES:
            _IMAGES[name]()
        else:
            check_available([name])


def is_multiclass(name: str) -> bool:
    return name in _MULTICLASS


@functools.lru_cache(maxsize=2)  # the cells of one data set follow each other
def load(name: str) -> Dataset:
    """A data set by its name.

    >>> load("breast_cancer").class_counts
    {0: 357, 1: 35}
    """
    check_available([name])
    if name in _EMBEDDED:
        return _EMBEDDED[name]()
    if name.startswith(_MVTEC):
        return load_mvtec_features(name.removeprefix(_MVTEC))
    if name.startswith(_KEEL):
        return load_keel(name.removeprefix(_KEEL))
    return load_imblearn_benchmark(name)
