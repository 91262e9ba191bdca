"""Networks as features and a linear head."""
