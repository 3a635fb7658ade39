"""The graphs behind the files in ``golden/``. Run as a script, it writes those files anew; read the difference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy_models import Model, source

from dmlc.ir import Graph

FOLDER = Path(__file__).parent / "golden"


def detection_head() -> Graph:
    """The program of the language reference."""
    m = Model("detection_head", batch=(1, 64), anchors=(8, 8400))
    logits = m.input("logits", "f32", "batch", "anchors", 80)
    image = m.input("image", "f16", "batch", 3, "H", "W")
    prior = m.constant(np.log1p(np.arange(80) / 80).astype(np.float32), "prior")
    p = m.call("softmax", m.call("*", m.call("+", logits, prior), 0.125), axes=[-1], name="p")
    cls = m.call("argmax", p, axes=[2], name="cls")
    peak = m.call("argmax", image, axes=[1, 2, 3], axis_direction="decreasing", name="peak")
    top_p, top_i = m.node("top_k", p, k=5, axis=1).results
    top_p.name, top_i.name = "top_p", "top_i"
    focus = m.call("hardmax", image, axes=[2, 3], name="focus")
    centred = m.call("-", p, m.call("reduce_mean", p, axes=[1, 2]))
    variance = m.call("reduce_mean", m.call("**", centred, 2.0), axes=[1, 2])
    spread = m.call("sqrt", m.call("+", variance, 1e-6), name="spread")
    return m.returns(cls=cls, peak=peak, top_p=top_p, top_i=top_i, focus=focus, spread=spread)


def nearest_neighbours() -> Graph:
    """Distances, the k nearest, their votes: sizes in attributes, a condition, integers, a keyword for a name."""
    m = Model("nearest neighbours", queries=(1, 4096), k=(1, 99))
    images = m.input("test images", "u8", "queries", 64)
    known = m.input("class", "f32", "samples", 64)
    labels = m.input("labels", "u32", "samples")
    votes_of = m.input("votes", "i32", "k")
    queries, k = images.shape[0], votes_of.shape[0]
    x = m.call("cast", images, to="f32", name="x")
    squares = m.call("reduce_sum_square", known, axes=[1], keepdims=False, name="squares")
    products = m.call("matmul", x, m.call("transpose", known))
    distances = m.call("-", squares, m.call("*", products, 2.0), name="distances")
    _, nearest = m.node("top_k", distances, k=k, order="smallest").results
    found = m.call("gather", labels, nearest, name="found")
    hot = m.call("one_hot", found, depth=10, dtype="i32")
    weighted = m.call("*", hot, m.call("reshape", votes_of, shape=[k, 1]))
    counts = m.call("reduce_sum", weighted, axes=[1], keepdims=False, name="counts")
    share = m.call("/", m.call("*", counts, 100), m.call("reduce_sum", votes_of))
    guess = m.call("argmax", counts, axes=[1], keepdims=False)
    flat = m.call("reshape", share, shape=[queries * 10])
    return m.returns(guess=guess, share=flat, lambda_=m.call("reduce_mean", counts, axes=[1]))


GOLDEN: dict[str, Callable[[], Graph]] = {"detection_head": detection_head, "nearest_neighbours": nearest_neighbours}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, build in GOLDEN.items():
        (FOLDER / f"{name}.py").write_text(source(build()), encoding="utf-8")
