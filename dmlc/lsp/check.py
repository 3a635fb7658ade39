"""Programs read as an editor wants them: an outline first, then every mistake, and the types if there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct, field

from dmlc.api.sources import Choice, model_reader
from dmlc.diagnostics import Diagnostic, DmlcError, Source, Span, naming
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir import Graph, Node, Value
from dmlc.ir.collector import collector_paused
from dmlc.lsp.outline import Outline
from dmlc.text import LibraryError
from dmlc.text.elaborate import elaborate
from dmlc.text.stopping import checkpoint, stoppable
from dmlc.text.syntax import tree
from dmlc.text.syntax.parser import lex, parse_tokens

_OPSET = 21


class KnownModel:
    """The graph of a model, its values by name, and its nodes by the text that they were written as."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names: dict[str, Value] = {}
        self.nodes: dict[tuple[int, int, int, int], Node] = {}
        for node in graph:
            if node.spans:
                self.nodes[_range(node.spans[0])] = node
            for value in node.results:
                if value.name is not None:
                    self.names[value.name] = value
        self.names |= {value.name: value for value in graph.inputs if value.name is not None}
        self.results = dict(graph.outputs)

    def node_at(self, span: Span) -> Node | None:
        """The last node that a piece of text made: the one that gives its results."""
        return self.nodes.get(_range(span))


class Report(Struct, frozen=True):
    """The diagnostics of a program, and the facts about each of its models that is right."""

    diagnostics: tuple[Diagnostic, ...]
    facts: dict[str, KnownModel] = field(default_factory=dict)


class ProgramReader:
    """Reads the programs of a server. ``include`` are the folders in which ``use`` and ``load`` look too."""

    def __init__(self, include: Sequence[Path] = ()) -> None:
        self.include = tuple(include)
        self._stamps: dict[str, tuple[int, int]] = {}
        self._choice = Choice(None, self.include)

    def check(
        self, source: Source, is_stopped: Callable[[], bool], outlined: Callable[[Outline], None]
    ) -> Report:  # fmt: skip
        """Read a program; ``outlined`` gets its outline before the rest is read.

        Raises ``StoppedError`` soon after ``is_stopped`` is true.
        """
        with stoppable(is_stopped), collector_paused(begins=True), naming(source.name):
            try:
                lexed = lex(source)
            except DmlcError as error:
                outlined(Outline(()))
                return Report(error.diagnostics)
            outlined(Outline(lexed.tokens, lexed.comments))
            checkpoint()
            try:
                program = parse_tokens(lexed)
            except DmlcError as error:
                return Report(error.diagnostics)
            return self._elaborated(source, program)

    def _elaborated(self, source: Source, program: tree.Program) -> Report:
        names = [item.name.text for item in program.items if isinstance(item, tree.Model)]
        found: list[Diagnostic] = []
        facts: dict[str, KnownModel] = {}
        for name in dict.fromkeys(names) or [None]:
            try:
                facts_of_one = KnownModel(self._graph(source, program, name))
            except LibraryError:
                continue
            except DmlcError as error:
                found += error.diagnostics
                continue
            facts[facts_of_one.graph.name] = facts_of_one
            found += facts_of_one.graph.advice
        once = {(d.code.id, d.place, d.message): d for d in found}
        return Report(tuple(once.values()), facts)

    def _graph(self, source: Source, program: tree.Program, model: str | None) -> Graph:
        folder = Path(source.name).parent
        self._forget_changed_models()
        models = model_reader(folder, self._choice, DEFAULTS)
        try:
            return elaborate(
                program, folder, model, _OPSET, DEFAULTS, name=source.name, include=self.include, models=models
            )
        finally:
            self._stamps |= {path: _stamp(path) for path in self._choice.models if path not in self._stamps}

    def _forget_changed_models(self) -> None:
        """Have the ONNX models that were written since they were read be read again."""
        for path in [path for path, stamp in self._stamps.items() if _stamp(path) != stamp]:
            del self._stamps[path]
            self._choice.models.pop(path, None)


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116  (the path is a text)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _range(span: Span) -> tuple[int, int, int, int]:
    return span.line, span.column, span.end_line, span.end_column
