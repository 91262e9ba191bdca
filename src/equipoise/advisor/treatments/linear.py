"""Logistic regression, and a support vector machine with a smooth kernel."""

from __future__ import annotations

from typing import Any

from equipoise.advisor.treatments._contract import Context, Range, Treatment


def _logistic(context: Context, *, C: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=300, random_state=context.seed))


def _kernel(context: Context, *, C: float, width: float) -> Any:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    components = min(300, max(2, context.n_rows // 4))
    features = Nystroem(
        gamma=width / max(context.n_columns, 1), n_components=components, random_state=context.seed
    )
    return make_pipeline(
        StandardScaler(), features, LogisticRegression(C=C, max_iter=300, random_state=context.seed)
    )


TREATMENTS = [
    Treatment(
        "logistic", "logistic regression", _logistic,
        defaults={"C": 0.1}, space={"C": Range(1e-3, 30.0, log=True)},
        takes_learner=False, order=2, simplicity=1, most_rows=200_000,
    ),
    Treatment(
        "kernel", "logistic regression on smooth features", _kernel,
        defaults={"C": 10.0, "width": 0.3},
        space={"C": Range(0.1, 300.0, log=True), "width": Range(0.03, 3.0, log=True)},
        takes_learner=False, order=3, simplicity=10, most_rows=50_000,
    ),
]  # fmt: skip
