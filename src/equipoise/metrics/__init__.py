"""Metrics for imbalanced data: what they are, how sure they are, and whether a difference is one."""

from __future__ import annotations

from equipoise.metrics import significance
from equipoise.metrics._registry import METRICS, Metric, evaluate_all, get_metric
from equipoise.metrics.calibration import (
    ReliabilityCurve,
    brier,
    expected_calibration_error,
    log_loss,
    reliability_curve,
)
from equipoise.metrics.classification import (
    acsa,
    auc,
    auprc_ova,
    average_precision,
    balanced_accuracy,
    f_beta,
    g_mean,
    g_mean_macro,
    g_mean_per_class,
    macro_f1,
    per_class,
    precision,
    recall,
    specificity,
    top1_error,
)
from equipoise.metrics.costs import (
    CostCurve,
    cheapest_decision,
    cost_curve,
    expected_cost,
    probability_cost,
)
from equipoise.metrics.decisions import Decision, choose_decision, search_decision
from equipoise.metrics.generative import (
    Balls,
    balls,
    coverage,
    density,
    frechet_distance,
    generative_interval,
)
from equipoise.metrics.intervals import (
    BootstrapInterval,
    bootstrap_difference,
    bootstrap_interval,
    interval_table,
)
from equipoise.metrics.judging import DecisionFigure, Judgment, judge_decision
from equipoise.metrics.shares import binomial_interval, design_effects
from equipoise.metrics.thresholds import (
    OperatingPoint,
    ThresholdCurve,
    best_balanced_accuracy,
    best_f1,
    best_threshold,
    precision_at_recall,
    recall_at_precision,
    threshold_curve,
)
from equipoise.metrics.wishes import UnmetWish, Wish

__all__ = [
    "METRICS",
    "Balls",
    "BootstrapInterval",
    "CostCurve",
    "Decision",
    "DecisionFigure",
    "Judgment",
    "Metric",
    "OperatingPoint",
    "ReliabilityCurve",
    "ThresholdCurve",
    "UnmetWish",
    "Wish",
    "acsa",
    "auc",
    "auprc_ova",
    "average_precision",
    "balanced_accuracy",
    "balls",
    "best_balanced_accuracy",
    "best_f1",
    "best_threshold",
    "binomial_interval",
    "bootstrap_difference",
    "bootstrap_interval",
    "brier",
    "cheapest_decision",
    "choose_decision",
    "cost_curve",
    "coverage",
    "density",
    "design_effects",
    "evaluate_all",
    "expected_calibration_error",
    "expected_cost",
    "f_beta",
    "frechet_distance",
    "g_mean",
    "g_mean_macro",
    "g_mean_per_class",
    "generative_interval",
    "get_metric",
    "interval_table",
    "judge_decision",
    "log_loss",
    "macro_f1",
    "per_class",
    "precision",
    "precision_at_recall",
    "probability_cost",
    "recall",
    "recall_at_precision",
    "reliability_curve",
    "search_decision",
    "significance",
    "specificity",
    "threshold_curve",
    "top1_error",
]
