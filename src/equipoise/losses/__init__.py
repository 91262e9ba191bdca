"""One family of losses for imbalanced classification."""
