"""Inputs of an ONNX model: types, sizes, and which integers are indices or divisors."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from dmlc.ir import Dim, symbol
from dmlc.ir.dim import floordiv
from dmlc.onnx_schema.nested import all_nodes
from dmlc.verifying.inputs import InputSpec, Interface, NoInputs
from dmlc.verifying.patterns import WORDS

#: The place of the indices and of the data among the inputs of operators that look something up.
_LOOK_UPS = {"Gather": (1, 0), "GatherElements": (1, 0), "ScatterElements": (1, 0), "Scatter": (1, 0)}
_ND_LOOK_UPS = {"GatherND": (1, 0), "ScatterND": (1, 0)}
#: Operators that hand the elements of their operands on as they are.
_MOVES = {
    *("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Expand", "Flatten", "Slice", "Concat"),
    "ArrayFeatureExtractor",
}
#: Operators of ai.onnx.ml that look up strings and integers, and the attributes that hold those they know.
_CATEGORIES = {
    "OneHotEncoder": ("cats_strings", "cats_int64s"),
    "LabelEncoder": ("keys_strings", "keys_int64s"),
    "CategoryMapper": ("cats_strings", "cats_int64s"),
}
#: Trip counts to give, small ones most often: large ones take long, and a loop may not be able to run so often.
_TRIPS = (1, 2, 3, 0, 1, 2, 3, 8)
#: Ranks to try where the model says none.
_RANKS = (2, 4, 3, 1)
#: Integers of models that divide integers stay below this.
WIDEST = 1_000_000


def element_name(number: int) -> str:
    """ONNX's name of an element type in lower case; its number where onnx does not know it."""
    is_known = number in TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(number)).lower() if is_known else f"type {number}"


def kind_of(elem_type: int) -> str:
    """Return the dtype in which test data for an element type is made.

    Types that NumPy lacks are fed as a wider type, which a cast in the model converts.
    """
    if elem_type == TensorProto.STRING:
        return "string"
    name = element_name(elem_type)
    if elem_type not in TensorProto.DataType.values():
        return "float32"  # no runtime loads the model, which says why
    if name.startswith(("bfloat", "float4", "float8")):
        return "bfloat16"
    if elem_type in (TensorProto.INT4, TensorProto.UINT4) or name in ("int2", "uint2"):
        return "uint8" if name.startswith("u") else "int8"
    return str(np.dtype(helper.tensor_dtype_to_np_dtype(elem_type)))


def is_exotic(elem_type: int) -> bool:
    """Return whether NumPy lacks the element type."""
    return element_name(elem_type).startswith(("bfloat", "float4", "float8", "int4", "uint4", "int2", "uint2"))


def required_inputs(graph: GraphProto, ir_version: int) -> tuple[list[ValueInfoProto], list[ValueInfoProto]]:
    """The inputs that must be fed, and those with a default. Before IR version 4 an initializer cannot be fed."""
    held = {t.name for t in graph.initializer} | {t.values.name for t in graph.sparse_initializer}
    needed = [info for info in graph.input if info.name not in held]
    return needed, [info for info in graph.input if info.name in held] if ir_version >= 4 else []


def interfaces(model: ModelProto) -> list[Interface]:
    """Interfaces that must be fed: one, or several if a rank is unknown. Raises ``NoInputs``."""
    graph = model.graph
    needed, _ = required_inputs(graph, model.ir_version)
    indices, divisors = integer_uses(graph)
    choices = known_categories(graph) | dict.fromkeys(trip_counts(graph), _TRIPS)
    unranked = [info.name for info in needed if not _tensor_type(info).HasField("shape")]
    widest = WIDEST if any(node.op_type in ("Div", "Mod") for node in all_nodes(graph.node)) else None
    out = []
    for ranks in [(rank,) * len(unranked) for rank in _RANKS] if unranked else [()]:
        rank_of = dict(zip(unranked, ranks, strict=True))
        specs = [_spec(info, rank_of, indices, divisors) for info in needed]
        specs = [replace(spec, choices=choices.get(spec.name, ())) for spec in specs]
        out.append(Interface(tuple(specs), least=0, widest=widest))
    return out


def _spec(info: ValueInfoProto, ranks: dict[str, int], indices: dict[str, Dim], divisors: set[str]) -> InputSpec:
    tensor = _tensor_type(info)
    name = info.name
    if name in ranks:
        shape: tuple[Dim, ...] = tuple([symbol(f"{name}.{axis}") for axis in range(ranks[name])])
    else:
        shape = shape_of(tensor, name)
    length = 2 if info.type.HasField("sequence_type") else None
    kind = kind_of(tensor.elem_type)
    return InputSpec(name, kind, shape, indices.get(name), length, name in divisors, rank_is_open=name in ranks)


def _tensor_type(info: ValueInfoProto) -> TypeProto.Tensor:
    """The tensor that is fed, alone, in a sequence or as an optional. Raises ``NoInputs``."""
    found = info.type
    if found.HasField("optional_type"):
        found = found.optional_type.elem_type
    if found.HasField("sequence_type"):
        found = found.sequence_type.elem_type
    if not found.HasField("tensor_type"):
        which = found.WhichOneof("value") or "of no known type"
        raise NoInputs(f"input {info.name} is {which.replace('_type', '')}: no data is made up for it")
    return found.tensor_type


def shape_of(tensor: TypeProto.Tensor, name: str) -> tuple[Dim, ...]:
    """The sizes; one without a name is called after the input and its axis."""
    out: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            out.append(dim.dim_value)
        elif re.search(r"\w", dim.dim_param):
            out.append(_expression(dim.dim_param))
        else:  # nothing, -1 or a question mark
            out.append(symbol(f"{name}.{axis}"))
    return tuple(out)


def _expression(text: str) -> Dim:
    """Exporters write ``past + 1`` as the name of a size; what is no such expression is a name."""
    try:
        return _evaluate(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return symbol(text)


def _evaluate(tree: ast.expr) -> Dim:
    if isinstance(tree, ast.Name):
        return symbol(tree.id)
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        return tree.value
    if isinstance(tree, ast.BinOp):
        left, right = _evaluate(tree.left), _evaluate(tree.right)
        if isinstance(tree.op, ast.Add):
            return left + right
        if isinstance(tree.op, ast.Sub):
            return left - right
        if isinstance(tree.op, ast.Mult):
            return left * right
        if isinstance(tree.op, ast.FloorDiv):
            return floordiv(left, right)
    raise ValueError


# --- what integers are used for


def integer_uses(graph: GraphProto) -> tuple[dict[str, Dim], set[str]]:
    """The inputs that are indices, with the size of what they index, and those that divide."""
    makers = {name: node for node in graph.node for name in node.output if name}
    shapes = {t.name: tuple(t.dims) for t in graph.initializer}
    for info in (*graph.input, *graph.value_info):
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            shapes.setdefault(info.name, shape_of(info.type.tensor_type, info.name))
    fed = {info.name for info in graph.input}
    indices: dict[str, Dim] = {}
    divisors: set[str] = set()
    for node in graph.node:
        if node.op_type in ("Div", "Mod") and len(node.input) == 2:
            divisors |= _sources(node.input[1], makers, fed)
        place = _LOOK_UPS.get(node.op_type) or _ND_LOOK_UPS.get(node.op_type)
        if place is None or len(node.input) <= max(place):
            continue
        shape = shapes.get(node.input[place[1]])
        limit = _limit(node.op_type, shape, _axis(node))
        for name in _sources(node.input[place[0]], makers, fed):
            indices[name] = _smaller(indices.get(name, limit), limit)
    return indices, divisors


def known_categories(graph: GraphProto) -> dict[str, tuple[str | int, ...]]:
    """The elements to feed to inputs that categories are looked up in: those that the model knows, and where it takes
    unknown strings, these too."""
    makers = {name: node for node in graph.node for name in node.output if name}
    fed = {info.name for info in graph.input}
    required: dict[str, tuple[str | int, ...]] = {}
    possible: dict[str, tuple[str | int, ...]] = {}
    for node in graph.node:
        held = [a for a in node.attribute if a.name in _CATEGORIES.get(node.op_type, ())]
        words = tuple([s.decode(errors="replace") for a in held for s in a.strings])
        known = (*words, *[i for a in held for i in a.ints])
        refuses = any(a.name == "zeros" and not a.i for a in node.attribute)
        for name in _sources(node.input[0], makers, fed) if held else ():
            if refuses:
                required[name] = tuple([each for each in required.get(name, known) if each in known])
            elif words:
                possible[name] = (*possible.get(name, WORDS), *words)
    return {name: required.get(name) or possible.get(name, ()) for name in (*required, *possible)}


def trip_counts(graph: GraphProto) -> set[str]:
    """The inputs that say how often a loop runs."""
    makers = {name: node for node in graph.node for name in node.output if name}
    integers = (TensorProto.INT32, TensorProto.INT64)
    fed = {info.name for info in graph.input if info.type.tensor_type.elem_type in integers}
    loops = [node.input[0] for node in graph.node if node.op_type == "Loop" and node.input]
    return {source for name in loops for source in _sources(name, makers, fed)}


def _smaller(a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes; 1, so that all indices are 0, where either may be."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return a if a == b else 1


def _axis(node: NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "axis"), 0)


def _limit(op_type: str, shape: tuple[Dim, ...] | None, axis: int) -> Dim:
    """The size that is indexed; 1, so that all indices are 0, where it is not known."""
    if not shape:
        return 1
    if op_type in _ND_LOOK_UPS:
        known = [d for d in shape if isinstance(d, int)]
        return min(known) if len(known) == len(shape) else 1
    return shape[axis] if -len(shape) <= axis < len(shape) else 1


def _sources(name: str, makers: dict[str, NodeProto], fed: set[str]) -> set[str]:
    """The inputs whose elements arrive here."""
    out: set[str] = set()
    pending, seen = [name], set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if value in fed:
            out.add(value)
        node = makers.get(value)
        if node is not None and node.op_type in _MOVES:
            pending += list(node.input) if node.op_type == "Concat" else list(node.input[:1])
    return out
