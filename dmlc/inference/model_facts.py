"""Facts about all values of an ONNX model, in graphs inside nodes too: what placement, costs and counts read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count

from msgspec import Struct, field
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto

from dmlc.inference import bodies
from dmlc.inference.fact import FLOATS, NOTHING, Fact
from dmlc.inference.protos import asked_attributes, of_proto, of_tensor, of_type
from dmlc.inference.query import Query
from dmlc.inference.registry import infer
from dmlc.ir import FOREIGN, Dim, DimTable, Graph, TensorType, dim_names, substitute, symbol
from dmlc.onnx_schema.declared import declared_dims, without_item_shapes
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.onnx_schema.inlining import inlined
from dmlc.onnx_schema.nested import graphs_of

#: Begins the names of sizes that nothing names.
MADE_UP = "?"
#: Bodies that stand this deep in others are typed once, with open sizes for what they hand on.
_MOST_DEPTH = 3


class GraphFacts(Struct):
    """Facts about the values that a graph sees, by name.

    ``weights`` are its initializers that nothing can override, ``inputs`` what it is fed. ``inner`` holds the facts of
    the graphs inside its nodes by the number of the node, in the order of ``graphs_of``.
    """

    of: dict[str, Fact]
    weights: frozenset[str] = frozenset()
    inputs: frozenset[str] = frozenset()
    inner: dict[int, list[GraphFacts]] = field(default_factory=dict)


class ModelFacts(Struct):
    """A model's main graph with its functions inlined, and the facts about it. ``named`` are the dims that the model's
    inputs declare by name: other dims are unknown to its user."""

    graph: GraphProto
    facts: GraphFacts
    named: frozenset[str]


def facts_of_model(
    model: ModelProto, given: Mapping[str, TensorType] | None = None, binding: Mapping[str, int] | None = None
) -> ModelFacts:
    """The facts about a model, which is not changed.

    ``given`` are types of its values, by name, that are known better than what the rules find. ``binding`` fixes dims
    of its inputs by name. Declarations of the model count where no rule says more.
    """
    model = without_functions(model)
    walk = _Walk(imported_versions(model.opset_import), given or {}, binding or {}, lists_weights=model.ir_version < 4)
    walk.taken = declared_dims(model.graph).union(*_made_up_dims(given or {}))
    facts = walk.graph(model.graph, {})
    named = {name for info in facts.inputs for size in facts.of[info].shape or () for name in dim_names(size)}
    return ModelFacts(model.graph, facts, frozenset(name for name in named if not name.startswith(MADE_UP)))


def without_functions(model: ModelProto) -> ModelProto:
    """The model with its functions inlined; the model itself where it has none, or onnx cannot inline them."""
    if not model.functions:
        return model
    try:
        return inlined(model)
    except Exception:  # onnx raises what it likes: RuntimeError, ValueError, protobuf's own errors
        return model


class _Walk:
    """One walk over a model. ``given`` are types that are known better than what rules find."""

    def __init__(
        self,
        opsets: Mapping[str, int],
        given: Mapping[str, TensorType],
        binding: Mapping[str, int],
        lists_weights: bool,
    ) -> None:
        self.opsets = opsets
        self.given = given
        self.binding: Mapping[str, Dim] = dict(binding)
        self.lists_weights = lists_weights
        self.dims = DimTable(least=0)
        self.depth = 0
        self.taken: set[str] = set()
        self._names = count()
        self._facts: dict[TensorType, Fact] = {}

    def new_dim(self) -> Dim:
        return symbol(next(name for name in map(f"{MADE_UP}{{}}".format, self._names) if name not in self.taken))

    def graph(self, graph: GraphProto, outer: Mapping[str, Fact], fed: Sequence[Fact] = ()) -> GraphFacts:
        """The facts about a graph that sees the values of ``outer``; ``fed`` are those about its inputs, where the
        node around it gives more than their declarations."""
        out = GraphFacts(dict(outer))
        listed = {tensor.name for tensor in graph.initializer} if self.lists_weights else ()
        inputs = [info for info in graph.input if info.name not in listed]
        out.inputs = frozenset([info.name for info in inputs])
        for index, info in enumerate(inputs):
            declared = self._declared(info.type)
            out.of[info.name] = self._input(info.name, declared, fed[index] if index < len(fed) else NOTHING)
        self._weights(graph, out)
        claims = {info.name: info.type for infos in (graph.output, graph.value_info) for info in infos}
        for number, node in enumerate(graph.node):
            names = node.output[:]
            for name, fact in zip(names, self._node(number, node, names, out), strict=True):
                if name:
                    out.of[name] = self._best(name, fact, claims)
        return out

    def _input(self, name: str, declared: Fact, fed: Fact) -> Fact:
        if fed.element or fed.proto:
            return fed if fed.shape is not None or declared.element != fed.element else declared
        return self._given(name) or declared

    def _weights(self, graph: GraphProto, out: GraphFacts) -> None:
        weights = []
        for tensor in graph.initializer:
            if tensor.name not in out.inputs:  # nothing follows from the data of one that can be overridden
                out.of[tensor.name] = of_tensor(tensor)
                weights.append(tensor.name)
        for sparse in graph.sparse_initializer:
            if sparse.values.name not in out.inputs:
                out.of[sparse.values.name] = Fact(sparse.values.data_type, tuple(sparse.dims))
                weights.append(sparse.values.name)
        out.weights = frozenset(weights)

    # --- values

    def _declared(self, type: TypeProto) -> Fact:
        return self._bound(of_proto(without_item_shapes(type), self.new_dim))

    def _bound(self, fact: Fact) -> Fact:
        if not self.binding or not fact.shape:
            return fact
        return Fact(fact.element, tuple([substitute(size, self.binding) for size in fact.shape]), None, fact.proto)

    def _given(self, name: str) -> Fact | None:
        """The fact that the caller knows; None where the caller knows no shape."""
        type = self.given.get(name)
        if type is None or type.dtype is FOREIGN:
            return None
        found = self._facts.get(type)
        if found is None:
            found = self._facts[type] = self._bound(of_type(type, self.new_dim))
        return found

    def _best(self, name: str, fact: Fact, claims: Mapping[str, TypeProto]) -> Fact:
        better = self._given(name)
        if better is not None:
            is_elementless = fact.elements is None or fact.elements.ndim != len(better.shape or ())
            return better if is_elementless else Fact(better.element, better.shape, fact.elements)
        if fact.proto or name not in claims:
            return fact
        return _refined(fact, self._declared(claims[name]))

    # --- nodes

    def _node(self, number: int, node: NodeProto, names: Sequence[str], out: GraphFacts) -> Sequence[Fact]:
        """The facts about a node's results; the facts of its graphs become part of ``out``."""
        inner = graphs_of(node)
        if inner:
            out.inner[number], found = self._around(node, inner, names, out.of)
            return [*found, *[NOTHING] * len(names)][: len(names)]
        given = [self._given(name) for name in names]
        if all(fact is not None and fact.element in FLOATS for fact in given):
            return [NOTHING] * len(names)
        if node.op_type == "Constant":
            data = next((a.t for a in node.attribute if a.name == "value"), None)
            if data is not None:
                return [of_tensor(data), *[NOTHING] * len(names)][: len(names)]
        return self._asked(node, names, out.of)

    def _asked(self, node: NodeProto, names: Sequence[str], facts: Mapping[str, Fact]) -> list[Fact]:
        try:
            attributes = asked_attributes(node.attribute)
        except (ValueError, TypeError):  # a tensor whose data does not fit its shape
            return [NOTHING] * len(names)
        query = Query(
            node.op_type,
            [facts.get(name, NOTHING) if name else None for name in node.input],
            opset=self._opset(node),
            results=len(names),
            domain=plain_domain(node.domain),
            attributes=attributes,
            dims=self.dims,
            new_dim=self.new_dim,
        )
        return infer(query)

    def _opset(self, node: NodeProto) -> int:
        return self.opsets.get(plain_domain(node.domain), 1)

    def _around(
        self, node: NodeProto, inner: Sequence[GraphProto], names: Sequence[str], facts: Mapping[str, Fact]
    ) -> tuple[list[GraphFacts], Sequence[Fact]]:
        """The facts of the graphs inside a node, and those about its results, which have these names."""
        kind = "" if plain_domain(node.domain) else node.op_type
        operands = [facts.get(name, NOTHING) for name in node.input]
        self.depth += 1
        try:
            if kind == "If":
                found = [self.graph(graph, facts) for graph in inner]
                parts = [_outputs(graph, of) for graph, of in zip(inner, found, strict=True)]
                taken = _taken_branch(node, operands)
                return found, bodies.joined(parts, self.new_dim) if taken is None else parts[taken]
            if kind in ("Loop", "Scan") and len(inner) == 1:
                attributes = {a.name: a.i if a.type == AttributeProto.INT else a.ints[:] for a in node.attribute}
                body = bodies.body_of(kind, self._opset(node), operands, attributes, inner[0])
                return self._repeated(body, inner[0], facts)
            if kind == "SequenceMap" and len(inner) == 1:
                found = [self.graph(inner[0], facts, bodies.items(operands, self.new_dim))]
                return found, bodies.sequences(_outputs(inner[0], found[0]))
            return [self.graph(graph, facts) for graph in inner], self._asked(node, names, facts)
        finally:
            self.depth -= 1

    def _repeated(
        self, body: bodies.Body, graph: GraphProto, facts: Mapping[str, Fact]
    ) -> tuple[list[GraphFacts], Sequence[Fact]]:
        """A body is typed with what its first run is fed; again, where it hands on another shape than it took."""
        if self.depth > _MOST_DEPTH:
            body = body.opened()
        for _ in range(2):
            found = self.graph(graph, facts, body.fed(self.new_dim))
            made = _outputs(graph, found)
            if not body.widen(made):
                return [found], body.results(made, self.new_dim)
        body = body.opened()
        found = self.graph(graph, facts, body.fed(self.new_dim))
        return [found], body.results(_outputs(graph, found), self.new_dim)


def _made_up_dims(given: Mapping[str, TensorType]) -> Iterator[set[str]]:
    """The names of dims of these types that look as if they were made up here."""
    sizes = {size for type in set(given.values()) for size in type.shape if not isinstance(size, int)}
    for size in sizes:
        yield {name for name in size.names() if name.startswith(MADE_UP)}


def _refined(fact: Fact, claim: Fact) -> Fact:
    """The fact with what only the claim says; the fact alone where the two contradict each other."""
    if not fact.element or claim.element not in (0, fact.element) or claim.shape is None:
        return fact if fact.element else claim
    if fact.shape is None:
        return Fact(fact.element, claim.shape)
    pairs = list(zip(fact.shape, claim.shape, strict=False))
    is_wrong = any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)
    if len(fact.shape) != len(claim.shape) or is_wrong:
        return fact
    sizes = tuple([claimed if _is_made_up(size) else size for size, claimed in pairs])
    return fact if sizes == fact.shape else Fact(fact.element, sizes, fact.elements)


def _is_made_up(size: Dim) -> bool:
    return not isinstance(size, int) and size.name is not None and size.name.startswith(MADE_UP)


def _taken_branch(node: NodeProto, operands: Sequence[Fact]) -> int | None:
    """The number of the branch that an If takes, in the order of ``graphs_of``; None where its condition is open."""
    condition = operands[0].numbers if operands else None
    if condition is None or len(condition) != 1:
        return None
    wanted = "then_branch" if condition[0] else "else_branch"
    branches = [a.name for a in node.attribute if a.type == AttributeProto.GRAPH]
    return branches.index(wanted) if sorted(branches) == ["else_branch", "then_branch"] else None


def _outputs(graph: GraphProto, facts: GraphFacts) -> list[Fact]:
    return [facts.of.get(info.name, NOTHING) for info in graph.output]


def types_by_name(graph: Graph) -> dict[str, TensorType]:
    """The types of a graph's values, in graphs inside nodes too, as ``facts_of_model`` takes them.

    Names that mean values of several types are left out.
    """
    out: dict[str, TensorType] = {}
    ambiguous = set()
    waiting = [graph]
    for each in waiting:
        for value in chain(each.inputs, *[node.results for node in each]):
            if value.name and out.setdefault(value.name, value.type) != value.type:
                ambiguous.add(value.name)
        waiting += [region.graph for node in each for region in node.regions]
    return {name: type for name, type in out.items() if name not in ambiguous}
