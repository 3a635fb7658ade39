"""State of one elaboration: the graph, the meaning of each name, and the mistakes found so far."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.diagnostics import Code, Diagnostic, DmlcError, Help, Label, Span, fail
from dmlc.diagnostics.catalogue import names as codes
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import DTYPE_BY_NAME, Graph, Tensor, Value
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import WordKind, attribute_specs
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.model_call import CallableModel
from dmlc.text.standard_library import std_blocks
from dmlc.text.syntax import tree


class ConstData:
    """A const of the file ``home``, whose data is read when it is first asked for."""

    def __init__(self, line: tree.Const, home: FileNames, read: Callable[[], Tensor | None]) -> None:
        self.line = line
        self.home = home
        self._read = read
        self._tensor: Tensor | None = None
        self._is_begun = False
        self._is_read = False

    def tensor(self) -> Tensor | None:
        """The data; None if it is wrong, which is reported already. Raises ``DmlcError`` E0206 while it is read.

        A property would take the stack of C, and consts may use long chains of others.
        """
        if not self._is_begun:
            self._is_begun = True
            self.home.open_consts += 1
            self._tensor = self._read()
            self.home.open_consts -= 1
            self._is_read = True
        if not self._is_read:
            message, help = f"{self.line.name.text} is computed from itself", "write its numbers, without its name"
            raise fail(codes.CYCLE, message, Label(self.line.name.span), help=help)
        return self._tensor


class Definition(Struct, frozen=True, eq=False):
    """A def and the names that it sees."""

    line: tree.Def
    home: FileNames

    @property
    def is_cyclic(self) -> bool:
        return self.line.name.text in self.home.cyclic


class FileNames(Struct, eq=False):
    """The names of one file, and of what its ``use`` lines bring. ``label`` names the file where another uses it.

    ``models`` are ONNX models that are called. ``missing`` are names of ``use`` lines that bring nothing, which is
    reported already. ``hidden_dims`` are the dims of the file where it is used by another: its defs do not see them.
    ``cyclic`` are the defs that call themselves, ``open_consts`` is how many consts are being read.
    """

    label: str
    defs: dict[str, Definition] = field(default_factory=dict)
    consts: dict[str, ConstData] = field(default_factory=dict)
    models: dict[str, CallableModel] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    hidden_dims: frozenset[str] = frozenset()
    cyclic: frozenset[str] = frozenset()
    open_consts: int = 0

    @property
    def own_defs(self) -> list[Definition]:
        """The defs that the file declares itself."""
        return [data for data in self.defs.values() if data.home is self]

    @property
    def own_consts(self) -> list[ConstData]:
        """The consts that the file declares itself."""
        return [data for data in self.consts.values() if data.home is self]


class Problems(Struct):
    """The mistakes of a program, and advice about it."""

    found: list[Diagnostic] = field(default_factory=list)
    advice: list[Diagnostic] = field(default_factory=list)

    def add(self, error: DmlcError) -> None:
        self.found.extend(map(_of_caller, error.diagnostics))

    def check_once(self, names: Iterable[tree.Name], message: str) -> None:
        """Note E0204 for each name that is there twice; ``message`` has ``{}`` for it."""
        seen: dict[str, Span] = {}
        for name in names:
            first = seen.setdefault(name.text, name.span)
            if first is not name.span:
                labels, help = (Label(name.span, "again"), Label(first, "first here")), "call one of them otherwise"
                self.found.append(Diagnostic(codes.NAME_TWICE, message.format(name.text), labels, help))


def _of_caller(diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic with a help for the caller where its own is to change a block of the standard library."""
    folder, _, name = diagnostic.source_name.partition("/")
    if diagnostic.fix is None or folder != "std" or name.removesuffix(".dml") not in std_blocks():
        return diagnostic
    return dataclasses.replace(
        diagnostic, help=f"dmlc ops --std {name.removesuffix('.dml')} shows what it takes", fix=None
    )


class Unfolding(Struct):
    """Size of all calls of defs in a model so far, and the defs that were called; ``names`` are those that the model
    sees."""

    names: FileNames
    statements: int = 0
    is_counted: bool = False
    is_full: bool = False
    called: set[Definition] = field(default_factory=set)


class Unit(Struct):
    """``dims`` are the dims that an input determines; ``declared`` have a dim line, ``unsolved`` are reported as wrong.

    ``names_only`` elaborates without the types of inputs, for the names in what the chosen model does not use.
    ``called_results`` are the results of ONNX models, which take the name that the program gives them.
    """

    graph: Graph
    problems: Problems
    names: FileNames
    unfolding: Unfolding
    dims: set[str] = field(default_factory=set)
    declared: set[str] = field(default_factory=set)
    unsolved: set[str] = field(default_factory=set)
    limits: Limits = DEFAULTS
    model: tree.Model | Definition | None = None
    names_only: bool = False
    called_results: set[Value] = field(default_factory=set)
    _const_values: dict[ConstData, Value] = field(default_factory=dict)

    @property
    def defs(self) -> dict[str, Definition]:
        return self.names.defs

    @property
    def consts(self) -> dict[str, ConstData]:
        return self.names.consts

    def within(self, names: FileNames) -> Unit:
        """The same elaboration with the names of another file, whose defs see no dims."""
        if names is self.names:
            return self
        none: set[str] = set()
        return replace(self, names=names, dims=none, declared=none, unsolved=none)

    def const(self, name: str) -> Value | None:
        """The const as a value of this graph; None where its data is wrong."""
        data = self.consts[name]
        value = self._const_values.get(data)
        if value is None:
            tensor = data.tensor()
            if tensor is None:
                return None
            span = (data.line.name.span,)
            value = self.graph.add(CONSTANT, (), ConstantAttributes(value=tensor), spans=span).result
            own, label = data.line.name.text, data.home.label
            value.name, value.span = f"{label}/{own}" if label else own, data.line.type.span
            self._const_values[data] = value
        return value


#: The names that are numbers; ``none`` is an absent operand.
LITERALS: Final[dict[str, Any]] = {
    "true": True, "false": False, "inf": float("inf"), "nan": float("nan"), "none": None,
}  # fmt: skip


def _words() -> frozenset[str]:
    out = set(LITERALS)
    for op in OPERATIONS.values():
        for spec in attribute_specs(op.attributes):
            if isinstance(spec.kind, WordKind):
                out.update(spec.kind.words)
            if spec.synonym is not None:
                out.update(spec.synonym.words)
    return frozenset(out)


#: The words that attributes take, and the names that are numbers.
WORDS: Final[frozenset[str]] = _words()
#: Operations that are newer than the first programs: a def or a parameter of that name hides them, with advice.
HIDEABLE: Final[frozenset[str]] = frozenset(
    (
        *("gelu", "silu", "softplus", "softsign", "elu", "leaky_relu", "hard_sigmoid", "sort", "argsort"),
        *("reduce_any", "reduce_all", "stack", "tile", "flip", "size"),
    )
)
_KEYWORDS = ("dml", "dim", "in", "const", "def", "model", "return", "as", "_")
#: Names that a def or its parameters cannot have.
RESERVED: Final[frozenset[str]] = (WORDS | set(OPERATIONS) | set(DTYPE_BY_NAME) | {"load", "onnx", "_"}) - HIDEABLE


class Poison:
    """Value of a name after a mistake: its uses cause no further diagnostics."""

    def __repr__(self) -> str:
        return "<poison>"


POISON: Final = Poison()


class Word(Struct, frozen=True):
    """A bare word or a string, for an attribute that takes such."""

    text: str
    is_string: bool = False

    def __str__(self) -> str:
        return self.text


class Several(Struct, frozen=True):
    """The results of a call that has not exactly one."""

    what: str
    values: tuple[Any, ...]


class Frame(Struct):
    """The names of one block: a model's body, or one call of a def.

    A name stands for a ``Value``, something known while compiling (a number, a dim, a list, a ``Word``, None) or
    ``POISON``. ``used`` are the names that an expression read. ``outer`` are the calls around it, the innermost first.
    """

    names: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    outer: tuple[Span, ...] = ()
    depth: int = 0

    def fail(self, code: Code, message: str, span: Span, under: str = "", *labels: Label, help: Help = "") -> DmlcError:
        """An error at a place in this block."""
        return DmlcError(Diagnostic.of(code, message, *self.labels(span, under, *labels), help=help))

    def labels(self, span: Span, under: str = "", *labels: Label) -> tuple[Label, ...]:
        """A place in this block, and the calls around it."""
        return (Label(span, under), *labels, *[Label(call, "in this call") for call in self.outer])


class Place(Struct, frozen=True):
    """Place of an operand in the source, and its name if it is written as one."""

    span: Span
    name: str | None = None


def written(expr: tree.Expr) -> str | None:
    """The name that an operand is written as, for messages."""
    expr = bare(expr)
    return expr.text if isinstance(expr, tree.Name) else None


def quoted(name: str) -> str:
    """A name as a program writes it: in backticks if it is not a plain name, or means something else without them."""
    is_plain = name.isidentifier() and name not in LITERALS and name not in _KEYWORDS
    return name if is_plain else f"`{name}`"


def bare(expr: tree.Expr) -> tree.Expr:
    """An expression without the parentheses around it."""
    while isinstance(expr, tree.Paren):
        expr = expr.inner
    return expr


def described(thing: Any) -> str:
    """Describe in a message what a name stands for."""
    if isinstance(thing, Value):
        return "a tensor"
    if isinstance(thing, (list, tuple)):
        return "a list"
    if thing is None:
        return "none"
    return f"the word {thing}" if isinstance(thing, Word) else "a dim"
