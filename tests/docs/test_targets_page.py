"""The page of known faults is the one of the tables, and each fault has an answer and a source."""

from __future__ import annotations

from dmlc.targets.target import load_data
from tools.site.target_pages import FAULTS, fault_list, fault_rows


def test_list_of_faults_is_current() -> None:
    assert fault_list() == FAULTS.read_text(encoding="utf-8"), (
        "write it anew: python -m tools.site.target_pages --write"
    )


def test_each_fault_says_what_happens_and_what_to_do() -> None:
    for fault in load_data("dml_ep")["failures"]:
        rows = dict(fault_rows(fault))
        assert all(rows.values()), fault["id"]
        assert f"| `{fault['id']}` |" in fault_list()
