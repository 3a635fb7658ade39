"""An independent check of a compilation: it shares no code with the passes and the code generators.

The names are loaded when they are first asked for: what loads a model in a process needs none of them.
"""

from dmlc.lazy_names import lazy_names

_NAMES, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "comparison": ("Comparison", "Difference", "Errors", "compare"),
        "inputs": ("InputSpec", "Interface", "NoInputs"),
        "models": ("DEFAULT_CLASSES", "DEFAULT_INPUTS", "verify_graph", "verify_models", "verify_results"),
        "verdict": ("OutputReport", "Verdict"),
    },
)
