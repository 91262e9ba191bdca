"""Metrics for imbalanced data, with intervals."""
