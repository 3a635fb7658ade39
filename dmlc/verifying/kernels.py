"""Kernels that ONNX Runtime's CPU provider refuses to make: a few check attributes that its load phase does not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from onnx import ModelProto, NodeProto, TensorProto, TypeProto

from dmlc.onnx_schema.nested import all_graphs, all_nodes, graphs_of
from dmlc.runtime.hosts import WORKER
from dmlc.runtime.runnable import NoEvidence, RunFailed
from dmlc.verifying.load_phase import is_large

#: Seconds that making all kernels may take.
TIME_LIMIT = 60.0
#: The constructor of a kernel raises; its file and its own declaration come first.
_RAISED = re.compile(
    r"Exception during initialization: \S+:\d+ "
    r"(?:[^()]*\([^()]*\)(?: const)?(?:::<lambda\(\)>)? (?:\[with [^]]*\] )?)?(.*)"
)
#: Reasons that are about this machine, not about the node.
_MACHINE = re.compile(r"locale|bad_alloc")


@dataclass(frozen=True, slots=True)
class NoKernel:
    """A node of which no kernel is made, and the reason."""

    node: NodeProto
    reason: str


def refused_kernels(model: ModelProto) -> list[NoKernel]:
    """Have the CPU provider make a kernel of each kind of node: each node is a model of its own, without its weights.

    Missing kernels do not count, and nothing is found where the process ends or takes too long.
    """
    parts = _Parts(model)
    kinds: dict[tuple[object, ...], NodeProto] = {}
    for node in all_nodes(model.graph.node):
        kinds.setdefault(parts.kind_of(node), node)
    models = [(node, parts.model_of(node, whole=False)) for node in kinds.values()]
    known = [(node, made) for node, made in models if made is not None]
    out = []
    for (node, _), reason in zip(known, _reasons([made for _, made in known]), strict=True):
        if reason and parts.has_weights(node):
            made = parts.model_of(node, whole=True)
            (reason,) = [""] if made is None else _reasons([made])
        if reason:
            out.append(NoKernel(node, reason))
    return out


def _reasons(models: list[bytes]) -> list[str]:
    """The reason why no kernel is made of the node of each model; empty where one is, or nothing is known."""
    try:
        texts = WORKER.ask_unproved(TIME_LIMIT, "construct", models) if models else []
    except (NoEvidence, RunFailed):
        return [""] * len(models)
    found = [_RAISED.search(" ".join(text.split())) for text in texts]
    return ["" if match is None or _MACHINE.search(match[1]) else match[1].rstrip(". ") for match in found]


class _Parts:
    """The types and weights of a model, by name, and models of single nodes."""

    def __init__(self, model: ModelProto) -> None:
        self._opsets = model.opset_import
        self._ir_version = model.ir_version
        self._types: dict[str, TypeProto] = {}
        self._weights: dict[str, TensorProto] = {}
        for graph in all_graphs(model.graph):
            self._types |= {info.name: info.type for info in (*graph.value_info, *graph.output, *graph.input)}
            self._weights |= {tensor.name: tensor for tensor in graph.initializer}
        self._keys: dict[str, bytes | None] = {}
        self._ranks: dict[str, TypeProto | None] = {}

    def has_weights(self, node: NodeProto) -> bool:
        """Return whether an operand is a large weight."""
        return any(name in self._weights and not self._is_small(self._weights[name]) for name in node.input)

    @staticmethod
    def _is_small(tensor: TensorProto) -> bool:
        return tensor.data_location != TensorProto.EXTERNAL and not is_large(tensor)

    def kind_of(self, node: NodeProto) -> tuple[object, ...]:
        """The same for nodes of which one need be looked at: they differ in names and sizes alone."""
        weights = self._weights
        given = [name if name in weights and self._is_small(weights[name]) else self._key(name) for name in node.input]
        attributes = [attribute.SerializeToString() for attribute in node.attribute]
        return node.op_type, node.domain, len(node.output), *attributes, *given

    def _key(self, name: str) -> bytes | None:
        if name not in self._keys:
            rank = self._rank(name) if name else None
            self._keys[name] = None if rank is None else rank.SerializeToString()
        return self._keys[name]

    def model_of(self, node: NodeProto, *, whole: bool) -> bytes | None:
        """A model of one node; ``whole`` has its large weights too.

        None where the node has nothing to check, holds graphs, or has an operand of unknown type.
        """
        constants = [self._weights.get(name) for name in node.input]
        if graphs_of(node) or node.op_type == "Constant" or not (node.attribute or any(constants)):
            return None
        out = ModelProto(ir_version=self._ir_version, opset_import=self._opsets)
        out.graph.name = "one_node"
        made = out.graph.node.add(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
        for number, (name, tensor) in enumerate(zip(node.input, constants, strict=True)):
            made.input.append(f"i{number}" if name else "")
            if not name:
                continue
            if tensor is not None and (whole or self._is_small(tensor)):
                if tensor.data_location == TensorProto.EXTERNAL:
                    return None
                out.graph.initializer.add().CopyFrom(tensor)
                out.graph.initializer[-1].name = f"i{number}"
                continue
            type = self._rank(name)
            if type is None:
                return None
            out.graph.input.add(name=f"i{number}", type=type)
        for number, name in enumerate(node.output):
            made.output.append(f"o{number}" if name else "")
            if name:
                out.graph.output.add(name=f"o{number}")
        return bytes(out.SerializeToString())

    def _rank(self, name: str) -> TypeProto | None:
        """The type of a value without its sizes."""
        if name not in self._ranks:
            self._ranks[name] = self._computed_rank(name)
        return self._ranks[name]

    def _computed_rank(self, name: str) -> TypeProto | None:
        out = TypeProto()
        if name in self._weights:
            tensor = self._weights[name]
            out.tensor_type.elem_type = tensor.data_type
            out.tensor_type.shape.SetInParent()
            for _ in tensor.dims:
                out.tensor_type.shape.dim.add()
            return out
        type = self._types.get(name)
        if type is None or type.WhichOneof("value") is None:
            return None
        out.CopyFrom(type)
        if type.HasField("tensor_type"):
            for size in out.tensor_type.shape.dim:
                size.Clear()
        return out
