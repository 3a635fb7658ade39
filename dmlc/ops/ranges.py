"""Ranges of inputs: what a user promises about every element that is fed."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dmlc.diagnostics import Label, did_you_mean, fail, sentences, writing
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import Array, DType, ForeignType, Graph, OpError, Value
from dmlc.ir.printer import number_text
from dmlc.ops.attributes import show
from dmlc.ops.literals import literal_array

#: The lowest and the highest element, both inclusive.
Range: TypeAlias = "tuple[int | float, int | float]"

#: The key of a compiled model's metadata that holds them.
_KEY = re.compile(r"dmlc\.ranges\.[0-9a-f]{8}")
_HELP = "write low..high, such as 0.0..1.0 or 0.0..inf"


def range_of(dtype: DType, low: Any, high: Any) -> Range:
    """Return the bounds as numbers of the dtype.

    Raises ``OpError``: E0342 for bounds that do not make a range, E0311 for a number that does not fit the dtype. Its
    ``at`` is 0 for the lower bound and 1 for the upper.
    """
    if dtype.kind == "bool":
        raise OpError(codes.WRONG_RANGE, "an input of bool has no range", at=0, help="its elements are false and true")
    ends: list[int | float] = []
    for place, bound in enumerate((low, high)):
        number = bound.item() if isinstance(bound, np.generic) else bound
        if dtype.is_integer and isinstance(number, float) and math.isinf(number):
            number = int(dtype.highest) if number > 0 else int(dtype.lowest)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or math.isnan(number):
            message = f"a bound of a range is a number known while compiling, not {show(number)}"
            raise OpError(codes.WRONG_RANGE, message, at=place, help=_HELP)
        ends.append(literal_array(number, dtype, place).item())
    if ends[0] > ends[1]:
        message = f"{number_text(ends[0])} is more than {number_text(ends[1])}"
        swapped = f"{number_text(ends[1])}..{number_text(ends[0])}"
        raise OpError(codes.WRONG_RANGE, message, under="no number is between", help=writing(swapped))
    return ends[0], ends[1]


def range_text(range: Range) -> str:
    """The range as programs write it: ``0.0..1.0``."""
    return f"{number_text(range[0])}..{number_text(range[1])}"


def broken_by(array: Array, range: Range) -> str:
    """Describe an element that breaks the promise; empty where each keeps it."""
    if not array.size:
        return ""
    low, high = range
    kept = (array >= low) & (array <= high)  # no comparison with NaN holds
    if kept.all():
        return ""
    place = np.unravel_index(int(np.argmin(kept)), array.shape)
    where = f" at [{', '.join(map(str, map(int, place)))}]" if array.ndim else ""
    return f"{number_text(array[place])}{where}"


def into_range(array: Array, range: Range) -> Array:
    """The data with each element that breaks the promise replaced by one that keeps it, spread over the range."""
    low, high = float(range[0]), float(range[1])
    middle = min(max(0.0, low), high)
    with np.errstate(all="ignore"):
        kept = (array >= low) & (array <= high)
        wide = np.nan_to_num(np.abs(array.astype(np.float64)), nan=0.0, posinf=1.0)
        spread = np.mod(wide, high - low) if 0 < high - low < math.inf else wide
        moved = low + spread if math.isfinite(low) else high - spread if math.isfinite(high) else middle + spread
        ends = np.array(range, array.dtype)
        inside = np.where(kept, array, np.clip(moved, low, high).astype(array.dtype))
        return np.asarray(np.clip(inside, ends[0], ends[1]))


def of_indices(range: Range, size: int) -> Range | None:
    """The part of a range in which the indices into an axis of that size lie, from its end too; None if there is
    none."""
    low, high = max(range[0], -size), min(range[1], size - 1)
    return (low, high) if low <= high else None


def promised_in(metadata: Mapping[str, str]) -> dict[str, Range]:
    """The ranges that the metadata of a compiled model promises; none for another model, and for a merged one."""
    texts = [text for key, text in metadata.items() if _KEY.fullmatch(key)]
    if len(texts) != 1:
        return {}
    try:
        return {name: (_number(low), _number(high)) for name, (low, high) in json.loads(texts[0]).items()}
    except (ValueError, TypeError, AttributeError):  # somebody else wrote that
        return {}


def _number(text: str) -> int | float:
    return float(text) if not text.lstrip("-").isdigit() else int(text)


def checked_ranges(ranges: Mapping[str, Sequence[Any]] | None) -> dict[str, tuple[Any, Any]]:
    """The ranges by the names of inputs, as pairs; None stands for an infinite bound.

    Raises ``DmlcError`` E0342 (exit code 2) for another type."""
    if ranges is not None and not isinstance(ranges, Mapping):
        message = f"ranges is a dict of pairs by the names of inputs, not {type(ranges).__name__}"
        raise fail(codes.WRONG_RANGE, message, exit_code=2)
    out = {}
    for name, range in (ranges or {}).items():
        ends = range.tolist() if isinstance(range, np.ndarray) else range
        if not isinstance(ends, Sequence) or isinstance(ends, (str, bytes)) or len(ends) != 2:
            help = 'a range is a pair of numbers: ranges={"x": (0.0, 1.0)}'
            raise fail(codes.WRONG_RANGE, f"the range of {name} is {range!r}", help=help, exit_code=2)
        low, high = [end.item() if isinstance(end, np.generic) else end for end in ends]
        out[name] = (-math.inf if low is None else low, math.inf if high is None else high)
    return out


def promise(graph: Graph, ranges: Mapping[str, tuple[Any, Any]]) -> None:
    """Promise ranges of the inputs, beside those that the source promises: what is fed keeps both.

    Raises ``DmlcError``: E0342 for an input that the model does not have, or a range that no number keeps, E0311.
    """
    inputs = {value.name or "": value for value in graph.inputs}
    for name, (low, high) in ranges.items():
        value = inputs.get(name)
        if value is None:
            has = f"its inputs are {', '.join(inputs)}" if inputs else "it has no inputs"
            help = sentences(did_you_mean(name, inputs), has)
            raise fail(codes.WRONG_RANGE, f"the model has no input {name}", help=help)
        labels = [Label(value.span)] if value.span else []
        try:
            if isinstance(value.type, ForeignType):
                raise OpError(codes.WRONG_RANGE, f"input {name} is not a tensor of numbers")
            found = range_of(value.type.dtype, low, high)
            before = graph.ranges.get(name, found)
            low, high = max(found[0], before[0]), min(found[1], before[1])
            if low > high:
                raise OpError(codes.WRONG_RANGE, f"no number keeps {range_text(found)} and {range_text(before)} too")
            graph.ranges[name] = low, high
        except OpError as error:
            raise fail(error.code, f"the range of {name}: {error.message}", *labels, help=str(error.help)) from None


def declared_range(graph: Graph, value: Value) -> Range | None:
    """The promised range of a value that is an input; None for any other."""
    return graph.ranges.get(value.name or "") if value.producer is None else None
