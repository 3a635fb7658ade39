"""Nodes of an imported model that are not in its graph, by the cause."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir.answers import Answer
from dmlc.ir.dim import dim_names
from dmlc.ir.graph import Graph

#: The node computes something from constants.
CONSTANTS = "constants"
#: The node computes with sizes, and its result is known without it.
SHAPES = "known-shapes"
#: The node passes its input on.
PASSED = "passed-on"
#: The node is an If whose condition is known.
BRANCH = "known-branch"
#: The operator has no kernel: ONNX's definition of it takes its place.
DEFINED = "defined"
#: Begins the names of dims that the importer makes for sizes without a name.
_NAMELESS = "unknown_"


class Removal(Answer, frozen=True):
    """The nodes that were removed for one cause, and the cause in words."""

    cause: str
    text: str
    nodes: tuple[str, ...]


def record_removed(graph: Graph, cause: str, name: str) -> None:
    """Record that a node of that name is not in the graph."""
    if name:
        graph.removed.setdefault(cause, []).append(name)


def removals(graph: Graph) -> list[Removal]:
    """The nodes that an imported graph lacks, one entry for each cause, the most frequent first."""
    found = sorted(graph.removed.items(), key=lambda item: (-len(item[1]), item[0]))
    return [Removal(cause, _text(graph, cause, names), tuple(names)) for cause, names in found]


def _text(graph: Graph, cause: str, names: Sequence[str]) -> str:
    number, one = len(names), len(names) == 1
    if cause == CONSTANTS:
        return f"{number} computation{'' if one else 's'} from constants"
    if cause == SHAPES:
        return f"{number} shape computation{'' if one else 's'}: {_known_sizes(graph)}"
    if cause == PASSED:
        return f"{number} node{' that passes its' if one else 's that pass their'} input on"
    if cause == DEFINED:
        return f"{number} node{'' if one else 's'} decomposed as ONNX defines {'it' if one else 'them'}"
    return f"{number} If whose condition is known"


def _known_sizes(graph: Graph) -> str:
    dims = dict.fromkeys(n for value in graph.inputs for size in value.shape for n in sorted(dim_names(size)))
    named = [name for name in dims if not name.startswith(_NAMELESS)]
    named += ["those without a name"] if len(named) < len(dims) else []
    if not named:
        return "every size is known"
    names = " and ".join(filter(None, (", ".join(named[:-1]), named[-1])))
    return f"every size but {names} is known"
