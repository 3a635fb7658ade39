"""Operators that came after an opset, by the operators that ONNX defines them by: a model need not stay newer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from onnx import FunctionProto, ModelProto, NodeProto, defs, helper, parser

from dmlc.importers.registry import READERS
from dmlc.inference.fact import Fact
from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.inference.protos import type_proto_of
from dmlc.onnx_schema.functions import graphs_of, plain_domain
from dmlc.onnx_schema.inlining import inlined

#: The domain of the functions while the model has them.
_DOMAIN = "dmlc.definition"


def with_definitions(model: ModelProto, opset: int, is_left: Callable[[str], bool]) -> ModelProto:
    """The model with ONNX's definition in the place of each operator that came after ``opset``; the model itself where
    there is none, or one of them has no definition or a type that is not known.

    Operators that the language has, and those for which ``is_left`` is false, stay. The definition is that of the
    installed onnx: its errata are in it.
    """
    own = next((entry.version for entry in model.opset_import if not plain_domain(entry.domain)), 0)
    newer = {node.op_type for node in _nodes(model) if _came_after(node, own, opset) and is_left(node.op_type)}
    if not newer:
        return model
    known = facts_of_model(model)
    out = ModelProto()
    out.CopyFrom(model)
    del out.functions[:]
    out.graph.CopyFrom(known.graph)
    functions: list[FunctionProto] = []
    for node, facts in _with_facts(list(out.graph.node), known.facts):
        if node.op_type in newer and not plain_domain(node.domain):
            function = _definition(node, own, facts)
            if function is None:
                return model
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


def _nodes(model: ModelProto) -> Iterator[NodeProto]:
    waiting = [model.graph.node, *(function.node for function in model.functions)]
    while waiting:
        for node in waiting.pop():
            yield node
            waiting += [graph.node for graph in graphs_of(node)]


def _came_after(node: NodeProto, own: int, opset: int) -> bool:
    if plain_domain(node.domain) or ("", node.op_type) in READERS:
        return False
    return defs.has(node.op_type, own, "") and _first_version(node.op_type) > opset


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
    if node.op_type == "TensorScatter":
        return _tensor_scatter(node, opset, facts)
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
