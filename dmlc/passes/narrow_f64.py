"""``narrow-f64``: what is computed in f64 is computed in f32, because the user asked for it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import fields, replace

from dmlc.diagnostics import Diagnostic, Label, Span
from dmlc.diagnostics.catalogue.advice import NOT_IN_F32
from dmlc.diagnostics.counted import counted
from dmlc.ir import FOREIGN, Attributes, DType, Graph, Node, Operation, OpError, Tensor, TensorType, Value
from dmlc.ir.dtype import f32, f64
from dmlc.ir.history import AS_WRITTEN
from dmlc.ir.tensor import StoredTensor
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.manager import Pass, PassContext
from dmlc.passes.rewrite import merge_spans

_LANGUAGE = frozenset(ALL_OPERATIONS)
#: The attributes that are numbers of the operand's or result's dtype.
_NUMBERS = ("value", "on", "off", "min", "max")


class NarrowF64(Pass, frozen=True):
    """Inputs and outputs keep their types: casts stand behind and before them. An opaque operator is computed in f32 if
    ONNX's schema gives its results the type of its operands. Any other, and one that runs graphs of its own, stays as
    it is, with casts around it.

    No rewrite class allows it: it runs only where f64 is to be f32. Numbers that f32 does not hold are warned of.
    """

    name: ClassVar[str] = "narrow-f64"
    summary: ClassVar[str] = "Compute f64 in f32."
    rewrite_class: ClassVar[str] = "asked for"
    inner_graphs: ClassVar[bool] = False

    def run(self, graph: Graph, context: PassContext) -> bool:
        return _Narrower(graph, context).run()


class _Narrower:
    """``narrow`` maps the f64 values that were seen to their f32 forms, ``wide`` these back."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph = graph
        self.context = context
        self.first: Node | None = next(iter(graph), None)
        self.following: Node | None = None
        self.narrow: dict[Value, Value] = {}
        self.wide: dict[Value, Value] = {}
        self.done: list[Node] = []
        self.kept: dict[Node, None] = {}

    def run(self) -> bool:
        nodes = list(self.graph)
        for node, self.following in itertools.zip_longest(nodes, nodes[1:]):
            if _has_f64(node):
                self._visit(node)
        for index, value in enumerate(self.graph.output.operands):
            if value is not None and value in self.narrow:
                self.graph.set_operand(self.graph.output, index, self._widened(value, None, named=True))
        if not self.narrow:
            return False
        self.graph.erase_dead(reversed(nodes))
        self._record()
        return True

    def _record(self) -> None:
        many = counted(len(self.done), "node")
        words = f"every f64 computation is done in f32, as was asked for: {many}"
        if self.kept:
            left = sorted({_label(node) for node in self.kept})
            words += f"; {', '.join(left)} stayed f64, with casts around"
        self.context.record(NarrowF64.name, NarrowF64.rewrite_class, words, merge_spans(self.done))

    # --- values

    def _narrowed(self, value: Value) -> Value:
        """The value in f32; itself where it is not f64."""
        if value.type.dtype is not f64:
            return value
        found = self.narrow.get(value)
        if found is None:  # an input
            spans = (value.span,) if value.span else ()
            found = self._cast(value, f32, self.first, spans)
            self.narrow[value] = found
        return found

    def _widened(self, value: Value, before: Node | None, *, named: bool = False) -> Value:
        """An f64 value for what stays f64: itself where nothing computes it."""
        found = self.narrow.get(value)
        if found is None or value.producer is None or value.producer.op is CONSTANT or value.producer in self.kept:
            return value
        wide = self.wide.get(value)
        if wide is None:
            wide = self.wide[value] = self._cast(found, f64, before, found.producer.spans if found.producer else ())
        if named and wide.name is None:
            wide.name = value.name
        return wide

    def _cast(self, value: Value, to: DType, before: Node | None, spans: tuple[Span, ...] = ()) -> Value:
        record = CastAttributes(to=to)
        return self.graph.add(
            CAST,
            [value],
            record,
            spans=spans,
            history=AS_WRITTEN.then(NarrowF64.name, NarrowF64.rewrite_class),
            before=before,
        ).result

    # --- nodes

    def _visit(self, node: Node) -> None:
        if node.op is CONSTANT:
            self._constant(node)
        elif node.op is CAST:
            self._recast(node)
        elif node.op in _LANGUAGE:
            self._made(node, self._add(node, node.op, self._attributes(node)))
        else:
            made = self._passed(node)
            if made is None:
                self._around(node)
            else:
                self._made(node, made)

    def _constant(self, node: Node) -> None:
        data = node.attributes_as(ConstantAttributes).value
        if isinstance(data, StoredTensor) and data.is_apart:  # such data is read where it is used
            self.narrow[node.result] = self._cast(node.result, f32, self.following)
            return
        record = ConstantAttributes(value=self._tensor(data, node.result.name, node.spans))
        twin = self.graph.add(CONSTANT, (), record, spans=node.spans, history=node.history, before=node)
        self.narrow[node.result] = twin.result

    def _tensor(self, data: Tensor, name: str | None, spans: Sequence[Span]) -> Tensor:
        with np.errstate(all="ignore"):
            small = data.array.astype(np.float32)
        lost = (np.isinf(small) & np.isfinite(data.array)) | ((small == 0) & (data.array != 0))
        if lost.any():
            place = tuple(np.argwhere(lost)[0])
            self._warn(float(data.array[place]), float(small[place]), name or data.note, spans, int(lost.sum()))
        return Tensor(small, note=data.note)

    def _warn(self, number: float, became: float, name: str, spans: Sequence[Span], count: int = 1) -> None:
        where = f" of {name}" if name else ""
        more = f", and {count - 1} more" if count > 1 else ""
        message = f"{number:g}{where} is {became:g} in f32{more}"
        labels = tuple([Label(span, "this number") for span in spans[:1]])
        help = "scale it, or leave f64 as it is (without --f64 f32)"
        self.context.diagnostics.append(Diagnostic(NOT_IN_F32, message, labels, help))

    def _recast(self, node: Node) -> None:
        to, x = node.attributes_as(CastAttributes).to, self._narrowed(node.operand("x"))
        to = f32 if to is f64 else to
        found = x
        if x.type.dtype is not to:
            found = self._cast(x, to, node, node.spans)
            found.name = _name(node.result) if node.result.type.dtype is f64 else node.result.name
        if node.result.type.dtype is f64:
            self.narrow[node.result] = found
        else:
            self.graph.replace_all_uses(node.result, found)
        self.done.append(node)

    def _attributes(self, node: Node) -> Attributes:
        """The attributes with f32 for f64, and numbers that f32 has."""
        old: Any = node.attributes
        changes: dict[str, Any] = {}
        takes = any(v.type.dtype is f64 for v in node.results)
        for field in fields(old):
            value = getattr(old, field.name)
            if value is f64:
                changes[field.name] = f32
            elif takes and field.name in _NUMBERS and isinstance(value, float):
                with np.errstate(all="ignore"):
                    small = float(np.float32(value))
                if (np.isinf(small) and np.isfinite(value)) or (small == 0 and value != 0):
                    self._warn(value, small, f"{field.name} of {_label(node)}", node.spans)
                    changes[field.name] = small
        return replace(old, **changes) if changes else node.attributes

    def _add(self, node: Node, op: Operation, attributes: Attributes) -> Node:
        operands = [None if v is None else self._narrowed(v) for v in node.operands]
        history = node.history.then(NarrowF64.name, NarrowF64.rewrite_class)
        made = self.graph.add(op, operands, attributes, spans=node.spans, history=history, before=node)
        made.name = node.name
        if op not in _LANGUAGE or attributes is node.attributes:
            made.origin = _origin(node, language=op in _LANGUAGE)
        return made

    def _passed(self, node: Node) -> Node | None:
        """The operator in f32, where its results then are f32; None where that is not known."""
        try:
            if node.op is not OPAQUE:
                return self._carried(node)
            types = self._retyped(node)
            if types is None:
                return None
            return self._add(node, OPAQUE, replace(node.attributes_as(OpaqueAttributes), types=types))
        except OpError:
            return None

    def _carried(self, node: Node) -> Node | None:
        """A call of an ONNX operator in a program: its types are inferred anew."""
        old: Any = node.attributes
        known = getattr(old, "known", None)
        if known is None or self._parameters(node, old.domain, old.op_type, old.opset) is None:
            return None
        small = tuple([(i, self._tensor(t, "", ()) if t.dtype is f64 else t) for i, t in known])
        return self._add(node, node.op, replace(old, known=small))

    def _retyped(self, node: Node) -> tuple[TensorType, ...] | None:
        record = node.attributes_as(OpaqueAttributes)
        if node.origin is None or record.unplain:
            return None
        if any(isinstance(value, Tensor) and value.dtype is f64 for _, value in record.attributes):
            return None  # numbers that have to be of the operand's type
        parameters = self._parameters(node, record.domain, record.op_type, node.origin.version)
        if parameters is None:
            return None
        return tuple([t.with_dtype(f32) if t.dtype is f64 and p in parameters[0] else t
                      for t, p in zip(record.types, parameters[1], strict=True)])  # fmt: skip

    def _parameters(self, node: Node, domain: str, op_type: str, version: int) -> tuple[set[str], list[str]] | None:
        """The type parameters of f64 operands, and of each result; None where f32 does not do for all."""
        from dmlc.onnx_schema.letters import letters_of  # loads onnx, which whoever made the node has loaded

        values = [v for v in (*node.operands, *node.results) if v is not None]
        letters = letters_of(domain, op_type, version)
        if letters is None or any(v.type.dtype is FOREIGN and v.uses for v in values):
            return None
        given = {letters.operand(i) for i, v in enumerate(node.operands) if v is not None and v.type.dtype is f64}
        if not given or not all(f32 in letters.dtypes[letter] for letter in given):
            return None
        return given, [letters.result(i) for i in range(len(node.results))]

    def _made(self, node: Node, made: Node) -> None:
        """Let the new node take over."""
        self.done.append(node)
        for old, new in zip(node.results, made.results, strict=True):
            if old.type.dtype is f64:
                new.name = _name(old)
                self.narrow[old] = self._cast(new, f32, node, node.spans) if new.type.dtype is f64 else new
            else:
                new.name = old.name
                self.graph.replace_all_uses(old, new)

    def _around(self, node: Node) -> None:
        """The node stays: it is fed f64, and its results are cast."""
        self.kept[node] = None
        for index, value in enumerate(node.operands):
            if value is not None and value.type.dtype is f64:
                self.graph.set_operand(node, index, self._widened(value, node))
        for value in node.results:
            if value.type.dtype is f64:
                self.narrow[value] = self._cast(value, f32, self.following, node.spans)


def _has_f64(node: Node) -> bool:
    return any(v is not None and v.type.dtype is f64 for v in (*node.operands, *node.results))


def _name(value: Value) -> str | None:
    """A model may say of a name that it is f64."""
    return None if value.name is None else f"{value.name}_f32"


def _label(node: Node) -> str:
    return getattr(node.attributes, "op_type", node.op.name)


def _origin(node: Node, *, language: bool) -> Any:
    """The form that the node has in its model, where it is of any type; that of an operator keeps its data in f32."""
    origin: Any = node.origin
    if origin is None:
        return None
    wide = any(isinstance(i, Tensor) and i.dtype is f64 for i in origin.inputs)
    if language and (wide or any(a.name in ("to", "dtype", "value") for a in origin.proto.attribute)):
        return None
    inputs = tuple([_small(i) if isinstance(i, Tensor) and i.dtype is f64 else i for i in origin.inputs])
    return replace(origin, inputs=inputs) if wide else origin


def _small(data: Tensor) -> Tensor:
    with np.errstate(all="ignore"):
        return Tensor(data.array.astype(np.float32), note=data.note)
