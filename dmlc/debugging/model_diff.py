"""Differences of two models or programs: a diff of their canonical texts, and the constants that differ."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from onnx import ModelProto, NodeProto

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.api.sources import ProgramSource, name_of, onnx_model
from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.debugging.canonical_text import GraphParts, TextLine, TextPair
from dmlc.debugging.constants import ConstantChange
from dmlc.debugging.node_pairs import label_of
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import Limits
from dmlc.diagnostics.shown import Rows, Shown
from dmlc.ir.answers import Answer, JsonRecord
from dmlc.onnx_schema.domains import imported_versions, operator_of, plain_domain
from dmlc.onnx_schema.metadata import model_facts, other_entries

#: The most characters of an entry of metadata in a line.
_MOST = 100
#: The text before the note of a line, and the most lines in a row with one note that are shown.
_NOTE, _MOST_ALIKE = "  # ", 4


class DiffFacts(Answer, frozen=True):
    """Every difference of two models or programs: ``text`` has the lines of the unified diff of their texts,
    ``removed`` and ``added`` count the nodes among them."""

    equal: bool
    text: tuple[str, ...]
    removed: int
    added: int
    initializers: tuple[ConstantChange, ...]
    renamed: int


@dataclass(frozen=True, slots=True, repr=False)
class ModelDiff(JsonRecord, Shown):
    """Every difference of two models, A and B; ``equal`` if there is none.

    ``text`` has the lines of a unified diff: inputs, outputs, opsets, metadata and nodes that A has and B lacks
    (``removed`` counts the nodes), and that B has and A lacks (``added``). Names of inner values and of nodes,
    and the order of nodes, are not differences; ``renamed`` counts the values that have another name in B.
    """

    text: tuple[str, ...]
    removed: int
    added: int
    initializers: tuple[ConstantChange, ...]
    renamed: int = 0

    @property
    def equal(self) -> bool:
        return not (self.text or self.initializers)

    def facts(self) -> DiffFacts:
        """Return the record that is written as JSON."""
        return DiffFacts.of(self)

    def to_text(self) -> str:
        """Lines for people; the first one is the answer. Of many lines in a row with one note a few are shown."""
        lines = []
        for _, run in groupby(self.text, key=lambda line: (line[:1], line.partition(_NOTE)[2] or line)):
            found = list(run)
            more = len(found) - _MOST_ALIKE
            lines += found if more < 2 else [*found[:_MOST_ALIKE], f"{found[0][0]}... and {more} more"]
        constants = ["initializers:", *(f"  {change}" for change in self.initializers)] if self.initializers else []
        return "\n".join([self.headline(), *lines, *constants]) + "\n"

    def to_rows(self) -> Rows:
        """Return each line that differs, and each initializer."""
        lines = [("A" if line[0] == "-" else "B", line[1:]) for line in self.text[2:] if line[0] in "-+"]
        return [("in", "difference"), *lines, *[("initializers", str(change)) for change in self.initializers]]

    def headline(self) -> str:
        """One line."""
        if self.equal:
            verb = "has another name" if self.renamed == 1 else "have other names"
            return f"equal; {counted(self.renamed, 'value')} {verb}" if self.renamed else "equal"
        others = sum(line[0] in "-+" for line in self.text[2:]) - self.removed - self.added
        parts = [
            (counted(self.removed, "node") + " removed", self.removed),
            (counted(self.added, "node") + " added", self.added),
            (counted(others, "other line"), others),
            (counted(len(self.initializers), "initializer"), len(self.initializers)),
        ]
        return f"different: {', '.join(text for text, number in parts if number)}"


@dataclass(frozen=True, slots=True)
class _DiffSide:
    """One of the two models; a program has no opset and no metadata of its own."""

    model: ModelProto
    folder: Path | None
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

    A program is compared as it is written, without rewrites. Both become one text, in which a value of B has the
    name of its equal in A: nodes are paired by the values that they make, by name and by structure. A line that one
    text lacks has the rewrites that made or removed its node, from metadata and the ledger. Constant nodes count
    as initializers. ``model`` picks one of several in a program and ``include`` are folders as for ``compile``. Raises
    ``DmlcError`` for a source that cannot be read or compiled.
    """
    check_arguments(model=model, include=include)
    given: dict[str, Any] = {"model": model, "include": include, "limits": limits}
    opsets = [_opset_of(source, Limits.of(limits)) for source in (a, b)]
    one, other = [_side(source, next((n for n in opsets if n), None), given) for source in (a, b)]
    pair = TextPair([imported_versions(side.model.opset_import) for side in (one, other)])
    if not (one.is_program or other.is_program):
        pair.a += _header(one.model)
        pair.b += _header(other.model)
    pair.add(GraphParts(one.model.graph, one.folder), GraphParts(other.model.graph, other.folder))
    _add_functions(one.model, other.model, pair)
    names = [name_of(source) or name for source, name in ((a, "A"), (b, "B"))]
    notes = _ledger_notes((one.model, other.model))
    text, removed, added = _unified(pair, names, notes)
    return ModelDiff(tuple(text), removed, added, tuple(pair.constants), pair.renamed)


def body_details(a: NodeProto | None, b: NodeProto | None, *versions: Mapping[str, int]) -> list[str]:
    """The lines and constants that differ in the graphs inside two nodes of one operator."""
    if a is None or b is None or operator_of(a) != operator_of(b):
        return []
    pair = TextPair(versions)
    pair.add_bodies(a, b)
    lines = [f"{line[0]} {line[1:].strip()}" for line in _unified(pair, ("A", "B"), {})[0][2:] if line[0] in "-+"]
    return [*lines, *(f"initializer {change}" for change in pair.constants)]


def _opset_of(source: ProgramSource, limits: Limits) -> int | None:
    """The opset of an ONNX model, which a program beside it is emitted for."""
    found = onnx_model(source, limits)
    return None if found is None else imported_versions(found[0].opset_import).get("")


def _side(source: ProgramSource, opset: int | None, given: Mapping[str, Any]) -> _DiffSide:
    found = onnx_model(source, Limits.of(given["limits"]))
    if found is not None:
        return _DiffSide(*found, False)
    opset = opset if opset is not None and 13 <= opset <= 21 else None
    program = api.compile(source, target="onnx", opset=opset, only_rules=(), **given)
    emitted = api.emitted(program, "onnx")
    return _DiffSide(emitted.payload, emitted.folder, True)


def _header(model: ModelProto) -> list[TextLine]:
    """Fields, opsets and metadata of a model; dmlc's facts under their keys without the hash."""
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
    fields |= {f"opset {domain or 'ai.onnx'}": str(n) for domain, n in imported_versions(model.opset_import).items()}
    facts = model_facts(model)
    for number, fact in enumerate(facts):
        place = f".{number}" if len(facts) > 1 else ""
        fields |= {f"dmlc.{name}{place}": text for name, text in fact.items()}
    fields |= dict(sorted(other_entries(model).items()))
    return [TextLine(f"{key}: {_short(text)}") for key, text in fields.items() if text]


def _short(text: str) -> str:
    """One line of a text; one that is long is cut, and has a digest."""
    line = text.replace("\n", ", ")
    digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
    return line if len(line) <= _MOST else f"{line[: _MOST - 3]}... #{digest}"


def _add_functions(a: ModelProto, b: ModelProto, pair: TextPair) -> None:
    """Add the functions of both models, functions of one name together."""
    sides = [{(plain_domain(f.domain), f.name, f.overload): f for f in model.functions} for model in (a, b)]
    for key in dict.fromkeys([*sides[0], *sides[1]]):
        name = ".".join(filter(None, key))
        for lines, functions in zip((pair.a, pair.b), sides, strict=True):
            lines += [TextLine(f"function {name}")] if key in functions else []
        parts = [GraphParts.of_function(functions[key]) if key in functions else GraphParts() for functions in sides]
        pair.add(parts[0], parts[1], f"{name}/")


def _unified(pair: TextPair, names: Sequence[str], notes: Mapping[str, str]) -> tuple[list[str], int, int]:
    """The lines of the diff, nodes with their notes, and how many nodes are removed and added."""
    texts = [[line.text for line in side] for side in (pair.a, pair.b)]
    out: list[str] = []
    counts = [0, 0]
    matcher = difflib.SequenceMatcher(None, texts[0], texts[1], autojunk=False)
    for group in matcher.get_grouped_opcodes(3):
        out += [] if out else [f"--- {names[0]}", f"+++ {names[1]}"]
        (_, a, _, b, _), (_, _, end_a, _, end_b) = group[0], group[-1]
        out.append(f"@@ -{a + 1},{end_a - a} +{b + 1},{end_b - b} @@")
        for tag, i, to_i, j, to_j in group:
            if tag == "equal":
                out += [f" {text}" for text in texts[0][i:to_i]]
                continue
            for place, sign, lines in ((0, "-", pair.a[i:to_i]), (1, "+", pair.b[j:to_j])):
                counts[place] += sum(line.node is not None for line in lines)
                out += [f"{sign}{line.text}{_note(line, notes)}" for line in lines]
    return out, counts[0], counts[1]


def _note(line: TextLine, notes: Mapping[str, str]) -> str:
    """The rewrites that a node was made or taken by, as far as the models record them."""
    if line.node is None:
        return ""
    entries = read_annotations(line.node)
    rules = ", ".join(entries.get("rules", ()))
    text = f"{rules} ({', '.join(entries.get('class', ()))})" if rules else notes.get(label_of(line.node), "")
    return f"{_NOTE}{text}" if text else ""


def _ledger_notes(models: Sequence[ModelProto]) -> dict[str, str]:
    """Rules with their classes, or the reason of a removal, by the names of nodes in the models' ledgers. One that is
    not JSON is passed over."""
    rules: dict[str, dict[str, None]] = {}
    causes: dict[str, str] = {}
    for text in [facts.get("ledger", "") for model in models for facts in model_facts(model)]:
        try:
            ledger = json.loads(text)
            for row in ledger.get("rewrites", []):
                for name in (*row["before"], *row["after"]):
                    rules.setdefault(name, {})[f"{row['rule']} ({row['class']})"] = None
            for row in ledger.get("removed", []):
                causes |= dict.fromkeys(row["nodes"], row["text"])
        except (ValueError, AttributeError, TypeError, KeyError):
            continue
    return causes | {name: ", ".join(found) for name, found in rules.items()}
