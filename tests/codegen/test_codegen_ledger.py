"""The ledger as JSON."""

from __future__ import annotations

import json

from dmlc.codegen.ledger import ledger_json, ledger_rows
from dmlc.diagnostics import Source, Span
from dmlc.ir.removed import Removal
from dmlc.passes.manager import LedgerEntry

SOURCE = Source("m.dml", "a\nb\n")
SPAN = Span(SOURCE, 1, 1, 1, 2)
ENTRIES = (
    LedgerEntry("cse", "exact", "abs computed twice", (SPAN, SPAN), ("/a", "/b"), ("/a",)),
    LedgerEntry("fold", "reassociates", "größe"),
)


def test_rows() -> None:
    first, second = [row.to_json() for row in ledger_rows(ENTRIES)]
    assert first == {
        "rule": "cse",
        "class": "exact",
        "text": "abs computed twice",
        "before": ["/a", "/b"],
        "after": ["/a"],
        "places": ["m.dml:1:1"],
    }
    assert (second["before"], second["after"], second["places"]) == ([], [], [])


def test_the_line_for_metadata() -> None:
    text = ledger_json(ENTRIES, [])
    assert "\n" not in text
    assert "m.dml" not in text
    assert json.loads(text) == {
        "schema": 1,
        "rewrites": [
            {"rule": "cse", "class": "exact", "before": ["/a", "/b"], "after": ["/a"]},
            {"rule": "fold", "class": "reassociates", "before": [], "after": []},
        ],
    }
    assert json.loads(ledger_json([], [])) == {"schema": 1, "rewrites": []}
    removed = [Removal("known-shapes", "2 shape computations: every size is known", ("/a", "/b"))]
    (row,) = json.loads(ledger_json([], removed))["removed"]
    assert row == {"cause": "known-shapes", "text": removed[0].text, "nodes": ["/a", "/b"]}
