"""Sizes that reading a node again finds are told apart from all sizes around it, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from onnx import parser

import dmlc
from tests.rows import each_row

HEAD = '<ir_version: 8, opset_import: ["": 18]>'
CONSTANTS = "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}>"
#: Nodes that make v, a Slice that is read again once a Sign is computed.
SLICES = {
    "late starts": "starts = Sign(one) v = Slice(x, starts, ends, zero)",
    "late axes": "axes = Sign(zero) v = Slice(x, one, ends, axes)",
    "two, one after the other": "b = Sign(one) u = Slice(x, b, ends, zero) v = Slice(u, b, ends, zero)",
}
SWAP = "s = Shape(v) p = Gather(s, zero) q = Gather(s, one) l = Concat <axis = 0> (q, p) y = Reshape(v, l)"
SHAPES = ["w, ?", "?, ?", "w, unknown_0", "unknown_0, w", "unknown_1, unknown_0", "own_1, own_0", "w, place_0"]
X = np.arange(36, dtype=np.float32).reshape(9, 4)


def agree(text: str, feeds: dict[str, np.ndarray], target: str, folder: Path | None = None) -> None:
    """Compare the compiled model, or the program that is written of it, with the original."""
    model = parser.parse_model(text)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, feeds)
    program = dmlc.compile(model, target=target)
    if folder is not None:
        program.save(folder / "written.dml")
        program = dmlc.compile(folder / "written.dml", target=target)
    found = program.run(feeds)
    for info, value in zip(model.graph.output, expected, strict=True):
        np.testing.assert_array_equal(found[info.name], value)


@each_row("target", ["onnx", "cpu", "directml"])
@each_row("shape", SHAPES)
@each_row("slices", SLICES.values(), ids=list(SLICES))
def test_a_size_that_a_node_read_again_provides_is_none_of_its_operands(slices: str, shape: str, target: str) -> None:
    text = f"{HEAD} g (float[{shape}] x, int64[1] ends) => (float[a, b] y) {CONSTANTS} {{ {slices} {SWAP} }}"
    agree(text, {"x": X, "ends": np.array([7])}, target)


@each_row("axis", ["two", "three"])
def test_a_program_that_is_written_asks_for_the_sizes_of_each(axis: str, tmp_path: Path) -> None:
    """Two sizes of the Resize are open, and one of the Slice."""
    body = (
        f'r = Resize <mode = "nearest"> (x, "", scales) starts = Sign(one) v = Slice(r, starts, ends, {axis}) '
        "s = Shape(v) p = Gather(s, two) q = Gather(s, three) l = Concat <axis = 0> (q, p) y = Reshape(v, l) "
        "rs = Shape(r) rp = Gather(rs, two) rq = Gather(rs, three) rl = Concat <axis = 0> (rq, rp) z = Reshape(r, rl)"
    )
    inputs = "float[1, 1, h, w] x, float[4] scales, int64[1] ends"
    text = f"{HEAD} g ({inputs}) => (float[a, b] y, float[c, d] z) {CONSTANTS} {{ {body} }}"
    x = np.arange(30, dtype=np.float32).reshape(1, 1, 5, 6)
    feeds = {"x": x, "scales": np.array([1, 1, 2, 3], np.float32), "ends": np.array([7])}
    agree(text, feeds, "onnx")
    agree(text, feeds, "onnx", tmp_path)
