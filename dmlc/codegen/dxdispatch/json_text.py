"""The file's text: what belongs together on one line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.ir import Array, DType

_NAMES = {
    "f16": "FLOAT16", "f32": "FLOAT32", "f64": "FLOAT64", "i8": "INT8", "i16": "INT16", "i32": "INT32", "i64": "INT64",
    "u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "u64": "UINT64", "bool": "UINT8",
}  # fmt: skip
_UNION = {"f32": "Float32", "f64": "Float64"}


def type_name(dtype: DType) -> str:
    """DirectML's name of a dtype, without its prefix; bool is UINT8."""
    return _NAMES[dtype.name]


def number(value: Any) -> int | float | str:
    """An element: JSON has no infinities and no NaN, DxDispatch reads them as words."""
    element = np.asarray(value).item()
    if isinstance(element, bool):
        return int(element)
    if isinstance(element, float) and not math.isfinite(element):
        return "nan" if math.isnan(element) else "inf" if element > 0 else "-inf"
    plain: int | float = element
    return plain


def numbers(array: Array) -> list[int | float | str]:
    return [number(element) for element in array.reshape(-1)]


def scalar_union(value: Array, dtype: DType) -> Any:
    """A ``DML_SCALAR_UNION``: a number, or an object where the number is none."""
    plain = number(value)
    if not isinstance(plain, str):
        return plain
    if dtype.name == "f16":
        return {"UInt16": int(np.asarray(value, np.float16).view(np.uint16))}
    return {_UNION[dtype.name]: plain}


def document(resources: Mapping[str, Any], dispatchables: Mapping[str, Any], commands: Sequence[Any]) -> str:
    """The whole file."""
    operators = [_dispatchable(name, row) for name, row in dispatchables.items()]
    parts = [
        '  "resources": ' + _block(_members(resources), "{}", 4),
        '  "dispatchables": ' + _block(operators, "{}", 4),
        '  "commands": ' + _block([_line(command) for command in commands], "[]", 4),
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _members(rows: Mapping[str, Any]) -> list[str]:
    return [f"{_line(name)}: {_line(row)}" for name, row in rows.items()]


def _block(lines: list[str], brackets: str, indent: int) -> str:
    if not lines:
        return brackets
    pad = " " * indent
    return f"{brackets[0]}\n{pad}" + f",\n{pad}".join(lines) + f"\n{pad[:-2]}{brackets[1]}"


def _dispatchable(name: str, row: Mapping[str, Any]) -> str:
    fields = _block(_members(row["desc"]), "{}", 8)
    lines = ['"type": ' + _line(row["type"]), '"desc": ' + fields]
    return _line(name) + ": " + _block(lines, "{}", 6)
