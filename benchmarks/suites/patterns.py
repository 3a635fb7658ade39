"""The pattern list: ONNX Runtime alone, with all its optimizations, against the same model through dmlc first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto
from onnx.helper import tensor_dtype_to_np_dtype

import dmlc
from benchmarks.measure import Deferred, Runner, contest, reading
from benchmarks.nets import Net
from benchmarks.operations import random
from benchmarks.peers import simplified
from benchmarks.records import OURS, Case, Settings
from benchmarks.sessions import SessionRun
from benchmarks.suites.pattern_list import PATTERNS, QUICK, Pattern, Sizes

#: The variant that is the graph as it was written.
ALONE = "onnxruntime"


def patterns(settings: Settings) -> Iterator[Case]:
    for pattern in PATTERNS:
        yield _race(pattern, QUICK if settings.quick else Sizes(), settings)


def _race(pattern: Pattern, sizes: Sizes, settings: Settings) -> Case:
    model, feeds = model_of(pattern, sizes)
    expected = SessionRun(model, feeds, settings.threads, level="none").results()
    case = Case("patterns", pattern.name, settings.threads, pattern.tags)

    def ours() -> SessionRun:
        compiled = dmlc.compile(model, target="cpu").to_onnx()
        case.figures["nodes"] = len(compiled.graph.node)
        return SessionRun(compiled, feeds, settings.threads)

    rivals: dict[str, Runner | Deferred] = {ALONE: SessionRun(model, feeds, settings.threads), OURS: Deferred(ours)}
    rivals |= simplified(model, feeds, settings)
    case.figures["nodes before"] = len(model.graph.node)
    return contest(case, settings, rivals, expected, tolerance=pattern.close, bound=reading(*feeds.values()))


def model_of(pattern: Pattern, sizes: Sizes) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """The graph as it was written, and random inputs."""
    net = Net()
    model, out = net.model(*pattern.body(net, sizes)), {}
    for seed, each in enumerate(model.graph.input):
        kind = each.type.tensor_type
        shape = tuple(d.dim_value for d in kind.shape.dim)
        out[each.name] = random(shape, seed, tensor_dtype_to_np_dtype(kind.elem_type))
    return model, out
