"""dmlc: a graph compiler and a small language that fuses reductions before DirectML execution.

The names are loaded when they are first asked for, so that ``dmlc --help`` loads no library. Type checkers read
``__init__.pyi``.
"""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

#: Modules of the public names; the builder has the names that have no line here.
_HOMES = {
    "DmlcError": "dmlc.diagnostics",
    "Diagnostic": "dmlc.diagnostics",
    "Program": "dmlc.api",
    "Source": "dmlc.api",
    "compile": "dmlc.api",
    "decompose": "dmlc.api.decomposition",
    "function": "dmlc.api.functions",
    **dict.fromkeys(
        ("BisectResult", "LocatedVerdict", "ModelDiff", "Repro", "bisect", "diff", "locate", "repro"), "dmlc.debugging"
    ),
    **dict.fromkeys(("FixedText", "MadeFix", "fix"), "dmlc.api.fixing"),
    **dict.fromkeys(("Edit", "Fix"), "dmlc.diagnostics"),
    "model_facts": "dmlc.codegen.onnx.metadata",
    **dict.fromkeys(("DType", "f16", "f32", "f64", "i8", "i16", "i32", "i64"), "dmlc.ir.dtype"),
    **dict.fromkeys(("u8", "u16", "u32", "u64", "bool_"), "dmlc.ir.dtype"),
}
#: Names that are others in their homes: words of Python, and names that a class inside has.
_ALIASES = {"bool": "bool_", "Source": "TextSource"}
#: The packages and modules of this one. ``from dmlc import text`` asks for the name first: no reason to load others.
_ROOMS = frozenset([
    "api", "builder", "cli", "codegen", "debugging", "diagnostics", "importers", "inference", "ir",
    "onnx_schema", "ops", "passes", "placement", "runtime", "std", "targets", "testing", "text",
    "verify", "workers",
])  # fmt: skip

#: Modules that users reach as attributes, without an import of their own.
_MODULES = ("api", "debugging", "std", "testing", "verify")


def __getattr__(name: str) -> object:
    if name == "__all__":
        # `from dmlc import *` brings nothing that would shadow Python's own min, max, compile and the like
        return [*_HOMES.keys() - {"compile"}, *importlib.import_module("dmlc.builder").PUBLIC]
    if name in _MODULES:
        return importlib.import_module(f"dmlc.{name}")
    if name.startswith("_") or name in _ROOMS:
        raise AttributeError(f"module 'dmlc' has no attribute {name!r}")
    named = _ALIASES.get(name, name)
    try:
        home = _HOMES.get(name) or _HOMES.get(named, "dmlc.builder")
        return getattr(importlib.import_module(home), named)
    except AttributeError:
        instead = importlib.import_module("dmlc.builder.habits").instead(name, of_array=True)
        help = f"; write {instead}" if instead else ""
        raise AttributeError(f"module 'dmlc' has no attribute {name!r}{help}") from None


def __dir__() -> list[str]:
    """The public names: those of the stub."""
    builder, operations = (importlib.import_module(f"dmlc.builder{part}") for part in ("", ".operations"))
    return sorted({*_HOMES, "bool", *_MODULES, *builder.PUBLIC, *operations.__all__})
