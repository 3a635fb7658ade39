"""Writes dmlc/targets/data/cpu_operators.json from the installed packages.

``python tests/targets/make_cpu_operators.py`` starts anew with the installed onnxruntime. With ``--and`` it adds what
the installed onnxruntime has: the table holds what any of the versions that it names runs.
"""

from __future__ import annotations

import datetime
import json
import re
import sys
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnx import defs
from onnxruntime.capi import onnxruntime_pybind11_state as state

DATA = Path(__file__).parents[2] / "dmlc" / "targets" / "data" / "cpu_operators.json"
#: Domains whose operators ONNX declares.
DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
_OPEN_END = 2**31 - 1


def defined() -> set[tuple[str, str]]:
    """The operators that each of their versions has a definition of: ONNX Runtime needs no kernel."""
    out: dict[tuple[str, str], bool] = {}
    for schema in defs.get_all_schemas_with_history():
        key = (schema.domain, schema.name)
        out[key] = out.get(key, True) and (schema.has_function or schema.has_context_dependent_function)
    return {key for key, always in out.items() if always}


def installed() -> dict[str, list[Any]]:
    """The kernels of the CPU provider: first version, last one or None, and tensor types by type parameter."""
    without = defined()
    out: dict[str, list[Any]] = {}
    for kernel in state.get_all_opkernel_def():
        key = (kernel.domain, kernel.op_name)
        if kernel.provider != "CPUExecutionProvider" or kernel.domain not in DOMAINS or key in without:
            continue
        first, last = kernel.version_range
        types = {}
        for parameter, names in kernel.type_constraints.items():
            found = [re.fullmatch(r"tensor\((\w+)\)", name) for name in names]
            if all(found):  # sequences, optionals and maps are not looked at
                types[parameter] = " ".join(sorted(name[1] for name in found if name))
        row = [first, None if last == _OPEN_END else last, dict(sorted(types.items()))]
        out.setdefault(".".join(filter(None, key)), []).append(row)
    return out


def merged(rows: list[Any]) -> list[Any]:
    """Rows of one parameter and one range of versions as one; the others as they are, each once."""
    types: dict[tuple[int, int, str], set[str]] = {}
    others = []
    for first, last, by_parameter in rows:
        if len(by_parameter) == 1:
            ((parameter, names),) = by_parameter.items()
            types.setdefault((first, last or _OPEN_END, parameter), set()).update(names.split())
        elif [first, last, by_parameter] not in others:
            others.append([first, last, by_parameter])
    ones = [
        [first, None if last == _OPEN_END else last, {parameter: " ".join(sorted(names))}]
        for (first, last, parameter), names in sorted(types.items())
    ]
    return ones + sorted(others, key=json.dumps)


def main() -> None:
    versions, operators = [onnxruntime.__version__], installed()
    if "--and" in sys.argv[1:]:
        before = json.loads(DATA.read_text(encoding="utf-8"))
        versions = sorted({*before["versions"], *versions}, key=lambda v: [int(n) for n in v.split(".")])
        for name, rows in before["operators"].items():
            operators.setdefault(name, []).extend(rows)
    head = {
        "schema": 1,
        "source": f"onnxruntime {', '.join(versions)}: get_all_opkernel_def(), CPUExecutionProvider",
        "versions": versions,
        "date": datetime.date.today().isoformat(),
        "newest_opset": defs.onnx_opset_version(),
        "rows": "kernels that any of the versions has: first and last version of the operator, null where open, "
        "element types by type parameter; not of operators that "
        f"onnx {onnx.__version__} defines by others at each version",
    }
    lines = [f"    {json.dumps(name)}: {json.dumps(merged(rows))}" for name, rows in sorted(operators.items())]
    body = json.dumps(head, indent=2)[:-2] + ',\n  "operators": {\n' + ",\n".join(lines) + "\n  }\n}\n"
    DATA.write_text(body, encoding="utf-8")


if __name__ == "__main__":
    main()
