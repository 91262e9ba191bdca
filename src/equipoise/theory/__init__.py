"""Exactly solvable models: which training ratio, what one more sample is worth, which class is memorized."""
