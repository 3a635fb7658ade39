"""The state of one elaboration: the graph that is made, what its names mean, and the mistakes so far."""

from __future__ import annotations

from dataclasses import field

from dmlc.diagnostics import Diagnostic, DmlcError
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import Graph, Tensor, Value
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.records import dataclass
from dmlc.text import tree


@dataclass(frozen=True, slots=True)
class ConstData:
    """A const of the file; ``tensor`` is None where it is wrong, which is told already."""

    line: tree.Const
    tensor: Tensor | None


@dataclass(slots=True)
class Problems:
    """The mistakes of a program."""

    found: list[Diagnostic] = field(default_factory=list)

    def add(self, error: DmlcError) -> None:
        self.found.extend(error.diagnostics)


@dataclass(slots=True)
class Unit:
    """``dims`` are the dims that an input tells; ``declared`` have a dim line, ``unsolved`` are told to be wrong.

    ``names_only`` elaborates without the types of inputs, for the names in what the chosen model does not use.
    """

    graph: Graph
    problems: Problems
    defs: dict[str, tree.Def]
    cyclic: frozenset[str]
    consts: dict[str, ConstData]
    dims: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    unsolved: set[str] = field(default_factory=set)
    limits: Limits = DEFAULTS
    model: tree.Model | None = None
    names_only: bool = False
    called: set[str] = field(default_factory=set)
    unfolded: int = 0
    is_counted: bool = False
    is_full: bool = False
    _const_values: dict[str, Value] = field(default_factory=dict)

    def const(self, name: str) -> Value | None:
        """The const as a value of this graph; None where its data is wrong."""
        value = self._const_values.get(name)
        if value is None:
            data = self.consts[name]
            if data.tensor is None:
                return None
            span = (data.line.name.span,)
            value = self.graph.add(CONSTANT, (), ConstantAttributes(value=data.tensor), spans=span).result
            value.name, value.span = name, data.line.type.span
            self._const_values[name] = value
        return value
