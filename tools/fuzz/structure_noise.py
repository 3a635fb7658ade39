"""The distance that a model's own roundings move its results: no other way of computing them is held to less."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TypeProto, helper, inliner, shape_inference

from dmlc.onnx_schema.nested import graphs_of
from tools.fuzz.onnx_models import BOOL, F16, F32, F64
from tools.model_checks import run, session
from tools.result_comparison import MODEL_TOLERANCES, Tolerance, difference

#: Every inexact result moves by up to so many units in the last place, in so many samples; and how much further than
#: they do another way of computing may go.
_UNITS, _SAMPLES, _FURTHER = 4, 8, 8
#: From this opset on ONNX Runtime has no kernel of RandomUniformLike.
_NO_RANDOM = 22
#: Multiples of this part of 1 need no rounding, so ties among small integers and halves stay ties.
_PARTS = 64.0
_EPS = {F16: 2.0**-10, F32: 2.0**-23, F64: 2.0**-52}
#: Integers beyond this may have overflowed inside.
_LARGE = {4: 2**30, 8: 2**53, 1: 100, 2: 2**14}


def explained(
    model: ModelProto, feeds: Mapping[str, Any], expected: Mapping[str, Any], found: Mapping[str, Any]
) -> str | None:
    """Reason why results differ: ``nan``, ``overflow``, ``nothing`` (a reduction over no element), ``rounding``."""
    values = _trace(model, feeds)
    floats = [np.asarray(v, np.float64) for v in values if v.dtype.kind == "f"]
    if any(not np.isfinite(v).all() for v in floats):
        return "nan"
    if any(_is_large(v) for v in values if v.dtype.kind in "iu" and v.size):
        return "overflow"
    if any(v.size == 0 for v in values):
        return "nothing"
    without = _results(_without_nan(model), feeds)
    if without is not None and any(difference(expected[n], without[n], MODEL_TOLERANCES) for n in expected):
        return "nan"
    tries = [_results(noised(model, turn), feeds) for turn in range(_SAMPLES)]
    tries.append(_results(model, feeds, optimized=True))
    samples = [results for results in tries if results is not None]
    close = [_within(expected[n], found.get(n), [s[n] for s in samples]) for n in expected]
    return "rounding" if samples and all(close) else None


def _is_large(array: np.ndarray) -> bool:
    most = max(abs(int(array.max())), abs(int(array.min())))
    return most > _LARGE[array.dtype.itemsize]


def _trace(model: ModelProto, feeds: Mapping[str, Any]) -> list[np.ndarray]:
    """The arrays of the main graph."""
    out = _inlined(model)
    listed = {info.name for info in out.graph.output}
    names = [name for node in out.graph.node for name in node.output if name and name not in listed]
    out.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    try:
        found = run(session(out), feeds)
    except Exception:
        found = run(session(model), feeds)
    return [np.asarray(v) for v in found.values() if isinstance(v, np.ndarray) and v.dtype.kind in "fiu"]


def _inlined(model: ModelProto) -> ModelProto:
    """A copy without functions."""
    return (
        inliner.inline_local_functions(model) if model.functions else ModelProto.FromString(model.SerializeToString())
    )


def _within(a: Any, b: Any, samples: list[Any]) -> bool:
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        moved = any(difference(a, s, MODEL_TOLERANCES) is not None for s in samples)
        return moved or difference(a, b, MODEL_TOLERANCES) is None
    if any(s.shape != a.shape for s in samples):
        return True  # the size itself depends on the last places
    if a.dtype.kind != "f":
        return np.array_equal(a, b) or any((s != a).any() for s in samples)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    with np.errstate(all="ignore"):
        apart = np.fmax.reduce([np.abs(s.astype(np.float64) - a.astype(np.float64)) for s in samples])
    most = np.nan_to_num(apart, nan=0.0, posinf=np.inf)
    slack = _FURTHER * np.maximum(most, np.median(most) if most.size else 0.0)
    return difference(a, b, {a.dtype.name: Tolerance(*_tight(a.dtype))}, slack) is None


def _tight(dtype: np.dtype[Any]) -> tuple[float, float]:
    eps = float(np.finfo(dtype).eps)
    return 64 * eps, 64 * eps


# --- noise


def _results(model: ModelProto, feeds: Mapping[str, Any], *, optimized: bool = False) -> dict[str, Any] | None:
    """The model's results; None if ONNX Runtime has no kernels for the nodes that were added, or its optimizations end
    in an error."""
    try:
        return run(session(model, optimized=optimized), feeds)
    except Exception:  # ONNX Runtime's exceptions have no common base
        return None


def noised(model: ModelProto, turn: int) -> ModelProto:
    """The model with each result times 1 plus a few units in the last place, where it needs rounding."""
    out = _inlined(model)
    version = next(entry.version for entry in model.opset_import if entry.domain == "")
    # ONNX Runtime has no random kernel at newer opsets
    draw = _drawn_parts if turn % 2 and version < _NO_RANDOM else _parts_of_number
    rng = random.Random(turn)
    _rewrite(out, out.graph, {}, itertools.count(), lambda x, y, dtype: _noise(x, y, dtype, draw(x, dtype, rng)))
    return out


def _without_nan(model: ModelProto) -> ModelProto:
    """The model with a number where a result is NaN, inside of bodies as well: what follows from NaN is unspecified."""
    out = _inlined(model)
    _rewrite(out, out.graph, {}, itertools.count(), _number)
    return out


def _number(x: str, y: str, dtype: int) -> list[NodeProto]:
    return [
        *_constants(x, dtype, {"h": 0.5}),
        helper.make_node("IsNaN", [x], [f"{x}o"]),
        helper.make_node("Where", [f"{x}o", f"{x}h", x], [y]),
    ]


def _rewrite(
    model: ModelProto,
    graph: GraphProto,
    outer: dict[str, TypeProto],
    marks: Iterator[int],
    make: Callable[[str, str, int], list[NodeProto]],
) -> None:
    """Add the nodes that ``make`` gives behind each float result of a graph and of the graphs inside its nodes.

    ``outer`` are the types that the graph captures.
    """
    types = {**outer, **_types(model, graph, outer)}
    nodes: list[NodeProto] = []
    for node in graph.node:
        twin = NodeProto.FromString(node.SerializeToString())
        nodes.append(twin)
        for body in graphs_of(twin):
            _rewrite(model, body, types, marks, make)
        if node.op_type in ("Constant", "Identity", "Reshape", "Transpose"):
            continue
        for place, name in enumerate(node.output):
            if name in types and types[name].tensor_type.elem_type in _EPS:
                twin.output[place] = f"made/{next(marks)}/"
                nodes += make(twin.output[place], name, types[name].tensor_type.elem_type)
    graph.ClearField("node")
    graph.node.extend(nodes)


def _types(model: ModelProto, graph: GraphProto, outer: dict[str, TypeProto]) -> dict[str, TypeProto]:
    """The types of a graph's values, as far as inference finds them."""
    plain = ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=graph)
    listed = {info.name for info in graph.input}
    plain.graph.input.extend(helper.make_value_info(n, t) for n, t in outer.items() if n not in listed)
    with contextlib.suppress(Exception):  # without types there is less noise
        plain = shape_inference.infer_shapes(plain)
    infos = (*plain.graph.input, *plain.graph.value_info, *plain.graph.output)
    return {info.name: info.type for info in infos if info.type.HasField("tensor_type")}


def _noise(x: str, y: str, dtype: int, drawn: list[NodeProto]) -> list[NodeProto]:
    """Nodes that compute y from x: x itself if it is a multiple of 1/64, else with a factor near 1."""
    constants = {"p": _PARTS, "e": 2 * _UNITS * _EPS[dtype], "u": 1.0}
    return [
        *_constants(x, dtype, constants),
        *_chain(x, ("Mul", "_p", "s"), ("Floor", "s", "f"), ("Sub", "sf", "d")),
        helper.make_node("Cast", [f"{x}d"], [f"{x}o"], to=BOOL),
        helper.make_node("Cast", [f"{x}o"], [f"{x}m"], to=dtype),  # 1 where it was rounded
        *drawn,  # numbers from -0.5 to 0.5
        *_chain(x, ("Mul", "ne", "v"), ("Mul", "vm", "k"), ("Add", "ku", "b")),
        helper.make_node("Mul", [x, f"{x}b"], [y]),
    ]


def _parts_of_number(x: str, dtype: int, rng: random.Random) -> list[NodeProto]:
    """From the number itself, so that ties stay ties."""
    constants = _constants(x, dtype, {"q": rng.uniform(100, 1000), "h": 0.5})
    return [*constants, *_chain(x, ("Mul", "_q", "t"), ("Floor", "t", "g"), ("Sub", "tg", "r"), ("Sub", "rh", "n"))]


def _drawn_parts(x: str, dtype: int, rng: random.Random) -> list[NodeProto]:
    """Anew for each element: where f16 is not rounded between nodes, ties are none."""
    seed = float(rng.randrange(1, 10**6))
    return [
        helper.make_node("Cast", [x], [f"{x}w"], to=F32),
        helper.make_node("RandomUniformLike", [f"{x}w"], [f"{x}r"], low=-0.5, high=0.5, seed=seed, dtype=F32),
        helper.make_node("Cast", [f"{x}r"], [f"{x}n"], to=dtype),
    ]


def _constants(x: str, dtype: int, values: dict[str, float]) -> list[NodeProto]:
    return [
        helper.make_node("Constant", [], [f"{x}{name}"], value=helper.make_tensor("", dtype, [], [value]))
        for name, value in values.items()
    ]


def _chain(x: str, *steps: tuple[str, str, str]) -> list[NodeProto]:
    """Nodes on values whose names are ``x`` and one letter; ``_`` is ``x`` itself."""
    return [
        helper.make_node(op, [x if name == "_" else f"{x}{name}" for name in operands], [f"{x}{result}"])
        for op, operands, result in steps
    ]
