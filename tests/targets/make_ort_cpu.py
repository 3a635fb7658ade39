"""Writes dmlc/targets/data/ort_cpu.json from the installed packages.

``python tests/targets/make_ort_cpu.py`` starts anew with the installed onnxruntime. With ``--and`` it keeps of the
file what the installed onnxruntime has too: the table holds for all versions that it names, from the oldest that the
package allows to the newest.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

DATA = Path(__file__).parents[2] / "dmlc" / "targets" / "data" / "ort_cpu.json"
OPSETS = range(11, 22)
OPEN_END = 2**31 - 1
SHORT = {
    "float16": "f16", "float": "f32", "double": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
}  # fmt: skip
#: f16 that ONNX Runtime computes in f32, with casts that it inserts by itself.
INSERTED = "(f16)"
#: The operators that lowerings emit.
OPERATORS = [
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil",
    "Clip", "Concat", "ConstantOfShape", "Cos", "CumSum", "Div", "Equal", "Erf", "Exp", "Expand", "Floor", "Gather",
    "GatherElements", "Greater", "GreaterOrEqual", "Hardmax", "Identity", "IsInf", "IsNaN", "LayerNormalization",
    "Less", "LessOrEqual", "Log", "LogSoftmax", "LpNormalization", "MatMul", "Max", "Min", "Mod", "Mul", "Neg",
    "Not", "OneHot", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu",
    "Reshape", "Round", "ScatterElements", "Shape", "Sigmoid", "Sign", "SimplifiedLayerNormalization", "Sin",
    "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "TopK", "Transpose", "Unsqueeze", "Where", "Xor",
]  # fmt: skip

Kernels = dict[str, list[tuple[int, int, dict[str, set[str]]]]]


def installed_kernels() -> Kernels:
    """Per operator of the default domain: first and last since-version, and the types of each parameter."""
    out: Kernels = defaultdict(list)
    for kernel in state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            first, last = kernel.version_range
            types = {p: {SHORT.get(n[7:-1], n) for n in names} for p, names in kernel.type_constraints.items()}
            out[kernel.op_name].append((first, last, types))
    return out


def types_at(kernels: Kernels, op: str, opset: int) -> dict[str, list[str]]:
    """The types per parameter that run at a model opset. ORT takes an open-ended kernel only if its first version
    is the schema's own (core/framework/kernel_registry.cc, VerifyVersion)."""
    try:
        schema = onnx.defs.get_schema(op, opset, "")
        since = schema.since_version
        allowed = {
            c.type_param_str: {SHORT.get(n[7:-1], n) for n in c.allowed_type_strs} for c in schema.type_constraints
        }
    except onnx.defs.SchemaError:
        if op in {row.name for row in onnx.defs.get_all_schemas()}:
            return {}
        since, allowed = 1, {}  # an operator that only ONNX Runtime declares
    found: dict[str, set[str]] = defaultdict(set)
    for first, last, types in kernels[op]:
        if first == since or (first < since <= last and last != OPEN_END):
            for parameter, names in types.items():
                found[parameter] |= names
    out = {}
    for parameter, names in sorted(found.items()):
        if allowed and parameter in allowed:
            names = names & allowed[parameter]
        out[parameter] = [n for n in SHORT.values() if n in names]
        if "f32" in names and "f16" not in names and "f16" in allowed.get(parameter, ()):
            out[parameter].insert(0, INSERTED)
    return out


Types = dict[str, list[str]]


def rows(types_of: dict[int, Types]) -> list[list[Any]]:
    """[first opset, last opset, types], neighbours with equal types joined."""
    out: list[list[Any]] = []
    for opset, found in sorted(types_of.items()):
        types = {p: " ".join(names) for p, names in found.items()}
        if not all(types.values()) or not types:
            continue
        if out and out[-1][1] == opset - 1 and out[-1][2] == types:
            out[-1][1] = opset
        else:
            out.append([opset, opset, types])
    return out


def common(types_of: dict[int, Types], before: list[list[Any]]) -> dict[int, Types]:
    """What both the installed kernels and the rows of a file have. f64 stays as the file has it: nothing wider can
    stand in for it, so leaving it out would refuse what a newer version runs."""
    out: dict[int, Types] = {}
    for first, last, types in before:
        for opset in range(first, last + 1):
            found = types_of.get(opset, {})
            out[opset] = {p: _both(names.split(), found.get(p, [])) for p, names in types.items()}
    return out


def _both(before: list[str], found: list[str]) -> list[str]:
    """f16 that one of the two only inserts casts for is such f16 for both."""
    if INSERTED in before and "f16" in found:
        found = [INSERTED, *found]
    elif "f16" in before and INSERTED in found:
        before = [INSERTED, *before]
    return [n for n in before if n in found or n == "f64"]


def _shared(file: list[str], installed: list[str]) -> list[str]:
    if "f16" in file and INSERTED in installed:
        file = [INSERTED if n == "f16" else n for n in file]
    if INSERTED in file and "f16" in installed:
        installed = [INSERTED, *installed]
    return [n for n in file if n in installed or n == "f64"]


def main() -> None:
    kernels = installed_kernels()
    found = {op: {opset: types_at(kernels, op, opset) for opset in OPSETS} for op in sorted(OPERATORS)}
    versions = [onnxruntime.__version__]
    if "--and" in sys.argv[1:]:
        before = json.loads(DATA.read_text(encoding="utf-8"))
        versions = sorted({*before["versions"], *versions}, key=lambda v: [int(n) for n in v.split(".")])
        found = {op: common(types, before["operators"][op]) for op, types in found.items()}
    head = {
        "schema": 1,
        "source": f"onnxruntime {', '.join(versions)}: get_all_opkernel_def(), CPUExecutionProvider; "
        f"onnx {onnx.__version__} schemas",
        "versions": versions,
        "date": datetime.date.today().isoformat(),
        "rows": "per operator: first model opset, last model opset, element types by ONNX type parameter",
        "(f16)": "only the f32 kernel exists and the schema allows f16: ONNX Runtime inserts casts, and takes out "
        "those between two such nodes, so that nothing is rounded to f16 there",
    }
    lines = [f"    {json.dumps(op)}: {json.dumps(rows(types))}" for op, types in found.items()]
    body = json.dumps(head, indent=2)[:-2] + ',\n  "operators": {\n' + ",\n".join(lines) + "\n  }\n}\n"
    DATA.write_text(body, encoding="utf-8")


if __name__ == "__main__":
    main()
