"""Pairs of values of two models that share no names, as two exporters write them: by what computes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from onnx import ModelProto, NodeProto

from dmlc.debugging.constants import Constant, constant_of
from dmlc.debugging.node_pairs import plain_attributes
from dmlc.onnx_schema.domains import operator_of

#: Gives what a node of the same operands must have in common with its partner.
_Form: TypeAlias = "Callable[[NodeProto, Mapping[str, Constant]], Any]"


def structure_pairs(
    a: ModelProto, b: ModelProto, left: Mapping[str, Constant], right: Mapping[str, Constant]
) -> dict[str, str]:
    """The values of B that stand for values of A, from the inputs of both on: results of nodes of paired operands.

    ``left`` and ``right`` are the constants of each; those of one type may stand for one another. Of several nodes of
    the same operands those pair that have the same attributes and constants, then the others in order.
    """
    others: dict[Any, list[NodeProto]] = defaultdict(list)
    for node in b.graph.node:
        if constant_of(node) is None:
            others[_operands(node, {name: name for name in node.input}, right)].append(node)
    given = {info.name for info in b.graph.input} - right.keys()
    names = {info.name: info.name for info in a.graph.input if info.name in given}
    wave, readers = _reading(a.graph.node, {*names, *left})
    while wave:
        ready: dict[Any, list[NodeProto]] = defaultdict(list)
        for unread in wave:
            ready[_operands(unread.node, names, left)].append(unread.node)
        wave = []
        for key, group in ready.items():
            for x, y in _matched(group, others.pop(key, []), left, right):
                found = {was: now for was, now in zip(x.output, y.output, strict=False) if was and now}
                names |= found
                wave += [unread for was in found for unread in readers.pop(was, []) if unread.takes(was)]
    return names


@dataclass(slots=True)
class _Unread:
    """A node, and those of its operands that are not paired yet."""

    node: NodeProto
    missing: set[str]

    def takes(self, name: str) -> bool:
        """Return whether nothing is missing any more, once the operand is paired."""
        self.missing.discard(name)
        return not self.missing


def _reading(nodes: Iterable[NodeProto], known: Collection[str]) -> tuple[list[_Unread], dict[str, list[_Unread]]]:
    """The nodes whose operands are all known, and the others by each operand that is not. Constants do not count."""
    wave: list[_Unread] = []
    readers: dict[str, list[_Unread]] = defaultdict(list)
    for node in nodes:
        if constant_of(node) is None:
            unread = _Unread(node, {name for name in node.input if name and name not in known})
            for name in unread.missing:
                readers[name].append(unread)
            if not unread.missing:
                wave.append(unread)
    return wave, readers


def _operands(node: NodeProto, names: Mapping[str, str], constants: Mapping[str, Constant]) -> tuple[Any, ...]:
    """The operands by their names in B, constants by their type."""
    kinds = [(constants[name].type_text,) if name in constants else names.get(name, "") for name in node.input]
    return len(node.output), *kinds


def _matched(
    group: Sequence[NodeProto],
    others: Sequence[NodeProto],
    left: Mapping[str, Constant],
    right: Mapping[str, Constant],
) -> Iterator[tuple[NodeProto, NodeProto]]:
    """Pair nodes of the same operands; nodes of two operators only if they are the last of both."""
    rest, free = list(group), list(others)
    forms: Iterable[_Form] = (_with_data, _with_attributes, _operator) if len(rest) > 1 or len(free) > 1 else ()
    for form in forms:
        by_form: dict[Any, list[NodeProto]] = defaultdict(list)
        for node in free:
            by_form[form(node, right)].append(node)
        unpaired = []
        for node in rest:
            alike = by_form[form(node, left)]
            if alike:
                yield node, alike.pop(0)
            else:
                unpaired.append(node)
        rest, free = unpaired, [node for alike in by_form.values() for node in alike]
    if len(rest) == len(free) == 1:
        yield rest[0], free[0]


def _operator(node: NodeProto, constants: Mapping[str, Constant]) -> Any:
    return operator_of(node)


def _with_attributes(node: NodeProto, constants: Mapping[str, Constant]) -> Any:
    attributes = [entry.SerializeToString(deterministic=True) for _, entry in sorted(plain_attributes(node).items())]
    return operator_of(node), tuple(attributes)


def _with_data(node: NodeProto, constants: Mapping[str, Constant]) -> Any:
    data = tuple(constants[name].digest for name in node.input if name in constants)
    return _with_attributes(node, constants), data
