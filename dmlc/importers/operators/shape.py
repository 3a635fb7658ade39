"""Constants, and what exporters compute shapes with."""

from __future__ import annotations

from math import prod

import numpy as np

from dmlc.importers.registry import Data, Found, Reading, Same, reads
from dmlc.importers.weights import stored
from dmlc.onnx_schema.types import DTYPE_OF

#: Filled tensors up to this many elements are made while reading.
_MOST_FILLED = 4096


@reads("Constant")
def constant(r: Reading) -> Found:
    (attribute, *more) = r.proto.attribute
    if more:
        return None
    name = attribute.name
    if name == "value":
        if attribute.t.data_type not in DTYPE_OF:
            return None
        tensor = stored(attribute.t, r.scope.folder)
        return Same([r.scope.constant(tensor, r.outputs[0])])
    if name in ("value_int", "value_ints"):
        return Data(np.asarray(attribute.i if name == "value_int" else list(attribute.ints), np.int64))
    if name in ("value_float", "value_floats"):
        return Data(np.asarray(attribute.f if name == "value_float" else list(attribute.floats), np.float32))
    return None


@reads("ConstantOfShape")
def constant_of_shape(r: Reading) -> Found:
    sizes = r.ints(0)
    if sizes is None or prod(sizes) > _MOST_FILLED or any(s < 0 for s in sizes):
        return None
    given = r.attribute("value")
    if given is not None and given.t.data_type not in DTYPE_OF:
        return None
    value = r.tensor("value")
    return Data(np.full(sizes, np.float32(0) if value is None else value.reshape(-1)[0]))


@reads("Range")
def range_(r: Reading) -> Found:
    start, limit, delta = (r.array(i) for i in range(3))
    if start is None or limit is None or delta is None or start.dtype.kind not in "iu" or not delta.any():
        return None
    numbers = range(int(start.reshape(())), int(limit.reshape(())), int(delta.reshape(())))
    return None if numbers[_MOST_FILLED:] else Data(np.asarray(numbers, start.dtype))
