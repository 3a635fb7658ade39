"""Differences of two models: operators, initializers, types, opsets, metadata, program texts."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx import ModelProto

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.api.sources import ProgramSource, name_of, onnx_model
from dmlc.codegen import dml
from dmlc.codegen.onnx.metadata import model_facts, other_entries
from dmlc.debugging.constants import ConstantChange
from dmlc.debugging.graph_diff import Differences, GraphParts, compare_graphs
from dmlc.debugging.node_changes import ChangedNodes, LedgerRows, NodeChange
from dmlc.debugging.type_changes import TypeChange, change_text
from dmlc.diagnostics import DmlcError, Source
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import Limits
from dmlc.diagnostics.shown import Rows, Shown
from dmlc.ir.answers import Answer, JsonRecord
from dmlc.onnx_schema.domains import imported_versions, plain_domain

#: The most lines of ``str`` below the verdict.
_MOST_LINES = 14
#: Statuses of node changes, in the order of a report.
STATUSES = ("rewritten", "changed", "removed", "added")


class EntryChange(Answer, frozen=True):
    """An opset or an entry of metadata; None in a model that lacks it."""

    key: str
    a: str | None
    b: str | None

    def __str__(self) -> str:
        return change_text(self.key, *[None if text is None else _short(text) for text in (self.a, self.b)])


class OperatorChanges(Answer, frozen=True):
    """Nodes that differ, by status."""

    rewritten: list[ChangedNodes]
    changed: list[ChangedNodes]
    removed: list[ChangedNodes]
    added: list[ChangedNodes]


class DiffFacts(Answer, frozen=True, rename={"opsets": "opset"}):
    """Every difference of two models or programs; ``dml`` is a unified diff of the program texts."""

    equal: bool
    operators: OperatorChanges
    initializers: tuple[ConstantChange, ...]
    types: tuple[TypeChange, ...]
    opsets: tuple[EntryChange, ...]
    metadata: tuple[EntryChange, ...]
    renamed: int
    dml: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class ModelDiff(JsonRecord, Shown):
    """Every difference of two models, A and B; ``equal`` if there is none.

    Names of inner values and nodes and the order of nodes are not differences; ``renamed`` counts the values that have
    another name in B. ``dml`` is a unified diff of the two program texts, empty where they are equal or one model has
    none; ``notes`` has the reason then.
    """

    operators: tuple[NodeChange, ...]
    initializers: tuple[ConstantChange, ...]
    types: tuple[TypeChange, ...]
    opsets: tuple[EntryChange, ...]
    metadata: tuple[EntryChange, ...]
    renamed: int = 0
    dml: str = ""
    notes: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        return not (self.operators or self.initializers or self.types or self.opsets or self.metadata)

    def facts(self) -> DiffFacts:
        """Return the differences with those of nodes by status."""
        groups = {s: [ChangedNodes.of(c) for c in self.operators if c.status == s] for s in STATUSES}
        return DiffFacts.of(self, operators=OperatorChanges(**groups), dml=self.dml or None)

    def to_text(self) -> str:
        """Lines for people; the last one is the verdict. The diff of the program texts stands before it."""
        out = []
        for title, changes in self._sections():
            if changes:
                out += [f"{title}:", *(f"  {line}" for change in changes for line in str(change).split("\n"))]
        out += [self.dml.rstrip("\n")] if self.dml else []
        out += [f"note: {note}" for note in self.notes]
        return "\n".join([*out, self.headline()]) + "\n"

    def to_rows(self) -> Rows:
        """Return each difference with its kind."""
        found = [(title, str(change)) for title, changes in self._sections() for change in changes]
        return [("kind", "difference"), *found]

    def _sections(self) -> list[tuple[str, Sequence[object]]]:
        """The differences by kind."""
        return [
            ("operators", [change for status in STATUSES for change in self.operators if change.status == status]),
            ("initializers", self.initializers),
            ("types", self.types),
            ("opset", self.opsets),
            ("metadata", self.metadata),
        ]

    def __str__(self) -> str:
        """The verdict, and the lines of ``to_text`` where there are few."""
        *lines, last = self.to_text().rstrip("\n").split("\n")
        shown = lines if len(lines) <= _MOST_LINES else [*lines[: _MOST_LINES - 1], "... (to_text() returns all)"]
        return "\n".join([last, *shown])

    def headline(self) -> str:
        """One line."""
        if self.equal:
            return f"equal{f'; {self.renamed} values have other names' if self.renamed else ''}"
        parts = [("operator", f" {s}", sum(c.status == s for c in self.operators)) for s in STATUSES]
        parts += [("initializer", "", len(self.initializers)), ("type", "", len(self.types))]
        parts += [("opset", "", len(self.opsets)), ("metadata entry", "", len(self.metadata))]
        return f"different: {', '.join(counted(n, noun) + verb for noun, verb, n in parts if n)}"


@dataclass(frozen=True, slots=True)
class _DiffSide:
    """One of the two models; a program has no opset and no metadata of its own."""

    model: ModelProto
    folder: Path | None
    source: ProgramSource
    is_program: bool


def diff(
    a: ProgramSource,
    b: ProgramSource,
    *,
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
) -> ModelDiff:
    """Compare two models or programs: paths, ``Source``, ``Graph`` or ``ModelProto``.

    A program is compared as it is written, without rewrites. Nodes are paired by the values that they make, by name
    and by structure; the others are grouped by ``dmlc.from`` of their metadata, and ``dmlc.rules`` and the ledger name
    the rewrites. Constant nodes count as initializers. ``model`` picks one of several in a program and ``include``
    are folders as for ``compile``. Raises ``DmlcError`` for a source that cannot be read or compiled.
    """
    check_arguments(model=model, include=include)
    given: dict[str, Any] = {"model": model, "include": include, "limits": limits}
    opsets = [_opset_of(source, Limits.of(limits)) for source in (a, b)]
    sides = [_side(source, next((n for n in opsets if n), None), given) for source in (a, b)]
    one, other = sides
    versions = [imported_versions(side.model.opset_import) for side in sides]
    found = Differences(LedgerRows.of([one.model, other.model]), versions)
    parts = [GraphParts.of_graph(side.model.graph, side.folder) for side in sides]
    compare_graphs(parts[0], parts[1], found)
    _compare_functions(one, other, found)
    plain = one.is_program or other.is_program
    text, notes = _text_diff(one, other, given)
    return ModelDiff(
        tuple(found.nodes),
        tuple(found.constants),
        tuple(found.types),
        () if plain else tuple(_changes(_opsets(one.model), _opsets(other.model))),
        () if plain else (*_changes(_entries(one.model), _entries(other.model)), *_node_entries(found)),
        found.renamed,
        text,
        tuple(notes),
    )


def _opset_of(source: ProgramSource, limits: Limits) -> int | None:
    """The opset of an ONNX model, which a program beside it is emitted for."""
    found = onnx_model(source, limits)
    return None if found is None else imported_versions(found[0].opset_import).get("")


def _side(source: ProgramSource, opset: int | None, given: Mapping[str, Any]) -> _DiffSide:
    found = onnx_model(source, Limits.of(given["limits"]))
    if found is not None:
        return _DiffSide(*found, source, False)
    opset = opset if opset is not None and 13 <= opset <= 21 else None
    program = api.compile(source, target="onnx", opset=opset, only_rules=(), **given)
    emitted = api.emitted(program, "onnx")
    return _DiffSide(emitted.payload, emitted.folder, source, True)


# --- beside the graphs


def _compare_functions(a: _DiffSide, b: _DiffSide, found: Differences) -> None:
    """Compare the functions of one name; one that a model lacks is shown by the operators that call it."""
    others = {(plain_domain(f.domain), f.name, f.overload): f for f in b.model.functions}
    for function in a.model.functions:
        other = others.get((plain_domain(function.domain), function.name, function.overload))
        if other is not None:
            name = f"{function.domain}.{function.name}"
            compare_graphs(GraphParts.of_function(function), GraphParts.of_function(other), found, f"{name}/")


def _opsets(model: ModelProto) -> dict[str, str]:
    return {domain or "ai.onnx": str(version) for domain, version in imported_versions(model.opset_import).items()}


def _entries(model: ModelProto) -> dict[str, str]:
    """Fields and metadata of a model; dmlc's facts under their keys without the hash."""
    fields = {
        "ir_version": str(model.ir_version),
        "producer_name": model.producer_name,
        "producer_version": model.producer_version,
        "domain": model.domain,
        "model_version": str(model.model_version or ""),
        "doc_string": model.doc_string,
        "graph name": model.graph.name,
        "graph doc_string": model.graph.doc_string,
    }
    facts = model_facts(model)
    for number, fact in enumerate(facts):
        place = f".{number}" if len(facts) > 1 else ""
        fields |= {f"dmlc.{name}{place}": text for name, text in fact.items()}
    fields |= other_entries(model)
    return {key: text for key, text in fields.items() if text}


def _changes(a: Mapping[str, str], b: Mapping[str, str]) -> list[EntryChange]:
    keys = dict.fromkeys([*a, *b])
    return [EntryChange(key, a.get(key), b.get(key)) for key in keys if a.get(key) != b.get(key)]


def _node_entries(found: Differences) -> list[EntryChange]:
    return [
        EntryChange(f"{name}: {change.key}", change.a, change.b)
        for name, a, b in found.node_metadata
        for change in _changes(a, b)
    ]


# --- program texts


def _text_diff(a: _DiffSide, b: _DiffSide, given: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The unified diff of the program texts, and the reason why a model has none."""
    texts: list[list[str]] = []
    notes = []
    both_programs = a.is_program and b.is_program
    for name, side in (("A", a), ("B", b)):
        try:
            texts.append(_text_of(side, given, own=both_programs).splitlines(keepends=True))
        except DmlcError as error:
            notes.append(f"{name} has no program text: {error.diagnostics[0].message}")
    if notes:
        return "", notes
    names = [name_of(side.source) or name for name, side in (("A", a), ("B", b))]
    return "".join(difflib.unified_diff(texts[0], texts[1], names[0], names[1])), []


def _text_of(side: _DiffSide, given: Mapping[str, Any], *, own: bool) -> str:
    """The text of a program's file, or the program that a model is; large constants by the hash of their data."""
    if own and isinstance(side.source, Source):
        return "\n".join(side.source.lines)
    if own and isinstance(side.source, (str, os.PathLike)):
        return Path(side.source).read_text(encoding="utf-8", errors="replace")
    program = api.compile(side.source, target="onnx", only_rules=(), **given)
    written = dml.emit(program.source_graph, "weights.npz")
    hashes = {key: _digest(array) for key, array in written.arrays.items()}
    pattern = re.compile(r'load\("weights\.npz", "(w\d+)"\)')
    text: str = written.payload
    return pattern.sub(lambda found: f'load("weights.npz", "{hashes[found[1]]}")', text)


def _digest(array: Any) -> str:
    return hashlib.blake2b(array.tobytes(), digest_size=6).hexdigest()


def _short(text: str) -> str:
    """One line of a text, cut where it is long."""
    line = text.replace("\n", ", ")
    return line if len(line) <= 100 else f"{line[:97]}..."
