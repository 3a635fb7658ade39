"""Models that another optimizer, followed by dmlc, leaves with fewer nodes than dmlc alone.

``python -m tools.after_peers [MODEL.onnx ...] [--peers onnxsim,onnxslim,onnxscript] [--targets onnx,directml]`` prints
a row for each model and target: the nodes that dmlc emits, what ONNX Runtime's basic level leaves of them, and what it
leaves of ``dmlc(peer(model))`` for each installed peer. Without models it takes the fixtures. Exits 1 where a peer
saves nodes.

A peer counts only where its model gives the numbers of the original: on the fixture's inputs, and on inputs so small
that the constants added to them decide. One that drops such a constant does not count, as no input of these may reach
it, nor does a peer that makes an attention node: dmlc makes it on request.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper

import dmlc
from benchmarks.peers import REWRITERS, installed
from dmlc.targets import load_target
from tools.canonical_form import operators
from tools.fixture_folder import PARTS, cases, fixtures
from tools.model_checks import node_count, optimized_copy, run, session
from tools.optimized import drawn_feeds
from tools.result_comparison import differences

#: Seconds that a peer gets for one model.
_LIMIT = 120
#: Inputs are compared as they are, and so much smaller: an epsilon of 1e-8 under a root or a logarithm decides then.
_SCALES = (1.0, 1e-6, 0.0)
#: A smaller summand is there for numbers that are as small.
_EPSILON = 1e-5
#: By domain and name, as ``operators`` counts.
_ATTENTION = frozenset((":Attention", "com.microsoft:Attention", "com.microsoft:MultiHeadAttention"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.after_peers", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, help="files; the fixtures without any")
    parser.add_argument("--peers", default=",".join(REWRITERS), help="of %(default)s, with commas")
    parser.add_argument("--targets", default="onnx,directml", help="with commas; %(default)s")
    args = parser.parse_args()
    versions, missing = installed(args.peers.split(","))
    print("\n".join(missing), file=sys.stderr)
    paths = args.models or [path for part in PARTS for path in fixtures(part).values() if part != "patterns"]
    print(
        "\t".join(["model", "target", "nodes", "basic", *[f"{name} {version}" for name, version in versions.items()]])
    )
    behind = 0
    for path in paths:
        made = {name: rewritten(path, name) for name in versions}
        for target in args.targets.split(","):
            row, is_behind = _row(path, target, made)
            behind += is_behind
            print("\t".join([path.stem, target, *row]), flush=True)
    print(f"a peer saves nodes in {behind} rows")
    return 1 if behind or not versions else 0


def _row(path: Path, target: str, made: Mapping[str, ModelProto | str]) -> tuple[list[str], bool]:
    """Return the cells of a row, and whether a peer saves nodes."""
    nodes, alone = compiled(onnx.load(path), target)
    cells, is_behind = [nodes, str(alone)], False
    for model in made.values():
        if isinstance(model, str):
            cells.append(model)
            continue
        count = compiled(model, target)[1]
        is_fewer = isinstance(count, int) and isinstance(alone, int) and count < alone
        is_behind |= is_fewer
        cells.append(f"{count}{' fewer' if is_fewer else ''}")
    return cells, is_behind


def compiled(model: ModelProto, target: str) -> tuple[str, int | str]:
    """Return how many nodes dmlc emits, and how many ONNX Runtime's basic level leaves of them; a reason in the place
    of a count that there is not."""
    try:
        emitted = dmlc.compile(model, target=load_target(target)).to_onnx()
    except dmlc.DmlcError as error:
        return error.diagnostics[0].code.id, "refused"
    nodes = str(node_count(emitted.graph))
    try:
        return nodes, node_count(optimized_copy(emitted).graph)
    except Exception:  # ONNX Runtime's exceptions have no common base
        return nodes, "not loaded"


def rewrite(path: Path, peer: str, file: Path) -> str:
    """Write the peer's model to ``file``. Return why there is none, or nothing."""
    child = multiprocessing.get_context("spawn").Process(target=_rewrite, args=(path, peer, file))
    child.start()
    child.join(_LIMIT)
    if child.is_alive():
        child.kill()
        return "too slow"
    return "failed" if child.exitcode or not file.exists() else ""


def rewritten(path: Path, peer: str) -> ModelProto | str:
    """Return the peer's model, or why it does not count."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "peer.onnx"
        if failure := rewrite(path, peer, file):
            return failure
        model = onnx.load(file)
    source = onnx.load(path)
    if _ATTENTION & (operators(model).keys() - operators(source).keys()):
        return "attention"
    of_norms = {a.f for node in model.graph.node for a in node.attribute if a.name == "epsilon"}
    if not _epsilons(source) <= _epsilons(model) | of_norms:
        return "epsilon"
    return model if is_right(source, model, path) else "wrong"


def _epsilons(model: ModelProto) -> set[float]:
    """The small numbers that a model adds."""
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    known |= {node.output[0]: node.attribute[0].t for node in model.graph.node if node.op_type == "Constant"}
    added = [known[name] for node in model.graph.node if node.op_type == "Add" for name in node.input if name in known]
    numbers = [numpy_helper.to_array(tensor).item() for tensor in added if math.prod(tensor.dims) == 1]
    return {number for number in numbers if 0 < abs(number) < _EPSILON}


def _rewrite(path: Path, peer: str, file: Path) -> None:
    onnx.save(REWRITERS[peer](onnx.load(path)), file)


def is_right(model: ModelProto, other: ModelProto, path: Path) -> bool:
    """Return whether another form of a model gives its numbers, on inputs of several scales."""
    try:
        expected, found = session(model), session(other)
    except Exception:
        return False
    for feeds in [feeds for feeds, _ in cases(path)] or drawn_feeds(model):
        for scale in _SCALES:
            scaled = _scaled(feeds, scale)
            try:
                wanted = run(expected, scaled)
            except Exception:
                continue
            try:
                if differences(wanted, run(found, scaled)):
                    return False
            except Exception:
                return False
    return True


def _scaled(feeds: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """The inputs with all floats made smaller."""
    return {name: (v * scale).astype(v.dtype) if np.asarray(v).dtype.kind == "f" else v for name, v in feeds.items()}


if __name__ == "__main__":
    sys.exit(main())
