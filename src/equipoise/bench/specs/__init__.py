"""Named studies, one module each, found by themselves: a module here exposes ``SPEC``."""
