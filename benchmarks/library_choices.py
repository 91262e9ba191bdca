"""Two parts that a library also has, timed beside it in one run: averages of weights, and the bootstrap.

``python benchmarks/library_choices.py`` prints seconds a call, the ratio, and whether the results agree. It is why
:class:`equipoise.training.ExponentialAverage` and :func:`equipoise.metrics.bootstrap_interval` are our own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from scipy import stats
from sklearn.metrics import average_precision_score, recall_score
from torch.optim.swa_utils import AveragedModel

from equipoise.metrics import bootstrap_interval
from equipoise.networks import build_network
from equipoise.training import ExponentialAverage


def best_of(call: Callable[[], Any], repeats: int = 5) -> float:
    """The least wall time of some calls, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def averages(module: str, shape: tuple[int, ...], updates: int = 50) -> None:
    """A moving average by both, with the same rule, over the same weights."""
    torch.manual_seed(0)
    network = build_network(module, shape, 10)
    ours = ExponentialAverage(0.99)
    run: Any = SimpleNamespace(network=network)
    ours.on_start(run)

    def move(average: Any, now: Any, count: Any) -> None:
        kept = min(0.99, (1 + int(count)) / (10 + int(count)))
        if average[0].is_floating_point():
            torch._foreach_lerp_(average, now, 1 - kept)
        else:
            torch._foreach_copy_(average, now)

    theirs = AveragedModel(network, multi_avg_fn=move, use_buffers=True)
    theirs.n_averaged += 1  # else the first call copies the weights instead of averaging them in
    for _ in range(3):
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter))
        ours._update(run)
        theirs.update_parameters(network)
    held = theirs.module.state_dict()
    same = all(torch.equal(value, held[name]) for name, value in ours.average.items())
    mine = best_of(partial(ours._update, run), 10 * updates)
    other = best_of(partial(theirs.update_parameters, network), 10 * updates)
    print(
        f"average, {module}: ours {mine:.2e} s, swa_utils {other:.2e} s, ratio {other / mine:.2f}, equal {same}"
    )


def recalls(y: Any, called: Any, axis: int = -1) -> Any:
    """The recall of many resamples at once, which scipy asks for where it is to be quick."""
    return ((y == 1) & (called == 1)).sum(axis=axis) / (y == 1).sum(axis=axis)


def intervals(metric: str, score: Callable[..., Any], rows: int, resamples: int = 200) -> None:
    """A 95 % interval by both: stratified and by weights, and by scipy's resampling of rows."""
    rng = np.random.default_rng(0)
    p = rng.random(rows)
    y = (rng.random(rows) < p**2).astype(int)
    values = p if metric == "average_precision" else (p > 0.5).astype(int)
    mine = best_of(lambda: bootstrap_interval(metric, y, values, n_resamples=resamples, random_state=0), 3)

    def scipys() -> Any:
        return stats.bootstrap(
            (y, values), score, paired=True, vectorized=score is recalls, n_resamples=resamples,
            method="percentile", rng=0,
        )  # fmt: skip

    other = best_of(scipys, 1)
    a, b = bootstrap_interval(metric, y, values, n_resamples=resamples, random_state=0), scipys()
    ends = (
        f"{a.low:.3f} to {a.high:.3f} and {b.confidence_interval.low:.3f} to {b.confidence_interval.high:.3f}"
    )
    times = f"ours {mine:.3f} s, scipy {other:.3f} s, ratio {other / mine:.1f}"
    print(f"{metric} by {score.__name__}, {rows} rows: {times}; {ends}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    averages("mlp", (30,))
    averages("resnet20", (3, 32, 32))
    for rows in (500, 5000):
        intervals("average_precision", average_precision_score, rows)
        intervals("recall", recall_score, rows)
        intervals("recall", recalls, rows)
