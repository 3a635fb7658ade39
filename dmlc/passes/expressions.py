"""The expression builder, in which lowerings and rules say what a node becomes.

Any operation is a method of the builder (``e.exp(x)``, ``e.gather(x, i, axis=0, batch_axes=0)``), and values have the
signs of the language (``a + b``, ``~a``). A number takes the dtype of the other operand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import (
    Array,
    Attributes,
    Condition,
    Dim,
    DimExpr,
    DType,
    Graph,
    Node,
    Operation,
    Shape,
    Tensor,
    TensorType,
    Value,
)
from dmlc.ir.dim import Interval
from dmlc.ops import ALL_OPERATIONS, INFIX, OPERATIONS, PREFIX
from dmlc.ops.binary import MAX, MIN
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.elementwise import UnaryOperation, attributes_of
from dmlc.ops.index import FULL, FullAttributes
from dmlc.ops.literals import attribute_array
from dmlc.ops.move import (
    RESHAPE,
    SPLIT,
    SQUEEZE,
    UNSQUEEZE,
    AxesAttributes,
    NewAxesAttributes,
    ReshapeAttributes,
    SplitAttributes,
)
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_MAX, REDUCE_MEAN, REDUCE_SUM, ReduceAttributes
from dmlc.passes.layouts import is_unit, ones_between
from dmlc.targets.capabilities import Capabilities

_OPERATIONS = {op.name: op for op in ALL_OPERATIONS}


def _sign(op: Operation) -> Callable[[Term, Any], Term]:
    return lambda self, other: self.builder(op, self, other)


def _reversed(op: Operation) -> Callable[[Term, Any], Term]:
    return lambda self, other: self.builder(op, other, self)


class Term:
    """A value as lowerings write it."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Formulas, value: Value) -> None:
        self.builder: Formulas = builder
        self.value: Value = value

    @property
    def type(self) -> TensorType:
        return self.value.type

    @property
    def dtype(self) -> DType:
        return self.value.type.dtype

    @property
    def shape(self) -> tuple[Dim, ...]:
        return self.value.type.shape

    @property
    def rank(self) -> int:
        return len(self.value.type.shape)

    @property
    def data(self) -> Tensor | None:
        """The elements of a constant."""
        return constant_of(self.value)

    __add__, __radd__ = _sign(INFIX["+"]), _reversed(INFIX["+"])
    __sub__, __rsub__ = _sign(INFIX["-"]), _reversed(INFIX["-"])
    __mul__, __rmul__ = _sign(INFIX["*"]), _reversed(INFIX["*"])
    __truediv__, __rtruediv__ = _sign(INFIX["/"]), _reversed(INFIX["/"])
    __floordiv__, __mod__, __pow__ = _sign(INFIX["//"]), _sign(INFIX["%"]), _sign(INFIX["**"])
    __and__, __or__, __xor__ = _sign(INFIX["&"]), _sign(INFIX["|"]), _sign(INFIX["^"])
    __lt__, __le__, __gt__, __ge__ = _sign(INFIX["<"]), _sign(INFIX["<="]), _sign(INFIX[">"]), _sign(INFIX[">="])

    def __neg__(self) -> Term:
        return self.builder(PREFIX["-"], self)

    def __invert__(self) -> Term:
        return self.builder(PREFIX["!"], self)

    def cast(self, dtype: DType) -> Term:
        """The value in that dtype; itself where it has it."""
        return Term(self.builder, self.builder.cast(self.value, dtype))

    def widened(self) -> Term:
        """The value in the dtype that its sums are computed in: f16 in f32."""
        return self.cast(self.dtype.accumulator)

    def reshape(self, shape: Sequence[Dim]) -> Term:
        """The value in that shape; itself where it has it."""
        return Term(self.builder, self.builder.reshape(self.value, shape))

    def transposed(self, perm: Sequence[int]) -> Term:
        """The value with its axes in another order; itself where it is the same."""
        return self if list(perm) == list(range(len(perm))) else self.builder.transpose(self, perm=tuple(perm))

    def with_ones(self, shape: Sequence[Dim]) -> Term:
        """The value in a shape that differs from its own only by axes of size 1."""
        return Term(self.builder, self.builder.with_ones(self.value, tuple(shape)))


#: An operand as it may be written: a value, or a number.
Written: TypeAlias = "Term | Value | float | bool | np.ndarray[Any, Any] | None"


def plain(value: Term | Value) -> Value:
    """The value of the graph."""
    return value.value if isinstance(value, Term) else value


class Formulas(ABC):
    """Makes nodes of a graph."""

    __slots__ = ("graph",)
    graph: Graph

    @abstractmethod
    def add_node(self, op: Operation, operands: Sequence[Value | None], attributes: Attributes | None = None) -> Node:
        """A new node. Raises ``OpError`` where the types do not fit."""

    # --- values of the graph

    def add(self, op: Operation, operands: Sequence[Value | None], attributes: Attributes | None = None) -> Value:
        """A new node's only result."""
        return self.add_node(op, operands, attributes).result

    def constant(self, array: Array, dtype: DType | None = None) -> Value:
        """A constant before the root."""
        return self.add(CONSTANT, (), ConstantAttributes(value=Tensor(array, dtype)))

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value in that dtype; itself where it has it, a new constant where it is one, or is one number."""
        if value.type.dtype is dtype:
            return value
        data = constant_of(value)
        if data is not None:
            return self.number(data.array, dtype).value
        if value.producer is not None and value.producer.op is FULL:
            a = value.producer.attributes_as(FullAttributes)
            if not isinstance(a.value, DimExpr):
                number = attribute_array(a.value, a.dtype, "value").astype(dtype.numpy).item()
                return self.add(FULL, (), FullAttributes(shape=a.shape, value=number, dtype=dtype))
        return self.add(CAST, [value], CastAttributes(to=dtype))

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        """The value in that shape; itself where it has it."""
        want = tuple(shape)
        return value if value.shape == want else self.add(RESHAPE, [value], ReshapeAttributes(shape=want))

    def with_ones(self, value: Value, target: Shape) -> Value:
        """The value in a shape that differs from its own only by axes of size 1, by the plainest move."""
        found = ones_between(self.graph, value.shape, target)
        assert found is not None, f"{value.shape} and {target} differ by more than axes of size 1"
        removed, added = found
        if removed and added:
            return self.add(RESHAPE, [value], ReshapeAttributes(shape=target))
        if removed:
            return self.add(SQUEEZE, [value], AxesAttributes(axes=removed))
        return self.add(UNSQUEEZE, [value], NewAxesAttributes(axes=added)) if added else value

    # --- expressions

    def __call__(self, op: Operation, *operands: Written, attributes: Attributes | None = None) -> Term:
        """The only result of a new node."""
        return self.results(op, *operands, attributes=attributes)[0]

    def results(self, op: Operation, *operands: Written, attributes: Attributes | None = None) -> tuple[Term, ...]:
        """All results of a new node."""
        values = [self._operand(op, i, operands) for i in range(len(operands))]
        return tuple([Term(self, value) for value in self.add_node(op, values, attributes).results])

    def again(self, node: Node, *operands: Written) -> tuple[Term, ...]:
        """The results of the node with other operands first."""
        return self.results(node.op, *operands, *node.operands[len(operands) :], attributes=node.attributes)

    def __getattr__(self, name: str) -> Callable[..., Term]:
        """An operation by its name. Its attributes are keywords."""
        op = _OPERATIONS.get(name)
        if op is None:
            raise AttributeError(name)

        def call(*operands: Written, **attributes: Any) -> Term:
            return self(op, *operands, attributes=op.attributes(**attributes))

        return call

    def onnx(self, op_type: str, type: TensorType, *operands: Written, **attributes: Any) -> Term:
        """The result, of that type, of an operator of ONNX that the language lacks."""
        given = tuple(sorted(attributes.items()))
        return self(OPAQUE, *operands, attributes=OpaqueAttributes(op_type=op_type, types=(type,), attributes=given))

    def of(self, value: Value) -> Term:
        """A value of the graph as an expression."""
        return Term(self, value)

    def number(self, value: Any, dtype: DType) -> Term:
        """A constant of the dtype; integers wrap to it."""
        array = np.asarray(value)
        if dtype.is_integer and array.dtype == object:
            array = np.asarray(array % 2**64).astype(np.uint64)
        return Term(self, self.constant(array.astype(dtype.numpy)))

    def _operand(self, op: Operation, index: int, operands: Sequence[Written]) -> Value | None:
        given = operands[index]
        if isinstance(given, Term):
            return given.value
        if given is None or isinstance(given, Value):
            return given
        groups = [operand.group for operand in op.operands]
        beside = [v for v, group in zip(operands, groups, strict=False) if group == groups[index]]
        return self.number(given, next(v.type.dtype for v in beside if isinstance(v, (Term, Value)))).value

    def max(self, x: Written, axes: Sequence[int], *, keepdims: bool = True) -> Term:
        """The largest element over axes."""
        return self.reduced(REDUCE_MAX, x, axes, keepdims=keepdims)

    def sum(self, x: Written, axes: Sequence[int], *, keepdims: bool = True) -> Term:
        """The sum over axes."""
        return self.reduced(REDUCE_SUM, x, axes, keepdims=keepdims)

    def mean(self, x: Written, axes: Sequence[int], *, keepdims: bool = True) -> Term:
        """The mean over axes."""
        return self.reduced(REDUCE_MEAN, x, axes, keepdims=keepdims)

    def reduced(self, op: Operation, x: Written, axes: Sequence[int], *, keepdims: bool = True) -> Term:
        """A reduction over axes."""
        return self(op, x, attributes=ReduceAttributes(axes=tuple(axes), keepdims=keepdims))

    def larger(self, a: Written, b: Written) -> Term:
        """The larger of two elements."""
        return self(MAX, a, b)

    def smaller(self, a: Written, b: Written) -> Term:
        """The smaller of two elements."""
        return self(MIN, a, b)

    def parts(self, x: Written, axis: int, *sizes: Dim) -> tuple[Term, ...]:
        """The parts of a split."""
        return self.results(SPLIT, x, attributes=SplitAttributes(axis=axis, sizes=sizes))

    def composed(self, op: UnaryOperation, x: Term, attributes: Attributes) -> Term:
        """The operation's declared form in other operations, in the dtype of ``x``."""
        assert op.composed is not None

        def call(inner: str, *operands: Written) -> Term:
            return self(INFIX.get(inner) or OPERATIONS[inner], *operands)

        composed: Term = op.composed(call, x, **attributes_of(op, attributes))
        return composed


class Sketch(Formulas):
    """Makes nodes outside the graph: ``steps`` are those so far, each with what its types could not prove.

    ``target`` answers what kernels there are. ``rule`` is the rule that asks. ``taken`` are the nodes before the root
    whose work the new nodes do. ``gives`` is the rewrite class, where the rule has several, and ``promised`` are the
    inputs whose promised ranges make a rewrite of class ``range`` right.
    """

    __slots__ = ("gives", "promised", "rule", "steps", "taken", "target")

    def __init__(self, graph: Graph, target: Capabilities, rule: Any = None) -> None:
        self.graph = graph
        self.taken: list[Node] = []
        self.gives: str | None = None
        self.promised: tuple[str, ...] = ()
        self.target: Capabilities = target
        self.rule: Any = rule
        self.steps: list[tuple[Node, Sequence[Condition]]] = []

    def add_node(self, op: Operation, operands: Sequence[Value | None], attributes: Attributes | None = None) -> Node:
        node, conditions = self.graph.draft(op, operands, op.attributes() if attributes is None else attributes)
        self.steps.append((node, conditions))
        return node

    def made_by(self, x: Term | Value | None, *ops: Operation) -> Node | None:
        """The producer of ``x``, where it is one of the operations: its work is taken over."""
        node = None if x is None else plain(x).producer
        if node is None or node.op not in ops:
            return None
        self.taken.append(node)
        return node

    def interval(self, x: Term) -> Interval:
        """Return the interval of a value of the graph."""
        found: Interval = self.rule.interval(x.value, self.graph)
        return found

    def log_sum(self, x: Term, axes: Sequence[int]) -> Term:
        """The logarithm of a sum over axes: two nodes where costs are known, for ReduceLogSum is slow there."""
        if self.target.target.costs is None:
            return self.reduced(REDUCE_LOG_SUM, x, axes)
        return self.log(self.sum(x, axes))

    def counting(self, x: Term, axes: Sequence[int]) -> tuple[int, ...]:
        """The axes without the ones of size 1, if any other is left."""
        return tuple([axis for axis in axes if not is_unit(self.graph, x.shape[axis])]) or tuple(axes[:1])
