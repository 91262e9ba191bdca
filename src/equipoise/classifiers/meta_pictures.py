"""Pictures of what a MetaClassifier learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from equipoise.report import PALETTE, literal, new_axes

if TYPE_CHECKING:
    from equipoise.classifiers.meta import MetaClassifier

_MOST_LINES = 10


def plot_offset_curve(classifier: MetaClassifier) -> Any:
    """Learned h against p(z|x), a line for each share of forgetting.

    Parameters
    ----------
    classifier : MetaClassifier
        A fitted classifier.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    curve = classifier.offset_curve()
    figure, ax = new_axes(6.5, 3.6)
    for color, (share, h) in zip(PALETTE, curve.items(), strict=False):
        ax.plot(curve.index, h, color=color, label=f"forgotten in {share:.0%} of visits")
    ax.set(xlabel="p(z|x), with p(y|x) = 1 − p(z|x)", ylabel="learned h(x, z)", xlim=(0, 1))
    ax.legend(frameon=False, fontsize=8)
    return figure


def plot_weight_curve(classifier: MetaClassifier) -> Any:
    """The weight of a sample against its loss, as Meta-Weight-Net learned it.

    Parameters
    ----------
    classifier : MetaClassifier
        A fitted classifier.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    curve = classifier.weight_curve()
    figure, ax = new_axes(6.5, 3.6)
    ax.plot(curve.index, curve, color=PALETTE[0])
    ax.set(xlabel="loss of the sample, −log p(y|x)", ylabel="learned weight, before normalization")
    return figure


def plot_scatter(classifier: MetaClassifier) -> Any:
    """The class-scatter matrix DS_yz as a heat map.

    Parameters
    ----------
    classifier : MetaClassifier
        A fitted classifier.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    scatter = classifier.scatter()
    size = min(max(4.2, 0.42 * len(scatter) + 2), 12)
    figure, ax = new_axes(size + 0.8, size)
    ax.grid(False)
    values = np.ma.masked_where(np.eye(len(scatter), dtype=bool), scatter.to_numpy())
    image = ax.imshow(values, cmap="viridis")
    names = [literal(name) for name in scatter.index]
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right")
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="against class z", ylabel="class y")
    figure.colorbar(image, ax=ax, label="data scatter of y along ω$_y$ − ω$_z$", shrink=0.8)
    return figure


def plot_weights_over_time(classifier: MetaClassifier) -> Any:
    """The mean weight of each class over the epochs of meta-learning; the most and least frequent if many.

    Parameters
    ----------
    classifier : MetaClassifier
        A fitted classifier.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    weights = classifier.weights_over_time()
    order = np.argsort(-classifier.data_prior_, kind="stable")
    if len(order) > _MOST_LINES:
        order = np.r_[order[: _MOST_LINES // 2], order[-_MOST_LINES // 2 :]]
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, ax = new_axes(6.5, 3.6)
    for color, code in zip(PALETTE, order, strict=False):
        name = f"{literal(weights.columns[code])} ({classifier.data_prior_[code]:.1%} of the data)"
        ax.plot(weights.index, weights.iloc[:, code], color=color, marker=".", label=name)
    ax.set(xlabel="epoch", ylabel="pull on the true logit\n(cross-entropy = 1)", yscale="log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure
