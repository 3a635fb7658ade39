"""An independent check of a compilation: it shares no code with the passes and the code generators."""

from dmlc.verify.compare import Comparison, Difference, Errors, compare
from dmlc.verify.inputs import InputSpec, Interface, NoInputs, breaking_inputs
from dmlc.verify.models import DEFAULT_CLASSES, DEFAULT_INPUTS, verify_graph, verify_models, verify_results
from dmlc.verify.verdict import OutputReport, Verdict

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
    "breaking_inputs",
    "compare",
    "verify_graph",
    "verify_models",
    "verify_results",
]
