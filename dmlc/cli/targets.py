"""List the targets, show one, or print the rows of its tables for an operator."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from dmlc.cli import kernel_view
from dmlc.cli.console import Console, UsageError
from dmlc.cli.kernel_view import plain_name
from dmlc.cli.layout import table
from dmlc.cli.options import add_report_options
from dmlc.diagnostics import did_you_mean
from dmlc.ir.answers import Answer
from dmlc.targets import Target, TargetFacts, load_target, target_names
from dmlc.targets.directml import OperatorRow, feature_levels, level_key, operator_rows
from dmlc.targets.provider import Provider, ProviderRow, provider


class TargetsAnswer(Answer, frozen=True):
    """All targets, or one."""

    targets: list[TargetFacts] | UnsetType = UNSET
    target: TargetFacts | UnsetType = UNSET


class ProviderKernel(Answer, frozen=True):
    """A kernel of a provider: the first opset, its types by parameter, and the first ONNX Runtime with it (empty where
    the table is of one release).

    ``constant`` are the numbers of the operands that must be constants.
    """

    since: int
    types: dict[str, list[str]]
    constant: list[int]
    release: str


class ProviderOperator(Answer, frozen=True):
    """An ONNX operator of DirectML's provider; ``directml`` are the operators that it becomes."""

    op: str = field(name="operator")
    domain: str
    opsets: tuple[tuple[int, int], ...]
    directml: tuple[str, ...]
    kernels: list[ProviderKernel]


class TensorLimits(Answer, frozen=True):
    """The fewest and the most axes of a tensor, and its types."""

    ranks: tuple[int, int]
    types: list[str]


class DirectMLLevel(Answer, frozen=True):
    """The tensors of an operator from a feature level on."""

    level: str
    tensors: dict[str, TensorLimits]


class DirectMLOperator(Answer, frozen=True):
    """An operator of DirectML."""

    name: str = field(name="operator")
    introduced: str
    source: str
    levels: list[DirectMLLevel]


class ProviderAnswer(Answer, frozen=True):
    """An operator in the tables of DirectML."""

    target: str
    operators: list[ProviderOperator]
    directml: list[DirectMLOperator]


ANSWERS = (TargetsAnswer, ProviderAnswer, kernel_view.CpuAnswer)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="a target")
    parser.add_argument(
        "--op", metavar="NAME", help="print the rows of the target's tables for an operator: argmax, ArgMax"
    )
    parser.add_argument("--feature-level", metavar="5.0", help="only the rows that hold at this DirectML feature level")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.name is None:
        if args.op is not None:
            raise UsageError("--op needs a target: dmlc targets directml --op argmax")
        targets = [load_target(name) for name in target_names()]
        rows = [["target", "opset", "opsets", "description"]]
        rows += [[t.name, str(t.opset), f"{t.min_opset} to {t.max_opset}", t.summary] for t in targets]
        console.result(table(rows))
        console.document(TargetsAnswer([TargetFacts.of(target) for target in targets]))
        return 0
    if args.name not in target_names():
        near = did_you_mean(args.name, target_names())
        raise UsageError(f"there is no target {args.name}; {near or 'dmlc targets lists them'}")
    target = load_target(args.name)
    if args.feature_level is not None:
        if args.feature_level not in feature_levels():
            levels = " ".join(feature_levels())
            raise UsageError(f"there is no DirectML feature level {args.feature_level}; levels are {levels}")
        target = replace(target, feature_level=args.feature_level)
    if args.op is not None:
        return _operator(args, console, target)
    return _show(target, console)


def show(name: str, console: Console) -> int:
    """Show the page of a target."""
    return _show(load_target(name), console)


def _show(target: Target, console: Console) -> int:
    console.result(_page(target))
    console.document(TargetsAnswer(target=TargetFacts.of(target)))
    return 0


def _page(target: Target) -> str:
    rows = [
        ["description", target.summary],
        ["ONNX opset", f"{target.opset}; with --opset {target.min_opset} to {target.max_opset}"],
        ["ONNX IR version", str(target.ir_version)],
        ["source", f"{target.source} ({target.date})"],
    ]
    if target.provider is None:
        rows += kernel_view.page_rows(target)
    else:
        found = provider(target.provider)
        kernels = sum(len(row.kernels) for row in found.rows.values())
        tables = f"{len(found.rows)} ONNX operators, {kernels} kernels"
        if target.feature_level is not None:
            rows.append(["feature level", f"{target.feature_level} of DirectML"])
            tables += f"; {len(operator_rows())} DirectML rows"
        rows.append(["tables", tables])
    return f"{target.name}\n" + table(rows, "  ")


# --- one operator


def _operator(args: argparse.Namespace, console: Console, target: Target) -> int:
    if target.provider is None:
        text, document = kernel_view.operator(target, args.op)
        console.result(text)
        console.document(document)
        return 0
    found = provider(target.provider)
    wanted = plain_name(args.op)
    rows = [row for row in found.rows.values() if plain_name(row.op) == wanted]
    names = {name for row in rows for name in row.directml}
    every = operator_rows().values() if target.feature_level is not None else ()
    tables = [r for r in every if r.name in names or wanted in map(plain_name, (r.name, r.name.split(".")[0]))]
    if not rows and not tables:
        candidates = [row.op for row in found.rows.values()] + list(operator_rows())
        near = did_you_mean(args.op, candidates)
        raise UsageError(f"the tables have no operator {args.op}; {near or 'dmlc targets lists them'}")
    level = args.feature_level
    console.result("".join(_kernels_text(row, found) for row in rows) + "".join(_table_text(t, level) for t in tables))
    console.document(
        ProviderAnswer(
            target.name,
            [_provider_operator(row, found) for row in rows],
            [_directml_operator(t, level) for t in tables],
        )
    )
    return 0


def _kernels_text(row: ProviderRow, found: Provider) -> str:
    ranges = ", ".join(f"{first} to {last}" for first, last in row.opsets) or "none"
    becomes = f"; becomes {' + '.join(row.directml)}" if row.directml else ""
    label = f"{row.domain}.{row.op}" if row.domain else row.op
    lines = [["since", "types", *(["constant operands", "onnxruntime"] if found.fuses else ["i64 by enableInt64"])]]
    for kernel in row.kernels:
        types = "; ".join(f"{name}: {_types(names)}" for name, names in kernel.types.items())
        constant, more = (", ".join(map(str, sorted(each))) or "-" for each in (kernel.constant, kernel.int64))
        lines.append(
            [str(kernel.since), types, *([constant, f"{kernel.release or '1.15'} on"] if found.fuses else [more])]
        )
    text = f"{label}: opsets {ranges}{becomes}\n" + table(lines, "  ") + f"  source: {found.cite} ({found.date})\n"
    for failure in found.failures:
        if row.op in failure.operators:
            text += f"  {failure.effect}: {failure.what}; instead: {failure.repair} ({failure.source})\n"
    return text


def _types(names: frozenset[str]) -> str:
    return " ".join(sorted(names))


def _shown(row: OperatorRow, level: str | None) -> list[tuple[str, Any]]:
    if level is None:
        return list(row.levels)
    return [(since, tensors) for since, tensors in row.levels if tensors is row.at(level)]


def _table_text(row: OperatorRow, level: str | None) -> str:
    lines = [["level", "tensor", "axes", "types"]]
    for since, tensors in _shown(row, level):
        for name, cell in tensors.items():
            ranks = str(cell.least) if cell.least == cell.most else f"{cell.least} to {cell.most}"
            lines.append([f"{since} on", name, ranks, _types(cell.types)])
    if level is not None and level_key(level) < level_key(row.introduced):
        return f"DirectML {row.name}: from feature level {row.introduced} on, not at {level}\n  source: {row.source}\n"
    measured = f"  measured: {row.measured}\n" if row.measured else ""
    return (
        f"DirectML {row.name}: from feature level {row.introduced} on\n"
        + table(lines, "  ")
        + f"  source: {row.source}\n{measured}"
    )


def _provider_operator(row: ProviderRow, found: Provider) -> ProviderOperator:
    release = "1.15" if found.fuses else ""
    kernels = [
        ProviderKernel(kernel.since, _sorted(kernel.types), sorted(kernel.constant), kernel.release or release)
        for kernel in row.kernels
    ]
    return ProviderOperator.of(row, kernels=kernels)


def _sorted(types: Mapping[str, frozenset[str]]) -> dict[str, list[str]]:
    return {name: sorted(each) for name, each in types.items()}


def _directml_operator(row: OperatorRow, level: str | None) -> DirectMLOperator:
    levels = [
        DirectMLLevel(since, {n: TensorLimits((t.least, t.most), sorted(t.types)) for n, t in tensors.items()})
        for since, tensors in _shown(row, level)
    ]
    return DirectMLOperator.of(row, levels=levels)
