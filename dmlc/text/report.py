"""Many diagnostics as one error: sorted by place, each mistake once, no more than a screenful."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from dmlc.diagnostics import Diagnostic, DmlcError

#: More than this are counted, not shown.
MAX_SHOWN = 20


def together(diagnostics: Iterable[Diagnostic]) -> DmlcError:
    """The error that holds them: sorted, without repetitions, the last shown one telling how many more there are."""
    once: dict[object, Diagnostic] = {}
    for diagnostic in sorted(diagnostics, key=_place):
        # A mistake inside a def shows at every call of it; the first tells enough.
        key = (diagnostic.code.id, _place(diagnostic)) if diagnostic.labels else diagnostic.message
        once.setdefault(key, diagnostic)
    shown = list(once.values())[:MAX_SHOWN]
    rest = len(once) - len(shown)
    if rest:
        note = f"{rest} more {'error is' if rest == 1 else 'errors are'} not shown"
        shown[-1] = dataclasses.replace(shown[-1], notes=(*shown[-1].notes, note))
    return DmlcError(shown)


def _place(diagnostic: Diagnostic) -> tuple[int, int]:
    span = diagnostic.span
    return (span.line, span.column) if span else (0, 0)
