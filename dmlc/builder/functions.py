"""One Python function for each operation, made from its declaration: signature, documentation, call."""

from __future__ import annotations

import builtins
import inspect
import keyword
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dmlc.builder.tensor import Tensor, TensorLike, call, mistake
from dmlc.diagnostics import did_you_mean
from dmlc.diagnostics.catalogue.shapes import OPERAND_COUNT
from dmlc.diagnostics.counted import counted
from dmlc.ir import Operation
from dmlc.ops.attributes import attribute_specs
from dmlc.ops.call_attributes import LIKE, like_attribute
from dmlc.ops.move import SPLIT

#: Operations with as many results as an attribute says: they return a tuple, even of one.
VARIADIC_RESULTS: tuple[Operation, ...] = (SPLIT,)


def python_name(op: Operation) -> str:
    """The function's name: the operation's, with ``_`` behind it where that is a Python keyword (``not_``)."""
    return f"{op.name}_" if keyword.iskeyword(op.name) else op.name


def shadows_python(name: str) -> bool:
    """Return whether ``from dmlc import *`` must leave the name out."""
    return hasattr(builtins, name) or name == "sum"


def results_name(op: Operation) -> str:
    """The class of the named tuple that an operation with several results returns."""
    return "".join(part.capitalize() for part in op.name.split("_")) + "Results"


def operation_functions(operations: Mapping[str, Operation]) -> dict[str, Callable[..., Any]]:
    """A function for each operation, by its Python name."""
    return {python_name(op): operation_function(op) for op in operations.values()}


def operation_function(op: Operation) -> Callable[..., Any]:
    """The function that calls an operation: operands by position or name, attributes by keyword."""
    finish = _finish(op)
    operand_names = [] if op.operands and op.operands[-1].variadic else [o.name for o in op.operands]

    def function(*operands: TensorLike | None, **keywords: Any) -> Any:
        if keywords and operand_names:
            _check_names(op, operand_names, keywords, len(operands))
            operands = _named_operands(operand_names, operands, keywords)
        return finish(call(op, operands, keywords))

    function.__name__ = function.__qualname__ = python_name(op)
    function.__module__ = "dmlc"
    function.__doc__ = documentation(op)
    function.__signature__ = signature(op)  # type: ignore[attr-defined]
    return function


def _finish(op: Operation) -> Callable[[tuple[Any, ...]], Any]:
    if op in VARIADIC_RESULTS:
        return tuple
    if len(op.results) == 1:
        return lambda results: results[0]
    named = namedtuple(results_name(op), op.results)  # type: ignore[misc]
    named.__module__ = "dmlc"
    return named._make


def _check_names(op: Operation, names: Sequence[str], keywords: Mapping[str, Any], count: int) -> None:
    """Raises ``DmlcError`` E0308 for an operand that is given twice, and for one that lacks beside a keyword that the
    operation does not have or an operand after it."""
    for name in names[:count]:
        if name in keywords:
            raise mistake(OPERAND_COUNT, f"{op.name} takes {name} once, and it is given twice", help="leave one out")
    lacking = [o.name for o in op.operands[count:] if not o.optional and o.name not in keywords]
    if not lacking:
        return
    known = signature(op).parameters
    tensors = [word for word, value in keywords.items() if isinstance(value, Tensor) or hasattr(value, "__array__")]
    stray = next((word for word in tensors if word not in known), None)
    if stray is not None:
        near = did_you_mean(stray, lacking) or f"give it {', '.join(lacking)}"
        listed = f"{counted(len(names), 'operand')} ({', '.join(names)})"
        raise mistake(OPERAND_COUNT, f"{op.name} takes {listed}, and {stray} is not one of them", help=near)
    if any(name in keywords for name in names):
        raise mistake(OPERAND_COUNT, f"{op.name} needs {lacking[0]}, which is not given")


def _named_operands(
    names: list[str], operands: tuple[TensorLike | None, ...], keywords: dict[str, Any]
) -> tuple[TensorLike | None, ...]:
    """Operands given by name, moved to their places; they must follow each other without a gap."""
    found = list(operands)
    for name in names[len(operands) :]:
        if name not in keywords:
            break
        found.append(keywords.pop(name))
    return tuple(found)


def signature(op: Operation) -> inspect.Signature:
    """The function's signature, for ``help`` and completion."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    variadic = inspect.Parameter.VAR_POSITIONAL
    keyword_only = inspect.Parameter.KEYWORD_ONLY
    empty = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(o.name, variadic if o.variadic else kind, default=None if o.optional else empty)
        for o in op.operands
    ]
    for spec in attribute_specs(op.attributes):
        is_like = spec is like_attribute(op)  # like= may stand for it
        default = (None if is_like else empty) if spec.required else spec.default
        parameters.append(inspect.Parameter(spec.name, keyword_only, default=default, annotation=spec.kind.hint))
        if spec.synonym:
            words = ", ".join(f'"{word}"' for word in spec.synonym.words)
            hint = f"Literal[{words}]"
            parameters.append(inspect.Parameter(spec.synonym.name, keyword_only, default=None, annotation=hint))
        if is_like:
            parameters.append(inspect.Parameter(LIKE, keyword_only, default=None, annotation="Tensor"))
    return inspect.Signature(parameters)


def documentation(op: Operation) -> str:
    """Return the text for ``help``: the summary, the attributes, the notes on numbers."""
    lines = [op.summary, ""]
    for spec in attribute_specs(op.attributes):
        default = "" if spec.required or spec.default is None else f" (default {spec.default})"
        lines.append(f"{spec.name}: {spec.kind.spelling}; {spec.doc}{default}")
        if spec.synonym:
            words = ", ".join(f"{other} is {mine}" for other, mine in spec.synonym.words.items())
            lines.append(f"    {spec.synonym.name} says the same in other words: {words}")
    if (given := like_attribute(op)) is not None:
        lines.append(f"{LIKE}: a tensor whose {given.kind.like} is taken in place of {given.name}")
    lines.append(f"returns: {', '.join(op.results)}")
    lines += [f"{topic}: {text}" for topic, text in op.notes.items()]
    return "\n".join(lines)
