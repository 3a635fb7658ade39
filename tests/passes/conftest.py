"""Set-up of all tests of passes."""

from __future__ import annotations

from typing import Any

import pytest

from dmlc.ir import Node
from dmlc.passes import rewrite
from dmlc.passes.choose_lowering import arg, hardmax


@pytest.fixture(autouse=True)
def check_what_rules_are_fed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is not asked at a node, because of its ``fed_by``, does not match there."""
    chosen = rewrite._Driver._rules

    def checked(driver: rewrite._Driver, node: Node) -> tuple[rewrite.Rule[Any], ...]:
        asked = chosen(driver, node)
        for rule in driver._of_root(node.op):
            assert rule in asked or rule.match(node, driver.graph) is None, f"{rule.name} matches: what is it fed by?"
        return asked

    monkeypatch.setattr(rewrite._Driver, "_rules", checked)


@pytest.fixture
def by_one_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """For selections, as for sums, a plan is taken that the base calibration finds cheaper."""
    for standing in (arg.SearchAsItStands, hardmax.HardmaxAsItStands):
        monkeypatch.setattr(standing, "calibrated", False)
        monkeypatch.setattr(standing, "suffices", lambda *_: False)
