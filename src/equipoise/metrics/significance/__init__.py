"""Is a difference one? Tests over data sets, their corrections, Bayesian comparisons, effect sizes, diagrams.

Scores come as a table with a row per data set and a column per method, a ``DataFrame`` or an array.
"""

from equipoise._core.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
