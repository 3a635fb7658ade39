"""Programs that search, and one way to compare them with the reference on ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime

import dmlc
from dmlc import builder

Levels = onnxruntime.GraphOptimizationLevel
FLOATS = ("f16", "f32", "f64")
DTYPES = (*FLOATS, "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
_LONG = {"f": "float", "i": "int", "u": "uint"}


def numpy_of(dtype: str) -> np.dtype[Any]:
    return np.dtype(_LONG[dtype[0]] + dtype[1:])


def pools(dtype: str) -> list[np.ndarray]:
    """Values to draw from: few, so that many are equal, and the ends of the type."""
    kind = numpy_of(dtype)
    if kind.kind == "f":
        rows: list[list[Any]] = [[-0.0, 0.0, -1.0], [np.inf, -np.inf, 2.0], [-np.inf, np.finfo(kind).min, 0.0]]
    else:
        ends = np.iinfo(kind)
        rows = [[1, 2, 3], [ends.min, 0, ends.max], [ends.max - 1, ends.max, ends.max // 2]]
        if kind.itemsize == 8:
            rows.append([2**31 - 1, 2**31 + 5, 7])  # ONNX Runtime's ReduceMax confuses these
    return [np.array(row, dtype=kind) for row in rows]


def draws(program: dmlc.Program, dtype: str, seed: int = 0) -> Iterable[dict[str, np.ndarray]]:
    """Feeds of one dtype for all inputs, from each pool of values."""
    rng = np.random.default_rng(seed)
    for pool in pools(dtype):
        inputs = program.source_graph.inputs
        yield {value.name or "": rng.choice(pool, [int(str(d)) for d in value.shape]) for value in inputs}


def sessions(program: dmlc.Program) -> list[onnxruntime.InferenceSession]:
    """The emitted model without and with ONNX Runtime's own optimizations."""
    model = program.to_onnx().SerializeToString()
    out = []
    for level in (Levels.ORT_DISABLE_ALL, Levels.ORT_ENABLE_ALL):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level, options.intra_op_num_threads = level, 1
        out.append(onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]))
    return out


def on_runtime(program: dmlc.Program, feeds: Mapping[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    return [_run(session, feeds) for session in sessions(program)]


def _run(session: onnxruntime.InferenceSession, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def check(program: dmlc.Program, *rounds: Mapping[str, np.ndarray]) -> None:
    """The emitted model gives every bit of what the reference computes."""
    both = sessions(program)
    for feeds in rounds:
        expected: dict[str, np.ndarray] = program.run(feeds, backend="reference")
        for session in both:
            found = _run(session, feeds)
            for name, want in expected.items():
                assert (found[name].dtype, found[name].shape) == (want.dtype, want.shape), name
                np.testing.assert_array_equal(found[name], want, err_msg=name)


def fired(program: dmlc.Program) -> list[str]:
    return [entry.rule for entry in program.ledger]


def chosen(program: dmlc.Program) -> list[str]:
    """The remarks of ``choose-lowering``."""
    return [remark.reason() for remark in program.remarks if remark.chosen]


def operators(program: dmlc.Program) -> list[str]:
    return [node.op_type for node in program.to_onnx().graph.node]


def one(op: str, shape: Sequence[int | str], axes: Sequence[int], dtype: str = "f32", **options: Any) -> dmlc.Program:
    """A program of one node for target ``cpu``; attributes of the node and options of ``compile`` by name."""
    attributes = {key: options.pop(key) for key in ("ties", "keepdims") if key in options}
    graph = builder.Graph("one")
    for name, (low, high) in options.pop("dims", {}).items():
        graph.dim(name, min=low, max=high)
    x = graph.input("x", dtype=dtype, shape=list(shape))
    graph.output("y", getattr(builder, op)(x, axes=list(axes), **attributes))
    return dmlc.compile(graph, **{"target": "cpu", **options})
