"""AutoGluon in an environment of its own: reads rows from one npz, writes probabilities into another.

    python autogluon_alone.py rows.npz answer.npz SECONDS

Its environment needs ``autogluon.tabular`` with LightGBM, CatBoost and XGBoost, and nothing of Equipoise.
"""

from __future__ import annotations

import sys
import tempfile

import numpy as np
import pandas as pd


def main() -> None:
    from autogluon.tabular import TabularPredictor

    source, target, seconds = sys.argv[1:]
    with np.load(source) as held:
        X, y, X_test = held["X"], held["y"], held["X_test"]
    names = [f"c{i}" for i in range(X.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        predictor = TabularPredictor("y", eval_metric="average_precision", path=folder, verbosity=0)
        predictor.fit(
            pd.DataFrame(X, columns=names).assign(y=y),
            time_limit=float(seconds),
            num_bag_folds=5,
            num_stack_levels=0,
            num_cpus=1,
            num_gpus=0,
            ag_args_fit={"num_cpus": 1},
            ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
            hyperparameters={kind: {} for kind in ("GBM", "CAT", "XGB", "RF", "XT", "LR")},
            fit_strategy="sequential",
        )
        held_out = predictor.predict_proba_oof()[1].to_numpy()
        proba = predictor.predict_proba(pd.DataFrame(X_test, columns=names))[1].to_numpy()
    np.savez(target, held_out=held_out, proba=proba)


if __name__ == "__main__":
    main()
