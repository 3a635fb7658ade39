"""Defs of a file as functions for other front ends: each call adds nodes to the caller's graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dmlc.diagnostics import Label, Source, Span, did_you_mean, fail, naming
from dmlc.diagnostics.catalogue import names as codes
from dmlc.diagnostics.catalogue.shapes import WRONG_ATTRIBUTE
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import DType, Graph, Value
from dmlc.ir.size_number import Arithmetic
from dmlc.ops.call import Argument
from dmlc.text.deep import deep
from dmlc.text.elaborate.blocks import Block
from dmlc.text.elaborate.names import ModelReading, NameReader
from dmlc.text.elaborate.scope import POISON, Definition, Frame, Place, Problems, Several, Unfolding, Unit, Word
from dmlc.text.standard_library import std_path
from dmlc.text.syntax import tree
from dmlc.text.syntax.parser import parse, together


class DefFunction:
    """A def of a file. ``name`` may be left out where the file has one def.

    Raises ``DmlcError`` with every mistake of the file, E0212 where it has no such def.
    """

    @deep()
    def __init__(
        self,
        source: Source,
        name: str | None,
        *,
        folder: Path | None = None,
        include: tuple[Path, ...] = (),
        models: ModelReading | None = None,
        limits: Limits = DEFAULTS,
    ) -> None:
        self._problems, self._limits = Problems(), limits
        with naming(source.name):
            names = NameReader(self._problems, limits, include, models).used(parse(source, limits), folder, source.name)
            self._raise_if_any()
            own = {data.line.name.text: data for data in names.own_defs}
            chosen = next(iter(own)) if name is None and len(own) == 1 else name
            if chosen is None or chosen not in own:
                what = f"has no def {chosen}" if chosen is not None else "has several defs" if own else "has no defs"
                has = f"it has {', '.join(own)}" if own else "it has none"
                help = did_you_mean(chosen or "", own) or has if chosen or own else "dmlc.compile takes a program"
                raise fail(codes.NOT_IN_FILE, f"{source.name} {what}", help=help)
        self.definition: Definition = own[chosen]
        self.name = chosen
        self.comment: str = _comment(source, self.definition.line.span.line)

    @deep()
    def call(
        self, graph: Graph, operands: Sequence[Argument], keywords: Mapping[str, Any], span: Span | None
    ) -> list[Any]:
        """The results of a call, nodes of ``graph`` or numbers. ``span`` is the call's place. Raises ``DmlcError``."""
        at = span or self.definition.line.span
        values = {name: self._known(name, value, at) for name, value in keywords.items()}
        given = tuple([tree.Keyword(tree.Name(name, False, at), tree.Number("0", at)) for name in keywords])
        expr = tree.Call((tree.Name(self.name, False, at),), (), given, at)
        unit = Unit(graph, self._problems, self.definition.home, Unfolding(self.definition.home), limits=self._limits)
        unit.model = self.definition
        block = Block(unit, Frame())
        block.check_call(self.definition, expr, len(operands))
        places = [Place(at, _name_of(value)) for value in operands]
        found = block.unfold(self.definition, expr, operands, places, values)
        results = found.values if isinstance(found, Several) else (found,)
        self._raise_if_any()
        if any(result is POISON for result in results):  # an earlier call reported the mistake
            raise fail(codes.UNKNOWN_NAME, f"{self.name} is wrong, as an earlier error says")
        return list(results)

    def _known(self, name: str, value: Any, at: Span) -> Any:
        """A keyword's value as programs have it. Lists stand for lists, texts and dtypes for words."""
        if isinstance(value, DType):
            return Word(value.name)
        if isinstance(value, str):
            return Word(value)
        if isinstance(value, (list, tuple)):
            return [self._known(name, item, at) for item in value]
        if value is None or isinstance(value, (bool, int, float, Arithmetic, Value)):
            return value
        message = f"{name} of {self.name} is a number, a word, a dtype or a list, not {type(value).__name__}"
        raise fail(WRONG_ATTRIBUTE, message, Label(at))

    def _raise_if_any(self) -> None:
        found, self._problems.found = self._problems.found, []
        if found:
            raise together(found)


def _comment(source: Source, line: int) -> str:
    """The comment right above a line, or at the head of the file."""
    above = line - 1
    while source.line(above).startswith("#"):
        above -= 1
    found = [source.line(number) for number in range(above + 1, line)]
    found = found or [text for text in source.lines if text.startswith("#")]
    return " ".join(text.removeprefix("#").strip() for text in found)


def std_function(name: str) -> DefFunction:
    """A block of the standard library as a function."""
    path = std_path(name)
    source = Source(f"std/{name}.dml", path.read_text(encoding="utf-8"))
    return DefFunction(source, name, folder=path.parent)


def _name_of(value: Argument) -> str | None:
    return value.name if isinstance(value, Value) else None
