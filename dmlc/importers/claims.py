"""Declared types that the nodes contradict: they are corrected, and reported once for the whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from onnx import GraphProto, TypeProto, ValueInfoProto

from dmlc.diagnostics import Diagnostic
from dmlc.diagnostics.catalogue.advice import WRONG_DECLARATION
from dmlc.diagnostics.counted import first_of
from dmlc.importers.registry import Reading
from dmlc.importers.scope import GraphScope
from dmlc.importers.types import type_of
from dmlc.inference.joins import GraphsInside, differ, narrower
from dmlc.ir import ForeignType, Region, TensorType, symbol
from dmlc.onnx_schema.declared import claims, contradicts, with_known_sizes
from dmlc.onnx_schema.types import type_proto

#: So many wrong declarations are named in the diagnostic, the others counted.
_SHOWN = 3


class ClaimCheck:
    """Compares what a model declares of its values with what reading found of them."""

    def __init__(self) -> None:
        self._wrong: dict[tuple[int, str], str] = {}

    def graph(self, scope: GraphScope, source: GraphProto) -> None:
        """Note the wrong claims of a graph that was read."""
        for info in claims(source):
            if wrong(scope, info):
                self.note(scope, info, scope.values[info.name].type)  # type: ignore[union-attr]

    def note(self, scope: GraphScope, info: ValueInfoProto, found: TensorType) -> None:
        self._wrong[id(scope.graph), info.name] = f"{info.name} is declared {_text(info.type)} and is {_text_of(found)}"

    def advice(self) -> list[Diagnostic]:
        """One diagnostic, W0608, for all that was noted; none where nothing was."""
        found = list(dict.fromkeys(self._wrong.values()))
        if not found:
            return []
        head = "a declared type is wrong" if len(found) == 1 else f"{len(found)} declared types are wrong"
        help = "export the model anew; what its nodes give is used"
        return [Diagnostic(WRONG_DECLARATION, f"{head}: {first_of(found, _SHOWN)}", help=help)]


def wrong(scope: GraphScope, info: ValueInfoProto) -> bool:
    """True if the value of that name has another type than is declared."""
    value = scope.values.get(info.name)
    return value is not None and contradicts(info.type, type_proto(value.type))


def corrected(scope: GraphScope, info: ValueInfoProto, names: Set[str], *, has_new_sizes: bool) -> ValueInfoProto:
    """The declaration of an output; with the type of the value where it is wrong or missing.

    If ``has_new_sizes``, the sizes that are known are added: numbers, and ``names`` of dims of the inputs in place of
    other names.
    """
    value = scope.values.get(info.name)
    if value is None:
        return info
    found = type_proto(value.type)
    type = info.type
    if contradicts(type, found):
        type = found
    elif type.WhichOneof("value") is None and not found.tensor_type.HasField("shape"):
        type = found if found.WhichOneof("value") else type
    elif has_new_sizes or type.WhichOneof("value") is None:
        type = with_known_sizes(type, found, names)
    if type is info.type:
        return info
    out = ValueInfoProto()
    out.CopyFrom(info)
    out.type.CopyFrom(type)
    return out


def _text(type: TypeProto) -> str:
    return _text_of(type_of(type, {}, lambda: symbol("?")))


def _text_of(type: TensorType) -> str:
    if not isinstance(type, ForeignType):
        return str(type)
    return "a tensor of another type or unknown rank" if type.proto else "of unknown type"


# --- the inputs of graphs inside nodes


def formal_types(
    reading: Reading,
    attribute: str,
    infos: Sequence[ValueInfoProto],
    binding: Mapping[str, int],
    opened: set[int],
) -> list[TensorType]:
    """The types of the inputs of a body, which ``reading`` feeds: as declared, or as they are fed where that differs.

    The inputs of a Scan keep their shapes from run to run, so they are typed as they are fed. The inputs number
    ``opened`` change their shape from one run to the next.
    """
    out = []
    inside = GraphsInside(reading.proto, reading.opset, reading.inputs, (), reading.graph.dims)
    for index, info in enumerate(infos):
        type = type_of(info.type, binding, reading.scope.new_dim)
        fed = inside.fed(index, len(infos)) if attribute == "body" else None
        if fed is not None and inside.kind == "Scan":
            type = narrower(type, fed)
        elif fed is not None and differ(type, fed):
            type = _of_any_shape(fed)
        out.append(_of_any_shape(type) if index in opened else type)
    return out


def _of_any_shape(type: TensorType) -> TensorType:
    proto = type_proto(type)
    if proto.HasField("tensor_type"):
        proto.tensor_type.ClearField("shape")
    return ForeignType(proto=proto.SerializeToString(deterministic=True))


def changing_formals(reading: Reading, region: Region) -> set[int]:
    """The inputs of the body of a Loop that its next run is fed with other types than this one."""
    if reading.op_type != "Loop" or reading.domain:
        return set()
    made = [value.type for _, value in region.graph.outputs][1:]
    formals = [value.type for value in region.formals]
    pairs = zip(formals[2:], made, strict=False)
    return {index for index, (have, want) in enumerate(pairs, 2) if differ(have, want)}
