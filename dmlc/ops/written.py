"""Operands of a call as the user wrote them, for messages and helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dmlc.diagnostics import Proposal, Span, around, text_of
from dmlc.diagnostics.fix import is_one_operand
from dmlc.ir import DType

#: A longer operand is not repeated in a message.
_LONGEST = 60


class WrittenCall(Protocol):
    """A call with the names and the places of its operands, as far as they are known."""

    @property
    def names(self) -> Sequence[str | None]: ...

    @property
    def operands(self) -> Sequence[Span | None]: ...


def written_operand(site: WrittenCall, index: int) -> str:
    """Return an operand as the user wrote it: its name, or its expression if that is short; empty where it is not
    known."""
    if index < len(site.names) and site.names[index]:
        return str(site.names[index])
    span = site.operands[index] if index < len(site.operands) else None
    text = "" if span is None else text_of(span)
    return text if len(text) <= _LONGEST and "\n" not in text else ""


def operand_to_cast(site: WrittenCall, index: int) -> str:
    """Return an operand as it is written before ``as``: in parentheses unless it is a name, a number or a call."""
    text = written_operand(site, index)
    return text if not text or is_one_operand(text) else f"({text})"


def cast_help(text: str, dtype: DType, index: int | str) -> Proposal:
    """The proposal to cast an operand, in whose text ``{}`` stands for the operand."""
    return around(f"{text} ({{}} as {dtype.name})", f"{{}} as {dtype.name}", index)


def with_expression(help: Proposal, site: WrittenCall) -> Proposal:
    """The proposal with the operand that it casts in place of ``{}``; words alone where the operand is not known."""
    if "{}" not in help.text:
        return help
    (change,) = help.changes
    index = change.at if isinstance(change.at, int) else 0
    operand = operand_to_cast(site, index)
    text = help.text.replace("{}", operand) if operand else f"cast operand {index + 1} to {change.text.split()[-1]}"
    return replace(help, text=text)
