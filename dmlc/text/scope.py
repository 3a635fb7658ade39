"""What names stand for while a program is elaborated."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Final

from dmlc.diagnostics import Code, Diagnostic, DmlcError, Label, Span
from dmlc.ir import DTYPE_BY_NAME, Value
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import WordKind, attribute_specs
from dmlc.records import dataclass
from dmlc.text import tree

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
#: What a def or its parameters cannot be named.
RESERVED: Final[frozenset[str]] = WORDS | set(OPERATIONS) | set(DTYPE_BY_NAME) | {"load", "onnx", "_"}


class Poison:
    """What a name stands for after a mistake: whatever uses it is silent."""

    def __repr__(self) -> str:
        return "<poison>"


POISON: Final = Poison()


@dataclass(frozen=True, slots=True)
class Word:
    """A bare word or a string, for an attribute that takes such."""

    text: str
    is_string: bool = False

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Several:
    """The results of a call that has not exactly one."""

    what: str
    values: tuple[Any, ...]


@dataclass(slots=True)
class Frame:
    """The names of one block: a model's body, or one call of a def.

    A name stands for a ``Value``, something known while compiling (a number, a dim, a list, a ``Word``, None) or
    ``POISON``. ``outer`` are the calls around it, the innermost first.
    """

    names: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Span] = field(default_factory=dict)
    outer: tuple[Span, ...] = ()
    depth: int = 0

    def fail(self, code: Code, message: str, span: Span, under: str = "", *labels: Label, help: str = "") -> DmlcError:
        """An error at a place in this block."""
        return DmlcError(Diagnostic(code, message, self.labels(span, under, *labels), help))

    def labels(self, span: Span, under: str = "", *labels: Label) -> tuple[Label, ...]:
        """A place in this block, and the calls around it."""
        return (Label(span, under), *labels, *[Label(call, "in this call") for call in self.outer])


@dataclass(frozen=True, slots=True)
class Place:
    """Where an operand stands, and the name it is written as, if it is one."""

    span: Span
    name: str | None = None


def written(expr: tree.Expr) -> str | None:
    """The name that an operand is written as, for messages."""
    expr = bare(expr)
    return expr.text if isinstance(expr, tree.Name) else None


def bare(expr: tree.Expr) -> tree.Expr:
    """An expression without the parentheses around it."""
    while isinstance(expr, tree.Paren):
        expr = expr.inner
    return expr


def described(thing: Any) -> str:
    """What a name stands for, in a message."""
    if isinstance(thing, Value):
        return "a tensor"
    if isinstance(thing, (list, tuple)):
        return "a list"
    if thing is None:
        return "none"
    return f"the word {thing}" if isinstance(thing, Word) else "a dim"


def plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
