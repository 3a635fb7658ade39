"""The base class of the rules of ``repair``."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from dmlc.passes.rewrite import Match, Rule
from dmlc.targets.support import ProviderSupport

M = TypeVar("M", bound=Match)


class RepairRule(Rule[M], Generic[M]):
    """A rule that makes what the provider computes wrongly, not at all, or on the CPU, from what it has.

    ``repairs`` are the ids of the provider's known failures that it sees to; their rows say for which operators,
    types and versions. The target cannot do without those that keep every bit.
    """

    optional = False
    repairs: ClassVar[tuple[str, ...]]

    def __init__(self, support: ProviderSupport) -> None:
        self.support = support
