"""The rewrites that made a node, and the nodes of the source that it stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

#: The classes of rewrites, the strictest first.
RewriteClass: TypeAlias = Literal["exact", "reassociates", "range"]
CLASSES: tuple[RewriteClass, RewriteClass, RewriteClass] = ("exact", "reassociates", "range")
_FROM_STRICTEST = (*CLASSES, "asked for")
#: A node keeps at most so many names of source nodes; long chains would otherwise cost their square.
_MOST_SOURCES = 32


class History(NamedTuple):
    """``rules`` in the order in which they were applied, the loosest of their classes, the names that the source's
    nodes had in an imported model: the root of the first rewrite first. ``nodes`` counts the nodes of the source that
    were merged into it."""

    rules: tuple[str, ...] = ()
    rewrite_class: str = CLASSES[0]
    sources: tuple[str, ...] = ()
    nodes: int = 1

    def then(self, rule: str, rewrite_class: str = CLASSES[0]) -> History:
        """This history with one more rewrite at its end."""
        loosest = max(self.rewrite_class, rewrite_class, key=_FROM_STRICTEST.index)
        return History((*self.rules, rule), loosest, self.sources, self.nodes)


AS_WRITTEN = History()


def merged_history(nodes: Iterable[tuple[str, History]], rule: str, rewrite_class: str) -> History:
    """The history of what ``rule`` makes of nodes, each given by its name and its history, the root first."""
    rules: dict[str, None] = {}
    sources: dict[str, None] = {}
    classes, count = {rewrite_class}, 0
    for name, history in nodes:
        count += history.nodes
        if history == AS_WRITTEN:  # a node that no rewrite made stands for itself
            if name:
                sources[name] = None
            continue
        rules.update(dict.fromkeys(history.rules))
        classes.add(history.rewrite_class)
        sources.update(dict.fromkeys(history.sources))
    rules[rule] = None
    loosest = rewrite_class if len(classes) == 1 else max(classes, key=_FROM_STRICTEST.index)
    return History((*rules,), loosest, (*sources,)[:_MOST_SOURCES], count)
