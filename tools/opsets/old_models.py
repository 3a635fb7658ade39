"""Models as old exporters wrote them: sizes that are computed, ranks that are open, operators that changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, parser


class Part(NamedTuple):
    """Nodes over ``x`` of four axes whose results are ``out{n}``; at opsets from ``first`` to ``last``."""

    text: str
    first: int = 7
    last: int = 13


_SIZE = "s{n} = Shape(x)  b{n} = Gather<axis=0>(s{n}, zero)"
PARTS = {
    "reshape to sizes": Part(
        f"{_SIZE}  c{{n}} = Gather<axis=0>(s{{n}}, one)  t{{n}} = Concat<axis=0>(b{{n}}, c{{n}}, rest)"
        "  out{n} = Reshape(x, t{n})"
    ),
    "reshape to a fed shape": Part("out{n} = Reshape(x, k)"),
    "softmax": Part("r{n} = Reshape(x, k)  out{n} = Softmax<axis=1>(r{n})", last=12),
    "log softmax": Part("r{n} = Reshape(x, k)  out{n} = LogSoftmax<axis=0>(r{n})", last=12),
    "hardmax of open sizes": Part("out{n} = Hardmax<axis=2>(x)", last=12),
    "expand": Part(f"{_SIZE}  out{{n}} = Expand(number, b{{n}})", first=8),
    "upsample": Part("out{n} = Upsample<mode=\"nearest\">(x, u)", first=9, last=9),
    "upsample linear": Part("out{n} = Upsample<mode=\"linear\">(x, u)", first=9, last=9),
    "resize": Part("out{n} = Resize<mode=\"nearest\">(x, u)", first=10, last=10),
    "resize as tensorflow": Part(
        "out{n} = Resize<mode=\"nearest\", coordinate_transformation_mode=\"tf_half_pixel_for_nn\">(x, none, u)",
        first=11, last=12,
    ),
    "statistics": Part("out{n} = BatchNormalization<spatial=0>(x, w, w, w, w)", last=8),
    "mask": Part("d{n}, out{n} = Dropout(x)", last=11),
    "log sum exp": Part("out{n} = ReduceLogSumExp<axes=[1], keepdims=0>(x)"),
    "mean variance": Part("out{n} = MeanVarianceNormalization(x)", first=9),
    "truth": Part("p{n} = Cast<to=9>(x)  out{n} = Not(p{n})"),
}  # fmt: skip


def old_models() -> Iterator[tuple[str, ModelProto, Mapping[str, Any]]]:
    """Each part and each two of them, at each opset that has them: a name, a model and inputs."""
    for count, opset in product((1, 2), range(7, 14)):
        for names in combinations(PARTS, count):
            parts = [PARTS[name] for name in names]
            if all(part.first <= opset <= part.last for part in parts):
                yield f"{' and '.join(names)} of opset {opset}", _model(parts, opset), _feeds()


def _model(parts: list[Part], opset: int) -> ModelProto:
    nodes = "  ".join(part.text.format(n=n) for n, part in enumerate(parts))
    outputs = ", ".join(f"float out{n}" for n in range(len(parts)))
    made: ModelProto = parser.parse_model(f"""
        <ir_version: 4, opset_import: ["": {opset}]>
        g (float[1, C, H, W] x, int64[K] k, float[4] u, float[2, 2, 3] w) => ({outputs})
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] rest = {{-1}}, float[0] none = {{}},
         float[1] number = {{2}}> {{ {nodes} }}
    """)
    read = {name for node in made.graph.node for name in node.input}
    for names in (made.graph.input, made.graph.initializer):
        for item in [item for item in names if item.name not in read]:
            names.remove(item)
    for n, part in enumerate(parts):
        type = made.graph.output[n].type.tensor_type
        type.ClearField("shape")
        if part is PARTS["truth"] or (part is PARTS["mask"] and opset > 9):
            type.elem_type = 9  # bool
    return made


def _feeds() -> dict[str, Any]:
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3) / 4 - 1
    weights = np.linspace(0.5, 2, 12, dtype=np.float32).reshape(2, 2, 3)
    return {"x": x, "k": np.array([2, 3, 2]), "u": np.array([1, 1, 2, 3], np.float32), "w": weights}
