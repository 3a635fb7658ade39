"""The kit of the tests: models from text, one way to run anything, one way to compare numbers.

``onnx("...")`` and ``dml("...")`` make models, ``run`` runs them or what is made of them, ``same`` compares results.
New tests use these and nothing else: no session is opened and no node is built beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import Array, Graph
from dmlc.runtime.graph_model import GraphModel
from dmlc.runtime.ort_model import ALL, NONE, OrtModel
from dmlc.runtime.runnable import RunFailed

#: The distance that floats of each dtype may be apart: of the element, and of the largest element.
#:
#: f32: a sum of some dozens of products in another order moves by a few units in the last place of its largest part.
#: f64: the same, and kernels compute ``erf``, ``exp`` and their like to about 1e-12 only.
#: f16: kernels keep f32 inside, or round between nodes. bfloat16: the same with 8 bits.
TOLERANCES = {
    "float16": (4e-3, 2e-3),
    "bfloat16": (3e-2, 1e-2),
    "float32": (2e-5, 2e-6),
    "float64": (1e-11, 1e-12),
}

Runs: TypeAlias = "dmlc.Program | ModelProto | Graph"


def onnx(text: str, *, opset: int = 17, **constants: Any) -> ModelProto:
    """A model from ONNX's text of a graph, ``g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }``.

    The header is written for it unless it is there. ``constants`` are initializers that the text names and does not
    give.
    """
    if not text.lstrip().startswith("<"):
        text = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n{text}'
    model = parser.parse_model(text)
    for name, value in constants.items():
        model.graph.initializer.append(tensor(name, value))
    return model


def tensor(name: str, value: Any) -> Any:
    """A named tensor of an array or of numbers."""
    from onnx import numpy_helper

    array = np.asarray(value)
    return numpy_helper.from_array(array.astype(np.float32) if array.dtype == np.float64 else array, name)


def dml(text: str, **options: Any) -> dmlc.Program:
    """A program from the text of a file, or from the body of ``model m``: ``(x: f32[N, 4]) -> (y) { return ... }``."""
    source = text if "model " in text else f"model m{text.strip()}\n"
    return dmlc.compile(Source("m.dml", source), **{"target": "onnx", **options})


def run(
    what: Runs,
    inputs: Mapping[str, Any] | None = None,
    *,
    wanted: Sequence[str] | None = None,
    on: str = "",
    **more: Any,
) -> dict[str, Array]:
    """The outputs by name, or the ``wanted`` values, on inputs given by name.

    ``on`` is ``cpu`` (ONNX Runtime without optimizations, the default of models and programs), ``optimized`` (with its
    default ones), ``reference`` (the default of graphs) or ``numpy`` (the code of a program).
    """
    given = {**(inputs or {}), **more}
    if isinstance(what, Graph) or on == "reference":
        graph = what if isinstance(what, Graph) else program_of(what).source_graph
        return GraphModel(graph).run(given, wanted)
    if on == "numpy":
        return program_of(what).run(given, "numpy", outputs=wanted)
    model = what if isinstance(what, ModelProto) else what.to_onnx()
    level = ALL if on == "optimized" else NONE
    return OrtModel(model, level=level, threads=1).run(given, wanted)


def refusal(model: ModelProto) -> str:
    """The message that ONNX Runtime refuses a model with; empty where it loads."""
    try:
        OrtModel(model, threads=1)
    except RunFailed as error:
        return str(error)
    return ""


def program_of(what: Runs) -> dmlc.Program:
    """The program of a model; one that is a program as it is."""
    if isinstance(what, dmlc.Program):
        return what
    assert isinstance(what, ModelProto)
    return dmlc.compile(what, target="onnx")


def same(a: Any, b: Any, *, exact: bool = False) -> bool:
    """Return whether two results are the same, by name or one by one.

    Integers, truth values and texts are equal, floats within ``TOLERANCES`` unless ``exact``; NaN and infinities stay
    where they are, and dtypes and shapes what they are.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[name], b[name], exact=exact) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(same(x, y, exact=exact) for x, y in zip(a, b, strict=True))
    x, y = np.asarray(a), np.asarray(b)
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return False
    if x.dtype.name not in TOLERANCES or exact:
        return np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    wide, other = x.astype(np.float64), y.astype(np.float64)
    relative, scaled = TOLERANCES[x.dtype.name]
    top = float(np.abs(wide[np.isfinite(wide)]).max(initial=0))
    with np.errstate(all="ignore"):
        near = np.abs(wide - other) <= relative * np.abs(wide) + scaled * top
        equal = (wide == other) | (np.isnan(wide) & np.isnan(other))
    return bool((equal | (near & np.isfinite(wide) & np.isfinite(other))).all())
