"""Compare what is predicted for target webgpu with what ONNX Runtime's WebGPU provider does: where each node runs, the
copies between CPU and GPU, the dispatches, the numbers.

``python -m tools.webgpu_agreement`` takes the model fixtures with their sizes fixed, or those that are named.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from msgspec import Struct

import dmlc
from dmlc.placement.report import Placement
from dmlc.runtime import bench
from dmlc.runtime.ort_model import options_of
from dmlc.targets import Target, load_target
from tools.fixture_folder import cases, fixtures
from tools.webgpu_runs import DeviceRun, run_on_device

#: Relative tolerances, by the type of a result.
TOLERANCE = {"float16": 2e-2, "float32": 1e-3, "float64": 1e-3}


#: Nodes with graphs inside.
_HOLDERS = ("If", "Loop", "Scan")


class Agreement(Struct, frozen=True):
    """A model as it was predicted and as it ran; ``differences`` between the two, and the ``wrong`` outputs, with other
    numbers than expected."""

    ran: DeviceRun
    report: Placement
    differences: list[str]
    wrong: list[str]


def agreement(program: dmlc.Program, feeds: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> Agreement:
    """Run what a program emits, and compare it with the program's placement. Raises what ONNX Runtime raises."""
    artifact = program.artifact("onnx")
    report = program.placement()
    ran = run_on_device(artifact.payload, feeds, artifact.folder, options=options_of(artifact.payload, "webgpu"))
    inputs = {info.name for info in artifact.payload.graph.input}
    return Agreement(ran, report, differences(report, ran, inputs), wrong_outputs(ran.outputs, want))


def differences(report: Placement, ran: DeviceRun, inputs: Collection[str]) -> list[str]:
    """List what the report says otherwise than the provider does.

    Nodes that ONNX Runtime fused or folded are not compared: their dispatches are, where they do not depend on numbers.
    Copies of inputs are not: who reads them decides only where they are made. Nor are copies between a graph and one
    inside it, which the node around that makes, and the log does not tell.
    """
    holders = [f"{node.name}/" for node in report.nodes if node.op in _HOLDERS]
    paths = {
        node.name: max((path for path in holders if node.name.startswith(path)), key=len, default="")
        for node in report.nodes
    }
    predicted = {node.name: node for node in report.nodes}
    for node in report.nodes:  # the log names a node inside another without its path
        predicted.setdefault(node.name.removeprefix(paths[node.name]), node)
    out = []
    for ran_node in ran.nodes:
        row = predicted.get(ran_node.name)
        if row is None or row.where == "folded":
            out += [] if ran_node.on_gpu else [f"{ran_node.op} {ran_node.name} runs on the CPU, which is not predicted"]
        elif (row.where == "provider") != ran_node.on_gpu:
            side = _side(ran_node.on_gpu)
            out.append(f"{ran_node.op} {ran_node.name}: {row.where} is predicted ({row.why}), runs on the {side}")
    inside = [copy for copy in report.transfers if any(paths[r] == paths.get(copy.maker) for r in copy.readers)]
    copied = {(copy.value, copy.to_device) for copy in inside}
    apart = sorted(copy for copy in copied ^ set(ran.copies) if copy[0] not in inputs)
    out += [f"copy of {value} to the {side}: {_which(copied, value, side)}" for value, side in apart]
    if report.dispatches is not None and report.dispatches != len(ran.programs):
        kinds = Counter(text.split(":")[0].split("[")[0] for text in ran.programs)
        out.append(f"dispatches: {report.dispatches} are predicted, {len(ran.programs)} are made: {dict(kinds)}")
    return out


def _side(on_gpu: bool) -> str:
    return "GPU" if on_gpu else "CPU"


def _which(predicted: set[tuple[str, str]], value: str, side: str) -> str:
    return "is predicted, not made" if (value, side) in predicted else "is made, not predicted"


def wrong_outputs(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray]) -> list[str]:
    """The outputs that differ from those wanted, each with the largest difference."""
    out = []
    for name, array in want.items():
        found = np.asarray(got[name])
        if found.shape != array.shape or found.dtype != array.dtype:
            out.append(f"{name}: {found.dtype}{found.shape} for {array.dtype}{array.shape}")
            continue
        rtol = TOLERANCE.get(array.dtype.name)
        if rtol is None:
            out += [] if np.array_equal(found, array) else [f"{name}: {int((found != array).sum())} differ"]
            continue
        a, b = found.astype(np.float64), array.astype(np.float64)
        scale = max(1.0, float(np.abs(b[np.isfinite(b)]).max(initial=0)))
        if not np.allclose(a, b, rtol=rtol, atol=rtol / 10 * scale, equal_nan=True):
            out.append(f"{name}: up to {np.nanmax(np.abs(a - b)):.3g} apart, of {scale:.3g}")
    return out


def open_sizes(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The open sizes of a model's inputs by their names, as the inputs have them."""
    sizes: dict[str, int] = {}
    for info in model.graph.input:
        if info.name in feeds:
            known = zip(info.type.tensor_type.shape.dim, feeds[info.name].shape, strict=False)
            sizes |= {d.dim_param: n for d, n in known if d.dim_param}
    return sizes


def sized(
    source: Path | onnx.ModelProto, feeds: Mapping[str, np.ndarray], target: Target, *, promises: bool = False
) -> dmlc.Program:
    """The model compiled with its open sizes fixed to the sizes of the inputs. With ``promises`` its inputs of i64
    have the range of the given ones."""
    model = onnx.load(source, load_external_data=False) if isinstance(source, Path) else source
    sizes = {name: size for name, size in open_sizes(model, feeds).items() if name.isidentifier()}
    integers = {name: array for name, array in feeds.items() if promises and array.dtype == np.int64 and array.size}
    ranges = {name: (int(array.min()), int(array.max())) for name, array in integers.items()}
    return dmlc.compile(source, target=target, bind=sizes, shapes=bench.fed_shapes(feeds, model), ranges=ranges)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.webgpu_agreement", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of models")
    parser.add_argument("--target", default="webgpu")
    parser.add_argument("--promise", action="store_true", help="promise the range of each input of i64 that is fed")
    parser.add_argument("-v", action="store_true", dest="verbose", help="print the nodes on the CPU")
    args = parser.parse_args()
    sums: Counter[str] = Counter()
    for name, path in (fixtures("torch") | fixtures("whole")).items():
        if args.names and not any(part in name for part in args.names):
            continue
        sums += _line(name, path, args)
    print(dict(sums))
    return 1 if sums["disagreements"] or sums["wrong"] or sums["failed"] else 0


def _line(name: str, path: Path, args: argparse.Namespace) -> Counter[str]:
    """Print what is found for a model, and return what it adds to the sums."""
    found: Any = None
    try:
        (feeds, want), *_ = cases(path)
        program = sized(path, feeds, load_target(args.target), promises=args.promise)
        found = agreement(program, feeds, want)
    except Exception as error:  # one model must not end the comparison
        print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
        return Counter(failed=1)
    ran, cpu = found.ran, found.ran.on_cpu
    print(
        f"{name}: {len(ran.programs)} dispatches, {len(cpu)} on the CPU, {len(ran.copies)} copies"
        + (f"; {len(found.differences)} disagreements" if found.differences else "")
        + (f"; WRONG {found.wrong[0]}" if found.wrong else ""),
        flush=True,
    )
    for line in found.differences:
        print(f"    {line}", flush=True)
    for node in cpu if args.verbose else ():
        print(f"    on the CPU: {node.op} {node.name}", flush=True)
    return Counter(
        models=1,
        dispatches=len(ran.programs),
        cpu=len(cpu),
        copies=len(ran.copies),
        whole=int(not cpu),
        wrong=int(bool(found.wrong)),
        disagreements=len(found.differences),
    )


if __name__ == "__main__":
    sys.exit(main())
