"""Type parameters of operators: those of the tables are those of ONNX, and small programs ask neither."""

from __future__ import annotations

import subprocess
import sys

from onnx import defs

from dmlc.placement.node import BY_VERSION
from dmlc.placement.values import parameters
from dmlc.targets.provider import provider


def test_tables_name_type_parameters_as_onnx_does() -> None:
    """Up to types that are written out, which no table lists; of some operators that depends on the version."""
    table, other = provider("dml_ep"), set()
    for (domain, op), row in table.rows.items():
        listed = {name for kernel in row.kernels for name in kernel.types}
        listed |= {name for failure in table.failures_of(op) for name in failure.types or ()}

        def used(letters: tuple[str, ...], count: int, listed: set[str] = listed) -> list[str]:
            all_of_them = [letters[min(i, len(letters) - 1)] for i in range(count)] if letters else []
            return [name if name in listed else "" for name in all_of_them]

        for opset in range(1, defs.onnx_opset_version() + 1):
            found = parameters("", op, opset) if not domain and row.kernel(opset) is not None else None
            if found is None:
                continue
            operands, results, repeats = found
            count = len(operands) + 2 * repeats
            same = used(operands, count) == used(row.inputs, count)
            if not same or used(results, len(results)) != used(row.outputs, len(results)):
                other.add(op)
    assert other == BY_VERSION


def test_a_small_program_loads_no_schemas() -> None:
    """They take longer to load than it takes to compile."""
    program = """from onnx import defs, shape_inference
def never(*arguments, **options):
    raise SystemExit("onnx was asked")
defs.get_schema = shape_inference.infer_shapes = never
import dmlc
from dmlc.diagnostics import Source
body = "i = argmax(x, axes=[1, 2])\\n y = sqrt(reduce_mean(x * x, axes=[1]) + 1e-6)\\n return i, y"
text = "model m(x: f32[2, 3, 4]) -> (i, y) {\\n " + body + "\\n}"
program = dmlc.compile(Source("m.dml", text))
assert not program.placement().fails
"""
    subprocess.run([sys.executable, "-c", program], check=True)
