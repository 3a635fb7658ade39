"""ONNX models become graphs.

The names are loaded when they are first asked for: programs of the language need none of them.
"""

from dmlc.lazy_names import lazy_names

_NAMES, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "again": ("read_again",),
        "definitions": ("in_definitions", "with_definitions", "with_kernels"),
        "faults": ("blaming",),
        "fixed_shapes": ("fix_shapes",),
        "function": ("ModelFunction",),
        "model": ("import_model", "read_model"),
        "opset": ("choose_opset", "join_opset", "lost_definition", "says_flattened", "why_to_stay"),
    },
)
