"""Old models, and onnx's node tests and the model fixtures, each at several opsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TypeProto, shape_inference
from onnx.numpy_helper import to_array

from dmlc.ir import Array
from dmlc.onnx_schema.moves.draft import KnownValues
from dmlc.onnx_schema.versions import move
from tools.fixture_folder import PARTS, cases, fixtures
from tools.node_tests import RANDOM, onnx_node_tests
from tools.opsets.old_models import old_models

#: The opsets that sources are revised to, the oldest of the targets first; 0 is their own.
OPSETS = (0, 11, 12, 13, 15, 17, 18, 20, 21, 22)


#: A model, and inputs for it by name.
Loaded = tuple[ModelProto, tuple[Mapping[str, Any], ...]]


@dataclass(frozen=True)
class Source:
    """A model at one of ``OPSETS``; it is read when it is first asked for. ``is_old`` means one of ``old_models``."""

    name: str
    opset: int
    load: Callable[[], Loaded]
    is_old: bool = False

    @property
    def feeds(self) -> tuple[Mapping[str, Any], ...]:
        return self.load()[1]

    @cached_property
    def revised(self) -> ModelProto | None:
        """The model at the opset; None where it cannot be said there."""
        model, _ = self.load()
        return revised(model, self.opset) if self.opset else model


@cache
def node_tests() -> dict[str, Loaded]:
    out: dict[str, Loaded] = {}
    for name, case in onnx_node_tests().items():
        if not name.startswith(RANDOM):
            names = [i.name for i in case.model.graph.input]
            feeds = [dict(zip(names, map(_fed, inputs), strict=False)) for inputs, _ in case.data_sets]
            out[name] = case.model, tuple(feeds)
    return out


def _fed(value: Any) -> Any:
    return value if isinstance(value, list) or value is None else np.asarray(value)


@lru_cache(maxsize=2)
def _fixture(path: Path) -> Loaded:
    return onnx.load(path), tuple(feeds for feeds, _ in cases(path)[:1])


def sources() -> Iterator[Source]:
    """Old models at their opsets; node tests and fixtures at all."""
    for name, model, feeds in old_models():
        yield Source(name, 0, partial(_same, (model, (feeds,))), is_old=True)
    for name, loaded in node_tests().items():
        for opset in OPSETS:
            yield Source(name, opset, partial(_same, loaded))
    for part in PARTS:
        for name, path in fixtures(part).items():
            for opset in OPSETS:
                yield Source(f"{part}/{name}", opset, partial(_fixture, path))


def _same(loaded: Loaded) -> Loaded:
    return loaded


def revised(model: ModelProto, opset: int) -> ModelProto | None:
    """The model at another opset, node by node; None where a node cannot be said there."""
    have = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), opset)
    out, numbers = ModelProto(), count()
    out.CopyFrom(model)
    del out.graph.node[:]
    for entry in out.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = opset
    known = _known(model)
    for node in model.graph.node:
        if any(a.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for a in node.attribute):
            return None
        moved = move(node, have, opset, lambda base: f"{base}_revised_{next(numbers)}", known)
        if moved is None:
            return None
        out.graph.node.extend(moved.nodes)
        out.graph.initializer.extend(moved.constants)
    return None if model.functions else out


def _known(model: ModelProto) -> KnownValues:
    try:
        inferred = shape_inference.infer_shapes(model)
    except Exception:  # onnx raises what it likes
        inferred = model
    infos = (*inferred.graph.value_info, *inferred.graph.input, *inferred.graph.output)
    types: dict[str, TypeProto] = {info.name: info.type for info in infos}
    weights = {t.name: t for t in model.graph.initializer}

    def constant(name: str) -> Array | None:
        return to_array(weights[name]) if name in weights else None

    return KnownValues(constant, types.get)
