"""The text of a program, and the arrays that it loads."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from dmlc.codegen.artifact import Artifact, signature_of
from dmlc.diagnostics import DmlcError, Label, fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.inference.carried import opset_of_calls, read_shapes
from dmlc.ir import FOREIGN, Array, Dim, DimExpr, DimTable, Graph, Node, OpError, Tensor, Value, dim_names, is_absent
from dmlc.ir.printer import Before, UnwritableSize, number_text, onnx_call, print_graph, string_text
from dmlc.onnx_schema.values import changed_attributes
from dmlc.onnx_schema.versions import same_call
from dmlc.ops.move import FAR, SLICE, SliceAttributes
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE, OpaqueAttributes, Plain, attribute_of, is_opaque
from dmlc.ops.slicing import as_written

#: Attributes of an ONNX operator: names and plain values.
Attributes: TypeAlias = "tuple[tuple[str, Plain], ...]"

#: Characters that neither a quoted name nor a string may hold (``dmlc/text/syntax/dml.lark``).
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
#: Constants up to this many elements are written in the program.
_WRITTEN = 16


def emit(graph: Graph, weights: str | None = None, opset: int | None = None) -> Artifact:
    """The graph as ``.dml``: an artifact whose payload is the text.

    ``opset`` is the one at which ONNX operators are read, or the lowest above that has them; without it the graph's.
    ``weights`` is the name of the ``.npz`` file that the program loads its larger constants from, which the artifact's
    ``arrays`` are to be written in; without it every constant is written out. Raises ``DmlcError`` E0508 for what no
    program can say.
    """
    _check(graph)
    reading = _reading_opset(graph, graph.opset if opset is None else opset)
    attributes = {node: _attributes_at(node, reading) for node in graph if node.op in (OPAQUE, OPAQUE_IMPURE)}
    arrays: dict[str, Array] = {}

    def load(tensor: Tensor) -> str | None:
        if weights is None or tensor.size <= _WRITTEN:
            return None
        key = f"w{len(arrays)}"
        arrays[key] = tensor.array
        if _CONTROL.search(weights) or "\\" in weights:  # load takes a backslash for a way out of the folder
            raise _refusal(f"the name {weights!r} cannot be written in a program", help="give the output another name")
        return f'load({string_text(weights)}, "{key}")'

    def spell(node: Node, operands: list[str], write: Callable[[Dim], str], before: Before) -> str | None:
        if is_opaque(node, "ConstantOfShape"):
            return _filled(node, operands[0], before)
        if node in attributes:
            a = node.attributes_as(OpaqueAttributes)
            name, keywords = onnx_call(a.domain, a.op_type, attributes[node])
            return f"{name}({', '.join([*operands, *keywords])})"
        return _index(graph.dims, node, operands[0], write) if node.op is SLICE else None

    try:
        read = partial(_read_shapes, graph, attributes, reading)
        text = print_graph(graph, max_elements=None, load=load, spell=spell, read_shapes=read)
    except UnwritableSize as error:
        raise _refusal(str(error)) from None
    return Artifact(kind="dml", payload=text, signature=signature_of(graph), arrays=arrays)


def _filled(node: Node, shape: str, before: Before) -> str | None:
    """A ConstantOfShape with a value, which no attribute can say: the value expanded; None for one of zeros."""
    value = attribute_of(node, "value")
    if not isinstance(value, Tensor) or value.size != 1:
        return None
    number = number_text(value.array.reshape(())[()])
    type = value.type.with_shape((1,))
    return f"onnx.Expand({before(f'full(shape=[1], value={number}, dtype={type.dtype.name})', type)}, {shape})"


def _reading_opset(graph: Graph, lowest: int) -> int:
    """The opset at which the program will be read: the lowest one that has every operator."""
    nodes = [node for node in graph if node.op in (OPAQUE, OPAQUE_IMPURE)]
    records = [node.attributes_as(OpaqueAttributes) for node in nodes]
    calls = [
        (a.domain, a.op_type, node.operands, {} if _is_filled(node) else dict(a.attributes), len(node.results))
        for node, a in zip(nodes, records, strict=True)
    ]
    return opset_of_calls(graph, lowest, calls)


def _attributes_at(node: Node, opset: int) -> Attributes:
    """The attributes of an ONNX operator as it has them at the opset. Raises ``DmlcError`` E0508 where it has another
    form there."""
    a, origin = node.attributes_as(OpaqueAttributes), node.origin
    given = () if _is_filled(node) else a.attributes
    if origin is None:
        return given
    made = same_call(origin.proto, origin.version, opset)
    if made is None:
        raise _refusal(f"{_name(node)} of opset {origin.version} has another form at opset {opset}", node)
    return given if made == origin.proto else changed_attributes(given, origin.proto, made)


def _read_shapes(
    graph: Graph, attributes: Mapping[Node, Attributes], opset: int, node: Node, sizes: Mapping[str, Dim]
) -> list[list[Dim | str]] | None:
    """The shapes of the results of an ONNX operator as they are when its call is read, where dims have these sizes.

    Raises ``DmlcError`` E0508 for a call that reading refuses, and where it does not know a rank.
    """
    if node not in attributes:
        return None
    a, given = node.attributes_as(OpaqueAttributes), dict(attributes[node])
    try:
        found = read_shapes(graph, opset, a.domain, a.op_type, node.operands, given, len(node.results), sizes)
    except OpError as error:
        raise _refusal(f"{_name(node)} cannot be written in a program: {error.message}", node) from None
    if any(shape is None for shape in found):
        raise _refusal(f"{_name(node)} gives a value whose rank only the model knows", node)
    return [list(shape) for shape in found if shape is not None]


def _is_filled(node: Node) -> bool:
    return is_opaque(node, "ConstantOfShape") and isinstance(attribute_of(node, "value"), Tensor)


def _index(dims: DimTable, node: Node, operand: str, write: Callable[[Dim], str]) -> str | None:
    """A slice that clamps its places, written as an index; None for another."""
    shape, items = node.operand("x").shape, {}
    is_clamped = False
    for axis, start, end, step in node.attributes_as(SliceAttributes).rows():
        places = as_written(dims, shape[axis], start, end, step)
        if any(isinstance(place, DimExpr) and place.is_clamped for place in places):
            return None
        is_clamped |= places != (start, end)
        texts = ["" if place is None or _is_far(place) else write(place) for place in places]
        items[axis] = ":".join(texts if step == 1 else [*texts, str(step)])
    if not is_clamped:
        return None
    return f"{operand}[{', '.join([items.get(axis, ':') for axis in range(max(items) + 1)])}]"


def _is_far(place: Dim) -> bool:
    """Return whether the place is written for the one behind the last element, or before the first."""
    return isinstance(place, int) and abs(place) >= FAR


def _check(graph: Graph) -> None:
    for value in graph.inputs:
        if value.type.dtype is FOREIGN:
            raise _refusal(f"input {value.name} has a type that the language does not have")
        if value in graph.defaults:
            raise _refusal(f"input {value.name} has a default, which a program cannot say")
    inputs = {value.name for value in graph.inputs}
    both = next((name for name, _ in graph.outputs if name in inputs), None)
    if both is not None:
        raise _refusal(f"{both} names an input and an output, which a program cannot say")
    outputs = {value for _, value in graph.outputs}
    for node in graph:
        if node.op in (OPAQUE, OPAQUE_IMPURE):
            _check_opaque(node, outputs)
    odd = next((name for name in _names(graph) if "`" in name or _CONTROL.search(name)), None)
    if odd is not None:
        raise _refusal(f"the name {odd!r} cannot be quoted in a program")


def _names(graph: Graph) -> Iterator[str]:
    """Every name that is written."""
    yield graph.name
    values = [*graph.inputs, *[value for node in graph for value in node.results]]
    yield from [value.name for value in values if value.name]
    yield from [name for name, _ in graph.outputs]
    yield from {name for value in values for size in value.shape for name in dim_names(size)}


def _check_opaque(node: Node, outputs: Collection[Value]) -> None:
    a = node.attributes_as(OpaqueAttributes)
    if node.regions:
        raise _refusal(f"{_name(node)} holds a graph", node)
    foreign = [r for r in node.results if r.type.dtype is FOREIGN]
    if a.op_type == "Initializer" or any(r.uses or r in outputs or not is_absent(r.type) for r in foreign):
        raise _refusal(f"{_name(node)} gives a value of a type that the language does not have", node)
    for name, value in () if _is_filled(node) else a.attributes:
        texts = value if isinstance(value, tuple) else (value,)
        if isinstance(value, (bytes, Tensor)) or any(isinstance(text, str) and _is_odd(text) for text in texts):
            raise _refusal(f"attribute {name} of {_name(node)} cannot be written in a program", node)
    parts = [*(a.domain.split(".") if a.domain else ()), a.op_type, *[name for name, _ in a.attributes]]
    if not all(parts) or any("`" in part or _CONTROL.search(part) for part in parts):
        raise _refusal(f"the names of {_name(node)} cannot be quoted in a program", node)
    if a.unplain:
        raise _refusal(f"attribute {a.unplain[0].name} of {_name(node)} cannot be written in a program", node)


def _name(node: Node) -> str:
    kind = getattr(node.attributes, "full_name", node.op.name)
    return f"node {node.name} ({kind})" if node.name else f"a node of {kind}"


def _is_odd(text: str) -> bool:
    """Return whether the text has a control character without an escape: only two have one."""
    return _CONTROL.search(text.replace("\n", "").replace("\t", "")) is not None


def _refusal(
    message: str, node: Node | None = None, help: str = "emit ONNX, which holds all that the model has"
) -> DmlcError:
    labels = [] if node is None else [Label(span) for span in node.spans[:1]]
    return fail(codes.NO_DML_TEXT, message, *labels, help=help)
