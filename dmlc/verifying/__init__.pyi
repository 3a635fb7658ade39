"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what the package gives."""

from dmlc.verifying.comparison import Comparison as Comparison
from dmlc.verifying.comparison import Difference as Difference
from dmlc.verifying.comparison import Errors as Errors
from dmlc.verifying.comparison import compare as compare
from dmlc.verifying.inputs import InputSpec as InputSpec
from dmlc.verifying.inputs import Interface as Interface
from dmlc.verifying.inputs import NoInputs as NoInputs
from dmlc.verifying.models import DEFAULT_CLASSES as DEFAULT_CLASSES
from dmlc.verifying.models import DEFAULT_INPUTS as DEFAULT_INPUTS
from dmlc.verifying.models import verify_graph as verify_graph
from dmlc.verifying.models import verify_models as verify_models
from dmlc.verifying.models import verify_results as verify_results
from dmlc.verifying.verdict import OutputReport as OutputReport
from dmlc.verifying.verdict import Verdict as Verdict

__all__ = [
    "DEFAULT_CLASSES",
    "DEFAULT_INPUTS",
    "Comparison",
    "Difference",
    "Errors",
    "InputSpec",
    "Interface",
    "NoInputs",
    "OutputReport",
    "Verdict",
    "compare",
    "verify_graph",
    "verify_models",
    "verify_results",
]
