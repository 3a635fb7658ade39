"""Judge a model: it compiles at every opset, and to the same numbers."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from onnx import ModelProto

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.targets import load_target, target_names
from tools.model_checks import run, session
from tools.opsets.models import Source
from tools.result_comparison import NODE_TOLERANCES, differences

#: Targets that emit ONNX.
TARGETS = tuple(name for name in target_names() if load_target(name).kernels is not None)


def number(source: Source) -> int:
    """The same for a source in each process."""
    return crc32(f"{source.name} {source.opset}".encode())


def complaints(source: Source) -> list[str]:
    """Return the faults of the model compiled for one target, without an opset and at one that is asked for.

    Only what was asked for may be refused, with E0501.
    """
    model, turn = source.revised, number(source)
    if model is None:
        return []
    target = load_target(TARGETS[turn % len(TARGETS)])
    asked = target.min_opset + turn // 97 % (target.max_opset - target.min_opset + 1)
    out, expected = [], None
    for opset in (None, asked):
        where = f"{source.name} from opset {source.opset}, {target.name}, opset {opset}"
        try:
            emitted = dmlc.compile(model, target=target, opset=opset).to_onnx()
        except DmlcError as error:
            if opset is None or error.diagnostics[0].code.id != "E0501":
                out.append(f"{where}: refused: {error}")
            continue
        expected = _results(model, source) if expected is None else expected
        out += [f"{where}: {text}" for text in _differences(expected, emitted, source)]
    return out


def _results(model: ModelProto, source: Source) -> list[dict[str, Any] | None]:
    """The results of the model for each of the source's inputs; None where ONNX Runtime does not compute it."""
    try:
        ready = session(model)
    except Exception:  # ONNX Runtime's exceptions have no common base
        return []
    return [_run(ready, feeds) for feeds in source.feeds]


def _run(ready: Any, feeds: Any) -> dict[str, Any] | None:
    try:
        return run(ready, feeds)
    except Exception:
        return None


def _differences(expected: list[dict[str, Any] | None], emitted: ModelProto, source: Source) -> list[str]:
    if all(results is None for results in expected):
        return []
    try:
        ready = session(emitted)
        return [
            text
            for results, feeds in zip(expected, source.feeds, strict=True)
            if results is not None
            for text in differences(results, run(ready, feeds), NODE_TOLERANCES)
        ]
    except Exception as error:
        return [f"ONNX Runtime: {str(error)[:200]}"]
