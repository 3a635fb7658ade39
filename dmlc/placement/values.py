"""Values of a model as placement sees them: their types, and which are constant or lie on the CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct, field
from onnx import GraphProto, NodeProto, TensorProto, defs, helper

from dmlc.inference.fact import NOTHING as NO_FACT
from dmlc.inference.fact import Elements, Fact, is_size
from dmlc.inference.model_facts import GraphFacts
from dmlc.inference.protos import is_made_up
from dmlc.ir import Dim, Shape, dim_names, product
from dmlc.onnx_schema.nested import holds_graphs, values_read_by
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.placement.loading_rewrites import FloatScalar

_NAMES = {
    **{number: dtype.name for number, dtype in DTYPE_OF.items()},
    TensorProto.BFLOAT16: "bf16",
    TensorProto.STRING: "string",
    TensorProto.INT4: "i4",
    TensorProto.UINT4: "u4",
}


class KnownType(Struct, frozen=True):
    """A value: its element type and its shape, None for what is not known. ``other`` is not a tensor of a listed type.
    ``bits`` are those of an element."""

    dtype: str | None = None
    shape: Shape | None = None
    bits: int | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def static(self) -> bool:
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)

    @property
    def empty(self) -> bool:
        return self.shape is not None and 0 in self.shape

    @property
    def bytes(self) -> Dim | None:
        if self.bits is None or self.shape is None:
            return None
        count = product(self.shape)
        return count * (self.bits // 8) if self.bits >= 8 else count // (8 // self.bits)

    @property
    def text(self) -> str:
        sizes = "?" if self.shape is None else ", ".join(map(str, self.shape))
        return f"{self.dtype or '?'}[{sizes}]"


class ValueScope(Struct):
    """The values that a graph sees: known facts about them, and which are constant or lie on the CPU.

    Equal facts are one object: ``kinds`` holds all that the scopes of one model have. ``made_by`` are
    the nodes of the graph by value. ``users`` and ``outputs`` are recorded of a model's own graph only, where the
    provider fuses activations; a node whose graphs read a value uses it. ``floats`` are the constants of one float,
    ``data_on_cpu`` values on the CPU that are made of more than shapes.
    """

    facts: Mapping[str, Fact]
    inputs: frozenset[str] = frozenset()
    constant: set[str] = field(default_factory=set)
    on_cpu: set[str] = field(default_factory=set)
    kinds: dict[tuple[int, Shape | None, bytes], KnownType] = field(default_factory=dict)
    made_by: dict[str, NodeProto] = field(default_factory=dict)
    users: dict[str, list[NodeProto]] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    floats: Mapping[str, FloatScalar] = field(default_factory=dict)
    data_on_cpu: set[str] = field(default_factory=set)

    def connect(self, graph: GraphProto, *, outermost: bool) -> None:
        """Record the nodes of the graph by the values that they make; those of the model also by what they read."""
        for node in graph.node:
            self.made_by.update(dict.fromkeys(filter(None, node.output), node))
            for name in values_read_by(node) if outermost else ():
                self.users.setdefault(name, []).append(node)
        if outermost:
            self.outputs = frozenset(info.name for info in graph.output)

    @classmethod
    def of_graph(cls, facts: GraphFacts, outer: ValueScope | None = None) -> ValueScope:
        """The scope of a graph, inside a node of the graph ``outer`` where that is given."""
        if outer is None:
            return cls(facts.of, facts.inputs, set(facts.weights))
        return cls(facts.of, facts.inputs, outer.constant | facts.weights, set(outer.on_cpu), outer.kinds)

    def of(self, name: str) -> KnownType:
        fact = self.facts.get(name, NO_FACT)
        key = (fact.element, fact.shape, fact.proto)
        found = self.kinds.get(key)
        if found is None:
            found = self.kinds[key] = _known(fact)
        return found

    def sizes_behind(self, names: Iterable[str]) -> set[str]:
        """The names of the open sizes that values are computed from."""
        waiting = list(names)
        seen: set[str] = set()
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            node, elements = self.made_by.get(name), self.facts.get(name, NO_FACT).elements
            if name in seen or node is None:
                continue
            seen.add(name)
            if elements is not None and all(map(is_size, elements.ravel().tolist())):
                found.update([n for size in elements.ravel().tolist() for n in dim_names(size)])
            elif node.op_type in ("Shape", "Size"):
                found.update(names_of([self.of(node.input[0])]))
            else:
                waiting += node.input
        return found

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """The elements of an integer tensor where all are known."""
        return self.facts.get(name, NO_FACT).numbers

    def elements(self, name: str) -> Elements | None:
        """The elements that are known; one object for all that share it."""
        return self.facts.get(name, NO_FACT).elements


def _known(fact: Fact) -> KnownType:
    if fact.proto:
        return KnownType("other")
    if not fact.element:
        return KnownType(None, fact.shape)
    return KnownType(_NAMES.get(fact.element, "other"), fact.shape, element_bits(fact.element))


@lru_cache
def element_bits(element: int) -> int | None:
    """The bits of an element by ONNX's number; None for strings and what is not a tensor."""
    if element in (TensorProto.UNDEFINED, TensorProto.STRING):
        return None
    if element in (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1):
        return 4
    try:
        return int(helper.tensor_dtype_to_np_dtype(element).itemsize) * 8
    except KeyError:  # a type that this onnx does not know
        return None


def names_of(values: Iterable[KnownType]) -> list[str]:
    """The names of the open sizes, sorted."""
    return sorted({n for v in values if v.shape is not None for size in v.shape for n in dim_names(size)})


def told_names(names: Iterable[str]) -> list[str]:
    """The names that a user of the model knows, sorted; without those that tools made up."""
    return sorted(name for name in names if not is_made_up(name))


def attribute(node: NodeProto, name: str) -> object:
    """The value of an attribute in Python; None where it is not given."""
    for found in node.attribute:
        if found.name == name and not holds_graphs(found):
            value = helper.get_attribute_value(found)
            return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return None


@lru_cache(maxsize=4096)
def parameters(domain: str, op_type: str, opset: int) -> tuple[tuple[str, ...], tuple[str, ...], bool] | None:
    """The type parameters of an operator's operands and results, and whether the last of the operands repeats."""
    try:
        schema = defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None
    variadic = bool(schema.inputs) and schema.inputs[-1].option == defs.OpSchema.FormalParameterOption.Variadic
    return tuple(p.type_str for p in schema.inputs), tuple(p.type_str for p in schema.outputs), variadic


# --- A node of an ONNX model with the types of its operands and results


class TypedNode(Struct):
    """A node, the types of its operands and results, and the values around it."""

    proto: NodeProto
    domain: str
    opset: int
    operands: list[KnownType]
    results: list[KnownType]
    scope: ValueScope

    @property
    def op(self) -> str:
        return str(self.proto.op_type)

    @property
    def label(self) -> str:
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def values(self) -> list[KnownType]:
        given = [v for v, name in zip(self.operands, self.proto.input, strict=True) if name]
        return given + [v for v, name in zip(self.results, self.proto.output, strict=True) if name]

    def given(self, index: int) -> KnownType | None:
        """The type of an operand; None if the node does not have it."""
        return self.operands[index] if index < len(self.proto.input) and self.proto.input[index] else None


# --- Bounds on elements that the operators before a value show

#: Operators whose results lie in [-1, 1], and operators that keep such a range.
_UNIT = frozenset(("Cos", "Erf", "HardSigmoid", "Hardmax", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh"))
_KEEPS_RANGE = frozenset(
    (
        *("AveragePool", "Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity", "MaxPool", "Neg", "Reshape"),
        *("Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
#: The largest magnitude of the types of one byte.
_BYTES = {"bool": 1.0, "i8": 128.0, "u8": 255.0}
_STEPS = 8


def bound_of(name: str, scope: ValueScope) -> float | None:
    """Return a number that no element of a value exceeds in magnitude; None if the operators before it show none."""
    for _ in range(_STEPS):
        found = scope.made_by.get(name)
        if found is None:
            return None
        if found.op_type in _UNIT:
            return 1.0
        bound = _clipped(found, scope) if found.op_type == "Clip" else _cast(found, scope)
        if bound is not None:
            return bound
        if found.op_type not in _KEEPS_RANGE or (found.op_type == "Concat" and len(set(found.input)) > 1):
            return None
        name = found.input[0]
    return None


def _clipped(node: NodeProto, scope: ValueScope) -> float | None:
    bounds = [attribute(node, name) for name in ("min", "max")]
    for index, name in enumerate(node.input[1:3]):
        found = scope.floats.get(name)
        bounds[index] = None if found is None else found.number
    numbers = [abs(bound) for bound in bounds if isinstance(bound, (int, float))]
    return max(numbers) if len(numbers) == len(bounds) else None


def _cast(node: NodeProto, scope: ValueScope) -> float | None:
    return _BYTES.get(scope.of(node.input[0]).dtype or "") if node.op_type == "Cast" else None
