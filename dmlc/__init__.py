"""dmlc: a graph compiler and a small language that fuses reductions before DirectML execution.

The names are loaded when they are first asked for, so that ``dmlc --help`` loads no library. Type checkers read
``__init__.pyi``.
"""

from __future__ import annotations

import importlib
import importlib.machinery

__version__ = "0.1.0"

#: The public names by their module; the builder also has one name for each operation. ``Source`` and ``bool`` have
#: other names there.
_MODULE_OF = {
    name: f"dmlc.{module}"
    for module, names in {
        "api": ("Program", "Source", "compile"),
        "api.decomposition": ("decompose",),
        "api.fixing": ("FixedText", "MadeFix", "fix"),
        "api.functions": ("function",),
        "builder": ("Graph", "Tensor", "constant", "onnx", "size"),
        "codegen.onnx.metadata": ("model_facts",),
        "debugging": ("BisectResult", "LocatedVerdict", "ModelDiff", "Repro", "bisect", "diff", "locate", "repro"),
        "diagnostics": ("Diagnostic", "DmlcError", "Edit", "Fix"),
        "ir.dtype": (
            "DType",
            "bool",
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
    }.items()
    for name in names
}
_NAME_THERE = {"Source": "TextSource", "bool": "bool_"}
#: Modules that users reach as attributes, without an import of their own.
_MODULES = ("api", "debugging", "std", "testing", "verifying")


def __getattr__(name: str) -> object:
    if name == "__all__":
        # `from dmlc import *` brings nothing that would shadow Python's own min, max, compile and the like
        return sorted({*_MODULE_OF, *importlib.import_module("dmlc.builder").PUBLIC} - {"bool", "compile"})
    if name in _MODULES:
        return importlib.import_module(f"dmlc.{name}")
    # `from dmlc import text` asks for the name first: no reason to load the builder
    if name not in _MODULE_OF and (
        name.startswith("_") or importlib.machinery.PathFinder.find_spec(f"dmlc.{name}", __path__)
    ):
        raise AttributeError(f"module 'dmlc' has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULE_OF.get(name, "dmlc.builder"))
        return getattr(module, _NAME_THERE.get(name, name))
    except AttributeError:
        instead = importlib.import_module("dmlc.builder.habits").instead(name, of_array=True)
        help = f"; write {instead}" if instead else ""
        raise AttributeError(f"module 'dmlc' has no attribute {name!r}{help}") from None


def __dir__() -> list[str]:
    """The public names: those of the stub."""
    return sorted({*_MODULE_OF, *_MODULES, *importlib.import_module("dmlc.builder.operations").__all__})
