"""The stubs of the package, written from the declarations: ``python -m tools.builder_stubs --write`` writes them anew.

``operations.pyi`` types the operations, ``entry.pyi`` the function ``compile``, each ``__init__.pyi``
the names of a package, which are loaded lazily.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from dmlc import std
from dmlc.api.functions import Function
from dmlc.builder import operations
from dmlc.builder.functions import VARIADIC_RESULTS, python_name, results_name
from dmlc.ir import Operation
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import AttributeSpec, attribute_specs
from dmlc.ops.call_attributes import LIKE, like_attribute
from dmlc.passes.options import OPTIONS
from dmlc.targets import TargetName
from dmlc.targets.directml import FeatureLevel
from tools.generated_files import write_or_compare

_PACKAGE_FOLDER = Path(__file__).parents[1] / "dmlc"
OPERATIONS_STUB = _PACKAGE_FOLDER / "builder" / "operations.pyi"
PACKAGE_STUB = _PACKAGE_FOLDER / "__init__.pyi"
STD_STUB = _PACKAGE_FOLDER / "std" / "__init__.pyi"
COMPILE_STUB = _PACKAGE_FOLDER / "api" / "entry.pyi"
#: The packages whose names are all loaded lazily.
LAZY_PACKAGES = ("debugging", "importers", "verifying")

_HEAD = '''\
"""Written by ``python -m tools.builder_stubs --write`` from the declarations in ``dmlc.ops``; a test compares them."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dmlc.builder.tensor import DTypeLike, Tensor, TensorLike
from dmlc.ir import Array, DimExpr
'''


_STD_HEAD = '''\
"""Written by ``python -m tools.builder_stubs --write`` from the blocks of this folder; a test compares them."""

from typing import Any

from dmlc.builder.tensor import Tensor, TensorLike
'''

_DOCSTRING = '''\
"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what the package gives."""
'''

_ALIASES = {TargetName: "TargetName", FeatureLevel: "FeatureLevel"}
_COMPILE = f"""\
{_DOCSTRING}
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from dmlc.api.program import Program
from dmlc.api.sources import ProgramSource
from dmlc.targets import Target, TargetName
from dmlc.targets.directml import FeatureLevel
"""


def package_stub() -> str:
    """The stub of ``dmlc`` itself."""
    package = importlib.import_module("dmlc")
    names = {name: ("dmlc", name) for name in package._PACKAGES}
    names |= {name: place for name, place in package._NAMES.items() if name != "bool"}  # Python's bool
    names |= {name: ("dmlc.builder.operations", name) for name in operations.__all__}
    head = f"{_DOCSTRING}\n# ruff: noqa: A004\n"
    return f"{head}\n{_imports(names)}\n__version__: str\nbool: DType\n\n{_names(package.__all__)}"


def lazy_stub(package: str) -> str:
    """The stub of a package whose names are all loaded lazily."""
    names = importlib.import_module(package)._NAMES
    return f"{_DOCSTRING}\n{_imports(names)}\n{_names(names)}"


def stubs() -> dict[Path, str]:
    """The text of each stub by its path."""
    lazy = {_PACKAGE_FOLDER / package / "__init__.pyi": lazy_stub(f"dmlc.{package}") for package in LAZY_PACKAGES}
    return {
        OPERATIONS_STUB: operations_stub(),
        PACKAGE_STUB: package_stub(),
        COMPILE_STUB: compile_stub(),
        STD_STUB: std_stub(),
        **lazy,
    }


def std_stub() -> str:
    """The stub of ``dmlc.std``: a function for each block."""
    functions = "".join(f"\n{_block(getattr(std, name))}" for name in dir(std))
    return f"{_STD_HEAD}{functions}"


def _block(block: Function) -> str:
    parameters = list(block.__signature__.parameters.values())
    lines = [f"    {p.name}: TensorLike,\n" for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY]
    lines += ["    *,\n"] if keywords else []
    for p in keywords:
        kind = "bool" if isinstance(p.default, bool) else "int" if p.name == "axis" else "float"
        lines.append(f"    {p.name}: {'Any' if p.default is p.empty else f'{kind} = {p.default}'},\n")
    summary = textwrap.fill(block.__doc__ or "", 110, subsequent_indent="    ")
    return f'def {block.__name__}(\n{"".join(lines)}) -> Tensor:\n    """{summary}"""\n'


def compile_stub() -> str:
    """The stub of ``dmlc.api.entry``: the function ``compile`` with its keywords."""
    compile = importlib.import_module("dmlc.api.entry").compile
    options = OPTIONS.values()
    parameters = ["source: ProgramSource", "*"]
    parameters += [f"{option.name}: {type_text(option.takes)} = {_literal(option.default)}" for option in options]
    body = "".join(f"    {parameter},\n" for parameter in parameters)
    docstring = textwrap.indent(inspect.getdoc(compile) or "", "    ").lstrip()
    return f'{_COMPILE}\ndef compile(\n{body}) -> Program:\n    """{docstring}\n    """\n'


def type_text(kind: Any) -> str:
    """Return a type as source text, without the modules of its names."""
    if kind is None or kind is type(None):
        return "None"
    if not isinstance(kind, list) and kind in _ALIASES:
        return _ALIASES[kind]
    parts, origin = get_args(kind), get_origin(kind)
    if origin in (Union, UnionType):
        return " | ".join(map(type_text, parts))
    if origin is Literal:
        return f"Literal[{', '.join(map(_literal, parts))}]"
    if isinstance(kind, list):
        return f"[{', '.join(map(type_text, kind))}]"
    name = "os.PathLike" if origin is os.PathLike else (origin or kind).__name__
    return f"{name}[{', '.join(map(type_text, parts))}]" if parts else name


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def operations_stub() -> str:
    """The stub of ``dmlc.builder.operations``."""
    parts = [_HEAD]
    parts += [_results(op) for op in OPERATIONS.values() if _has_named_results(op)]
    parts += [_function(op) for op in OPERATIONS.values()]
    parts.append(_names(operations.__all__))
    return "\n".join(parts)


def _imports(names: Mapping[str, tuple[str, str]]) -> str:
    """Return the imports of names, each from its module under its name there."""
    places = sorted((module, _order(there), there, name) for name, (module, there) in names.items())
    return "".join(f"from {module} import {there} as {name}\n" for module, _, there, name in places)


def _order(name: str) -> tuple[int, list[tuple[int, str]]]:
    """Ruff's order of names: constants, classes, others; numbers by their value."""
    kind = 2 if not name[0].isupper() else 0 if name.isupper() else 1
    return kind, [(int(p) if p.isdigit() else -1, p) for p in re.split(r"(\d+)", name)]


def _names(names: Iterable[str]) -> str:
    """Return ``__all__``."""
    return "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(set(names), key=_order)) + "]\n"


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
    raise SystemExit(write_or_compare("builder_stubs", __doc__, stubs()))
