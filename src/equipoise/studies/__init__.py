"""Studies: a grid of cells, run on one machine or a cluster, stored in one file, compared honestly."""

from equipoise.studies._rows import StoreError
from equipoise.studies.locate import load_spec, named_spec, spec_names
from equipoise.studies.run import run_study
from equipoise.studies.spec import Spec
from equipoise.studies.store import Store

__all__ = ["Spec", "Store", "StoreError", "load_spec", "named_spec", "run_study", "spec_names"]
