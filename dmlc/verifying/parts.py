"""Sequences, maps and optionals as what they are made of: leaves, and their numbers as one array."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Array
from dmlc.verifying.patterns import FLOATS

#: The way to a leaf: places in sequences, keys of maps.
Path: TypeAlias = tuple[int | str, ...]


def is_composite(value: Any) -> bool:
    """True if a value is a sequence, a map or an absent optional: no tensor."""
    return value is None or isinstance(value, (list, tuple, Mapping))


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The tensors and the single values, with the way to each; maps in the order of their keys' texts."""
    if isinstance(value, Mapping):
        for key in sorted(value, key=repr):
            yield from leaves(value[key], (*path, key))
    elif isinstance(value, (list, tuple)):
        for place, part in enumerate(value):
            yield from leaves(part, (*path, place))
    else:
        yield path, value


def as_array(leaf: Any, kind: str | None) -> Array:
    """A leaf as an array. ONNX Runtime hands the values of maps over as Python's numbers: a float is one of the dtype
    ``kind`` in truth, without a kind f64."""
    if type(leaf) is float and kind in FLOATS:
        return np.asarray(leaf, np.float32 if kind == "bfloat16" else kind)
    return np.asarray(leaf)


def as_one_array(value: Any, kind: str | None = None) -> Any:
    """The floats of a sequence or a map one after another, to be looked at as a tensor's; anything else as it is."""
    if not is_composite(value) or value is None:
        return value
    arrays = [as_array(leaf, kind) for _, leaf in leaves(value)]
    if not arrays or any(x.dtype.kind != "f" or x.dtype != arrays[0].dtype for x in arrays):
        return value
    return np.concatenate([x.reshape(-1) for x in arrays])


def are_alike(a: Any, b: Any) -> bool:
    """True if two values have the same parts, keys, dtypes and shapes."""
    return _structure(a) == _structure(b)


def _structure(value: Any) -> list[tuple[Path, Any, Any]]:
    found = [(path, None if leaf is None else np.asarray(leaf)) for path, leaf in leaves(value)]
    return [(path, None, None) if x is None else (path, x.dtype.kind, x.shape) for path, x in found]
