"""Result of a load check, and the blame for failures that a broken model causes; neither needs onnx."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, DmlcError

if TYPE_CHECKING:
    from onnx import ModelProto


class LoadCheck(Struct, frozen=True):
    """The findings: an error, if there is one; a ``note`` where only the source does not load; ``unchecked``, what is
    not known."""

    errors: tuple[Diagnostic, ...] = ()
    note: str = ""
    unchecked: str = ""


@contextmanager
def blaming(model: ModelProto | None) -> Iterator[None]:
    """Whatever fails inside is the model's fault where ONNX Runtime does not load it either, or it is broken: raises
    ``DmlcError`` E0431 then, else what was raised."""
    from dmlc import importers

    with importers.blaming(model):
        try:
            yield
        except DmlcError:
            raise
        except Exception:
            from dmlc.api.load_errors import source_error
            from dmlc.verifying.load_phase import load_phase

            refusal = None if model is None else load_phase(model).refusal
            if refusal is None:
                raise
            raise DmlcError(source_error(refusal)) from None
