"""The types that a model declares for its values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from onnx import GraphProto, ModelProto, TensorProto, TypeProto

from dmlc.importers.dim_text import dim_of_text
from dmlc.importers.types import type_of
from dmlc.ir import Dim, DimExpr, TensorType, dim_names, substitute
from dmlc.onnx_schema.declared import claims
from dmlc.onnx_schema.nested import graphs_in
from dmlc.onnx_schema.types import tensor_type_proto

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
