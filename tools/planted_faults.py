"""Faults planted in the model fixtures, and what ``verify`` says of each.

``python -m tools.planted_faults OUT.json [NAME ...]`` writes the status of each fault, of all fixtures or of those
whose names contain one of the names. It goes on where OUT.json ends, so that two judges are compared by two files:
``PYTHONPATH`` names the checkout of the one that judges. ``python -m tools.planted_faults A.json B.json --compare``
prints a row for each kind of fault, and each fault whose status differs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from tools.fixture_folder import fixtures

KINDS = ("weight", "epsilon", "axis", "tie", "operator", "constant")
#: An operator that takes what the other takes and gives other numbers.
_OTHERS = {
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Relu": "LeakyRelu",
    "Tanh": "Sigmoid",
    "Sigmoid": "Tanh",
    "Erf": "Tanh",
    "ReduceMean": "ReduceSum",
    "ReduceSum": "ReduceMean",
    "ReduceMax": "ReduceMin",
    "ArgMax": "ArgMin",
    "Max": "Min",
    "Exp": "Identity",
}
#: Few inputs: a fault that one pattern in four shows is found.
_INPUTS = 4


def planted(model: ModelProto, kind: str) -> list[str]:
    """Break one place; the names of the nodes that are wrong then, none without such a place."""
    if kind in ("weight", "constant"):
        return _with_other_number(model, alone=kind == "constant")
    if kind == "operator":
        nodes = [node for node in model.graph.node if node.op_type in _OTHERS]
        if not nodes:
            return []
        node = nodes[len(nodes) // 2]
        node.op_type = _OTHERS[node.op_type]
        return [node.name]
    for node in model.graph.node:
        for entry in node.attribute:
            if kind == "epsilon" and entry.name == "epsilon":
                entry.f *= 1000
                return [node.name]
            if kind == "axis" and entry.name == "axis" and node.op_type in ("Softmax", "ArgMax", "LogSoftmax", "TopK"):
                entry.i = -2 if entry.i == -1 else 1 if entry.i == 0 else 0
                return [node.name]
            if kind == "tie" and entry.name == "select_last_index":
                entry.i = 1 - entry.i
                return [node.name]
    return []


def _with_other_number(model: ModelProto, *, alone: bool) -> list[str]:
    """One element of a weight 0.01 more, or a number that is ``alone`` a tenth more."""
    read = {name for node in model.graph.node for name in node.input}
    found = [(t.name, t) for t in model.graph.initializer if t.name in read]
    found += [(node.output[0], t) for node in model.graph.node for t in _constants(node)] if alone else []
    floats = [(name, tensor) for name, tensor in found if tensor.data_type == TensorProto.FLOAT]
    chosen = [(n, t) for n, t in floats if (_is_number(t) if alone else len(t.dims) >= 2)]
    if not chosen:
        return []
    name, tensor = chosen[len(chosen) // 2]
    array = numpy_helper.to_array(tensor).copy()
    if alone:
        array *= np.float32(1.1)
    else:
        array.reshape(-1)[array.size // 3] += np.float32(1e-2)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return [node.name for node in model.graph.node if name in node.input]


def _constants(node: NodeProto) -> Iterator[TensorProto]:
    yield from (entry.t for entry in node.attribute if node.op_type == "Constant" and entry.name == "value")


def _is_number(tensor: TensorProto) -> bool:
    array = numpy_helper.to_array(tensor)
    return array.size == 1 and bool(0 < abs(array.item()) < 1e30)


def write(out: Path, names: list[str]) -> None:
    """Judge each fault that the file does not have yet."""
    from dmlc.verifying import verify_models

    found = json.loads(out.read_text()) if out.exists() else {}
    paths = [path for part in ("whole", "torch") for path in fixtures(part).values()]
    for path in sorted(paths, key=lambda path: path.stat().st_size):
        for kind in KINDS if not names or any(name in path.stem for name in names) else ():
            key, model = f"{path.stem} {kind}", onnx.load(path)
            if key not in found and planted(model, kind):
                found[key] = verify_models(path, model, inputs=_INPUTS).status
                print(key, found[key], flush=True)
                out.write_text(json.dumps(found, indent=1) + "\n")


def compare(a: Path, b: Path) -> int:
    """Print what both say of the faults that both have; 1 if B misses one that A finds."""
    before, after = (json.loads(path.read_text()) for path in (a, b))
    both = [key for key in before if key in after]
    for kind in KINDS:
        keys = [key for key in both if key.endswith(f" {kind}")]
        counts = [Counter(side[key] for key in keys) for side in (before, after)]
        print(f"{kind:<10}{len(keys):>4}  " + "  ".join(f"{side['different']:>4} found" for side in counts))
    changed = [key for key in both if before[key] != after[key]]
    print(*(f"{key}: {before[key]} -> {after[key]}" for key in changed), sep="\n")
    return int(any(before[key] == "different" for key in changed))


def main() -> int:
    parser = argparse.ArgumentParser("python -m tools.planted_faults", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--compare", action="store_true")
    args = parser.parse_args()
    if args.compare:
        return compare(args.out, Path(args.names[0]))
    write(args.out, args.names)
    return 0


if __name__ == "__main__":
    sys.exit(main())
