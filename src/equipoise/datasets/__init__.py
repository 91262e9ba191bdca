"""Imbalanced data: makers, embedded sets, loaders, synthetic generators."""
