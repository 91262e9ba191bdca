"""Studies: a grid of cells, run on one machine or a cluster, stored in one file, compared honestly."""

from equipoise.bench.run import run_study
from equipoise.bench.spec import Spec, load_spec, named_spec, spec_names
from equipoise.bench.store import Store, StoreError

__all__ = ["Spec", "Store", "StoreError", "load_spec", "named_spec", "run_study", "spec_names"]
