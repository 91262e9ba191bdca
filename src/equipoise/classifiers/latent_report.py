"""The report of a class-preserving latent space: its theory, measured."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch.nn import functional as F

from equipoise._core.checks import FloatArray, IntArray
from equipoise._core.random import as_generator
from equipoise.report import PALETTE, Facts, Note, Picture, Report, Section, Table, Text, literal, new_axes
from equipoise.theory.mixing import (
    lipschitz_bound,
    loss_variance,
    mixing_factor,
    risk_variance,
    scatter,
    separable_classes,
    smallest_eigenvalue,
)

if TYPE_CHECKING:
    from equipoise.classifiers.autoencoder import AutoencoderClassifier

_ROWS_OF_A_CLASS = 300  # for separability and the picture
DRAWS = 2000  # mixes a class
_RESAMPLES = 200  # of a class, for the variance of its risk


def _preservation_table(
    clf: AutoencoderClassifier, z: FloatArray, codes: IntArray, rng: np.random.Generator
) -> pd.DataFrame:
    """A row per class: its latents on its side, its mixes that keep its class, and a plane that parts it off."""
    picked = [_at_most(np.flatnonzero(codes == code), _ROWS_OF_A_CLASS, rng) for code in np.unique(codes)]
    some = np.concatenate(picked)
    rows = []
    for code, separable in zip(np.unique(codes), separable_classes(z[some], codes[some]), strict=True):
        members = np.flatnonzero(codes == code)
        mixes = _mixes(clf, z, members, int(code), rng)
        rows.append(
            {
                "class": clf.classes_[code],
                "rows": len(members),
                "on its side": float((_decide(clf, z[members]) == code).mean()),
                "mixes that keep the class": float((_decide(clf, mixes) == code).mean()),
                "separable": bool(separable),
            }
        )
    return pd.DataFrame(rows)


def _variance_table(
    clf: AutoencoderClassifier, z: FloatArray, codes: IntArray, rng: np.random.Generator
) -> pd.DataFrame:
    """The risk's variance and bias under the fitted mixing, a class; and Prop 2's condition for one mix's loss."""
    rows = []
    for code in np.unique(codes):
        members = np.flatnonzero(codes == code)
        losses = _losses(clf, z[members], code)
        at_mean = _losses(clf, z[members].mean(axis=0, keepdims=True), code)[0]
        found = risk_variance(
            partial(_losses, clf, code=int(code)),
            z[members],
            partial(_weights, clf, code=int(code), rng=rng),
            n_mixed=clf.n_mixed,
            n_rows=min(len(members), _ROWS_OF_A_CLASS),
            n_resamples=_RESAMPLES,
            random_state=rng,
        )
        low, high = found.ratio_interval()
        weights = _weights(clf, _groups(clf, z, members, rng), code, rng)
        rows.append(
            {
                "class": clf.classes_[code],
                "risk": found.risk,
                "bias with mixing": found.bias,
                "variance ratio": found.ratio,
                "ratio, low": low,
                "ratio, high": high,
                "squared error ratio": found.error_ratio,
                "mean ‖α‖²": float((weights**2).sum(axis=1).mean()),
                "largest ‖α‖² (one loss)": loss_variance(losses, float(at_mean)).largest_norm,
            }
        )
    return pd.DataFrame(rows)


def _lipschitz_table(
    clf: AutoencoderClassifier, z: FloatArray, codes: IntArray, rng: np.random.Generator
) -> tuple[pd.DataFrame, float]:
    """Prop 4 on as many unit latents as keep XXᵀ regular: the bound, and ‖w_α‖ itself, for some α."""
    counts = np.bincount(codes)
    rarest = int(np.where(counts > 0, counts, counts.max() + 1).argmin())
    n = max(4, z.shape[1] // 4)
    sides = [np.flatnonzero(codes == rarest), np.flatnonzero(codes != rarest)]
    own, rest = (_at_most(rows, n // 2, rng) for rows in sides)
    rows = np.concatenate([own, rest])
    labels = np.repeat([1.0, -1.0], [len(own), len(rest)])
    X = z[rows] / np.maximum(np.linalg.norm(z[rows], axis=1, keepdims=True), 1e-300)
    partners = np.concatenate([rng.permutation(len(own)), len(own) + rng.permutation(len(rest))])
    floor = max(float(np.linalg.eigvalsh(X @ X.T)[0]), 1e-12)
    k = smallest_eigenvalue(partners)
    table = []
    for alpha in (1.0, 0.9, 0.75, 0.6):
        mixed = alpha * X + (1 - alpha) * X[partners]
        norm = float(np.linalg.norm(np.linalg.pinv(mixed) @ labels))
        bound = float(lipschitz_bound(len(rows), alpha, k, floor))
        table.append({"α": alpha, "d(α)": float(mixing_factor(alpha, k)), "‖w_α‖": norm, "bound": bound})
    return pd.DataFrame(table), floor


def latent_report(
    clf: AutoencoderClassifier, X: npt.ArrayLike, y: npt.ArrayLike, *, random_state: Any = 0
) -> Report:
    """Label preservation, scatter, the risk's variance and bias, Lipschitz bound and a picture, on given data."""
    rng = as_generator(random_state)
    labels = np.asarray(y)
    codes = np.searchsorted(clf.classes_, labels)
    known = codes < len(clf.classes_)
    if not known.all() or (clf.classes_[codes] != labels).any():
        raise ValueError("y must hold the classes that the classifier was trained on")
    z = clf.latents(X)
    if len(z) != len(codes):
        raise ValueError(f"X and y must have the same length, got {len(z)} and {len(codes)}")
    preserved = _preservation_table(clf, z, codes, rng)
    spread = scatter(z, codes)
    preserved["within / between scatter"] = spread.within / spread.between
    variance = _variance_table(clf, z, codes, rng)
    lipschitz, floor = _lipschitz_table(clf, z, codes, rng)
    share = f"{(_decide(clf, z) == codes).mean():.1%}"
    facts = Facts(
        [
            ("latents on their class's side", share),
            ("mixes that keep their class", f"{preserved['mixes that keep the class'].mean():.1%}"),
            ("classes that a plane parts off", f"{int(preserved['separable'].sum())} of {len(preserved)}"),
            ("scatter within classes / between them", f"{spread.ratio:.2f}"),
        ]
    )
    sections = [
        Section(
            "Label preservation",
            [
                facts,
                Text(
                    f"Separability is decided exactly, on at most {_ROWS_OF_A_CLASS} rows a class; where a plane "
                    "parts a class off, every convex mix of it keeps its side (Prop 1)."
                ),
                Table.from_frame(
                    preserved,
                    formats=dict.fromkeys(
                        ("on its side", "mixes that keep the class", "within / between scatter"), ".3f"
                    ),
                ),
            ],
        ),
        Section(
            "Variance and bias of the risk",
            [_risk_note(variance, clf.mixing == "learned"), Table.from_frame(variance)],
        ),
        Section("Lipschitz constant", [_lipschitz_note(floor), Table.from_frame(lipschitz)]),
        Section("Latent space", [_latent_picture(z, codes, clf.classes_, rng)]),
    ]
    return Report(
        "A class-preserving latent space",
        sections,
        data={
            "preservation": preserved.to_dict("list"),
            "variance": variance.to_dict("list"),
            "scatter": {"within": spread.within.tolist(), "between": spread.between, "ratio": spread.ratio},
            "lipschitz": lipschitz.to_dict("list"),
        },
    )


def _latent_picture(
    z: FloatArray, codes: IntArray, classes: npt.NDArray[Any], rng: np.random.Generator
) -> Picture:
    """The two leading principal components, at most ``ROWS_OF_A_CLASS`` points per class."""
    picked = [_at_most(np.flatnonzero(codes == code), _ROWS_OF_A_CLASS, rng) for code in np.unique(codes)]
    centered = z - z[np.concatenate(picked)].mean(axis=0)
    axes = np.linalg.svd(centered[np.concatenate(picked)], full_matrices=False)[2][:2]
    figure, panel = new_axes(6.4, 4.8)
    for code, rows in zip(np.unique(codes), picked, strict=True):
        at = centered[rows] @ axes.T
        across = at[:, 1] if at.shape[1] > 1 else np.zeros(len(at))
        look = {"color": PALETTE[code % len(PALETTE)], "label": literal(classes[code])}
        panel.scatter(at[:, 0], across, s=6, alpha=0.6, **look)
    panel.set_xlabel("first principal component")
    panel.set_ylabel("second principal component")
    panel.legend(markerscale=2, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return Picture.from_matplotlib(
        figure, "latent-space", "Principal components of the latents.", "scatter plot"
    )


def _risk_note(variance: pd.DataFrame, learned: bool) -> Note:
    more = int((variance["ratio, low"] > 1).sum())
    less = int((variance["ratio, high"] < 1).sum())
    bias = (
        "The mixer's weights follow the latents, so mixed losses may be smaller or larger than real ones: that bias"
        if learned
        else "Mixed losses are smaller than real ones on average (the loss is convex): that bias"
    )
    return Note(
        f"The risk of a class is resampled {_RESAMPLES} times and mixed as in training, so mixes share parents. "
        f"The variance ratio (with mixing over without, 95 % interval) is above 1 in {more} and below 1 in {less} "
        f"of {len(variance)} classes. {bias} does not vanish with more rows, and a squared error ratio above 1 "
        "says that the mixed risk is the worse estimate of the risk. Proposition 2's condition, mean ‖α‖² ≤ "
        "largest ‖α‖², is about the loss of a single mix and promises nothing for the risk.",
        "note",
    )


def _lipschitz_note(floor: float) -> Note:
    return Note(
        f"The smallest eigenvalue of XXᵀ is {floor:.2g} here; the ½ of the proposition is for nearly orthogonal "
        "rows. The bound with mixing is never below the bound without (d(α) ≤ 1), and as long as mixing can be "
        "undone ‖w_α‖ does not change at all: partners share their label, so the same plane fits rows and mixes.",
        "note",
    )


def _at_most(rows: IntArray, limit: int, rng: np.random.Generator) -> IntArray:
    return rows if len(rows) <= limit else rng.choice(rows, limit, replace=False)


def _groups(
    clf: AutoencoderClassifier, z: FloatArray, members: IntArray, rng: np.random.Generator
) -> FloatArray:
    return np.asarray(z[rng.choice(members, size=(DRAWS, clf.n_mixed))])


def _weights(
    clf: AutoencoderClassifier, groups: FloatArray, code: int, rng: np.random.Generator
) -> FloatArray:
    """Mixing weights as the classifier was trained with: from its mixer, or drawn as it drew them."""
    n, t = groups.shape[:2]
    if clf.mixing != "learned":
        return rng.dirichlet(np.full(t, 2.0 if clf.mixing == "beta" else 1.0), size=n)
    network: Any = clf.network_
    noise = torch.from_numpy(rng.normal(size=(n, groups.shape[2]))).float()
    with torch.inference_mode():
        drawn = network.mix_weights(torch.from_numpy(groups).float(), torch.full((n,), int(code)), noise)
    return np.asarray(drawn.double().numpy())


def _mixes(
    clf: AutoencoderClassifier, z: FloatArray, members: IntArray, code: int, rng: np.random.Generator
) -> FloatArray:
    groups = _groups(clf, z, members, rng)
    return np.asarray(np.einsum("ij,ijk->ik", _weights(clf, groups, code, rng), groups))


def _logits(clf: AutoencoderClassifier, z: FloatArray) -> torch.Tensor:
    head: Any = clf.network_.head
    with torch.no_grad():
        return F.linear(torch.from_numpy(z), head.weight.double(), head.bias.double())


def _decide(clf: AutoencoderClassifier, z: FloatArray) -> IntArray:
    return np.asarray(_logits(clf, z).argmax(dim=1).numpy())


def _losses(clf: AutoencoderClassifier, z: FloatArray, code: int) -> FloatArray:
    """Cross-entropy of each latent: convex in z and ≥ 0, because the classifier is linear."""
    codes = torch.full((len(z),), int(code))
    return np.asarray(F.cross_entropy(_logits(clf, z), codes, reduction="none").numpy())
