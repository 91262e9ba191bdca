from . import advisor as advisor
from . import classifiers as classifiers
from . import cli as cli
from . import datasets as datasets
from . import diagnosis as diagnosis
from . import generative as generative
from . import losses as losses
from . import metrics as metrics
from . import networks as networks
from . import oversampling as oversampling
from . import report as report
from . import studies as studies
from . import theory as theory
from . import training as training
from .advisor import Advisor as Advisor
from .advisor import compare as compare
from .advisor import load as load
from .diagnosis import diagnose as diagnose

__version__: str
