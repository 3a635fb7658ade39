"""Numbers and constant arrays as Python text that gives back the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlc.codegen.numpy.expr import ATOM, UNARY, Argument, Expr, call, expr, name, sequence
from dmlc.codegen.numpy.layout import WIDTH, fits, statement, width
from dmlc.ir import Array, DType, Tensor, as_dtype

#: Up to here the elements are written one by one, beyond as hexadecimal bytes.
_MOST_NUMBERS = 512
_HEX_PER_LINE = 96


def dtype_expr(dtype: DType, numpy: str) -> Expr:
    """``np.float32`` and the like."""
    return name(f"{numpy}.{'bool_' if dtype.kind == 'bool' else dtype.long_name}")


def number(value: Any, numpy: str) -> Expr:
    """A NumPy scalar as a Python number, which takes the dtype of the array beside it and then has the same bits."""
    dtype = as_dtype(value.dtype)
    if not dtype.is_float:
        text = repr(value.item())
    elif np.isnan(value):
        text = f"{numpy}.nan"
    elif np.isinf(value):
        text = f"{numpy}.inf" if value > 0 else f"-{numpy}.inf"
    else:
        # The shortest digits of the narrow type, unless they are no shorter or Python's float rounds them twice.
        exact, short = repr(float(value)), repr(float(str(value)))
        text = short if len(short) < len(exact) and dtype.numpy.type(float(short)) == value else exact
    return Expr(text, UNARY if text.startswith("-") else ATOM)


def scalar(value: Any, numpy: str) -> Expr:
    """A NumPy scalar with its dtype: ``np.float32(0.5)``."""
    return call(dtype_expr(as_dtype(value.dtype), numpy).text, number(value, numpy))


def keeps_dtype(value: Any) -> bool:
    """Return whether an array combined with the Python number keeps its dtype.

    NumPy 1 widens the dtype near the end of a float's range.
    """
    return not (value.dtype.kind == "f" and np.isfinite(value) and abs(value) > np.finfo(value.dtype).max * 0.99)


def plain_nan(array: Array) -> bool:
    """Return whether all NaN in the array have the bits of ``np.nan``."""
    if array.dtype.kind != "f":
        return True
    quiet = np.array(np.nan, array.dtype)
    return bool(np.all(array[np.isnan(array)].view(f"u{array.itemsize}") == quiet.view(f"u{array.itemsize}")))


def constant_lines(target: str, tensor: Tensor, numpy: str) -> list[str]:
    """The statements that define a constant at the top level; one line where that fits."""
    array = tensor.array
    kind = dtype_expr(tensor.dtype, numpy)
    if array.size == 0:
        return statement(f"{target} = ", call(f"{numpy}.zeros", array.shape, dtype=kind), 0)
    if not plain_nan(array):
        return _hex(target, array, kind, numpy)
    first = array.reshape(-1)[:1]
    if array.size > 8 and array.tobytes() == first.tobytes() * array.size:
        filled = call(f"{numpy}.full", array.shape, number(first[0], numpy), dtype=kind)
        return statement(f"{target} = ", filled, 0)
    if array.size > _MOST_NUMBERS:
        return _hex(target, array, kind, numpy)
    whole = f"{target} = {call(f'{numpy}.array', _nested(array, numpy), dtype=kind).text}"
    return [whole] if fits(whole) else _listed(target, array, kind, numpy)


def _nested(array: Array, numpy: str) -> Argument:
    if array.ndim == 0:
        return number(array[()], numpy)
    return sequence([_nested(item, numpy) for item in array], brackets="[]")


def _listed(target: str, array: Array, kind: Expr, numpy: str) -> list[str]:
    """A list of numbers, as many on a line as fit, marked so that the formatter keeps it."""
    lines = [""]
    for value in array.reshape(-1):
        piece = f"{number(value, numpy).text},"
        if width(lines[-1]) + len(piece) + 1 > WIDTH:
            lines.append("")
        lines[-1] += f" {piece}" if lines[-1] else f"    {piece}"
    shape = "" if array.ndim == 1 else f".reshape({', '.join(map(str, array.shape))})"
    return ["# fmt: off", f"{target} = {numpy}.array([", *lines, f"], dtype={kind.text}){shape}", "# fmt: on"]


def _hex(target: str, array: Array, kind: Expr, numpy: str) -> list[str]:
    """The bytes, little end first."""
    little = array.dtype.newbyteorder("<")
    digits = array.astype(little, copy=False).tobytes().hex()
    kind = kind if array.itemsize == 1 else expr(little.str)
    rows = [digits[i : i + _HEX_PER_LINE] for i in range(0, len(digits), _HEX_PER_LINE)]
    data = call(f"{numpy}.frombuffer", call("bytes.fromhex", name(f"{target}_BYTES")), dtype=kind)
    shaped = data if array.ndim == 1 else call(f"{numpy}.reshape", data, array.shape)
    return [f'{target}_BYTES = """', *rows, '"""', *statement(f"{target} = ", shaped, 0)]
