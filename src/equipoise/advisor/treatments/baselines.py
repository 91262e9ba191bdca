"""The honest baselines: weights, thresholds, resampling, balanced ensembles, on three base learners."""

from __future__ import annotations

from typing import Any

from equipoise.advisor.treatments._contract import Context, Learner, Range, Treatment


def _logistic(seed: int, class_weight: str | None = None, *, C: float) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(C=C, class_weight=class_weight, max_iter=2000, random_state=seed)
    return make_pipeline(StandardScaler(), model)


def _forest(seed: int, class_weight: str | None = None, **settings: Any) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(class_weight=class_weight, random_state=seed, **settings)


def _boosting(seed: int, class_weight: str | None = None, **settings: Any) -> Any:
    from equipoise.advisor.treatments._binning import boosting

    return boosting(class_weight=class_weight, early_stopping=False, random_state=seed, **settings)


LEARNERS = [
    Learner("logistic", _logistic, {"C": 1.0}, {"C": Range(1e-3, 1e2, log=True)}),
    Learner(
        "forest",
        _forest,
        {"n_estimators": 100, "min_samples_leaf": 1, "max_features": 0.3},
        {"min_samples_leaf": Range(1, 20, log=True), "max_features": Range(0.1, 1.0)},
    ),
    Learner(
        "boosting",
        _boosting,
        {
            "max_iter": 100,
            "learning_rate": 0.1,
            "max_leaf_nodes": 31,
            "min_samples_leaf": 5,
            "l2_regularization": 1e-3,
        },
        {
            "max_iter": Range(20, 100, log=True),
            "learning_rate": Range(0.02, 0.3, log=True),
            "max_leaf_nodes": Range(4, 31, log=True),
            "min_samples_leaf": Range(2, 20, log=True),
            "l2_regularization": Range(1e-3, 10.0, log=True),
        },
    ),
]


def _plain(context: Context) -> Any:
    return context.base()


def _weighted(context: Context) -> Any:
    return context.base(class_weight="balanced")


def _binary_balanced_accuracy(y_true: Any, y_pred: Any) -> float:
    """The mean of the two recalls, without the checks that cost most of the time on a curve of thresholds."""
    positive = y_true == y_true.max()
    hit = y_true == y_pred
    return float(hit[positive].mean() + hit[~positive].mean()) / 2


def _tuned(context: Context, model: Any) -> Any:
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import StratifiedKFold, TunedThresholdClassifierCV

    from equipoise.advisor.treatments._class_share_fallback import ClassShareFallback

    tuned = TunedThresholdClassifierCV(
        model,
        scoring=make_scorer(_binary_balanced_accuracy),
        cv=StratifiedKFold(context.folds, shuffle=True, random_state=context.seed),
        random_state=context.seed,
    )
    return ClassShareFallback(tuned)


def _threshold(context: Context) -> Any:
    return _tuned(context, context.base())


def _weighted_threshold(context: Context) -> Any:
    return _tuned(context, context.base(class_weight="balanced"))


def _resampled(context: Context, sampler: Any) -> Any:
    from imblearn.pipeline import make_pipeline

    return make_pipeline(sampler, context.base())


def _oversampled(context: Context) -> Any:
    from imblearn.over_sampling import RandomOverSampler

    return _resampled(context, RandomOverSampler(random_state=context.seed))


def _undersampled(context: Context) -> Any:
    from imblearn.under_sampling import RandomUnderSampler

    return _resampled(context, RandomUnderSampler(random_state=context.seed))


def make_smote(context: Context, k_neighbors: int) -> Any:
    """SMOTE with no more neighbors than the rarest class has."""
    from imblearn.over_sampling import SMOTE

    neighbors = max(1, min(k_neighbors, context.smallest - 1))
    return SMOTE(k_neighbors=neighbors, random_state=context.seed)


def _smote(context: Context, *, k_neighbors: int) -> Any:
    from imblearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), make_smote(context, k_neighbors), context.base())


def _balanced_forest(context: Context, **settings: Any) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(
        sampling_strategy="all", replacement=True, bootstrap=False, random_state=context.seed, **settings
    )


def _easy_ensemble(context: Context, *, n_estimators: int, n_rounds: int, learning_rate: float) -> Any:
    from imblearn.ensemble import EasyEnsembleClassifier
    from sklearn.ensemble import AdaBoostClassifier

    rounds = AdaBoostClassifier(n_estimators=n_rounds, learning_rate=learning_rate, random_state=context.seed)
    return EasyEnsembleClassifier(n_estimators=n_estimators, estimator=rounds, random_state=context.seed)


def _balanced_bagging(context: Context, **settings: Any) -> Any:
    from imblearn.ensemble import BalancedBaggingClassifier

    return BalancedBaggingClassifier(context.base(), random_state=context.seed, **settings)


def _rus_boost(context: Context, *, max_depth: int, **settings: Any) -> Any:
    from imblearn.ensemble import RUSBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    from equipoise.advisor.treatments._class_share_fallback import ClassShareFallback

    tree = DecisionTreeClassifier(max_depth=max_depth)
    return ClassShareFallback(RUSBoostClassifier(tree, random_state=context.seed, **settings))


TREATMENTS = [
    Treatment("plain", "the learner as it is", _plain),
    Treatment("class-weighted", "class_weight='balanced'", _weighted),
    Treatment(
        "threshold", "the threshold tuned for balanced accuracy on inner folds", _threshold, multiclass=False
    ),
    Treatment(
        "class-weighted-threshold",
        "class weights, then the threshold tuned on inner folds",
        _weighted_threshold,
        multiclass=False,
    ),
    Treatment("oversampling", "rare classes repeated at random", _oversampled),
    Treatment("undersampling", "frequent classes thinned at random", _undersampled),
    Treatment(
        "smote",
        "SMOTE on standardized features",
        _smote,
        defaults={"k_neighbors": 5},
        space={"k_neighbors": Range(1, 10)},
    ),
    Treatment(
        "balanced-bagging",
        "the learner bagged on balanced subsamples",
        _balanced_bagging,
        defaults={"n_estimators": 10},
    ),
    Treatment(
        "balanced-forest",
        "a random forest on balanced bootstrap samples",
        _balanced_forest,
        defaults={"n_estimators": 50, "min_samples_leaf": 1, "max_features": 0.3},
        space={"min_samples_leaf": Range(1, 20, log=True), "max_features": Range(0.1, 1.0)},
        takes_learner=False,
    ),
    Treatment(
        "easy-ensemble",
        "AdaBoost on balanced subsamples, bagged",
        _easy_ensemble,
        defaults={"n_estimators": 10, "n_rounds": 10, "learning_rate": 1.0},
        space={"n_rounds": Range(5, 20, log=True), "learning_rate": Range(0.1, 1.0, log=True)},
        takes_learner=False,
    ),
    Treatment(
        "rus-boost",
        "boosting with undersampling in each round",
        _rus_boost,
        defaults={"n_estimators": 50, "learning_rate": 0.5, "max_depth": 2},
        space={"learning_rate": Range(0.05, 1.0, log=True), "max_depth": Range(1, 5)},
        takes_learner=False,
    ),
]
