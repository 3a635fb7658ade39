"""Types of a graph's inputs, outputs and values, and where those of two graphs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from onnx import TypeProto, ValueInfoProto

from dmlc.debugging.constants import shape_text, type_name
from dmlc.ir.answers import Answer


class TypeChange(Answer, frozen=True):
    """A type that differs: ``role`` is ``input``, ``output`` or ``value``, or ``order`` for the order of inputs or
    outputs. ``a`` or ``b`` is None for an input or output that a model lacks."""

    name: str
    role: str
    a: str | None
    b: str | None

    def __str__(self) -> str:
        return change_text(f"{self.role} {self.name}", self.a, self.b)


def change_text(what: str, a: str | None, b: str | None) -> str:
    """A line about what one model lacks (None), or has in another form."""
    if a is None:
        return f"added {what}: {b}"
    return f"removed {what}: {a}" if b is None else f"changed {what}: {a} -> {b}"


def type_text(proto: TypeProto) -> str:
    """A type as the language writes it; one that the language lacks in ONNX's words."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        dtype = type_name(tensor.elem_type)
        if not tensor.HasField("shape"):
            return f"{dtype} of any rank"
        sizes = [d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in tensor.shape.dim]
        return f"{'sparse ' if kind == 'sparse_tensor_type' else ''}{dtype}{shape_text(sizes)}"
    if kind == "sequence_type":
        return f"sequence of {type_text(proto.sequence_type.elem_type)}"
    if kind == "optional_type":
        return f"optional {type_text(proto.optional_type.elem_type)}"
    if kind == "map_type":
        return f"map of {type_name(proto.map_type.key_type)} to {type_text(proto.map_type.value_type)}"
    return "no type"


def interface_changes(
    role: str, a: Iterable[ValueInfoProto], b: Iterable[ValueInfoProto], prefix: str
) -> Iterator[TypeChange]:
    """Differences of the inputs, or of the outputs, by name."""
    before = {info.name: type_text(info.type) for info in a}
    after = {info.name: type_text(info.type) for info in b}
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield TypeChange(prefix + name, role, before.get(name), after.get(name))
    if list(before) != list(after) and before.keys() == after.keys():
        yield TypeChange(f"{prefix}{role}s", "order", ", ".join(before), ", ".join(after))


def value_changes(
    a: Iterable[ValueInfoProto], b: Mapping[str, ValueInfoProto], name_of: Callable[[str], str], prefix: str
) -> Iterator[TypeChange]:
    """Types that contradict each other among the values that both models declare; names of sizes do not matter."""
    for info in a:
        other = b.get(name_of(info.name))
        if other is not None and _contradict(info.type, other.type):
            yield TypeChange(prefix + info.name, "value", type_text(info.type), type_text(other.type))


def _contradict(a: TypeProto, b: TypeProto) -> bool:
    kinds = a.WhichOneof("value"), b.WhichOneof("value")
    if None in kinds:
        return False
    if kinds != ("tensor_type", "tensor_type"):
        return kinds[0] != kinds[1] or type_text(a) != type_text(b)
    x, y = a.tensor_type, b.tensor_type
    if x.elem_type != y.elem_type:
        return 0 not in (x.elem_type, y.elem_type)
    if not (x.HasField("shape") and y.HasField("shape")):
        return False
    pairs = list(zip(x.shape.dim, y.shape.dim, strict=False))
    fixed = [(d.dim_value, e.dim_value) for d, e in pairs if d.HasField("dim_value") and e.HasField("dim_value")]
    return len(x.shape.dim) != len(y.shape.dim) or any(d != e for d, e in fixed)
