"""The refusals that the judges accept, each with its reason. All others are failures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

#: Options, with ``source`` (``program`` or ``model``) and ``asked`` (the user asked for an opset).
Given = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """A code, a pattern of its message, and why it is right. ``only`` are options without which it is not."""

    code: str
    message: str
    reason: str
    only: tuple[tuple[str, Any], ...] = ()


REFUSALS = (
    Refusal(
        "E0502",
        "has no exact form: ONNX Runtime has no such kernel",
        "a program may ask for a function of a dtype that no kernel computes and no cast saves, such as erf of f64",
        (("source", "program"),),
    ),
    Refusal(
        "E0592",
        "^ReduceLogSumExp .* nothing is subtracted before exp",
        "the repair subtracts the maximum, which rounds otherwise: --exact forbids it",
        (("exact", True),),
    ),
    Refusal(
        "E0591",
        "^GlobalAveragePool .* of AVERAGE_POOLING takes up to 5 axes",
        "the repair is a ReduceMean, which may sum in another order: --exact forbids it",
        (("exact", True),),
    ),
    Refusal(
        "E0591",
        "DirectML takes tensors of up to 8 axes and the provider does not look",
        "a tensor of nine axes: the repairs merge axes of some operators only, and need their sizes",
    ),
    Refusal(
        "E0592",
        "an operand is empty: no DirectML operator is made",
        "the provider leaves the result unwritten, and a reduction of a size that only a node makes 0 is not folded",
    ),
    Refusal(
        "E0591",
        "^Reduce(L2|LogSum|LogSumExp) .*: the provider takes integers here, and DirectML's REDUCE refuses them",
        "with axes that are computed there is no older opset to go to, and no cast to a float is exact",
    ),
    Refusal(
        "E0591",
        "^Reduce[A-Za-z]+ .*: the provider takes (integers|f64) here, and DirectML's REDUCE refuses",
        "the user asks for an opset at which the provider takes what DirectML refuses; the help names an older one",
        (("asked", True),),
    ),
    Refusal(
        "E0502",
        "has no kernel for [a-z0-9]+ at opset [0-9]+; ONNX's definition of it holds at opset [0-9]+",
        "the user asks for an opset at which no provider runs a node; the help names one at which it runs",
        (("asked", True),),
    ),
    Refusal(
        "E0501",
        "^a reshape to .* whose sizes may be 0, needs opset 14",
        "the user asks for an older opset, at which 0 in a shape is a size of the operand and -1 nothing beside it",
        (("asked", True),),
    ),
    Refusal(
        "E0501",
        "of opset [0-9]+ is not converted to opset [0-9]+",
        "the user asks for an opset that is older than an operator of the model",
        (("asked", True),),
    ),
)


def is_allowed(code: str, message: str, given: Given) -> bool:
    """True if the refusal has a listed reason."""
    given = {"asked": "opset" in given, **given}
    return any(
        r.code == code and re.search(r.message, message) and all(given.get(name) == value for name, value in r.only)
        for r in REFUSALS
    )
