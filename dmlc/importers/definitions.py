"""Operators by the operators that define them: those that came after an opset, so that a model need not stay newer, and
those that a provider has no kernel for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import lru_cache

from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, defs, helper, parser

from dmlc.importers.registry import READERS
from dmlc.inference.fact import Fact
from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.inference.protos import type_proto_of
from dmlc.ir import Dim
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.onnx_schema.functions import operators_of
from dmlc.onnx_schema.inlining import inlined
from dmlc.onnx_schema.nested import all_nodes, graphs_of

#: The domain of the functions while the model has them.
_DOMAIN = "dmlc.definition"
#: Definitions have further such operators in them, to this depth.
_MOST_ROUNDS = 4


def with_definitions(model: ModelProto, opset: int, is_left: Callable[[str], bool]) -> ModelProto:
    """The model with ONNX's definition in the place of each operator that came after ``opset``.

    The model itself, if it has no such operator, or if one has no definition or a type that is not known. A definition
    may have further such operators in it.

    Operators that the language has, and those for which ``is_left`` is false, stay. The definition is that of the
    installed onnx: its errata are in it.
    """
    own = imported_versions(model.opset_import).get("", 0)
    for _ in range(_MOST_ROUNDS):
        newer = {key for key in operators_of(model) if _came_after(*key, own, opset) and is_left(key[1])}
        better = _defined(model, own, newer) if newer else None
        if better is None:
            break
        model = better
    return model


def in_definitions(model: ModelProto, operators: Set[str]) -> ModelProto:
    """The model with ONNX's definition in the place of each node of these operators.

    The model itself, if it has no such node, or if the type of one is not known.
    """
    own = imported_versions(model.opset_import).get("", 0)
    there = operators_of(model)
    found = {("", name) for name in operators if defs.has(name, own, "")} & there
    return (found and _defined(model, own, found)) or model


def with_kernels(
    model: ModelProto, has_kernel: Callable[[str, str], bool], *, exact: bool = False, opset: int = 0
) -> tuple[ModelProto, list[str]]:
    """The model with a definition in the place of each operator of ``_BY_DEFINITION`` without a kernel, and their
    names.

    The model itself, if it has no such operator, or if one has no definition for its types.

    ``has_kernel`` is asked with the domain and the operator. The definitions take operators that DirectML runs; only
    ``exact`` ones keep every bit. In a model that imports no opset of ONNX's own they are of ``opset``.
    """
    own = imported_versions(model.opset_import).get("", 0)
    out = model
    if not own and opset:
        own, out = opset, ModelProto()
        out.CopyFrom(model)
        out.opset_import.add(version=opset)
    names: list[str] = []
    for _ in range(_MOST_ROUNDS):
        found = operators_of(out)
        left = sorted(key for key in found & (_EXACT if exact else _BY_DEFINITION) if not has_kernel(*key))
        if not left:
            return (out, names) if names else (model, [])
        better = _defined(out, own, set(left), _HELD)
        if better is None:
            return model, []
        out = better
        names += [name for _, name in left]
    return model, []


def _defined(
    model: ModelProto, own: int, operators: Set[tuple[str, str]], elements: Set[int] | None = None
) -> ModelProto | None:
    """A copy of the model with definitions in the place of these operators; None where one of them has none, or a first
    operand that has none of these element types."""
    known = facts_of_model(model)
    out = ModelProto()
    out.CopyFrom(model)
    del out.functions[:]
    out.graph.CopyFrom(known.graph)
    functions: list[FunctionProto] = []
    for node, facts in _with_facts(list(out.graph.node), known.facts):
        if (plain_domain(node.domain), node.op_type) in operators:
            is_held = elements is None or facts.get(next(iter(node.input), ""), Fact()).element in elements
            function = _definition(node, own, facts) if is_held else None
            if function is None:
                return None
            _name(function, node)
            function.name, function.domain = f"{node.op_type}_{len(functions)}", _DOMAIN
            node.op_type, node.domain = function.name, _DOMAIN
            functions.append(function)
    out.functions.extend(functions)
    out.opset_import.add(domain=_DOMAIN, version=1)
    unfolded = inlined(out)
    kept = [entry for entry in unfolded.opset_import if entry.domain != _DOMAIN]
    del unfolded.opset_import[:]
    unfolded.opset_import.extend(kept)
    return unfolded


def _name(function: FunctionProto, node: NodeProto) -> None:
    """Name the nodes of a definition ``PATH/OPERATOR`` by the node that it defines, as rewrites name theirs, and the
    values between them ``NODE/VALUE``. Inlining makes the names unique."""
    whole = node.name or next(filter(None, node.output), "")
    path = whole.rpartition("/")[0] or whole
    outside = {*function.input, *function.output, ""}
    names: dict[str, str] = {}
    if not any(graphs_of(inner) for inner in function.node):  # graphs would have to follow
        between = {name for inner in function.node for name in inner.output} - outside
        names = {name: f"{whole}/{name}" for name in between}
    for inner in all_nodes(function.node):
        inner.name = inner.name or f"{path}/{inner.op_type}"
        inner.input[:] = [names.get(name, name) for name in inner.input]
        inner.output[:] = [names.get(name, name) for name in inner.output]
    for info in getattr(function, "value_info", ()):
        info.name = names.get(info.name, info.name)


def _came_after(domain: str, op_type: str, own: int, opset: int) -> bool:
    if domain or ("", op_type) in READERS:
        return False
    return defs.has(op_type, own, "") and _first_version(op_type) > opset


@lru_cache(maxsize=256)
def _first_version(op_type: str) -> int:
    """The opset that brought an operator: the version below which there is none."""
    version = int(defs.get_schema(op_type, defs.onnx_opset_version(), "").since_version)
    while version > 1 and defs.has(op_type, version - 1, ""):
        version = int(defs.get_schema(op_type, version - 1, "").since_version)
    return version


def _with_facts(nodes: list[NodeProto], facts: GraphFacts) -> Iterator[tuple[NodeProto, Mapping[str, Fact]]]:
    for index, node in enumerate(nodes):
        yield node, facts.of
        if index in facts.inner:
            for inner, inner_facts in zip(graphs_of(node), facts.inner[index], strict=True):
                yield from _with_facts(list(inner.node), inner_facts)


def _definition(node: NodeProto, opset: int, facts: Mapping[str, Fact]) -> FunctionProto | None:
    written = _WRITTEN.get((plain_domain(node.domain), node.op_type))
    if written is not None:
        return written(node, opset, facts) if opset >= _OLDEST_WRITTEN else None
    schema = defs.get_schema(node.op_type, opset, "")
    if schema.has_function:
        data = schema.get_function_with_opset_version(schema.since_version)
    elif schema.has_context_dependent_function:
        given = [facts.get(name, Fact()) if name else None for name in node.input]
        if any(fact is not None and (not fact.element or fact.shape is None) for fact in given):
            return None
        types = [b"" if fact is None else type_proto_of(fact).SerializeToString() for fact in given]
        data = schema.get_context_dependent_function(node.SerializeToString(), types)
    else:
        return None
    function = FunctionProto.FromString(data)
    if not function.node:
        return None  # ONNX gives one for other types only, some for fixed sizes
    taken = {attribute.name for attribute in function.attribute_proto}
    for name, attribute in schema.attributes.items():
        if attribute.default_value.name and name not in taken:  # a default that the definition leaves to the schema
            function.attribute_proto.add().CopyFrom(attribute.default_value)
    return function


def _tensor_scatter(node: NodeProto, opset: int, facts: Mapping[str, Fact]) -> FunctionProto | None:
    """TensorScatter by a Where over all places along the axis, for ONNX has no definition of it."""
    past, update = facts.get(node.input[0]), facts.get(node.input[1])
    if past is None or past.shape is None or update is None or update.shape is None:
        return None
    rank = len(past.shape)
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    axis = int(given.get("axis", -2)) % rank
    if update.shape[axis] == 0:
        return None
    along = ["-1" if i == axis else "1" for i in range(rank)]
    each = ["-1", *["1"] * (rank - 1)]
    at = "at" if len(node.input) > 2 and node.input[2] else "nowhere"
    offsets = "Mod(left, most)" if given.get("mode") == b"circular" else "Identity(left)"
    return parser.parse_function(f"""
    <domain: "{_DOMAIN}", opset_import: ["": {opset}]>
    TensorScatter (past, update, at) => (y) {{
        zero = Constant <value = int64 {{0}}> ()
        one = Constant <value = int64 {{1}}> ()
        nowhere = Constant <value = int64[1] {{0}}> ()
        most = Shape <start = {axis}, end = {axis + 1}> (past)
        count = Shape <start = {axis}, end = {axis + 1}> (update)
        length = Squeeze (most)
        steps = Range (zero, length, one)
        along = Constant <value = int64[{rank}] {{{", ".join(along)}}}> ()
        each = Constant <value = int64[{rank}] {{{", ".join(each)}}}> ()
        places = Reshape (steps, along)
        starts = Reshape ({at}, each)
        left = Sub (places, starts)
        offsets = {offsets}
        late = GreaterOrEqual (offsets, zero)
        early = Less (offsets, count)
        inside = And (late, early)
        near = Where (inside, offsets, zero)
        shape = Shape (past)
        index = Expand (near, shape)
        taken = GatherElements <axis = {axis}> (update, index)
        y = Where (inside, taken, past)
    }}""")


# --- operators of ai.onnx.ml, as ONNX Runtime's CPU kernels compute them (core/providers/cpu/ml)


def _given(node: NodeProto, facts: Mapping[str, Fact]) -> list[tuple[Dim, ...]] | None:
    """The shapes of the operands; None where one is not known, or the first has another element type."""
    found = [facts.get(name, Fact()) for name in node.input]
    shapes = [fact.shape for fact in found if fact.shape is not None]
    return shapes if len(shapes) == len(found) and found[0].element in _SMALL else None


def _feature_extractor(node: NodeProto, opset: int, facts: Mapping[str, Fact]) -> FunctionProto | None:
    """ArrayFeatureExtractor by a Gather along the last axis; a vector is one row."""
    shapes = _given(node, facts)
    if shapes is None or not shapes[0]:
        return None
    rank = len(shapes[0])
    rows = "Reshape (x, row)" if rank == 1 else "Identity (x)"
    return parser.parse_function(f"""
    <domain: "{_DOMAIN}", opset_import: ["": {opset}]>
    ArrayFeatureExtractor (x, i) => (y) {{
        row = Constant <value = int64[2] {{1, -1}}> ()
        all = Constant <value = int64[1] {{-1}}> ()
        rows = {rows}
        columns = Reshape (i, all)
        y = Gather <axis = {max(rank, 2) - 1}> (rows, columns)
    }}""")


def _scaler(node: NodeProto, opset: int, facts: Mapping[str, Fact]) -> FunctionProto | None:
    """Scaler by a Sub and a Mul, in f32 as the kernel computes all but f64."""
    shapes = _given(node, facts)
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    offset, scale = given.get("offset", []), given.get("scale", [])
    if shapes is None or not shapes[0] or len(offset) != len(scale) or len(offset) not in (1, shapes[0][-1]):
        return None
    constants = [
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, TensorProto.FLOAT, [len(data)], data))
        for name, data in (("offset", offset), ("scale", scale))
    ]
    nodes = [
        helper.make_node("Cast", ["x"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["floats", "offset"], ["moved"]),
        helper.make_node("Mul", ["moved", "scale"], ["y"]),
    ]
    return helper.make_function(_DOMAIN, "Scaler", ["x"], ["y"], [*constants, *nodes], [helper.make_opsetid("", opset)])


def _normalizer(node: NodeProto, opset: int, facts: Mapping[str, Fact]) -> FunctionProto | None:
    """Normalizer by a reduction and a Div. A row whose norm is 0 stays."""
    shapes = _given(node, facts)
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    kind = {b"MAX": "ReduceMax", b"L1": "ReduceL1", b"L2": "ReduceL2"}.get(given.get("norm", b"MAX"))
    if shapes is None or len(shapes[0]) not in (1, 2) or kind is None:
        return None
    takes_axes = opset >= 18
    axes, operand = ("", ", axes") if takes_axes else (f"axes = [{len(shapes[0]) - 1}], ", "")
    if opset >= 11:
        divisor = "zero = Constant <value = float {0}> ()  one = Constant <value = float {1}> ()"
        divisor += "  is_zero = Equal (norm, zero)  divisor = Where (is_zero, one, norm)"
    else:  # below 11 Equal takes integers alone, and Where came with 9
        divisor = "some = Cast <to = 9> (norm)  is_zero = Not (some)  more = Cast <to = 1> (is_zero)"
        divisor += "  divisor = Add (norm, more)"
    return parser.parse_function(f"""
    <domain: "{_DOMAIN}", opset_import: ["": {opset}]>
    Normalizer (x) => (y) {{
        floats = Cast <to = 1> (x)
        axes = Constant <value = int64[1] {{-1}}> ()
        norm = {kind} <{axes}keepdims = 1> (floats{operand})
        {divisor}
        y = Div (floats, divisor)
    }}""")


#: The element types that DirectML has kernels of the definitions' operators for; the kernels of ai.onnx.ml take no f16.
_HELD = frozenset((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64))
#: Models of older opsets stay as they are.
_OLDEST_WRITTEN = 7
_SMALL = frozenset((TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64))
_WRITTEN: dict[tuple[str, str], Callable[[NodeProto, int, Mapping[str, Fact]], FunctionProto | None]] = {
    ("", "TensorScatter"): _tensor_scatter,
    ("ai.onnx.ml", "ArrayFeatureExtractor"): _feature_extractor,
    ("ai.onnx.ml", "Normalizer"): _normalizer,
    ("ai.onnx.ml", "Scaler"): _scaler,
}
_EXACT = frozenset((("ai.onnx.ml", "ArrayFeatureExtractor"), ("ai.onnx.ml", "Scaler")))
#: Operators whose definition takes kernels that DirectML has, where it has none for them.
_BY_DEFINITION = frozenset(
    [("", name) for name in ("HardSwish", "Mish", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")]
    + [key for key in _WRITTEN if key[0]]
)
