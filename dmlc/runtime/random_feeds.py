"""Inputs made up for a model: ``dmlc run --random SEED``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import numpy as np

from dmlc.codegen.artifact import Signature
from dmlc.diagnostics import fail, option
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.ir import Array, Dim, ForeignType, TensorType, dim_names, evaluate
from dmlc.ir.operation import tightened
from dmlc.ops.ranges import into_range, of_indices
from dmlc.runtime.feeds import broken_conditions

_ATTEMPTS = 400


def random_feeds(
    signature: Signature,
    seed: int,
    limits: Mapping[str, Dim] | None = None,
    takes: Callable[[Mapping[str, int]], bool] | None = None,
) -> dict[str, Array]:
    """Arrays for every input, the same for the same seed, of sizes that the model ``takes``, if such are found.

    Floats are normally distributed, integers small. An input that ``limits`` names holds integers from 0 to below that
    size, because the model uses it as an index; a float input too, whose elements are cast.
    Raises ``DmlcError`` E0427 where no sizes are found.
    """
    rng = np.random.default_rng(seed)
    binding = _sizes(signature, rng, takes)
    out = {}
    for name, type_ in signature.inputs:
        if name in signature.optional:
            continue
        if isinstance(type_, ForeignType):
            raise fail(codes.NO_RANDOM_SIZES, f"input {name} is not a tensor of a dtype that numbers are made up for")
        limit = (limits or {}).get(name)
        shape = tuple([evaluate(size, binding) for size in type_.shape])
        size = None if limit is None else evaluate(limit, binding)
        out[name] = _data(type_, shape, size, rng)
        promised = signature.ranges.get(name)
        if promised is not None:
            out[name] = into_range(out[name], (size is not None and of_indices(promised, size)) or promised)
    return out


def _sizes(
    signature: Signature, rng: np.random.Generator, takes: Callable[[Mapping[str, int]], bool] | None
) -> dict[str, int]:
    """A size for each dim: small at first, larger in later attempts, a power of two in every second one."""
    sizes: list[Dim] = [size for _, type_ in signature.inputs for size in type_.shape]
    names = sorted({name for size in sizes for name in dim_names(size)})
    bounds = {name: tightened(name, signature.bounds.get(name, (1, inf)), signature.conditions) for name in names}
    first: dict[str, int] | None = None
    for attempt in range(_ATTEMPTS):
        binding = {}
        for name, (low, high) in bounds.items():
            least = int(min(max(low, 2), high))
            most = int(min(high, least + 4 + 2 ** (attempt // 40) + attempt // 4))
            size = int(rng.integers(least, most + 1))
            power = 1 << (size - 1).bit_length()
            binding[name] = power if attempt % 2 and power <= high else size
        if any(evaluate(size, binding) < 0 for size in sizes) or broken_conditions(signature, binding):
            continue
        if not binding or takes is None or takes(binding):
            return binding
        first = first or binding
    if first is not None:  # ONNX Runtime reports what the model does not take
        return first
    relations = ", ".join(map(str, signature.conditions))
    raise fail(
        codes.NO_RANDOM_SIZES,
        f"no sizes were found for {', '.join(names)} that keep {relations}",
        help=f"fix some of them with {option('--bind', 'bind=')}",
    )


def _data(type_: TensorType, shape: tuple[int, ...], limit: int | None, rng: np.random.Generator) -> Array:
    dtype = type_.dtype
    if limit is not None and dtype.kind != "bool":
        return rng.integers(0, max(limit, 1), shape).astype(dtype.numpy)
    if dtype.is_float:
        return rng.standard_normal(shape).astype(dtype.numpy)
    if dtype.is_integer:
        low, high = (-8, 9) if dtype.kind == "int" else (0, 9)
        return rng.integers(low, high, shape).astype(dtype.numpy)
    return rng.integers(0, 2, shape).astype(dtype.numpy)
