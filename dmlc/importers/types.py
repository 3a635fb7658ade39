"""ONNX types as types of the IR, those that a model declares, and names of its sizes."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Collection, Iterable, Mapping

from onnx import GraphProto, ModelProto, TensorProto, TypeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.inference.protos import NO_NAMES
from dmlc.ir import UNKNOWN, Dim, DimExpr, ForeignType, Shape, TensorType, dim_names, floordiv, substitute, symbol
from dmlc.onnx_schema.declared import claims, without_item_shapes
from dmlc.onnx_schema.nested import graphs_in
from dmlc.onnx_schema.types import DTYPE_OF, tensor_type_proto


def type_of(
    proto: TypeProto | None,
    binding: Mapping[str, int],
    fresh: Callable[[], Dim],
    named: Callable[[str], Dim] = symbol,
) -> TensorType:
    """Return the type; ``UNKNOWN`` if the proto declares none. Shapes of a sequence's items are ignored.

    ``fresh`` makes a dim for a size without a name, ``named`` one for a size with a name.
    """
    if proto is None or proto.WhichOneof("value") is None:
        return UNKNOWN
    if proto.HasField("tensor_type"):
        tensor = proto.tensor_type
        dtype = DTYPE_OF.get(tensor.elem_type)
        if dtype is not None and tensor.HasField("shape"):
            return TensorType(dtype, tuple([_size(d, binding, fresh, named) for d in tensor.shape.dim]))
    return ForeignType(proto=without_item_shapes(proto).SerializeToString(deterministic=True))


def _size(
    proto: TypeProto.Tensor.Shape.Dimension,
    binding: Mapping[str, int],
    fresh: Callable[[], Dim],
    named: Callable[[str], Dim],
) -> Dim:
    if proto.HasField("dim_value") and proto.dim_value >= 0:
        return int(proto.dim_value)
    if proto.dim_value < -1:  # -1 is what some exporters write for a size that they do not know
        raise fail(codes.BROKEN_MODEL, f"an axis has size {proto.dim_value}")
    name = proto.dim_param
    if name in NO_NAMES:
        return fresh()
    return binding[name] if name in binding else named(name)


def bind(proto: TypeProto, binding: Mapping[str, int]) -> None:
    """Replace the bound dims of a tensor type in place."""
    if proto.HasField("tensor_type"):
        for dim in proto.tensor_type.shape.dim:
            if dim.dim_param in binding:
                dim.dim_value = binding[dim.dim_param]


# --- Names of dims that exporters write as expressions: ``((s50//20)) - 1``

#: A longer text is a name.
_MOST_TEXT = 200
#: Two expressions that agree on this many samples are taken for equal.
_SAMPLES = 16


def dim_of_text(text: str, names: Collection[str]) -> Dim:
    """The dim of that name; the expression that the name says where it is one of the dims ``names``."""
    if text in names or len(text) > _MOST_TEXT or not any(sign in text for sign in "+-*/"):
        return symbol(text)
    try:
        return _read(ast.parse(text.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, RecursionError, ZeroDivisionError):
        return symbol(text)


def _read(node: ast.expr, names: Collection[str]) -> Dim:
    """Raises ``ValueError`` for other than sums, products and floor divisions of numbers and the names."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return symbol(node.id)
    if not isinstance(node, ast.BinOp):
        raise ValueError
    a, b = _read(node.left, names), _read(node.right, names)
    if isinstance(node.op, ast.Add):
        return a + b
    if isinstance(node.op, ast.Sub):
        return a - b
    if isinstance(node.op, ast.Mult):
        return a * b
    if isinstance(node.op, ast.FloorDiv):
        return floordiv(a, b)
    raise ValueError


def simpler(size: Dim, claimed: Dim) -> Dim:
    """The shorter of two expressions where samples show no difference between them; else the first."""
    if not isinstance(size, DimExpr) or not isinstance(claimed, DimExpr) or len(str(claimed)) >= len(str(size)):
        return size
    if not claimed.names() <= size.names():
        return size
    draw = random.Random(0)
    for _ in range(_SAMPLES):
        binding: dict[str, Dim] = {name: draw.randrange(1 << 10, 1 << 20) for name in sorted(size.names())}
        if substitute(size, binding) != substitute(claimed, binding):
            return size
    return claimed


# --- Names that stand for the sizes of operands while a model, or a node of one, is read

_PLACE = "place_"


class Placeholders:
    """Stand-ins for the sizes of operands: an expression of dims is not a name. Equal sizes have one name."""

    def __init__(self) -> None:
        self.dims: dict[str, Dim] = {}
        self._names: dict[Dim, str] = {}

    def type(self, type: TensorType) -> TensorType:
        return type if isinstance(type, ForeignType) else type.with_shape(self.shape(type.shape))

    def shape(self, shape: Shape) -> Shape:
        return tuple([size if isinstance(size, int) else symbol(self.name(size)) for size in shape])

    def prefer(self, name: str, size: Dim) -> None:
        """Let ``name`` stand for the size, unless another name does already."""
        if not isinstance(size, int) and size not in self._names:
            self._names[size] = name
            self.dims[name] = size

    def name(self, size: Dim) -> str:
        """The name that stands for a symbolic size."""
        name = self._names.setdefault(size, f"{_PLACE}{len(self._names)}")
        self.dims[name] = size
        return name


# --- The types that a model declares for its values

#: Position of a graph in a model: for each step down, the node's number, the attribute, the graph in a list.
Path = tuple[tuple[int, str, int], ...]


class DeclaredTypes:
    """The declared types of all values, by graph and name: claims, which may be wrong."""

    def __init__(self, model: ModelProto, binding: Mapping[str, int], fresh: Callable[[], Dim]) -> None:
        self._model = model
        self._binding = binding
        self._fresh = fresh
        self._named = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim}
        self._tables: dict[Path, dict[str, TypeProto]] = {}
        self._meant: dict[str, Dim] = {}
        self._by_data: set[str] = set()

    def find(self, path: Path, name: str) -> TensorType:
        """The type that is declared for a value of the graph at ``path``; unknown where none is."""
        table = self._tables.get(path)
        if table is None:
            graph = _descend(self._model.graph, path)
            found = {} if graph is None else {info.name: info.type for info in claims(graph)}
            table = self._tables[path] = {name: type for name, type in found.items() if type.WhichOneof("value")}
        return type_of(table.get(name), self._binding, self._fresh, self._size)

    def depend_on_data(self, dims: Iterable[str]) -> None:
        """Record dims that no size of an input decides."""
        self._by_data.update(dims)

    def is_by_data(self, size: Dim) -> bool:
        """Return whether a size depends on data."""
        return not self._by_data.isdisjoint(dim_names(size))

    def believed(self, claimed: Dim, own: Dim, *, is_new: bool = True) -> Dim:
        """The size that is claimed in place of ``own``, an open one, or ``own``.

        A name that no input declares names the first size that is claimed by it. It never makes two sizes equal:
        exporters give one name to sizes that differ. Nor does it part a size from that of an operand (not ``is_new``).
        A size that depends on data is not the size of an input either.
        """
        names = dim_names(claimed)
        made_up = names - self._named
        if not made_up:
            return own if names and self.is_by_data(own) else claimed
        is_name = isinstance(claimed, DimExpr) and claimed.name is not None
        return claimed if is_name and is_new and self._meant.setdefault(str(claimed), own) == own else own

    def _size(self, name: str) -> Dim:
        return substitute(dim_of_text(name, self._named), self._binding)


def _descend(graph: GraphProto, path: Path) -> GraphProto | None:
    for number, attribute, index in path:
        if number >= len(graph.node):
            return None
        found = next((a for a in graph.node[number].attribute if a.name == attribute), None)
        if found is None:
            return None
        graph = graphs_in(found)[index]
    return graph


def weight_type(tensor: TensorProto) -> TypeProto:
    """The type of a weight."""
    return tensor_type_proto(tensor.data_type, tuple(tensor.dims))
