"""Tools that look for the wrong node: differences of two models, the first value that parts, bisection,
reduction to the smallest model with a fault; and the records of their results.

The names are loaded when they are first asked for.
"""

from dmlc.lazy_names import lazy_names

_NAMES, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "bisection": ("BisectResult", "BisectStep", "bisect"),
        "constants": ("ConstantChange",),
        "first_difference": ("ComparedValue", "Location"),
        "insides": ("NodeRecord",),
        "model_diff": ("ModelDiff", "diff"),
        "reproduction": ("Repro", "repro"),
        "verification": ("LocatedVerdict", "last_line", "locate", "verify"),
    },
)
