"""``repair``: what the target's execution provider is known to do wrongly, or not at all, is computed otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.repair.absent import RULES as ABSENT_RULES
from dmlc.passes.repair.einsum import einsum_of_pairs, matmul_of_letters, spell_ellipsis
from dmlc.passes.repair.elementwise import (
    both_bounds,
    equality_of_truths,
    infinity_of_half,
    power_by_products,
    remainder_by_division,
    truth_by_comparison,
)
from dmlc.passes.repair.empty import (
    concat_of_some,
    nothing_to_compute,
    pad_of_nothing,
    product_of_nothing,
    reduction_of_nothing,
    scatter_of_nothing,
)
from dmlc.passes.repair.foreign import (
    exact_mean_of_unknown_rank,
    shift_log_sum_exp_of_unknown_rank,
    truth_of_unknown_rank,
)
from dmlc.passes.repair.forms import gather_one_number, plain_reshape, slice_with_axes
from dmlc.passes.repair.gelu import ErfGelu, GeluOperator, TanhGelu
from dmlc.passes.repair.merged_batch import (
    merge_lrn_axes,
    merge_matmul_batch,
    merge_product_batch,
    merge_trilu_batch,
)
from dmlc.passes.repair.norms import centred_norm, lp_norm_in_parts, one_layer_norm_result, plain_skip_norm
from dmlc.passes.repair.operators import (
    DropIdleAttribute,
    DropUnusedResult,
    explicit_zero_points,
    full_attention_bias,
    slices_of_gate,
    tile_by_expand,
)
from dmlc.passes.repair.pads import explicit_conv_pads, slice_negative_pads
from dmlc.passes.repair.quantized import axis_for_blocks, keep_quantization_apart
from dmlc.passes.repair.rank import MergeBeside, MergeElementwise, MergeTransposed
from dmlc.passes.repair.reductions import (
    axes_in_order,
    narrow_extreme,
    reduce_many_axes,
    shift_log_sum_exp,
    top_k_by_search,
)
from dmlc.passes.repair.resize import first_of_resized, merge_resize_axes, resize_by_one_factor
from dmlc.passes.repair.transposed import explicit_transposed_pads
from dmlc.passes.rewrite import RewritePass, Rule, rewrite

#: Rules for nodes without elements.
EMPTY_RULES: Sequence[type[Any]] = (
    nothing_to_compute,
    reduction_of_nothing,
    product_of_nothing,
    concat_of_some,
    pad_of_nothing,
    scatter_of_nothing,
)
#: All rules, in the order in which they are tried at a node.
RULES: Sequence[type[Any]] = (
    truth_by_comparison,
    truth_of_unknown_rank,
    shift_log_sum_exp_of_unknown_rank,
    exact_mean_of_unknown_rank,
    both_bounds,
    power_by_products,
    merge_matmul_batch,
    merge_product_batch,
    einsum_of_pairs,
    matmul_of_letters,
    full_attention_bias,
    lp_norm_in_parts,
    merge_trilu_batch,
    merge_lrn_axes,
    first_of_resized,
    resize_by_one_factor,
    merge_resize_axes,
    plain_skip_norm,
    slices_of_gate,
    explicit_zero_points,
    explicit_transposed_pads,
    keep_quantization_apart,
    axis_for_blocks,
    plain_reshape,
    slice_with_axes,
    gather_one_number,
    DropUnusedResult,
    *EMPTY_RULES,
    spell_ellipsis,
    DropIdleAttribute,
    equality_of_truths,
    infinity_of_half,
    ErfGelu,
    TanhGelu,
    GeluOperator,
    one_layer_norm_result,
    centred_norm,
    shift_log_sum_exp,
    narrow_extreme,
    axes_in_order,
    reduce_many_axes,
    slice_negative_pads,
    explicit_conv_pads,
    MergeElementwise,
    MergeBeside,
    MergeTransposed,
    remainder_by_division,
    tile_by_expand,
    top_k_by_search,
    *ABSENT_RULES,
)


class Repair(RewritePass, frozen=True):
    """Nodes of imported models too, which ``legalize`` leaves as their users run them.

    A node that no rule repairs stays as it is. The check of the emitted model refuses it, or warns of it.
    """

    name: ClassVar[str] = "repair"
    summary: ClassVar[str] = "Rewrite nodes that the target's execution provider is known to get wrong."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        own = _own(context, empty=True)
        return [*own, *MOVE_RULES] if own else []

    def run(self, graph: Graph, context: PassContext) -> bool:
        empty = _has_empty(graph)
        rules = _own(context, empty=empty)
        opened = bool(rules) and _open_calls(graph)
        changed = rewrite(graph, rules, context)
        if changed and not empty and _has_empty(graph):
            rewrite(graph, _own(context, empty=True), context)
        if changed:  # new reshapes may meet others of the program
            rewrite(graph, MOVE_RULES, context)
        return changed or opened


def _own(context: PassContext, *, empty: bool) -> list[type[Rule[Any]]]:
    if not context.capabilities.has_provider:
        return []
    return [rule for rule in RULES if empty or rule not in EMPTY_RULES]


def _open_calls(graph: Graph) -> bool:
    """Make the calls of ONNX operators of a program the nodes that imported models have, which the rules know."""
    calls = [op for op in graph.operations if op.name == "onnx"]
    opened = False
    for node in list(graph.nodes_of(calls)):
        a: Any = node.attributes
        if any(isinstance(value, tuple) and not value for _, value in a.attributes):
            continue  # only the schema has the kind of an empty list
        opened = True
        types = tuple([value.type for value in node.results])
        record = OpaqueAttributes(op_type=a.op_type, domain=a.domain, types=types, attributes=a.attributes)
        made = graph.add(OPAQUE, node.operands, record, spans=node.spans, history=node.history, before=node)
        made.name = node.name
        for old, new in zip(node.results, made.results, strict=True):
            graph.replace_all_uses(old, new)
        graph.erase(node)
    return opened


def _has_empty(graph: Graph) -> bool:
    """Return whether a size is known to be 0. Few graphs have one, and then every node must be checked."""
    if any(0 in value.shape for value in graph.inputs):
        return True
    return any(0 in value.type.shape for node in graph for value in node.results)
