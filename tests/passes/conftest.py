"""Set-up of all tests of passes."""

from __future__ import annotations

from typing import Any

import pytest

from dmlc.ir import Node
from dmlc.passes import choose_lowering, rewrite
from dmlc.targets import load_target
from dmlc.targets.cost import cost_model


@pytest.fixture(autouse=True)
def check_what_rules_are_fed_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that is not asked at a node, because of its ``fed_by``, does not match there."""
    chosen = rewrite.Driver._rules

    def checked(driver: rewrite.Driver, node: Node) -> tuple[rewrite.Rule[Any], ...]:
        asked = chosen(driver, node)
        for rule in driver._of_root(node.op):
            assert rule in asked or rule.match(node, driver.graph) is None, f"{rule.name} matches: what is it fed by?"
        return asked

    monkeypatch.setattr(rewrite.Driver, "_rules", checked)


@pytest.fixture
def by_one_calibration(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan is taken that the base calibration finds cheaper, by however little."""
    costs = cost_model(load_target("cpu"))
    monkeypatch.setattr(costs, "calibrations", [])
    monkeypatch.setattr(choose_lowering, "_WIN", 1.0)
    monkeypatch.setattr(choose_lowering, "_WIN_OF_MANY", 1.0)
