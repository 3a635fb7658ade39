"""The rewrites that made a node, and the nodes of the source that it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

#: The classes of rewrites, the strictest first.
CLASSES: tuple[str, ...] = ("exact", "reassociates", "range")
_FROM_STRICTEST = (*CLASSES, "asked for")
#: A node keeps at most so many names of source nodes; long chains would otherwise cost their square.
_MOST_SOURCES = 32


class History(NamedTuple):
    """``rules`` in the order in which they were applied, the loosest of their classes, the names that the source's
    nodes had in an imported model: the root of the first rewrite first."""

    rules: tuple[str, ...] = ()
    rewrite_class: str = CLASSES[0]
    sources: tuple[str, ...] = ()

    def then(self, rule: str, rewrite_class: str = CLASSES[0]) -> History:
        """This history with one more rewrite at its end."""
        loosest = max(self.rewrite_class, rewrite_class, key=_FROM_STRICTEST.index)
        return History((*self.rules, rule), loosest, self.sources)


AS_WRITTEN = History()


def merged_history(nodes: Iterable[tuple[str, History]], rule: str, rewrite_class: str) -> History:
    """The history of what ``rule`` makes of nodes, each given by its name and its history, the root first."""
    nodes = tuple(nodes)
    rules = dict.fromkeys([rule for _, history in nodes for rule in history.rules])
    classes = [rewrite_class, *(history.rewrite_class for _, history in nodes)]
    sources = dict.fromkeys([name for found in nodes for name in _sources(*found)])
    loosest = max(classes, key=_FROM_STRICTEST.index)
    return History(tuple(dict.fromkeys([*rules, rule])), loosest, (*sources,)[:_MOST_SOURCES])


def _sources(name: str, history: History) -> tuple[str, ...]:
    """The names of the source's nodes that a node stands for: its own where no rewrite made it."""
    return history.sources or ((name,) if name and not history.rules else ())
