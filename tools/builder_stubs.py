"""The stubs of the builder, written from the declarations: ``python -m tools.builder_stubs --write`` writes them anew.

``operations.pyi`` types the operations, ``dmlc/__init__.pyi`` the names of the package, which are loaded lazily.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dmlc.builder import PUBLIC, operations
from dmlc.builder.functions import VARIADIC_RESULTS, python_name, results_name
from dmlc.ir import Operation
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import AttributeSpec, attribute_specs
from dmlc.ops.call_attributes import LIKE, like_attribute
from tools.generated_files import write_or_compare

_PACKAGE_FOLDER = Path(__file__).parents[1] / "dmlc"
OPERATIONS_STUB = _PACKAGE_FOLDER / "builder" / "operations.pyi"
PACKAGE_STUB = _PACKAGE_FOLDER / "__init__.pyi"

_HEAD = '''\
"""Written by ``python -m tools.builder_stubs --write`` from the declarations in ``dmlc.ops``; a test compares them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dmlc.builder.tensor import DTypeLike, Tensor, TensorLike
from dmlc.ir import Array, DimExpr
'''


_PACKAGE = '''\
"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what ``dmlc`` gives."""

# ruff: noqa: A004
'''

#: Names that the package has for others.
_ALIASES = {"TextSource": "Source"}
_DTYPES = ("bool_", "f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")


def package_stub() -> str:
    """The stub of ``dmlc`` itself."""
    imports = {
        "dmlc": ["api", "debugging", "std", "testing", "verify"],
        "dmlc.api": ["Program", "TextSource", "compile"],
        "dmlc.api.decomposition": ["decompose"],
        "dmlc.api.fixing": ["FixedText", "MadeFix", "fix"],
        "dmlc.api.functions": ["function"],
        "dmlc.builder": ["Graph", "Tensor", "constant", "onnx", "size"],
        "dmlc.builder.operations": sorted(operations.__all__),
        "dmlc.codegen.onnx.metadata": ["model_facts"],
        "dmlc.debugging": ["BisectResult", "LocatedVerdict", "ModelDiff", "Repro", "bisect", "diff", "locate", "repro"],
        "dmlc.diagnostics": ["Diagnostic", "DmlcError", "Edit", "Fix"],
        "dmlc.ir.dtype": ["DType"],
    }
    lines = [
        f"from {home} import {name} as {_ALIASES.get(name, name)}\n"
        for home, names in imports.items()
        for name in names
    ]
    lines += [f"from dmlc.ir.dtype import {name} as {name}\n" for name in _DTYPES]
    public = {
        "BisectResult",
        "DType",
        "Diagnostic",
        "DmlcError",
        "Edit",
        "Fix",
        "FixedText",
        "LocatedVerdict",
        "MadeFix",
        "ModelDiff",
        "Program",
        "Repro",
        "Source",
        "bisect",
        "decompose",
        "diff",
        "fix",
        "function",
    }
    public |= {"locate", "model_facts", "repro", *_DTYPES, *PUBLIC}
    return f"{_PACKAGE}\n{''.join(lines)}\n__version__: str\nbool: DType\n\n{_names(public)}"


def operations_stub() -> str:
    """The stub of ``dmlc.builder.operations``."""
    parts = [_HEAD]
    parts += [_results(op) for op in OPERATIONS.values() if _has_named_results(op)]
    parts += [_function(op) for op in OPERATIONS.values()]
    parts.append(_names(operations.__all__))
    return "\n".join(parts)


def _names(names: Iterable[str]) -> str:
    """``__all__`` in ruff's order: classes first, numbers by their value."""

    def key(name: str) -> tuple[bool, list[tuple[int, str]]]:
        return not name[0].isupper(), [(int(p) if p.isdigit() else -1, p) for p in re.split(r"(\d+)", name)]

    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names, key=key)) + "]\n"


def _has_named_results(op: Operation) -> bool:
    return len(op.results) > 1 and op not in VARIADIC_RESULTS


def _results(op: Operation) -> str:
    fields = "".join(f"    {name}: Tensor\n" for name in op.results)
    return f"class {results_name(op)}(NamedTuple):\n{fields}"


def _function(op: Operation) -> str:
    literals = len(op.operands) > 1 and not op.operands[0].variadic
    kind = "TensorLike" if literals else "Tensor | Array"
    parameters = []
    for operand in op.operands:
        star, absent = "*" if operand.variadic else "", " | None = None" if operand.optional else ""
        parameters.append(f"{star}{operand.name}: {kind}{absent}")
    specs = attribute_specs(op.attributes)
    if specs and not (op.operands and op.operands[-1].variadic):
        parameters.append("*")
    for spec in specs:
        is_like = spec is like_attribute(op)
        default = " = ..." if is_like and spec.required else _default(spec)
        parameters.append(f"{spec.name}: {spec.kind.hint}{default}")
        if is_like:
            parameters.append(f"{LIKE}: Tensor = ...")
        if spec.synonym:
            words = ", ".join(f'"{word}"' for word in spec.synonym.words)
            parameters.append(f"{spec.synonym.name}: Literal[{words}] = ...")
    returned = "Tensor"
    if op in VARIADIC_RESULTS:
        returned = "tuple[Tensor, ...]"
    elif _has_named_results(op):
        returned = results_name(op)
    body = "".join(f"    {parameter},\n" for parameter in parameters)
    return f'def {python_name(op)}(\n{body}) -> {returned}:\n    """{op.summary}"""\n'


def _default(spec: AttributeSpec) -> str:
    if spec.required:
        return ""
    default: Any = spec.default
    if default is None:
        return " | None = None"
    if isinstance(default, str):
        return f' = "{default}"'
    return f" = {default}" if isinstance(default, (bool, int, float)) else " = ..."


if __name__ == "__main__":
    files = {OPERATIONS_STUB: operations_stub(), PACKAGE_STUB: package_stub()}
    raise SystemExit(write_or_compare("builder_stubs", __doc__, files))
