"""The kernels of the installed ONNX Runtime's CPU provider, read from the library itself.

``get_all_opkernel_def`` is a function of its Python binding for debugging (``onnxruntime_pybind_schema.cc``): it is in
every released package so far, and promised for none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec.structs import replace

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.libraries import one_line, require
from dmlc.runtime.hosts import WORKER
from dmlc.targets import KernelTable, Target, operators_of
from dmlc.targets.kernel_rows import INSERTED
from dmlc.targets.known_wrong import wrong_in
from dmlc.workers.sessions import Requests

#: First and last since-version, and the types of each parameter.
Kernel: TypeAlias = tuple[int, int, dict[str, set[str]]]
#: Per operator of the default domain.
Kernels: TypeAlias = dict[str, list[Kernel]]
#: Types by type parameter.
Types: TypeAlias = dict[str, list[str]]

#: The model opsets that are asked for.
OPSETS = range(11, 22)
_OPEN_END = 2**31 - 1
#: Providers of builds whose kernels can be read in this process.
_SAFE_PROVIDERS = frozenset({"CPUExecutionProvider", "AzureExecutionProvider", "WebGpuExecutionProvider"})
#: Seconds for reading them in another.
_LIMIT = 120
_SHORT = {
    "float16": "f16", "float": "f32", "double": "f64", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "bool",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Installed:
    """Installed onnxruntime: its ``version`` and kernel table. ``problem`` is the reason why there is no table."""

    version: str | None
    table: KernelTable | None
    problem: str = ""


def read_kernels(operators: Container[str] | None = None) -> Kernels:
    """Return the kernels of the CPU provider for operators, or for all.

    Raises ``DmlcError`` E0560 if ONNX Runtime is missing or broken. Raises ``ImportError``, ``AttributeError`` or
    ``NoEvidence`` if its kernels cannot be read.
    """
    out: Kernels = defaultdict(list)
    for op, first, last, types in _all_kernels():
        if operators is None or op in operators:
            out[op].append((first, last, {parameter: set(_short(names)) for parameter, names in types.items()}))
    return dict(out)


def _all_kernels() -> Iterable[tuple[str, int, int, Mapping[str, Sequence[str]]]]:
    """Read operator, first and last version and types of each kernel of the CPU provider.

    The function makes every provider that the build has, and reads a kernel registry that some do not have: in the
    OpenVINO build 1.24.1 it ends the process. Builds with providers that are not known to be safe are read in another.
    """
    if not _SAFE_PROVIDERS.issuperset(require("onnxruntime").get_available_providers()):
        found: list[tuple[str, int, int, dict[str, list[str]]]] = WORKER.ask_unproved(_LIMIT, "kernels")
        return found
    return Requests(require("onnxruntime")).kernels()


def types_by_opset(kernels: Kernels, op: str) -> dict[int, Types]:
    """The types per parameter that run at each model opset at which the operator is declared."""
    out: dict[int, Types] = {}
    last = OPSETS[-1]
    for since, allowed in _versions(op):
        types = _types(kernels.get(op, ()), since, allowed)
        out.update(dict.fromkeys(range(max(since, OPSETS[0]), last + 1), types))
        last = since - 1
    return out


def _types(kernels: Sequence[Kernel], since: int, allowed: Mapping[str, frozenset[str]]) -> Types:
    """The types of a version of an operator.

    ONNX Runtime takes a kernel whose range has no end only if it begins at the schema's own version
    (``VerifyVersion`` in ``core/framework/kernel_registry.cc``).
    """
    found: dict[str, set[str]] = defaultdict(set)
    for first, last, types in kernels:
        if first == since or (first < since <= last and last != _OPEN_END):
            for parameter, names in types.items():
                found[parameter] |= names
    out = {}
    for parameter, names in sorted(found.items()):
        if parameter in allowed:
            names = names & allowed[parameter]
        out[parameter] = [n for n in _SHORT.values() if n in names]
        if "f32" in names and "f16" not in names and "f16" in allowed.get(parameter, ()):
            out[parameter].insert(0, INSERTED)
    return out


def _versions(op: str) -> Iterator[tuple[int, dict[str, frozenset[str]]]]:
    """The versions of an operator up to the last opset that is asked for, newest first, and the types of its schema.

    One that only ONNX Runtime declares is of version 1 and allows what its kernels take.
    """
    from onnx import defs

    if not defs.has(op, ""):
        yield 1, {}
    opset = OPSETS[-1]
    while opset >= OPSETS[0] and defs.has(op, opset, ""):
        schema = defs.get_schema(op, opset, "")
        yield (
            schema.since_version,
            {c.type_param_str: frozenset(_short(c.allowed_type_strs)) for c in schema.type_constraints},
        )
        opset = schema.since_version - 1


def _short(names: Iterable[str]) -> list[str]:
    """``f32`` for ``tensor(float)``."""
    return [_SHORT.get(name[7:-1], name) for name in names]


def rows(types_of: dict[int, Types]) -> list[list[Any]]:
    """``[first opset, last opset, types]``, neighbours with equal types joined: the rows of a kernel table."""
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


def rows_of(operators: Collection[str]) -> dict[str, list[list[Any]]]:
    """The rows of these operators that the installed library has. Raises as ``read_kernels``."""
    kernels = read_kernels(operators)
    return {op: rows(types_by_opset(kernels, op)) for op in operators}


def all_rows() -> dict[str, list[list[Any]]]:
    """The rows of every operator that the installed library has at the opsets that are asked for. Raises as
    ``read_kernels``."""
    kernels = read_kernels()
    found = {op: rows(types_by_opset(kernels, op)) for op in sorted(kernels)}
    return {op: each for op, each in found.items() if each}


@lru_cache(maxsize=1)
def installed() -> Installed:
    """The table of the operators that lowerings emit. Read once a process: that takes some 20 ms, and what loading
    onnxruntime takes, twice for builds that are read in another process."""
    try:
        library = require("onnxruntime")
    except DmlcError as error:  # missing or broken: dmlc compiles without it
        return Installed(None, None, error.diagnostics[0].message)
    version = str(getattr(library, "__version__", "of unknown version"))
    try:
        operators = rows_of(operators_of("ort_cpu"))
    except Exception as error:  # a function for debugging: other builds may lack it, or answer in another form
        return Installed(version, None, f"onnxruntime {version} does not list its kernels: {one_line(str(error))}")
    source = f"onnxruntime {version}, as installed: get_all_opkernel_def(), CPUExecutionProvider"
    return Installed(version, KernelTable(source, operators, wrong_in(version)))


def with_installed(target: Target) -> Target:
    """The target with the table of the installed library, where its data file asks for that and it can be read."""
    return replace(target, table=installed().table) if target.installed_kernels else target
