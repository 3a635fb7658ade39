"""The ledger of rewrites as JSON: what a model carries in its metadata, and what ``--ledger`` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Protocol

from msgspec import json

from dmlc.diagnostics import Span
from dmlc.ir.answers import Answer, plain, words
from dmlc.ir.history import CLASSES
from dmlc.ir.removed import Removal

SCHEMA = 1


class AppliedRewrite(Protocol):
    """An applied rewrite, as the pass manager records it."""

    @property
    def rule(self) -> str: ...

    @property
    def rewrite_class(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def spans(self) -> Sequence[Span]: ...

    @property
    def before(self) -> Sequence[str]: ...

    @property
    def after(self) -> Sequence[str]: ...


class RewriteRow(Answer, frozen=True, rename={"rewrite_class": "class"}):
    """A rewrite: its rule, its class, what it did in words, the nodes before and after, and the source places."""

    rule: str
    rewrite_class: Annotated[str, words(*CLASSES, "asked for")]
    text: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    places: tuple[str, ...]


def ledger_rows(entries: Iterable[AppliedRewrite], place: Callable[[Span], str] = str) -> list[RewriteRow]:
    """Return the row of each rewrite."""
    return [RewriteRow.of(entry, places=tuple(dict.fromkeys(map(place, entry.spans)))) for entry in entries]


def ledger_document(
    model: str,
    target: str,
    opset: int,
    options: Mapping[str, Any],
    entries: Iterable[AppliedRewrite],
    removed: Iterable[Removal],
) -> dict[str, Any]:
    """Return the document of ``--ledger``: ``options`` as ``compile`` takes them, source locations without folders."""
    head = {"schema": SCHEMA, "model": model, "target": target, "opset": opset}
    rows = ledger_rows(entries, place=attrgetter("place"))
    return plain({**head, "options": options, "rewrites": rows, "removed": list(removed)})


def ledger_json(entries: Iterable[AppliedRewrite], removed: Iterable[Removal]) -> str:
    """The ledger in one line, for a model's metadata. Source places stay out: its readers do not need them."""
    rows = [{"rule": e.rule, "class": e.rewrite_class, "before": e.before, "after": e.after} for e in entries]
    found = list(removed)
    body = {"schema": SCHEMA, "rewrites": rows, **({"removed": found} if found else {})}
    return json.encode(body).decode()
