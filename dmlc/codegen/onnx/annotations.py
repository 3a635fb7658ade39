"""Facts about single nodes of an emitted model: where a node comes from, in its metadata (ONNX IR version 10).

A value has one entry in each line. Nodes that stand as in an imported model have no entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onnx import NodeProto

from dmlc.ir import Graph, Node
from dmlc.onnx_schema.metadata import PREFIX
from dmlc.targets import Target

if TYPE_CHECKING:
    from dmlc.onnx_schema.origin import ModelOrigin

#: The IR version that each opset came with (onnx, docs/Versioning.md).
_IR_VERSION = {11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
#: The first IR version whose nodes have metadata.
_WITH_METADATA = 10

_SOURCE, _RULES, _CLASS, _FROM = f"{PREFIX}source", f"{PREFIX}rules", f"{PREFIX}class", f"{PREFIX}from"


def ir_version_of(graph: Graph, target: Target, opset: int) -> int:
    """The IR version of the emitted model: the opset's, or the imported model's where that is later."""
    version = min(_IR_VERSION.get(opset, target.ir_version), target.ir_version)
    origin: ModelOrigin | None = graph.origin or graph.joined
    return version if origin is None else max(version, min(origin.frame.ir_version, _WITH_METADATA))


def has_annotations(graph: Graph, target: Target, opset: int) -> bool:
    return ir_version_of(graph, target, opset) >= _WITH_METADATA


def annotations_of(node: Node) -> list[tuple[str, str]]:
    """The metadata of the ONNX nodes that a node becomes.

    ``dmlc.source`` has its places in the source, ``dmlc.rules`` the rewrites that made it, ``dmlc.class`` the loosest
    of their classes. ``dmlc.from`` has the names of the nodes of an imported model that it stands for.
    """
    rules, rewrite_class, sources, _ = node.history
    found = [(_SOURCE, _lines([span.place for span in node.spans]))] if node.spans else []
    if rules:
        found += [(_RULES, _lines(rules)), (_CLASS, rewrite_class)]
    if sources:
        found.append((_FROM, _lines(sources)))
    return [(key, text) for key, text in found if text]


def _lines(found: Sequence[str]) -> str:
    """The texts, each once and in a line of its own."""
    if len(found) == 1 and "\n" not in found[0]:
        return found[0]
    return "\n".join(dict.fromkeys([text.replace("\n", "\\n") for text in found]))


def read_annotations(node: NodeProto) -> dict[str, list[str]]:
    """The entries of a node of an emitted model that it has: ``source``, ``rules``, ``class``, ``from``."""
    entries = {entry.key: entry.value for entry in node.metadata_props if entry.key.startswith(PREFIX)}
    return {key[len(PREFIX) :]: text.split("\n") for key, text in entries.items()}
