"""Operations without an operator of their own, in the parts that passes know."""

from __future__ import annotations

from collections.abc import Callable

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowering_of
from dmlc.ir import Node
from dmlc.passes.expressions import Sketch, Term
from dmlc.targets.capabilities import Capabilities


def in_parts(emitter: Emitter, node: Node, parts: Callable[..., Term]) -> str:
    """The result that a function of the expression builder makes of the node's operands."""
    e = Sketch(emitter.graph, Capabilities(emitter.target, emitter.opset))
    made = parts(e, *[None if v is None else e.of(v) for v in node.operands])
    drafts = [step for step, _ in e.steps]
    for step in drafts:
        lowering = lowering_of(step.op)
        if lowering is None:  # a constant
            emitter.of(step.result)
        else:
            (name,) = [found] if isinstance(found := lowering(emitter, step), str) else found
            emitter.bind(step.result, name)
    out = emitter.of(made.value)
    for step in drafts:
        emitter.release(step.result)
    return out
