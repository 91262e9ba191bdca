"""Which of two classes does a diffusion model memorize first, and is it the one that theory names? (004 §4)"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from equipoise._core.random import derive_seed
from equipoise._core.solution import ConvergenceWarning
from equipoise.studies import Spec
from equipoise.studies.grid import Settings

from .images import CIFAR_NAMES, NAMES, REFERENCES, fold, pair

if TYPE_CHECKING:
    from equipoise.theory.diffusion import ClassMixture

METHODS = ("plain", "measured", "equalized")
PARTNERS = tuple(name for name in NAMES if name != REFERENCES["fashion-mnist"])
THRESHOLDS = {"": 1 / 3, "_sixth": 1 / 6, "_twelfth": 1 / 12}
_LEAST_SHARE = 0.2  # no class is drawn less, whatever the prescription
_RF_THRESHOLD = 1.2  # of the test error, as in the paper's main text
_OTHER_IMAGES = 1000  # added to the seed of the images that a first run is watched on


def described(X: npt.NDArray[np.float64], codes: npt.NDArray[np.int64]) -> ClassMixture:
    """The pair as the theory sees it: images in units of the pair's standard deviation, not centered."""
    from equipoise.theory.diffusion import ClassMixture, unit_scale

    return ClassMixture.from_data(X, codes, preprocess=unit_scale)


def theory(X: npt.NDArray[np.float64], codes: npt.NDArray[np.int64]) -> dict[str, float]:
    """The two classes' statistics and predicted times in the limit of large dimension, from these very images."""
    from equipoise.theory.diffusion import predict_order

    mixture = described(X, codes)
    norms = mixture.centroid_norms
    found = predict_order(X, codes, dimension=None, n_bootstrap=0, threshold=_RF_THRESHOLD)
    first, second = found.memorization_time
    return {
        "variance_sneaker": mixture.variances[0],
        "variance_partner": mixture.variances[1],
        "norm_sneaker": norms[0],
        "norm_partner": norms[1],
        "cosine": mixture.centroid_cosines[0, 1],
        "predicted_sneaker": first,
        "predicted_partner": second,
        "predicted_gap": first - second,
        "predicted_log_gap": float(np.log(first / second)),
    }


def prescribed(
    X: npt.NDArray[np.float64], codes: npt.NDArray[np.int64], seed: int
) -> npt.NDArray[np.float64]:
    """How often the theory would draw each class, at the paper's ratios of features and samples."""
    from equipoise.theory.diffusion import RandomFeatures, equalizing_weights

    model = RandomFeatures(described(X, codes), 0.01, features_per_dim=100.0, samples_per_dim=5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # then the weights that come closest
        found = equalizing_weights(
            model,
            "memorization",
            lowest_weight=_LEAST_SHARE,
            redraw=True,
            threshold=_RF_THRESHOLD,
            random_state=seed,
        )
    return np.asarray(found.value.weights)


def run_cell(
    partner: str,
    share: float,
    method: str,
    seed: int,
    images: int,
    pixels: int,
    fold_by: int,
    pool: int,
    data: str,
    **settings: Any,
) -> dict[str, Any]:
    """Train on one pair until both classes are memorized or the steps are spent; theory's word beside it."""
    from .watched_training import Seen, watch

    def trained(number: int, shares: npt.NDArray[np.float64] | None) -> Seen:
        """On the images of this number; ``settings`` are those of :class:`DDPM` and of the looks."""
        X, codes = pair(partner, share, images, pixels, number, data)
        more, more_codes = pair(partner, 0.5, pool, pixels, number, data)
        drawn = np.bincount(codes) / len(codes) if shares is None else shares
        training_seed = derive_seed(number, "clock", partner, share)
        pool_of_both = (fold(more, fold_by), more_codes)
        return watch(fold(X, fold_by), codes, pool_of_both, shares=drawn, seed=training_seed, **settings)

    X, codes = pair(partner, share, images, pixels, seed, data)
    shares = own = np.bincount(codes) / len(codes)
    if method == "measured":  # the clock of a plain run on other images sets the shares
        shares = evened(trained(seed + _OTHER_IMAGES, None).table, own)
    elif method == "equalized":
        shares = prescribed(X, codes, seed)
    seen = trained(seed, shares)
    result: dict[str, Any] = {"drawn_share_partner": shares[1], **theory(X, codes), **curves(seen.table)}
    result.update(seen.quality)
    result["assigner_accuracy"] = seen.assigner_accuracy
    result["assigner_macro_f1"] = seen.assigner_macro_f1
    result["loss"] = seen.loss
    if share == 0.5 and method == "plain" and seed == 0:
        result["gallery"] = seen.gallery
    return result


def evened(table: Any, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Shares that would have evened out the run that was watched; what did not cross counts as crossing last."""
    from equipoise.generative import evening_shares

    found = curves(table)
    times = [found[f"time_{name}"] or found["step"][-1] for name in ("sneaker", "partner")]
    return evening_shares(times, shares)


def curves(table: Any) -> dict[str, Any]:
    """Fractions by step, times and gaps of the two classes from the monitor's looks.

    A gap is log t(Sneaker) − log t(partner), positive where the partner comes first. Where one class has not
    crossed by the last look, that look stands for its time and ``bound`` is the direction in which the truth lies.
    """
    from equipoise.generative import crossing_time

    result: dict[str, Any] = {"step": sorted({int(step) for step in table["step"]})}
    last = float(result["step"][-1])
    for code, name in enumerate(("sneaker", "partner")):
        own = table[table["label"] == code].sort_values("step")
        result[f"fraction_{name}"] = [None if np.isnan(f) else float(f) for f in own["fraction"]]
        result[f"drawn_{name}"] = own["n"].astype(int).tolist()
        for column in ("nearest", "second"):
            if column in own:
                result[f"{column}_{name}"] = [None if np.isnan(d) else float(d) for d in own[column]]
        for suffix, threshold in THRESHOLDS.items():
            time = crossing_time(own["step"].to_numpy(), own["fraction"].to_numpy(), threshold)
            result[f"time_{name}{suffix}"] = time if np.isfinite(time) else None
    for suffix in THRESHOLDS:
        times = [result[f"time_{name}{suffix}"] for name in ("sneaker", "partner")]
        known = [time is not None for time in times]
        first, second = (time or last for time in times)
        result[f"log_gap{suffix}"] = float(np.log(first / second)) if any(known) else None
        result[f"bound{suffix}"] = int(known[1]) - int(known[0])
    return result


def cells(
    partners: Sequence[str] = PARTNERS,
    shares: Sequence[float] = (0.5, 0.25, 0.75),
    seeds: Sequence[int] = (0, 1, 2),
    treated: Sequence[str] = ("Bag", "Coat", "Sandal", "Trouser", "Shirt"),
    cifar_partners: Sequence[str] = ("Automobile",),
    images: int = 40,
    pixels: int = 14,
    fold_by: int = 2,
    preset: str = "tiny",
    batch_size: int = 64,
    lr: float = 4e-3,
    steps: int = 3000,
    first_look: int = 400,
    looks_per_decade: int = 10,
    n_samples: int = 160,
    stride: int | None = 50,
    pool: int = 2000,
    average: float | None = 0.99,
    assigner: str = "convnet",
    stop: str | None = "all memorized",
    cifar_data: str = "cifar10-test",
    cifar_images: int = 40,
    cifar_pixels: int = 8,
    larger: Sequence[str] = ("Bag",),
    larger_images: int = 200,
    larger_steps: int = 15_000,
) -> Iterator[Settings]:
    """Equal shares of all seeds first, then the intervention, CIFAR, other shares and the theory's prescription.

    Last come balanced pairs of more images, which take as much longer to be memorized.
    """
    equal, others = shares[0], shares[1:]
    settings: Settings = {
        "images": images,
        "pixels": pixels,
        "fold_by": fold_by,
        "preset": preset,
        "batch_size": batch_size,
        "lr": lr,
        "steps": steps,
        "first_look": first_look,
        "looks_per_decade": looks_per_decade,
        "n_samples": n_samples,
        "stride": stride,
        "pool": pool,
        "average": average,
        "assigner": assigner,
        "stop": stop,
        "second": "any",
        "data": "fashion-mnist",
    }

    def runs(names: Sequence[str], share: float, method: str, numbers: Sequence[int]) -> Iterator[Settings]:
        for seed, partner in product(numbers, names):
            yield {"partner": partner, "share": share, "method": method, "seed": seed, **settings}

    yield from runs(partners, equal, "plain", seeds)
    yield from runs(treated, equal, "measured", seeds)
    cifar = {
        "data": cifar_data,
        "second": "class",
        "images": cifar_images,
        "pixels": cifar_pixels,
        "fold_by": 1,
    }
    for cell in runs(cifar_partners, equal, "plain", seeds):
        yield {**cell, **cifar}
    for share in others:
        yield from runs(partners, share, "plain", seeds)
    yield from runs(treated, equal, "equalized", seeds[:1])
    more = {
        "images": larger_images,
        "steps": larger_steps,
        "first_look": first_look * larger_images // images,
    }
    for cell in runs(larger, equal, "plain", seeds[:1]):
        yield {**cell, **more}


def check(cells: list[Settings]) -> None:
    for key, known in (("partner", {*PARTNERS, *CIFAR_NAMES}), ("method", set(METHODS))):
        unknown = sorted({cell[key] for cell in cells} - known)
        if unknown:
            raise ValueError(f"unknown {key} {', '.join(unknown)}; there are {', '.join(sorted(known))}")


SPEC = Spec(
    name="diffusion-clock",
    title="Which class a diffusion model memorizes first: Sneaker against nine partners",
    run_cell=run_cell,
    grid=cells,
    sizes={
        "tiny": {
            "partners": ["Bag"],
            "shares": [0.5],
            "seeds": [0],
            "treated": ["Bag"],
            "cifar_partners": [],
            "images": 16,
            "batch_size": 16,
            "steps": 40,
            "first_look": 10,
            "n_samples": 12,
            "stride": 4,
            "pool": 60,
            "larger": [],
        },
        "small": {},
        "paper": {
            "seeds": [0],
            "treated": [],
            "cifar_data": "cifar10",
            "cifar_images": 3000,
            "cifar_pixels": 32,
            "images": 8000,
            "pixels": 28,
            "fold_by": 1,
            "preset": "paper",
            "lr": 1e-4,
            "steps": 4_000_000,
            "first_look": 10,
            "looks_per_decade": 5,
            "n_samples": 500,
            "stride": None,
            "pool": 8000,
            "average": None,
            "assigner": "resnet18",
            "stop": None,
            "larger": [],
        },
    },
    reference="Nicoletti et al., §4, appendix J, Figs 5, 6 and 11 to 23",
    paper={
        "order": "every partner but Trouser reaches the threshold before Sneaker (App. J.2)",
        "variance": "the gap grows with the partner's variance (Fig 5b)",
        "share": "a larger share of the partner generally reduces the gap (Fig 5c)",
        "norm": "a smaller centroid norm of the partner goes with a larger gap (Fig 5d)",
        "assigner": "balanced accuracy 97.3 % or more (ResNet-18)",
    },
    differs=(
        "40 images a pair at 14×14 pixels (means of 2×2), folded into 7×7 with four channels, instead of 8000 "
        "at 28×28; a U-Net with 16 and 32 channels (156 thousand weights) and up to 3000 steps of 64 images at a "
        "rate of 4e-3, instead of 64 to 256 channels and 4 million steps at 1e-4. With so few images "
        "memorization comes within minutes on one core; a pair of 200 stands beside them. Looks are taken "
        "with the running mean of the weights (decay 0.99) and 160 samples of a 50-step sampler, not 500 of all "
        "1000 steps; a convnet trained on 1000 images a class tells the classes, not a ResNet-18. Every seed "
        "draws other images. Gaps are in log steps. The theory's model has the paper's ratios (App. I.2), "
        "χ_p = 100 and χ_m = 5 at t = 0.01, in the limit of large dimension, and counts a class as memorized when "
        "its test error is 1.2 times the initial one. Drawn shares are kept between 20 % and 80 % where the theory "
        "prescribes them; where a clock does, it is that of a plain run on other images of the same classes. "
        "CIFAR-10's pair has 40 color images at 8×8 pixels (means of 4×4) instead of 3000 at 32×32."
    ),
    requires_data=("fashion-mnist",),
    check=check,
)
