"""Writes dmlc/targets/data/ort_cpu.json from the installed packages.

``python tests/targets/make_ort_cpu.py`` starts anew with the installed onnxruntime. With ``--and`` it keeps of the
file what the installed onnxruntime has too: the table holds for all versions that it names, from the oldest that the
package allows to the newest.
"""

from __future__ import annotations

import datetime
import json
import sys
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from dmlc.ops.elementwise import UNARY
from dmlc.runtime.installed_kernels import Types, read_kernels, rows, types_by_opset
from dmlc.targets.kernel_rows import INSERTED

DATA = Path(__file__).parents[2] / "dmlc" / "targets" / "data" / "ort_cpu.json"
#: The operators that lowerings emit: those of elementwise operations, and the rest.
OPERATORS = [
    *{op.onnx for op in UNARY if op.onnx},
    "Add", "And", "ArgMax", "ArgMin", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Clip", "Concat",
    "ConstantOfShape", "CumSum", "Div", "Equal", "Expand", "Gather", "GatherElements", "GatherND", "Gemm", "Greater",
    "GreaterOrEqual", "Hardmax", "Identity", "LayerNormalization", "Less", "LessOrEqual", "LogSoftmax",
    "LpNormalization", "MatMul",
    "Max", "Min", "Mod", "Mul", "Not", "OneHot", "Or", "Pad", "Pow", "Range", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
    "Reshape", "ScatterElements", "Shape", "SimplifiedLayerNormalization", "Slice", "Softmax", "Split", "Squeeze",
    "Sub", "Tile", "TopK", "Transpose", "Unsqueeze", "Where", "Xor",
]  # fmt: skip


def common(types_of: dict[int, Types], before: list[list[Any]]) -> dict[int, Types]:
    """The intersection of the installed kernels and the rows of a file. f64 stays as the file has it: nothing wider can
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


def main() -> None:
    kernels = read_kernels(OPERATORS)
    found = {op: types_by_opset(kernels, op) for op in sorted(set(OPERATORS))}
    versions = [onnxruntime.__version__]
    if "--and" in sys.argv[1:]:
        before = json.loads(DATA.read_text(encoding="utf-8"))
        versions = sorted({*before["versions"], *versions}, key=lambda v: [int(n) for n in v.split(".")])
        known = before["operators"]
        found = {op: common(types, known[op]) if op in known else types for op, types in found.items()}
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
