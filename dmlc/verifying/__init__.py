"""An independent check of a compilation: it shares no code with the passes and the code generators.

The names are loaded when they are first asked for: what loads a model in a process needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlc.verifying.comparison import Comparison, Difference, Errors, compare
    from dmlc.verifying.inputs import InputSpec, Interface, NoInputs, breaking_inputs
    from dmlc.verifying.models import DEFAULT_CLASSES, DEFAULT_INPUTS, verify_graph, verify_models, verify_results
    from dmlc.verifying.verdict import OutputReport, Verdict

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
_HOMES = {
    **dict.fromkeys(("Comparison", "Difference", "Errors", "compare"), "comparison"),
    **dict.fromkeys(("InputSpec", "Interface", "NoInputs", "breaking_inputs"), "inputs"),
    **dict.fromkeys(("OutputReport", "Verdict"), "verdict"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'dmlc.verifying' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dmlc.verifying.{_HOMES.get(name, 'models')}"), name)
