"""Names that stand for the sizes of operands while a model, or a node of one, is read."""

from __future__ import annotations

from dmlc.ir import Dim, ForeignType, Shape, TensorType, symbol

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
