"""The ledger of rewrites as JSON: what a model carries in its metadata, and what ``--ledger`` writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Protocol

import msgspec

from dmlc.diagnostics import Span
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


def ledger_rows(entries: Iterable[AppliedRewrite], place: Callable[[Span], str] = str) -> list[dict[str, Any]]:
    """Each rewrite: its rule, class, what it did in words, the nodes that went and those that came, source places."""
    return [
        {
            "rule": entry.rule,
            "class": entry.rewrite_class,
            "text": entry.text,
            "before": list(entry.before),
            "after": list(entry.after),
            "places": list(dict.fromkeys(map(place, entry.spans))),
        }
        for entry in entries
    ]


def removed_rows(removed: Iterable[Removal]) -> list[dict[str, Any]]:
    """Nodes of the source that no rewrite took: the cause, the cause in words, and the nodes."""
    return [{"cause": each.cause, "text": each.text, "nodes": list(each.nodes)} for each in removed]


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
    return {**head, "options": dict(options), "rewrites": rows, "removed": removed_rows(removed)}


def ledger_json(entries: Iterable[AppliedRewrite], removed: Iterable[Removal]) -> str:
    """The ledger in one line, for a model's metadata. Source places stay out: its readers do not need them."""
    rows = [{"rule": e.rule, "class": e.rewrite_class, "before": e.before, "after": e.after} for e in entries]
    found = removed_rows(removed)
    body = {"schema": SCHEMA, "rewrites": rows, **({"removed": found} if found else {})}
    return msgspec.json.encode(body).decode()
