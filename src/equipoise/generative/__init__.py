"""Diffusion models that know when each class is memorised."""
