"""Sizes and ranks that the inputs of an imported model leave open, and the options that fix them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import TypeProto, ValueInfoProto

from dmlc.inference.protos import NO_NAMES
from dmlc.ir import Graph, dim_names


def nameless_dims(graph: Graph) -> dict[str, str]:
    """The dims of the graph that stand for sizes without a name, each with the first input that has it."""
    declared: Mapping[str, ValueInfoProto] = {} if graph.origin is None else graph.origin.inputs
    out: dict[str, str] = {}
    for value in graph.inputs:
        info = declared.get(value.name or "")
        sizes = () if info is None else info.type.tensor_type.shape.dim
        for dim, size in zip(sizes, value.shape, strict=False):
            if dim.dim_param in NO_NAMES:
                out |= {name: value.name or "" for name in dim_names(size) if name not in out}
    return out


def open_inputs(infos: Iterable[ValueInfoProto]) -> list[str]:
    """The names of inputs that are tensors of open rank, or have an open size without a name: no ``--bind`` fixes
    these."""
    return [info.name for info in infos if has_open_rank(info.type) or _has_nameless_size(info.type)]


def has_open_rank(type: TypeProto) -> bool:
    return type.HasField("tensor_type") and not type.tensor_type.HasField("shape")


def _has_nameless_size(type: TypeProto) -> bool:
    open_sizes = [d for d in type.tensor_type.shape.dim if not d.HasField("dim_value") or d.dim_value < 0]
    return any(dim.dim_param in NO_NAMES for dim in open_sizes)


def fixing_options(names: Iterable[str], nameless: Mapping[str, str]) -> str:
    """The options that fix these dims: by name, and by input where they have none."""
    names = sorted(names)
    bound = [f"--bind {name}=..." for name in names if name not in nameless]
    shaped = [f"--shape {nameless[name]}=..." for name in names if name in nameless]
    return " ".join([*bound, *dict.fromkeys(shaped)])
