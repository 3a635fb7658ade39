"""Compiling generated models: CPU seconds and memory, each in a process of its own, imports left out."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.records import OURS, Case, Settings

#: The program of a child: it prints its CPU seconds, and the most memory that it used beyond what imports had taken.
_CHILD = """
import json, sys, time
tool, path = sys.argv[1:]
import onnx
from onnx import parser
RELU = 'g (float[2] x) => (float[2] y) { y = Relu(x) }'
if tool == "dmlc":
    import dmlc
    warm = parser.parse_model('<ir_version: 8, opset_import: ["": 17]> ' + RELU)
    dmlc.compile(warm, target="cpu").to_onnx()
elif tool == "onnxsim":
    import onnxsim
elif tool == "onnxslim":
    import onnxslim
elif tool == "onnxruntime":
    import onnxruntime
def memory(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(key))
try:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is counted anew
    before = memory("VmRSS")
except OSError:
    before = None
start = time.process_time()
if tool == "dmlc":
    out = dmlc.compile(path, target="cpu").to_onnx()
elif tool == "onnxruntime":
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    onnxruntime.InferenceSession(path, options)
else:
    model = onnx.load(path)
    out = onnxsim.simplify(model)[0] if tool == "onnxsim" else onnxslim.slim(model)
seconds = time.process_time() - start
print(json.dumps({"seconds": seconds, "peak": None if before is None else memory("VmHWM") - before}))
"""
_SIZES = (1000, 10_000, 100_000)
#: The most seconds that a process gets.
_LIMIT = 120
_EXTERNAL_BYTES = 2 * 2**30


def measured(tool: str, path: Path, runs: int) -> tuple[float, float | None]:
    """The least CPU seconds of several processes, and the most memory of one, in MB, where the system tells it."""
    seconds, peaks = math.inf, []
    for _ in range(runs):
        command = [sys.executable, "-c", _CHILD, tool, str(path)]
        out = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LIMIT)
        found = json.loads(out.stdout.splitlines()[-1])
        seconds = min(seconds, found["seconds"])
        peaks += [] if found["peak"] is None else [found["peak"]]
    return seconds, max(peaks, default=None)


def compiling(settings: Settings) -> Iterator[Case]:
    import onnx

    from benchmarks.suites.graphs import model

    sizes = (30, 300) if settings.quick else _SIZES
    with tempfile.TemporaryDirectory() as folder:
        for form in ("chain",) if settings.quick else ("chain", "dag"):
            cases = []
            for nodes in sizes:
                path = Path(folder) / f"{form}{nodes}.onnx"
                onnx.save(model(form, nodes), path)
                cases.append(_case(form, nodes, path, settings))
            exponent = growth([(n, c.seconds[OURS]) for n, c in zip(sizes, cases, strict=True)])
            cases[-1].figures["exponent"] = exponent
            yield from cases
        yield _external(Path(folder), 2**16 if settings.quick else _EXTERNAL_BYTES, settings)


def _case(form: str, nodes: int, path: Path, settings: Settings) -> Case:
    case = Case("compile", f"{form} of {nodes} nodes", settings.threads, (form, f"{nodes} nodes"))
    case.figures["nodes"] = nodes
    peers = [name for name in ("onnxsim", "onnxslim") if name in settings.peers]
    runs = 1 if settings.quick else min(settings.rounds, 3)
    for tool in (OURS, *([] if settings.quick else ["onnxruntime"]), *peers):
        try:
            case.seconds[tool], peak = measured(tool, path, runs if tool == OURS or nodes < _SIZES[-1] else 1)
            if peak is not None:
                case.figures[f"peak MB {tool}"] = peak
        except subprocess.TimeoutExpired:
            case.notes += (f"{tool} took more than {_LIMIT} s",)
        except subprocess.CalledProcessError as error:
            lines = str(error.stderr).strip().splitlines() or [""]
            case.notes += (f"{tool} failed: {lines[-1][:120]}",)
    return case


def growth(points: Sequence[tuple[int, float]]) -> float:
    """The exponent of time over nodes, from the first size to the last."""
    (small, short), (large, long) = points[0], points[-1]
    return math.log(long / short) / math.log(large / small)


def _external(folder: Path, size: int, settings: Settings) -> Case:
    """A model whose weights are a file of many bytes (a hole, which costs no disk), and one with a small file."""
    runs = 1 if settings.quick else min(settings.rounds, 3)
    big, small = [_with_weights(folder, name, n) for name, n in (("big", size), ("small", 2**12))]
    case = Case("compile", f"{size >> 20} MB of external data", settings.threads, ("external",))
    case.seconds[OURS], peak = measured(OURS, big, runs)
    case.seconds["small weights"], small_peak = measured(OURS, small, runs)
    case.figures = {"slower": case.seconds[OURS] / case.seconds["small weights"]}
    if peak is not None and small_peak is not None:
        case.figures["peak MB more"] = peak - small_peak
    return case


def _with_weights(folder: Path, name: str, size: int) -> Path:
    import onnx

    from benchmarks.suites.graphs import model

    proto = model("chain", 200)
    parts = 8
    weights = folder / f"{name}.bin"
    with weights.open("wb") as file:
        file.truncate(size)
    each = size // parts // 4 // 16
    value = "x"
    for part in range(parts):
        tensor = proto.graph.initializer.add()
        tensor.name, tensor.data_type, tensor.data_location = f"w{part}", onnx.TensorProto.FLOAT, 1
        tensor.dims.extend([16, each])
        for key, entry in (("location", weights.name), ("offset", part * each * 64), ("length", each * 64)):
            tensor.external_data.add(key=key, value=str(entry))
        product = proto.graph.node.add(op_type="MatMul", input=[value, tensor.name], output=[f"p{part}"])
        product.name = f"product{part}"
        end = proto.graph.output.add()
        end.CopyFrom(onnx.helper.make_tensor_value_info(f"p{part}", onnx.TensorProto.FLOAT, [2, 8, each]))
    path = folder / f"{name}.onnx"
    path.write_bytes(proto.SerializeToString())
    return path
