"""Kernels of ONNX Runtime's CPU provider, as ``dmlc targets`` prints them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dmlc.cli.console import UsageError
from dmlc.cli.layout import table
from dmlc.diagnostics import did_you_mean
from dmlc.ir.answers import Answer
from dmlc.targets import Target, kernel_table, operators_of
from dmlc.targets.known_wrong import WrongKernels, wrong_kernels

Rows = list[list[Any]]


class Kernels(Struct, frozen=True):
    """Kernel table of a target and its source.

    ``version`` is None for the data file. ``note`` is the reason why that file is used although onnxruntime is
    installed.
    """

    source: str
    version: str | None
    operators: dict[str, Rows]
    note: str = ""

    def wrong(self, op: str) -> list[WrongKernels]:
        """Return the known faults of an operator in that release; with no version, in any release."""
        rows = [row for row in wrong_kernels() if op in row.operators]
        return [row for row in rows if self.version is None or row.holds_for(self.version)]


class CpuKernelRow(Answer, frozen=True):
    """A kernel of the CPU provider: the first and the last opset, and its types by parameter."""

    opsets: tuple[int, int]
    types: dict[str, list[str]]


class CpuFault(Answer, frozen=True):
    """A known fault of an operator of the CPU provider with these types."""

    types: list[str]
    what: str
    source: str


class CpuOperator(Answer, frozen=True):
    """An ONNX operator of the CPU provider."""

    operator: str
    kernels: list[CpuKernelRow]
    wrong: list[CpuFault]


class CpuAnswer(Answer, frozen=True):
    """An operator in the tables of the CPU provider; ``onnxruntime`` is the release, null for that of the data file."""

    target: str
    onnxruntime: str | None
    source: str
    operators: list[CpuOperator]


def kernels_of(target: Target) -> Kernels | None:
    """The kernels that a target's nodes are made legal for, by all operators that are known; None where it has none."""
    found = kernel_table(target)
    if found is None or target.kernels is None:
        return None
    note = ""
    if target.installed_kernels:
        # onnxruntime is loaded only for a target that asks for it
        from dmlc.runtime.installed_kernels import all_rows, installed

        library = installed()
        if library.table is not None:
            return Kernels(library.table.source, library.version, all_rows())
        note = f"{library.problem}, so the data file is used instead"
    return Kernels(found.source, None, operators_of(target.kernels), note)


def page_rows(target: Target) -> list[list[str]]:
    """The lines of a target's page."""
    found = kernels_of(target)
    if found is None:
        return []
    rows = [["kernels", f"{found.source}; {len(found.operators)} operators"]]
    return rows + ([["", found.note]] if found.note else [])


def operator(target: Target, name: str) -> tuple[str, CpuAnswer]:
    """The text and the answer about an operator's kernels. Raises ``UsageError``."""
    found = kernels_of(target)
    if found is None:
        raise UsageError(f"target {target.name} has no operator tables; cpu and directml have")
    op = next((op for op in found.operators if plain_name(op) == plain_name(name)), None)
    if op is None:
        near = did_you_mean(name, list(found.operators))
        raise UsageError(f"the tables have no operator {name}; {near or 'names have upper case letters, as ArgMax'}")
    rows, wrong = found.operators[op], found.wrong(op)
    lines = [["opsets", "types"]]
    lines += [[f"{a} to {b}", "; ".join(f"{p}: {types}" for p, types in each.items())] for a, b, each in rows]
    text = f"{op}: CPU provider\n" + table(lines, "  ") + f"  source: {found.source}\n"
    if found.note:
        text += f"  {found.note}\n"
    if any("(f16)" in types for *_, each in rows for types in each.values()):
        text += "  (f16): ONNX Runtime computes it in f32, and inserts casts\n"
    for row in wrong:
        text += f"  wrong: {' '.join(sorted(row.types))}: {row.what}; instead: {row.instead} ({row.source})\n"
    kernels = [CpuKernelRow((a, b), {p: types.split() for p, types in each.items()}) for a, b, each in rows]
    faults = [CpuFault(sorted(row.types), row.what, row.source) for row in wrong]
    return text, CpuAnswer(target.name, found.version, found.source, [CpuOperator(op, kernels, faults)])


def plain_name(name: str) -> str:
    """A name of ONNX or DirectML without what users spell in different ways."""
    return name.lower().replace("_", "")
