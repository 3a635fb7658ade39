"""Models of an outside generator: ``python -m tools.fuzz.nnsmith_models --count 1000 --out models``.

Needs ``pip install nnsmith`` (0.1.0) and torch. ``python -m tools.fuzz --folder models`` judges them.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.onnx

# NNSmith calls the exporter that traces, and torch no longer takes that one by default.
torch.onnx.export = functools.partial(torch.onnx.export, dynamo=False)

from nnsmith.graph_gen import model_gen  # noqa: E402
from nnsmith.materialize import Model  # noqa: E402
from nnsmith.narrow_spec import auto_opset  # noqa: E402

_SECONDS, _ELEMENTS = 10, 2**12


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, nargs=2, default=(3, 12), metavar=("LEAST", "MOST"))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    kind = Model.init("onnx", backend_target="cpu")
    operators, made = auto_opset(kind, None), 0
    for seed in range(args.seed, args.seed + args.count):
        try:
            model = _model(kind.from_gir, operators, seed, args.nodes)
        except Exception as error:  # the generator gives up in many ways
            print(f"{seed}: {type(error).__name__}: {error}"[:200])
            continue
        (args.out / f"nnsmith_{seed:06}.onnx").write_bytes(model)
        made += 1
    print(f"{made} models")
    return 0


def _model(from_gir: Callable[[Any], Any], operators: Any, seed: int, nodes: tuple[int, int]) -> bytes:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    found = model_gen(
        opset=operators, method="symbolic-cinit", seed=seed, max_nodes=random.randint(*nodes),
        max_elem_per_tensor=_ELEMENTS, timeout_ms=1000 * _SECONDS,
    )  # fmt: skip
    model = from_gir(found.make_concrete())
    model.refine_weights()
    return bytes(model.onnx_model.SerializeToString())


if __name__ == "__main__":
    sys.exit(main())
