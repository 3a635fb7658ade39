"""Writes lines.npz: what the PP-OCRv6 recogniser says about five lines of a scanned page.

Needs `pip install '.[examples]'`: scikit-image ships the page, rapidocr ships the network as an ONNX file.
The network knows 18,710 classes. Stored are the blank, the 95 printable ASCII characters, and one last class
that holds the log-sum-exp of all others, so a softmax over the 97 stored classes gives the true probabilities.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from skimage import data, transform

# (top, bottom) rows of the lines of the paragraph on the page, which leans a little.
LINES = [(50, 68), (67, 85), (83, 101), (100, 118), (119, 137)]
HEIGHT, WIDTH = 48, 1024
PRINTABLE = [chr(code) for code in range(32, 127)]  # stored class c is the character with code 31 + c


def recogniser() -> tuple[onnxruntime.InferenceSession, list[str]]:
    """The network, cut before its last softmax, and the character of each class (class 0 is the blank)."""
    spec = find_spec("rapidocr")
    if spec is None or spec.origin is None:
        raise SystemExit("the rapidocr package is missing: pip install '.[examples]'")
    model = onnx.load(Path(spec.origin).parent / "models" / "PP-OCRv6_rec_small.onnx")
    model.graph.output[0].name = model.graph.node.pop().input[0]
    characters = next(entry.value for entry in model.metadata_props if entry.key == "character")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session, ["", *characters.splitlines(), " "]


def main() -> None:
    """Run the recogniser on each line and keep the classes that English text needs."""
    page = data.page()
    scaled = [transform.resize(page[top:bottom], (HEIGHT, WIDTH)) for top, bottom in LINES]
    images = np.repeat((np.stack(scaled)[:, None] - 0.5) / 0.5, 3, axis=1).astype(np.float32)
    session, characters = recogniser()
    (logits,) = session.run(None, {session.get_inputs()[0].name: images})

    kept = [0, *(characters.index(c) for c in PRINTABLE)]
    rest = np.delete(logits, kept, axis=2)
    peak = rest.max(axis=2, keepdims=True)
    others = peak + np.log(np.exp(rest - peak).sum(axis=2, keepdims=True))
    stored = np.concatenate([logits[:, :, kept], others], axis=2).astype(np.float16)
    if not (np.array([*kept, -1])[stored.argmax(axis=2)] == logits.argmax(axis=2)).all():
        raise SystemExit("a class outside the stored ones wins somewhere, or float16 is too coarse")
    np.savez_compressed(Path(__file__).with_name("lines.npz"), logits=stored)


if __name__ == "__main__":
    main()
