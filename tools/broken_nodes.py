"""The node tests of onnx, each broken in one way, and ONNX Runtime's verdict on each.

``python -m tools.broken_nodes`` compares all of them with dmlc's verdict and lists, by operator, what is refused though
it loads and runs, and what does not load and is not refused: nothing should be either.
"""

from __future__ import annotations

import argparse
import hashlib
import pickle
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper, load_from_string
from onnxruntime.capi import _pybind_state

import dmlc
from dmlc.diagnostics import DmlcError
from tools import environment
from tools.node_tests import onnx_node_tests

ELEMENTS = (*(TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32), *(TensorProto.UINT8, TensorProto.BOOL), 8)
#: Refusals for another reason than a fault of the model: no kernel, an operator that is not known, or a wrong
#: declaration, which is not believed.
EXCUSED = (
    "is not a registered function/op",
    "NOT_IMPLEMENTED",
    "does not match expected type",
)
#: Refusals after the load phase: of a kernel, or of the nodes that ONNX Runtime computes an operator by.
LATE = "after the load phase: "


def breaks(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    """The model with one thing changed: a rank, a size, an element type, an attribute, an operand, a result."""
    yield from _other_types(model)
    if len(model.graph.node) == 1:
        yield from _other_attributes(model)
        yield from _other_operands(model)


def _copy(model: ModelProto) -> ModelProto:
    out = ModelProto()
    out.CopyFrom(model)
    for info in out.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    return out


def _other_types(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    for number, info in enumerate(model.graph.input):
        if not info.type.HasField("tensor_type"):
            continue
        sizes = [d.dim_value for d in info.type.tensor_type.shape.dim]
        shapes = {"one axis more": [1, *sizes], "two axes more": [2, 2, *sizes]}
        if sizes:
            shapes["one axis less"] = sizes[1:]
        for k, size in enumerate(sizes):
            shapes[f"size {k}"] = [*sizes[:k], size + 1, *sizes[k + 1 :]]
        for name, shape in shapes.items():
            out = _copy(model)
            given = out.graph.input[number].type.tensor_type
            given.shape.Clear()
            given.shape.SetInParent()
            for size in shape:
                given.shape.dim.add(dim_value=size)
            yield f"{info.name}: {name}", out
        for element in ELEMENTS:
            if element != info.type.tensor_type.elem_type:
                out = _copy(model)
                out.graph.input[number].type.tensor_type.elem_type = element
                yield f"{info.name} of type {element}", out


def _changed(model: ModelProto, change: Callable[[NodeProto], object]) -> ModelProto:
    out = _copy(model)
    change(out.graph.node[0])
    return out


def _other_attributes(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    changes: dict[str, Callable[[NodeProto], object]] = {
        "unknown attribute": lambda n: n.attribute.append(helper.make_attribute("unheard_of", 1))
    }
    for k, attribute in enumerate(model.graph.node[0].attribute):
        name = attribute.name
        changes[f"without {name}"] = lambda n, k=k: n.attribute.pop(k)  # type: ignore[misc]
        if attribute.type == AttributeProto.INT:
            for value in (100, -100, -1, 0):
                changes[f"{name}={value}"] = lambda n, k=k, v=value: setattr(n.attribute[k], "i", v)  # type: ignore[misc]
            real = helper.make_attribute(name, 1.5)
            changes[f"{name} a float"] = lambda n, k=k, a=real: n.attribute[k].CopyFrom(a)  # type: ignore[misc]
        if attribute.type == AttributeProto.INTS:
            changes[f"{name} longer"] = lambda n, k=k: n.attribute[k].ints.append(1)  # type: ignore[misc]
            if len(attribute.ints) > 1:
                changes[f"{name} shorter"] = lambda n, k=k: n.attribute[k].ints.pop()  # type: ignore[misc]
            for value in (100, -100, 0):
                rest = list(attribute.ints)[1:]
                other = helper.make_attribute(name, [value, *rest])
                changes[f"{name}[0]={value}"] = lambda n, k=k, a=other: n.attribute[k].CopyFrom(a)  # type: ignore[misc]
        if attribute.type == AttributeProto.STRING:
            changes[f"{name} another word"] = lambda n, k=k: setattr(n.attribute[k], "s", b"other")  # type: ignore[misc]
    for name, change in changes.items():
        yield name, _changed(model, change)


def _other_operands(model: ModelProto) -> Iterator[tuple[str, ModelProto]]:
    node = model.graph.node[0]
    yield "one result more", _changed(model, lambda n: n.output.append("more"))
    if node.input:
        yield "one operand more", _changed(model, lambda n: n.input.append(node.input[0]))
        yield "one operand less", _changed(model, lambda n: n.input.pop())
    for k in range(len(node.input)):
        yield f"without operand {k}", _changed(model, lambda n, k=k: n.input.__setitem__(k, ""))  # type: ignore[misc]


def broken_models(one_in: int) -> Iterator[tuple[str, bytes]]:
    """One in so many of all broken models, chosen by their bytes, with a name."""
    seen = set()
    for label, case in onnx_node_tests().items():
        for name, model in breaks(case.model):
            data = model.SerializeToString(deterministic=True)
            key = hashlib.sha256(data).digest()
            if key not in seen and int.from_bytes(key[:4], "little") % one_in == 0:
                seen.add(key)
                yield f"{label}: {name}", data


# --- verdicts


def runtime_verdicts(models: Sequence[bytes]) -> list[str | None]:
    """ONNX Runtime's refusal of each model, or the failure of a run; empty where it runs, None where its process
    ended."""
    out: list[str | None] = []
    while len(out) < len(models):
        ran = subprocess.run(
            [sys.executable, "-m", "tools.broken_nodes", "judge"],
            input=pickle.dumps(list(models[len(out) :])),
            capture_output=True,
            check=False,
            env=environment(),
        )
        found = [line.partition(b" ")[2].decode() for line in ran.stdout.split(b"\n") if line.startswith(b"verdict")]
        out += found
        if len(out) < len(models):
            out.append(None)
    return out


def judge() -> None:
    """Print a line for each model on stdin."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    for data in pickle.load(sys.stdin.buffer):
        text, stage = "", ""
        try:
            session = _pybind_state.InferenceSession(options, data, False, False)
            stage = LATE
            session.initialize_session(["CPUExecutionProvider"], [{}], set())
            session.run([], {value.name: _zeros(value.type, value.shape) for value in session.inputs_meta}, None)
        except Exception as error:  # errors of its bindings have no common class
            text = stage + (" ".join(str(error).split()) or "?")
        print("verdict", text, flush=True)


def _zeros(type: str, shape: Sequence[int | str | None]) -> Any:
    """Zeros of a type as ONNX Runtime writes it; ones in the place of sizes that are open."""
    name = re.sub(r"tensor\((.*)\)", r"\1", type)
    dtype = {"float": "float32", "double": "float64", "string": "object"}.get(name, name)
    return np.zeros([size if isinstance(size, int) else 1 for size in shape], dtype)


def our_verdict(data: bytes) -> str:
    """Our refusal; empty where the model compiles and loads."""
    try:
        program = dmlc.compile(load_from_string(data), target="onnx")
        found = [d for d in program.problems() if d.severity == "error"]
    except DmlcError as error:
        found = list(error.diagnostics)
    return "; ".join(f"{d.code.id}: {d.message}" for d in found)


def compared(one_in: int) -> tuple[int, list[str], list[tuple[str, str]]]:
    """The number of broken models that are refused rightly, the ones refused though they load and run, and those that
    do not load and are not refused, with ONNX Runtime's reason."""
    names, models = zip(*broken_models(one_in), strict=True)
    right, over, missed = 0, [], []
    for name, data, verdict in zip(names, models, runtime_verdicts(models), strict=True):
        if verdict is None:
            continue
        ours = our_verdict(data)
        if ours and not verdict:
            over.append(f"{name}: {ours}")
        elif ours:
            right += 1
        elif verdict and not verdict.startswith(LATE) and not any(word in verdict for word in EXCUSED):
            missed.append((load_from_string(data).graph.node[0].op_type, f"{name}: {verdict}"))
    return right, over, missed


def main() -> None:
    """Print the comparison of all models."""
    parser = argparse.ArgumentParser(prog="python -m tools.broken_nodes", description=__doc__)
    parser.add_argument("--one-in", type=int, default=1, help="compare one in so many, chosen by their bytes")
    right, over, missed = compared(parser.parse_args().one_in)
    print(f"{right} refused rightly, {len(over)} though they run, {len(missed)} missed")
    for text in over:
        print("  refused though it runs:", text)
    for op_type, count in Counter(op for op, _ in missed).most_common():
        reasons = Counter(re.sub(r"-?\d+", "#", text.rsplit("] ", 1)[-1])[:120] for op, text in missed if op == op_type)
        print(f"  missed: {op_type} {count}")
        for reason, number in reasons.most_common():
            print(f"    {number} {reason}")


if __name__ == "__main__":
    judge() if sys.argv[1:] == ["judge"] else main()
