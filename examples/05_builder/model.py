"""The detection head of `examples/more/detection_head/model.dml`, written with the Python builder."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dmlc

HEAD = Path(__file__).resolve().parent.parent / "more" / "detection_head"


def centred(x: dmlc.Tensor, axes: tuple[int, ...]) -> dmlc.Tensor:
    """A plain Python function does what `def` does in a `.dml` file."""
    return x - dmlc.reduce_mean(x, axes=axes)


def detection_head() -> dmlc.Graph:
    """The graph: dims and inputs, one call for each operation, named outputs."""
    g = dmlc.Graph("detection_head")
    batch = g.dim("batch", min=1, max=64)
    anchors = g.dim("anchors", min=8, max=8400)
    logits = g.input("logits", dtype="float32", shape=(batch, anchors, 80))
    image = g.input("image", dtype="float16", shape=(batch, 3, "H", "W"))
    prior = dmlc.constant(np.load(HEAD / "prior.npy"))

    p = dmlc.softmax((logits + prior) * 0.125, axes=-1)
    top_p, top_i = dmlc.top_k(p, k=5, axis=1, order="largest")
    variance = dmlc.reduce_mean(centred(p, axes=(1, 2)) ** 2, axes=(1, 2))
    g.output("cls", dmlc.argmax(p, axes=2, ties="first"))
    g.output("peak", dmlc.argmax(image, axes=(1, 2, 3), axis_direction="decreasing"))
    g.output("top_p", top_p)
    g.output("top_i", top_i)
    g.output("focus", dmlc.hardmax(image, axes=(2, 3)))
    g.output("spread", dmlc.sqrt(variance + 1e-6))
    return g


def main(out: str) -> None:
    """Compile, save, run, and compare with the same head in the text language."""
    feeds = {name: np.load(HEAD / f"{name}.npy") for name in ("logits", "image")}
    program = dmlc.compile(detection_head(), target="directml")
    program.save(out)
    results = program.run(feeds)
    expected = dmlc.compile(HEAD / "model.dml", target="directml").run(feeds)
    for name, array in results.items():
        same = np.array_equal(array, expected[name])
        print(f"{name:6} {array.dtype!s:7} {array.shape!s:15} {'same' if same else 'DIFFERENT'}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "detection_head.onnx")
