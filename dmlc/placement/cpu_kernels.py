"""Nodes that ONNX Runtime's CPU provider does not run either: it is the last that takes a node."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct
from onnx import TensorProto, defs

from dmlc.inference.fact import NOTHING, Fact
from dmlc.placement.values import TypedNode
from dmlc.targets.target import load_data

_FILE = "cpu_operators"
_FLOAT16, _FLOAT = "float16", "float"
#: The names of element types, as ONNX's declarations write them.
_ELEMENTS = {number: name.lower() for name, number in TensorProto.DataType.items() if number}


class CpuKernel(Struct, frozen=True):
    """The versions of an operator that a kernel is for, ``last`` None where open, and element types by parameter."""

    first: int
    last: int | None
    types: dict[str, frozenset[str]]

    def is_for(self, version: int) -> bool:
        """As ONNX Runtime asks it: an open range holds for its first version alone (``VerifyVersion``)."""
        return version == self.first or (self.last is not None and self.first < version <= self.last)


@lru_cache(maxsize=1)
def _kernels() -> dict[str, list[CpuKernel]]:
    return parse_kernels(load_data(_FILE))


def parse_kernels(data: dict[str, Any]) -> dict[str, list[CpuKernel]]:
    """The kernels of each operator."""
    return {
        name: [
            CpuKernel(first, last, {parameter: frozenset(names.split()) for parameter, names in types.items()})
            for first, last, types in rows
        ]
        for name, rows in data["operators"].items()
    }


def source() -> str:
    """The releases whose kernels are known."""
    return str(load_data(_FILE)["source"])


def why_not_on_cpu(node: TypedNode) -> str:
    """Return the reason why no release that is known runs the node on the CPU; empty where one does, or may.

    An operator that others define needs no kernel. ONNX Runtime computes f16 in f32 where only that has a kernel.
    """
    if node.opset > load_data(_FILE)["newest_opset"]:
        return ""
    try:
        schema = defs.get_schema(node.op, max(node.opset, 1), node.domain)
    except defs.SchemaError:
        return ""
    if schema.has_function or schema.has_context_dependent_function:
        return ""
    found = _kernels().get(node.label, [])
    if not found:
        return "the CPU provider has none either"
    found = [kernel for kernel in found if kernel.is_for(schema.since_version)]
    if not found:
        return f"the CPU provider has none either at opset {node.opset}"
    types = _types(node, schema)
    if any(_takes(kernel, types) for kernel in found):
        return ""
    return f"the CPU provider has none either for {' '.join(sorted({name for _, name in types}))}"


def _types(node: TypedNode, schema: defs.OpSchema) -> list[tuple[str, str]]:
    """The type parameter and ONNX's name of the element type of each operand and result whose type is known."""
    out = []
    for formals, names in ((schema.inputs, node.proto.input), (schema.outputs, node.proto.output)):
        for index, name in enumerate(names):
            fact: Fact = node.scope.facts.get(name, NOTHING)
            element = None if fact.proto else _ELEMENTS.get(fact.element)
            if name and formals and element is not None:
                out.append((formals[min(index, len(formals) - 1)].type_str, element))
    return out


def _takes(kernel: CpuKernel, types: Sequence[tuple[str, str]]) -> bool:
    for parameter, name in types:
        taken = kernel.types.get(parameter)
        if taken is not None and name not in taken and not (name == _FLOAT16 and _FLOAT in taken):
            return False
    return True
