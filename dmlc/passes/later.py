"""Rules that are loaded when they are first tried: most programs have few of the operations that rules start from.

A family of rules declares here, once, the names of its rules and by what the driver finds each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, TypeVar, cast

from dmlc.ir import Operation
from dmlc.passes.rewrite import Rule

_Given = TypeVar("_Given")


class Later:
    """A class of rules by its place, ``module:class``, and the attributes that it has from here when it is loaded."""

    __slots__ = ("fed_by", "name", "optional", "place", "roots")

    def __init__(
        self,
        place: str,
        name: str,
        roots: Sequence[Operation],
        fed_by: Sequence[Operation] = (),
        *,
        optional: bool = True,
    ) -> None:
        self.place, self.name, self.optional = place, name, optional
        self.roots, self.fed_by = tuple(roots), tuple(fed_by)

    def __call__(self, *arguments: object, **options: object) -> Rule[Any]:
        """A rule of the class, to give to the driver."""
        return cast("Rule[Any]", _Unloaded(self, arguments, options))

    def load(self) -> type[Rule[Any]]:
        """The class."""
        module, _, name = self.place.partition(":")
        kind = cast("type[Rule[Any]]", getattr(import_module(module), name))
        kind.name, kind.optional, kind.roots, kind.fed_by = self.name, self.optional, self.roots, self.fed_by
        return kind


class _Unloaded:
    """Stand-in for a rule whose module is not imported yet; it turns into the rule at the first node."""

    def __init__(self, kind: Later, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.name, self.optional, self.roots, self.fed_by = kind.name, kind.optional, kind.roots, kind.fed_by
        self._made = kind, arguments, options
        self._rule: Rule[Any] | None = None

    def rule(self) -> Rule[Any]:
        if self._rule is None:
            kind, arguments, options = self._made
            self._rule = kind.load()(*arguments, **options)
        return self._rule

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.rule(), name)
        setattr(self, name, value)  # asked for once
        return value


def loaded(rule: _Given) -> _Given:
    """The rule itself, or the pass that is one."""
    return cast("_Given", rule.rule()) if isinstance(rule, _Unloaded) else rule
