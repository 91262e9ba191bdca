"""What every room stands on: checks at the border, randomness, solutions with a status, progress, files."""
