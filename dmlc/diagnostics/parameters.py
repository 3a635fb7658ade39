"""Functions that take the parameters of another function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def parameters_of(
    function: Callable[_Parameters, object],
) -> Callable[[Callable[..., _Result]], Callable[_Parameters, _Result]]:
    """Give a function the parameters of another one, for type checkers, ``help`` and completion."""

    def with_signature(of: Callable[..., _Result]) -> Callable[_Parameters, _Result]:
        returned = inspect.signature(of).return_annotation
        of.__signature__ = inspect.signature(function).replace(return_annotation=returned)  # type: ignore[attr-defined]
        return of

    return with_signature
