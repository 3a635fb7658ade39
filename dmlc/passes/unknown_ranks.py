"""Values of unknown rank in an imported graph: which node hides the rank, and what the user can fix."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from dmlc.diagnostics.counted import counted
from dmlc.ir import ForeignType, Graph, Node, TensorType, Value, dim_names
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, OpaqueAttributes

#: The operand that says the shape or the axes of a result, and which of the two.
_TOLD_BY: dict[str, tuple[int, str]] = {
    "Reshape": (1, "shape"), "Expand": (1, "shape"), "ConstantOfShape": (0, "shape"),
    "Squeeze": (1, "axes"), "Unsqueeze": (1, "axes"),
}  # fmt: skip


class UnknownRank(Struct, frozen=True):
    """A reason why the rank of ``value`` is not known, and how to make it known; ``help`` may be empty."""

    value: Value
    text: str
    help: str = ""

    def __str__(self) -> str:
        why = f"the rank of {_label(self.value)} is not known: {self.text}"
        return f"{why} ({self.help})" if self.help else why


class UnknownRanks:
    """Finds where unknown ranks of a graph begin. Each value is looked at once."""

    def __init__(self, graph: Graph) -> None:
        self._dims = {name for value in graph.inputs for size in value.shape for name in dim_names(size)}
        self._graph = graph
        self._found: dict[Value, UnknownRank] = {}

    def of(self, value: Value) -> UnknownRank:
        """The cause of the unknown rank of ``value``."""
        path = []
        while value not in self._found:
            path.append(value)
            inner = _first_unknown(value)
            if inner is None:
                self._found[value] = self._begin(value)
                break
            value = inner
        found = self._found[value]
        self._found.update(dict.fromkeys(path, found))
        return found

    def _begin(self, value: Value) -> UnknownRank:
        node = value.producer
        if node is None:
            text = f"the model declares {_label(value)} without a shape"
            return UnknownRank(value, text, f"--shape {value.name}=... makes it known" if value.name else "")
        kind = _kind(node)
        index, what = _TOLD_BY.get(kind, (1, "axes") if kind.startswith("Reduce") else (-1, ""))
        teller = node.operands[index] if 0 <= index < len(node.operands) else None
        if teller is not None and constant_of(teller) is None:
            return UnknownRank(value, f"{_title(node)} takes its {what} from {_label(teller)}", self._of_length(teller))
        data = node.operands[0] if node.operands else None
        if kind == "Squeeze" and data is not None:
            sizes = ", ".join(map(str, data.shape))
            text = f"{_title(node)} drops the axes of size 1 of {_label(data)}, whose sizes are [{sizes}]"
            return UnknownRank(value, text, self._bind({n for size in data.shape for n in dim_names(size)}))
        return UnknownRank(value, f"nothing determines the shape that {_title(node)} gives")

    def _of_length(self, value: Value) -> str:
        """Return the advice that makes the number of elements of a shape or of axes known."""
        if _has_unknown_rank(value.type):
            return ""
        names = {name for size in value.shape for name in dim_names(size)}
        return self._bind(names) or f"make {_label(value)} a constant"

    def _bind(self, names: set[str]) -> str:
        if not names or not names <= self._dims:
            return ""
        from dmlc.inference.open_sizes import fixing_options, nameless_dims  # loads onnx, as a model has already

        return f"{fixing_options(names, nameless_dims(self._graph))} makes it known"


def _first_unknown(value: Value) -> Value | None:
    """The operand from which a value has its unknown rank; None where the value itself begins it."""
    node = value.producer
    if node is None or node.regions:
        return None
    index, what = _TOLD_BY.get(_kind(node), (-1, ""))
    if what == "shape":  # whatever the rank of the data is
        teller = node.operands[index]
        return teller if teller is not None and _has_unknown_rank(teller.type) else None
    return next((v for v in node.operands if v is not None and _has_unknown_rank(v.type)), None)


def _has_unknown_rank(type: TensorType) -> bool:
    if not isinstance(type, ForeignType):
        return False
    from dmlc.onnx_schema.types import has_unknown_rank  # loads onnx, which a model has loaded already

    return has_unknown_rank(type)


def _kind(node: Node | None) -> str:
    """The ONNX operator of an opaque node; empty for any other."""
    if node is None or node.op not in (OPAQUE, OPAQUE_IMPURE):
        return ""
    attributes = node.attributes_as(OpaqueAttributes)
    return attributes.full_name


def _title(node: Node) -> str:
    kind = _kind(node) or node.op.name
    name = node.name or next((r.name for r in node.results if r.name), None)
    return f"{kind} `{name}`" if name else kind


def _label(value: Value) -> str:
    if value.name:
        return f"`{value.name}`"
    return "a constant" if value.producer is None else f"what {_title(value.producer)} gives"


def unknown_ranks(graph: Graph) -> list[UnknownRank]:
    """List the first values of unknown rank in the graph, in its order; nested graphs are left out."""
    finder = UnknownRanks(graph)
    values = [*graph.inputs, *[value for node in graph for value in node.results if value.uses]]
    found = [finder.of(value) for value in values if _has_unknown_rank(value.type)]
    return list({cause.value: cause for cause in found}.values())


def notes_on_ranks(causes: Sequence[UnknownRank], *, verbose: bool) -> list[str]:
    """Return one sentence for each kind of cause, with its first value and how many more there are; each if verbose."""
    if verbose:
        return list(map(str, causes))
    kinds: dict[tuple[str, str], list[UnknownRank]] = {}
    for cause in causes:
        kinds.setdefault((re.sub("`[^`]*`", "", cause.text), cause.help), []).append(cause)
    out = []
    for first, *others in kinds.values():
        more = (
            f"; {counted(len(others), 'other value')} for the same reason (-v lists {'them' if others[1:] else 'it'})"
            if others
            else ""
        )
        out.append(f"{first}{more}")
    return out
