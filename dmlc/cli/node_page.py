"""The page of one node for ``dmlc explain --node``: where it comes from, by its metadata, and what was done to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, UnsetType, convert

from dmlc import api
from dmlc.cli.compile_options import limits_of
from dmlc.cli.console import Console, UsageError
from dmlc.cli.layout import table
from dmlc.cli.source import compile_source, is_model, open_source
from dmlc.codegen.ledger import RewriteRow, ledger_rows
from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.diagnostics.suggest import did_you_mean
from dmlc.importers import read_model
from dmlc.ir.answers import Answer
from dmlc.onnx_schema.nested import all_nodes
from dmlc.runtime import files

if TYPE_CHECKING:
    from onnx import NodeProto

_TITLES = {"rules": "made by", "class": "class", "from": "from nodes", "places": "from places"}


class MissedRule(Answer, frozen=True):
    """A rule that did not fire at the node, and why."""

    rule: str
    reason: str


class NodeAnswer(Answer, frozen=True, rename={"sources": "from", "rewrite_class": "class"}):
    """A node: its origin by its metadata, the rules that made it and their classes, and the rewrites."""

    source: str
    node: str
    operator: str | UnsetType = UNSET
    places: list[str] | UnsetType = UNSET
    sources: list[str] | UnsetType = UNSET
    rules: list[str] | UnsetType = UNSET
    rewrite_class: list[str] | UnsetType = UNSET
    rewrites: list[RewriteRow] | UnsetType = UNSET
    missed: list[MissedRule] | UnsetType = UNSET
    lowerings: list[str] | UnsetType = UNSET


def explain_node(args: argparse.Namespace, console: Console) -> int:
    """Show the node of SRC, or of what SRC compiles to. Raises ``DmlcError``, ``UsageError`` where there is none."""
    name: str = args.node
    nodes: list[NodeProto] = []
    if is_model(args.source):
        path, limits = Path(args.source), limits_of(args)
        nodes += read_model(path, files.read_bytes(path, limits, is_model=True), limits).graph.node
    facts = _facts(nodes, name)
    fields: dict[str, Any] = {"node": name, **facts}
    if not facts.get("rules"):
        source = open_source(args)
        with console.progress(args.source) as progress:
            program = compile_source(args, source=source, progress=progress)
            fields |= _done_to(program, name)
            emitted = list(program.to_onnx().graph.node) if program.target.code == "onnx" else []
        fields |= {key: value for key, value in _facts(emitted, name).items() if key not in fields}
        nodes += emitted
    if len(fields) == 1:
        maker = _makers(nodes).get(name)
        help = did_you_mean(name, _nodes_of(nodes)) if maker is None else f"{maker!r} makes a value of that name"
        raise UsageError(f"there is no node {name!r} in {args.source}{f': {help}' if help else ''}")
    console.result(_page(fields))
    console.document(convert({"source": args.source, **fields}, NodeAnswer))
    return 0


def _nodes_of(nodes: Sequence[NodeProto]) -> dict[str, dict[str, Any]]:
    """The operator and the annotations of each node by its name, graphs inside nodes included."""
    found: dict[str, dict[str, Any]] = {}
    for node in all_nodes(nodes):
        found.setdefault(node.name, {"operator": node.op_type, **read_annotations(node)})
    return found


def _makers(nodes: Sequence[NodeProto]) -> dict[str, str]:
    """The name of the node that makes each value."""
    return {value: node.name for node in all_nodes(nodes) for value in node.output if node.name}


def _facts(nodes: Sequence[NodeProto], name: str) -> dict[str, Any]:
    """The node's facts by their keys in the document, where ``source`` is SRC."""
    return {"places" if key == "source" else key: value for key, value in _nodes_of(nodes).get(name, {}).items()}


def _done_to(program: api.Program, name: str) -> dict[str, Any]:
    """The rewrites that took or made the node, and the rules that nearly took it."""
    rewrites = [row for row in ledger_rows(program.ledger) if name in (*row.before, *row.after)]
    missed = [MissedRule(r.rule, r.reason()) for r in program.remarks if r.node == name and not r.chosen]
    lowerings = [r.reason() for r in program.remarks if r.node == name and r.chosen]
    found = {"rewrites": rewrites, "missed": missed, "lowerings": lowerings}
    return {key: rows for key, rows in found.items() if rows}


def _page(fields: dict[str, Any]) -> str:
    out = f"{fields['node']}{': ' + fields['operator'] if 'operator' in fields else ''}\n"
    out += table(_rows(fields), "  ")
    for row in fields.get("rewrites", ()):
        out += f"  {row.rule} ({row.rewrite_class}): {row.text}\n"
        out += f"      {', '.join(row.before)} -> {', '.join(row.after) or 'nothing'}\n"
    out += "".join(f"  not {row.rule}: {row.reason}\n" for row in fields.get("missed", ()))
    return out + "".join(f"  {choice}\n" for choice in fields.get("lowerings", ()))


def _rows(fields: dict[str, Any]) -> Iterator[list[str]]:
    for key, title in _TITLES.items():
        for number, text in enumerate(fields.get(key, ())):
            yield [title if not number else "", text]
