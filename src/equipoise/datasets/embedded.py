"""Small sets that come with scikit-learn, made imbalanced: no download, no file."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from equipoise._core.random import RandomState
from equipoise.datasets.dataset import Dataset


def load_digits_imbalanced(*, random_state: RandomState = 0, **how: Any) -> Dataset:
    """scikit-learn's 8×8 digits, long-tailed: 178 zeros down to 8 nines unless told otherwise.

    ``how`` goes to `make_imbalanced`; the default is ``profile="exponential", ratio=20``.
    Pixels lie in [0, 1].

    Parameters
    ----------
    random_state : int, generator or None
        Which samples are kept.
    **how : Any
        Arguments of :func:`make_imbalanced`, instead of the default counts.

    Returns
    -------
    Dataset
        The samples and their labels.

    Examples
    --------
    >>> list(load_digits_imbalanced().class_counts.values())
    [178, 127, 91, 65, 47, 33, 24, 17, 12, 8]
    """
    data = _as_dataset(load_digits(), "digits")
    data = replace(data, X=data.X / 16.0, image_shape=(1, 8, 8))
    return data.imbalanced(random_state=random_state, **(how or {"profile": "exponential", "ratio": 20}))


def load_breast_cancer_imbalanced(*, random_state: RandomState = 0, **how: Any) -> Dataset:
    """Wisconsin breast cancer with malignant (label 1, the positive class) made rare: 357 to 35.

    Parameters
    ----------
    random_state : int, generator or None
        Which samples are kept.
    **how : Any
        Arguments of :func:`make_imbalanced`, instead of the default counts.

    Returns
    -------
    Dataset
        The samples and their labels.

    Examples
    --------
    >>> load_breast_cancer_imbalanced().class_counts
    {0: 357, 1: 35}
    """
    data = _as_dataset(load_breast_cancer(), "breast_cancer")
    # its own coding is 0 = malignant; here the rare class is the positive one
    data = replace(data, y=1 - data.y, target_names=("benign", "malignant"))
    return data.imbalanced(random_state=random_state, **(how or {"profile": "step", "ratio": 10}))


def load_wine_imbalanced(*, random_state: RandomState = 0, **how: Any) -> Dataset:
    """Wine, three cultivars: 59, 26 and 11 samples.

    Parameters
    ----------
    random_state : int, generator or None
        Which samples are kept.
    **how : Any
        Arguments of :func:`make_imbalanced`, instead of the default counts.

    Returns
    -------
    Dataset
        The samples and their labels.

    Examples
    --------
    >>> load_wine_imbalanced().class_counts
    {0: 59, 1: 26, 2: 11}
    """
    data = _as_dataset(load_wine(), "wine")
    return data.imbalanced(random_state=random_state, **(how or {"profile": "exponential", "ratio": 5}))


def _as_dataset(bunch: Any, name: str) -> Dataset:
    targets, features = (tuple(map(str, texts)) for texts in (bunch.target_names, bunch.feature_names))
    return Dataset(bunch.data, bunch.target.astype(np.int64), name, targets, features)
