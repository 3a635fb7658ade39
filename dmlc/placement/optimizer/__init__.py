"""ONNX Runtime's own optimizer: what its transformers take for their pattern although it computes something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import TypeAlias

from onnx import GraphProto, ModelProto

from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.catalogue.advice import OPTIMIZER
from dmlc.inference.fact import NOTHING
from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.onnx_schema.domains import operator_of, plain_domain
from dmlc.onnx_schema.nested import all_nodes, graphs_of
from dmlc.placement.optimizer import norms, pairs, quantized, quotients
from dmlc.placement.optimizer.view import GraphView, LookAlike

_Finder: TypeAlias = "Callable[[GraphView], Iterator[LookAlike]]"
#: Each finder, and the operators without which a graph has nothing for it.
_FINDERS: tuple[tuple[Set[str], _Finder], ...] = (
    (norms.OPERATORS, norms.find),
    (frozenset(("Div",)), quotients.find),
    (frozenset(("Relu", "Clip")), pairs.relu_before_clip),
    (frozenset(("Slice",)), pairs.slice_without_axes),
    (frozenset(("Transpose",)), pairs.product_that_is_an_output),
    (frozenset(("Transpose", "MatMul")), pairs.transposed_matrix_by_vector),
    (frozenset(("MatMul", "BatchNormalization")), pairs.normalized_product),
    (frozenset(("Pad", "Conv")), pairs.padded_weights),
    (frozenset(("Pad",)), pairs.padded_pools),
    (frozenset(("Transpose", "Pad")), pairs.named_axes),
    (frozenset(("Transpose", "Resize")), pairs.named_axes),
    (frozenset(("DequantizeLinear",)), quantized.repeated_quantization),
    (frozenset(("MaxPool", "QuantizeLinear")), quantized.quantized_indices),
    (frozenset(("QuantizeLinear",)), quantized.clamped_before_quantization),
    (frozenset(("DequantizeLinear", "MatMul")), quantized.scaled_rows),
    (frozenset(("Range", "Gather")), pairs.range_of_indices),
    (frozenset(("Add",)), pairs.norm_of_a_sum),
    (frozenset(("Add", "Conv")), pairs.sum_of_convolutions),
    (frozenset(("Tanh", "Add", "Mul")), pairs.shared_half),
    (frozenset(("Mul",)), pairs.activation_of_a_scalar),
    (frozenset(("QuantizeLinear", "DequantizeLinear")), quantized.requantized),
    (frozenset(("QuantizeLinear", "DequantizeLinear")), quantized.captured_quantization),
    (frozenset(("MatMulInteger", "Cast", "Mul")), quantized.scaled_integer_product),
)


def look_alikes(view: GraphView) -> list[LookAlike]:
    """Find the nodes of one graph that a transformer would replace by others that compute something else."""
    there = view.by_operator.keys()
    return [found for operators, find in _FINDERS if operators <= there for found in find(view)]


def optimizer_changes(model: ModelProto) -> list[Diagnostic]:
    """Return a warning for each place of a model whose numbers ONNX Runtime's default optimizations change."""
    bodies = (model.graph.node, *(function.node for function in model.functions))
    there = {n.op_type for nodes in bodies for n in all_nodes(nodes) if not plain_domain(n.domain)}
    if not any(operators <= there for operators, _ in _FINDERS):
        return []
    known = facts_of_model(model)
    return list(_of_graph(known.graph, known.facts, ""))


def _of_graph(graph: GraphProto, facts: GraphFacts, path: str) -> Iterator[Diagnostic]:
    outputs = [info.name for info in graph.output]
    view = GraphView(graph.node, outputs, lambda n: facts.of.get(n, NOTHING), is_inner=bool(path))
    for found in look_alikes(view):
        if found.is_taken:
            node = graph.node[found.node]
            name = path + (node.name or next(filter(None, node.output), f"node {found.node}"))
            what = f"{found.makes} of {operator_of(node)} {name}"
            message = f"ONNX Runtime's {found.transformer} makes {what}, but {found.difference}"
            yield Diagnostic(
                OPTIMIZER, message, help="dmlc compile writes it in a form that ONNX Runtime does not change"
            )
    for index, inner in facts.inner.items():
        node = graph.node[index]
        for body, body_facts in zip(graphs_of(node), inner, strict=True):
            yield from _of_graph(body, body_facts, f"{path}{node.name or index}/")
