"""A trampoline: runs generators that ask each other for values, without Python's recursion.

An expression nests as deep as a program's brackets, operators and defs do; Python's stack would not hold that.
A method that needs the value of a part yields the part's generator (or a value that is there already).
"""

from __future__ import annotations

from collections.abc import Generator
from types import GeneratorType
from typing import Any, TypeAlias

from dmlc.diagnostics import DmlcError

#: Asks for values with ``yield`` and returns its own.
Asking: TypeAlias = Generator[Any, Any, Any]


def run(task: Any) -> Any:
    """The value of a generator, or the value itself. An error goes to whoever asked, as in a call."""
    if not isinstance(task, GeneratorType):
        return task
    waiting: list[Asking] = [task]
    answer: Any = None
    error: DmlcError | None = None
    while waiting:
        try:
            if error is None:
                asked = waiting[-1].send(answer)
            else:
                thrown, error = error, None
                asked = waiting[-1].throw(thrown)
        except StopIteration as done:
            waiting.pop()
            answer = done.value
        except DmlcError as failed:
            waiting.pop()
            if not waiting:
                raise
            error = failed
        else:
            if isinstance(asked, GeneratorType):
                waiting.append(asked)
                answer = None
            else:
                answer = asked
    return answer
