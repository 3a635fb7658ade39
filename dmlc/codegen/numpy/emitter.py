"""A graph as one Python file that needs nothing but NumPy."""

from __future__ import annotations

import builtins
import inspect
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from dmlc.codegen.artifact import Artifact, signature_of
from dmlc.codegen.numpy import fast_selection, fast_top_k, support
from dmlc.codegen.numpy.body import FunctionBody
from dmlc.codegen.numpy.interface import Checks, clean, docstring_lines, signature_lines
from dmlc.codegen.numpy.literals import constant_lines
from dmlc.codegen.numpy.registry import Style
from dmlc.ir import Graph
from dmlc.ops import elementwise

#: The one setting of a file.
_THREADS = "{} = 1  # worker threads for large arrays; set after import"
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


#: Modules of the support functions, in the order in which files get them.
_SUPPORT = (support, fast_selection, fast_top_k)


def emit(graph: Graph, style: Style = "plain") -> Artifact:
    """Return the model as the text of a ``.py`` file with one public function.

    In the ``plain`` style each operation is the expression that one would write by hand. In the ``fast`` style large
    arrays get support functions for arg reductions, hardmax and ``top_k``. The text is formatted as ``ruff format
    --line-length 100`` leaves it, and the same graph gives the same text. Raises ``DmlcError`` E0570 for an operation
    without NumPy code.
    """
    body = FunctionBody(graph, style)
    statements = body.lines()
    checks = Checks(body).lines()
    function = [*signature_lines(body), *docstring_lines(body), *checks, *statements]
    sources = _sources(body)
    short, long = _constants(body)
    parts = [_header(body, short, _saved_builtins(body, [*sources, *long])), "\n".join(function), *sources]
    if long:
        parts.append("\n".join(long))
    return Artifact(kind="numpy", payload="\n\n\n".join(parts) + "\n", signature=signature_of(graph, checked=True))


def _header(body: FunctionBody, constants: list[str], saved: list[str]) -> str:
    title = clean(body.graph.name)
    lines = [f'"""Model `{title}` as NumPy code, written by dmlc; it needs NumPy 1.26 or newer."""']
    lines += ["", f"import numpy as {body.numpy}"]
    settings = [_THREADS.format(body.threads)] if fast_selection._each in body.supports else []
    if saved or constants or settings:
        lines += ["", *settings, *saved, *constants]
    return "\n".join(lines)


def _constants(body: FunctionBody) -> tuple[list[str], list[str]]:
    """Split the constants: constants of one line are above the function, longer ones at the end of the file."""
    short: list[str] = []
    long: list[str] = []
    for tensor, target in body.constants.items():
        lines = constant_lines(target, tensor, body.numpy)
        if len(lines) == 1:
            short += lines
        else:
            long += [_rename(line, _hidden_builtin(body)) for line in lines]
    return short, long


# --- support functions


@cache
def _source(function: Callable[..., Any]) -> str:
    return inspect.getsource(function).rstrip()


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text))


def _sources(body: FunctionBody) -> list[str]:
    """The source of the functions in use and of those that they call, in the order of their modules."""
    pending = list(body.supports)
    while pending:
        function = pending.pop()
        for word in sorted(_words(_source(function))):
            called = function.__globals__.get(word)
            if inspect.isfunction(called) and called not in body.supports:
                body.support(called)
                pending.append(called)
    known = [f for module in (*_SUPPORT, elementwise) for f in vars(module).values() if inspect.isfunction(f)]
    shared = {"np": body.numpy, "THREADS": body.threads} | _hidden_builtin(body)
    used = [f for f in dict.fromkeys(known) if f in body.supports]
    return [_rename(_source(f), _called(f, body.supports) | shared) for f in used]


def _called(function: Callable[..., Any], names: dict[Callable[..., Any], str]) -> dict[str, str]:
    """The names of a function and of those that it calls; those of two modules may be called the same."""
    words = [(word, function.__globals__.get(word)) for word in _words(_source(function))]
    return {word: names[found] for word, found in words if inspect.isfunction(found) and found in names}


def _rename(source: str, names: dict[str, str]) -> str:
    if all(old == new for old, new in names.items()):
        return source
    return _WORD.sub(lambda found: names.get(found[0], found[0]), source)


def _hidden_builtin(body: FunctionBody) -> dict[str, str]:
    """A model that is named like a builtin hides it from the rest of the file, which knows it by another name then."""
    return {body.function: f"_{body.function}"} if body.function in vars(builtins) else {}


def _saved_builtins(body: FunctionBody, texts: Iterable[str]) -> list[str]:
    """The statements that give hidden builtins their other names."""
    used = set().union(*map(_words, texts))
    return [f"{other} = {hidden}" for hidden, other in _hidden_builtin(body).items() if other in used]
