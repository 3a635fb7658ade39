"""``decompose(source, ops)``: a model whose fused operators are written in primitive ones, the reverse of fusion."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.api.chosen_target import chosen_target
from dmlc.api.program import Program, emitted
from dmlc.api.sources import ProgramSource, name_of, onnx_model
from dmlc.diagnostics import fail, naming, suggestion
from dmlc.diagnostics.catalogue import runs
from dmlc.diagnostics.catalogue.targets import NOT_DECOMPOSED
from dmlc.diagnostics.counted import first_of
from dmlc.diagnostics.given import listed
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph, Node
from dmlc.ir.answers import Answer
from dmlc.ir.collector import collector_paused
from dmlc.ops.opaque import node_name
from dmlc.passes.decompose import DEFINED, OPERATORS, operator_of
from dmlc.passes.options import Options
from dmlc.targets import Target, TargetName

if TYPE_CHECKING:
    import onnx

#: So many nodes are named in an error.
_MOST_NAMED = 5


@collector_paused(begins=True)
def decompose(
    source: ProgramSource,
    ops: Iterable[str] | None = None,
    *,
    target: TargetName | Target = "directml",
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Program:
    """Write operators of a model in primitive ones: the reverse of fusion, for drivers that get a fused one wrong.

    ``ops`` names them as ONNX does (``LayerNormalization``, ``com.microsoft.Gelu``; a name without a domain means
    those of every domain); without it all that can be decomposed are. All other nodes stay as the model has them, at
    its opset. A ``.dml`` program or a builder's graph is compiled for the target first. The result is of the class
    ``reassociates``. Raises ``DmlcError``: E0556 (exit code 2) for a name that cannot be decomposed, E0509 where a
    node of a named operator cannot be, and the errors of ``compile``.
    """
    check_arguments(model=model, include=include, progress=progress)
    chosen = chosen_operators(ops)
    within, goal = Limits.of(limits), chosen_target(target, None)
    with naming(name_of(source)):
        found = onnx_model(source, within)
        if found is None:
            program = api.compile(source, target=goal, model=model, include=include, limits=limits, progress=progress)
            found = program.to_onnx(), emitted(program, "onnx").folder
        options = Options(target=goal, opset=goal.opset, limits=within, decompose=chosen, progress=progress)
        program = _decomposed(*found, options)
        program.source_name = name_of(source)
        if ops is not None:
            _require_all(program)
    return program


def chosen_operators(names: Iterable[str] | None) -> frozenset[str]:
    """The operators to decompose: all for None. A name without a domain means the operators of every domain.

    Raises ``DmlcError`` E0556 (exit code 2) for a name that cannot be decomposed.
    """
    if names is None:
        return frozenset(OPERATORS)
    by_name: dict[str, set[str]] = {}
    for operator in OPERATORS:
        for name in (operator, operator.rpartition(".")[2]):
            by_name.setdefault(name, set()).add(operator)
    given = listed("ops", names)
    for name in given:
        if name not in by_name:
            can = f"operators that can be are {', '.join(OPERATORS)}"
            help = suggestion(str(name), by_name, then=can)
            raise fail(runs.UNKNOWN_CHOICE, f'"{name}" cannot be decomposed', help=help, exit_code=2)
    if not given:
        raise fail(runs.UNKNOWN_CHOICE, "ops names no operator", help="leave it out for all", exit_code=2)
    return frozenset().union(*[by_name[name] for name in given])


def _decomposed(model: onnx.ModelProto, folder: Path | None, options: Options) -> Program:
    """The program of the model at its own opset."""
    from dmlc import importers

    with importers.blaming(model):
        defined = importers.in_definitions(model, options.decompose.intersection(DEFINED))
        graph = importers.import_model(defined, folder=folder, limits=options.limits)
        graph.reader = importers.read_again
        program = Program(graph, replace(options, opset=graph.opset), model)
        program.defined = _counts(model, options.decompose) - _counts(defined, options.decompose)
        emitted(program, "onnx")  # refuses an operator that has no form at this opset
    return program


def _counts(model: onnx.ModelProto, operators: frozenset[str]) -> Counter[str]:
    """The nodes of the operators that ONNX defines, as often as each is in the model."""
    from dmlc.onnx_schema import domains
    from dmlc.onnx_schema.nested import all_nodes

    names = operators.intersection(DEFINED)
    return Counter([name for name in map(domains.operator_of, all_nodes(model.graph.node)) if name in names])


class StayedNode(Answer, frozen=True):
    """A node of a named operator that could not be decomposed, and the reason."""

    operator: str
    node: str
    reason: str

    def __str__(self) -> str:
        return f"{self.operator} {self.node}: {self.reason}"


def stayed(program: Program) -> tuple[StayedNode, ...]:
    """The nodes that ``decompose`` was to write in primitive operators and that stayed, in graphs inside nodes too."""
    nodes = [node for node in _nodes(program.graph) if operator_of(node) in program.decomposed]
    reasons = {remark.node: remark.reason() for remark in program.remarks} if nodes else {}
    return tuple([StayedNode(operator_of(n), node_name(n), reasons.get(node_name(n)) or _unknown(n)) for n in nodes])


def _unknown(node: Node) -> str:
    """The reason where no rule says one: what it would begin with is not known."""
    if operator_of(node) in DEFINED:
        return "ONNX's definition of it needs types that are not known"
    return "its types, or operands such as axes, are not known before the model runs"


def _nodes(graph: Graph) -> Iterator[Node]:
    for node in graph:
        yield node
        for region in node.regions:
            yield from _nodes(region.graph)


def _require_all(program: Program) -> None:
    """Raises ``DmlcError`` E0509 where a node stayed that was to be decomposed."""
    nodes = stayed(program)
    if not nodes:
        return
    help = "leave the operator out of the list, or give the model shapes that are known"
    raise fail(NOT_DECOMPOSED, f"a node cannot be decomposed: {first_of(nodes, _MOST_NAMED, '; ')}", help=help)
