"""Operands of a call as the user wrote them, for messages and helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from dmlc.diagnostics import Change, Proposal, Span, text_of
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.fix import is_one_operand
from dmlc.ir import DType, OpError, Place

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


def foreign_error(what: str, name: str, at: Place, *, about: int | None = None) -> OpError:
    """The error for a value of a type that the language lacks, which can only be handed on."""
    message = f"{what} does not take {name}, whose type the language does not have"
    help = "hand it on to a called model, or to an operator of ONNX"
    return OpError(codes.OPERAND_DTYPE, message, at=at, about=about, help=help)


def cast_help(text: str, dtype: DType, *indices: int | str) -> Proposal:
    """The proposal to cast operands, in whose text ``{}`` stands for them."""
    cast = f"{{}} as {dtype.name}"
    return Proposal(f"{text} ({cast})", tuple([Change(cast, index, keeps=True) for index in indices]))


def with_expression(help: Proposal, site: WrittenCall) -> Proposal:
    """The proposal with the operands that it casts in place of ``{}``; words alone where one is not known."""
    if "{}" not in help.text:
        return help
    casts = []
    for change in help.changes:
        index = change.at if isinstance(change.at, int) else 0
        operand = operand_to_cast(site, index)
        if not operand:
            return replace(help, text=f"cast operand {index + 1} to {change.text.split()[-1]}")
        casts.append(f"({change.text.replace('{}', operand)})")
    written = " and ".join(dict.fromkeys(casts))
    return replace(help, text=help.text.replace(f"({help.changes[0].text})", written))
