"""dmlc: a graph compiler and a small language that fuses reductions before DirectML execution.

The names are loaded when they are first asked for, so that ``dmlc --help`` loads no library. Type checkers read
``__init__.pyi``.
"""

from __future__ import annotations

import importlib
import importlib.machinery

from dmlc.lazy_names import lazy_names

__version__ = "0.1.0"

#: The module of each public name, and its name there; the builder also has one name for each operation.
_NAMES, _load, _ = lazy_names(
    __name__,
    {
        "api": ("Program", "TextSource as Source", "compile"),
        "api.checking": ("CheckResult", "check"),
        "api.decomposition": ("decompose",),
        "api.fixing": ("FixedText", "MadeFix", "fix"),
        "api.functions": ("function",),
        "builder": ("Graph", "Tensor", "constant", "onnx", "size"),
        "onnx_schema.metadata": ("model_facts",),
        "debugging": (
            "BisectResult",
            "LocatedVerdict",
            "ModelDiff",
            "Repro",
            "bisect",
            "diff",
            "locate",
            "repro",
            "verify",
        ),
        "diagnostics": ("Diagnostic", "DmlcError", "Edit", "Fix"),
        "ir.dtype": (
            "DType",
            "bool_ as bool",
            "bool_",
            "f16",
            "f32",
            "f64",
            "i8",
            "i16",
            "i32",
            "i64",
            "u8",
            "u16",
            "u32",
            "u64",
        ),
        "placement.report": ("Placement",),
        "verifying.verdict": ("Verdict",),
    },
)
#: Packages that users reach as attributes, without an import of their own. ``std`` holds operations; the others are not
#: among the names that completion shows.
_PACKAGES = ("std", "api", "debugging", "testing", "verifying")


def __getattr__(name: str) -> object:
    if name == "__all__":
        # `from dmlc import *` brings nothing that would shadow Python's own min, max, compile and the like
        return sorted({*_NAMES, *importlib.import_module("dmlc.builder").PUBLIC} - {"bool", "compile"})
    if name in _NAMES:
        return _load(name)
    if name in _PACKAGES:
        return importlib.import_module(f"dmlc.{name}")
    # `from dmlc import text` asks for the name first: no reason to load the builder
    if name.startswith("_") or importlib.machinery.PathFinder.find_spec(f"dmlc.{name}", __path__):
        raise AttributeError(f"module 'dmlc' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module("dmlc.builder"), name)
    except AttributeError:
        instead = importlib.import_module("dmlc.builder.foreign").instead(name)
        help = f"; write {instead}" if instead else ""
        raise AttributeError(f"module 'dmlc' has no attribute {name!r}{help}") from None


def _printer() -> object:
    """Return the module with the texts and tables of records. It needs every layer, so only the package names it."""
    return importlib.import_module("dmlc.cli.printed")


def __dir__() -> list[str]:
    """The operations, the commands and their records."""
    return sorted({*_NAMES, "std", *importlib.import_module("dmlc.builder.operations").__all__})
