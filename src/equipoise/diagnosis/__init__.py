"""One question a file, each answered by a Finding."""
