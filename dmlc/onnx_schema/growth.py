"""Whether ONNX's own inference would make shapes without end of a model: it looks at no size before it makes room.

A few dozen nodes suffice: Gather of a value by itself doubles its axes, Concat of a shape with itself the elements
that are known, and both are stored for every value.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

#: The axes, or known elements, of one value, and of all values for each of them, of models that are inferred.
_MOST, _MOST_EACH = 4096, 64
_INTEGERS = (TensorProto.INT32, TensorProto.INT64)
#: What gives a tensor the shape that its last input, or an attribute, tells.
_SHAPED_BY = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}
#: What makes a list as long as a number says.
_LONG = frozenset(("Range", "Tile", "Expand", "ConstantOfShape", "Pad", "Resize", "Upsample"))
#: Of these the inference of known elements takes time with the size of the data.
_SLOW = frozenset(("MeanVarianceNormalization",))
#: What asks for the elements of its operands: of a list they are made up, one by one, whatever its type.
_ASKING = frozenset(("Add", "Sub", "Mul", "Cast", "Concat", "Gather", "Size", "Slice", "Squeeze", "Unsqueeze"))
#: The longest list of which elements are made up (128 bytes each), and the largest tensor that may become a list.
_LISTED, _FLATTENED = 1 << 20, 1 << 23
#: What takes axes away, besides the reductions: a list may be left.
_NARROWING = frozenset(("ArgMax", "ArgMin", "Einsum", "Gather", "GatherND", "MatMul", "Squeeze"))
#: What makes in a function, which is not looked into, more of what it takes.
_GROWING = _LONG | {"Gather", "GatherND", "Concat"}
#: What makes more of what it takes than its axes and elements: its sizes, its attributes, its graphs tell.
_TELLING = (
    _LONG
    | _SLOW
    | frozenset(_SHAPED_BY)
    | frozenset(
        (
            *("Constant", "Shape", "Size", "Gather", "GatherND", "Unsqueeze", "Slice", "OneHot"),
            *("If", "Loop", "Scan", "SequenceMap", "ConcatFromSequence"),
        )
    )
)
#: What cannot be counted.
_ENDLESS = 1 << 63

#: The axes of a value and, where they are few enough to be a shape, how many elements are known of it.
_Size = tuple[int, int]


def can_infer(model: ModelProto) -> tuple[bool, bool]:
    """Whether shapes of the model can be inferred in bounds, and with them elements that are known."""
    look = _Look({(f.domain, f.name) for f in model.functions})
    look.graph(model.graph)
    if any(node.op_type in _GROWING for f in model.functions for node in f.node):
        look.is_slow = True
    bounded = look.most <= _MOST and look.total <= _MOST * 256 + _MOST_EACH * look.values
    return bounded, bounded and not look.is_slow


class _Look:
    """One walk over the nodes, those of graphs inside them too, but not those of ``functions``."""

    def __init__(self, functions: set[tuple[str, str]]) -> None:
        self.functions = functions
        self.sizes: dict[str, _Size] = {}
        self.numbers: dict[str, int] = {}
        self.bounds: dict[str, int] = {}  # what no integer of a value is larger than, as far as it is known
        self.widest = 1  # the largest size that is declared
        self.long: set[str] = set()
        self.listed: set[str] = set()  # lists that are too long for their elements to be made up
        self.wide: set[str] = set()  # tensors one of whose axes is as long as that
        self.large: set[str] = set()  # tensors that are, were they a list
        self.most = self.total = self.values = 0
        self.is_slow = False

    def graph(self, graph: GraphProto) -> None:
        for infos in (graph.input, graph.value_info, graph.output):
            self.declared(infos)
        for tensor in graph.initializer:
            self.sizes[tensor.name] = _of_tensor(tensor)
            self.number(tensor.name, tensor)
            self.bounds[tensor.name] = _largest(tensor)
        for node in graph.node:
            self.node(node)
            if self.most > _MOST:
                return

    def declared(self, infos: Iterable[ValueInfoProto]) -> None:
        for info in infos:
            dims = info.type.tensor_type.shape.dim
            self.sizes[info.name] = (len(dims), 0)
            if len(dims) == 1 and dims[0].dim_value > _MOST:
                self.long.add(info.name)
            self.widest = max([self.widest, *(dim.dim_value for dim in dims)])
            size = prod(dim.dim_value for dim in dims)
            if size > _FLATTENED:
                self.large.add(info.name)
            if any(dim.dim_value > _LISTED for dim in dims):
                (self.listed if len(dims) == 1 else self.wide).add(info.name)

    def number(self, name: str, tensor: TensorProto) -> None:
        """Remember a constant of one integer."""
        if len(tensor.dims) < 2 and list(tensor.dims) in ([], [1]) and tensor.data_type == TensorProto.INT64:
            data = tensor.raw_data
            found = (
                int.from_bytes(data, "little", signed=True) if len(data) == 8 else next(iter(tensor.int64_data), None)
            )
            if found is not None:
                self.numbers[name] = found

    def node(self, node: NodeProto) -> None:
        kind, inputs = node.op_type, node.input[:]
        is_small = not self.listed and not self.large and not self.wide
        if kind not in _TELLING and is_small and self.is_plain(inputs, node.output[:]):
            return
        if kind in _SLOW or (kind == "Slice" and not self.long.isdisjoint(node.input[1:])):
            self.is_slow = True
        if kind in _LONG:
            self.long.update(node.output)
        given = [self.sizes.get(name, (0, 0)) for name in node.input]
        self.lists(node, given)
        for attribute in node.attribute:
            if attribute.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
                for inner in (attribute.g, *attribute.graphs):
                    self.graph(inner)
                    given += [self.sizes.get(info.name, (0, 0)) for info in inner.output]
            elif kind == "Constant" and attribute.name == "value":
                self.number(node.output[0] if node.output else "", attribute.t)
                self.bounds.update(dict.fromkeys(node.output, _largest(attribute.t)))
            elif kind == "Constant" and attribute.name in ("value_int", "value_ints"):
                bound = max(map(abs, (attribute.i, *attribute.ints[:_MOST])))
                self.bounds.update(dict.fromkeys(node.output, bound))
        axes, known = _size_of(node, given)
        if kind == "Slice":
            known = min(known, self.sliced(node, known))
        if axes > 1:
            known = 0
        for name in node.output:
            declared, _ = self.sizes.get(name, (0, 0))
            self.sizes[name] = (max(axes, declared), known)
        self.values += len(node.output)
        self.total += (axes + known) * len(node.output)
        self.most = max(self.most, axes, known)

    def is_plain(self, inputs: list[str], outputs: list[str]) -> bool:
        """Whether nothing is known of the elements of what a node takes, as of most; then its results are noted."""
        sizes, bounds, axes = self.sizes, self.bounds, 0
        for name in inputs:
            size = sizes.get(name)
            if size is not None:
                if size[1] or bounds.get(name):
                    return False
                axes = max(axes, size[0])
        for name in outputs:
            sizes[name] = (max(axes, sizes[name][0]), 0) if name in sizes else (axes, 0)
        self.values += len(outputs)
        self.total += axes * len(outputs)
        self.most = max(self.most, axes)
        return True

    def lists(self, node: NodeProto, given: list[_Size]) -> None:
        """Whether elements of a list without end would be made up; what a node makes of one is one too."""
        if not self.listed.isdisjoint(node.input):
            asks = node.op_type in _ASKING or (node.domain, node.op_type) in self.functions
            self.is_slow = self.is_slow or asks
            if node.op_type == "Expand":  # before version 13 a size is made up for each element of the shape
                self.most = _ENDLESS
            self.listed.update(node.output)
        if not self.large.isdisjoint(node.input):
            self.large.update(node.output)
            if node.op_type in ("Reshape", "Flatten"):
                self.wide.update(node.output)
            if node.op_type == "Reshape" and len(given) > 1 and given[1][1] == 1:
                self.listed.update(node.output)
        if not self.wide.isdisjoint(node.input):
            self.wide.update(node.output)
            if node.op_type in _NARROWING or node.op_type.startswith("Reduce"):
                self.listed.update(node.output)
        bounds = [self.bounds.get(name, 0) for name in node.input]
        if (node.op_type in _LONG or node.op_type == "Reshape") and bounds:
            axes, known = _size_of(node, given)
            if max(bounds) > _LISTED and max(axes, known) <= 1:
                self.listed.update(node.output)
            if max(bounds) > _LISTED:
                self.wide.update(node.output)
            if max(bounds) ** min(max(axes, 1), 64) > _FLATTENED:
                self.large.update(node.output)
        if node.op_type != "Constant":
            bound = min(_bound(node.op_type, bounds, given, self.widest), _ENDLESS)
            self.bounds.update(dict.fromkeys(node.output, bound))

    def sliced(self, node: NodeProto, known: int) -> int:
        """How many of the known elements a Slice leaves, where its bounds are constants."""
        starts = _ints(node, "starts") or [self.numbers[name] for name in node.input[1:2] if name in self.numbers]
        ends = _ints(node, "ends") or [self.numbers[name] for name in node.input[2:3] if name in self.numbers]
        if len(starts) != 1 or len(ends) != 1 or len(node.input) > 4:  # a step may turn it around
            return known
        return len(range(known)[starts[0] : ends[0]])


def _size_of(node: NodeProto, given: list[_Size]) -> _Size:
    """What a node makes of what it is given, and of what graphs inside it give; or more, never less."""
    kind = node.op_type
    axes = max((a for a, _ in given), default=0)
    known = max((k for _, k in given), default=0)
    if kind == "Constant":
        return _of_constant(node)
    if kind == "Shape":
        return 1, axes
    if kind == "Range":  # a list, whatever else it is wrongly given
        return 1, 1
    if kind == "Concat":
        return axes, sum(k for _, k in given)
    if kind in ("Gather", "GatherND") and len(given) == 2:
        (of, _), (by, count) = given
        return max(of + by - (kind == "Gather"), 0), count or 1
    if kind == "Unsqueeze":
        wide = len(_ints(node, "axes")) or (given[1][1] if len(given) > 1 else 0)
        return given[0][0] + wide if given else wide, known
    if kind in _SHAPED_BY and len(given) > _SHAPED_BY[kind]:
        return max(given[_SHAPED_BY[kind]][1], axes if kind == "Expand" else 1), 0
    if kind in ("Slice", "Tile") and given:
        return axes, given[0][1]
    return axes + (kind in ("OneHot", "Loop", "Scan", "ConcatFromSequence")), known


def _largest(tensor: TensorProto) -> int:
    """The largest integer of a constant that could be a shape, its sign left out; 0 of others."""
    if len(tensor.dims) > 1 or tensor.data_type not in _INTEGERS:
        return 0
    width = 8 if tensor.data_type == TensorProto.INT64 else 4
    data = tensor.raw_data[: width * _MOST]
    numbers = [int.from_bytes(data[i : i + width], "little", signed=True) for i in range(0, len(data), width)]
    numbers += [*tensor.int64_data[:_MOST], *tensor.int32_data[:_MOST]]
    return max(map(abs, numbers), default=0)


def _bound(kind: str, bounds: list[int], given: list[_Size], widest: int) -> int:
    """What no integer of the result is larger than."""
    axes, known = max(given, default=(0, 0))
    if kind == "Shape":
        return widest
    if kind == "Size":
        return int(widest ** min(axes, 64))
    if kind == "ReduceProd":
        return int(max(bounds, default=0) ** min(max(known, 1), 64))
    if kind == "Mul":
        return prod(bounds)
    if kind in ("Add", "Sub", "ReduceSum", "CumSum"):
        return sum(bounds) * max(known, 1)
    return max(bounds[:1] if kind in ("Slice", "Gather") else bounds, default=0)


def _ints(node: NodeProto, name: str) -> list[int]:
    return next((list(a.ints) for a in node.attribute if a.name == name), [])


def _of_constant(node: NodeProto) -> _Size:
    for attribute in node.attribute:
        if attribute.name == "value":
            return _of_tensor(attribute.t)
        if attribute.name == "value_ints":
            return 1, len(attribute.ints)
    return 0, 1


def _of_tensor(tensor: TensorProto) -> _Size:
    sizes = tensor.dims
    if len(sizes) > 1 or tensor.data_type not in _INTEGERS:
        return len(sizes), 0
    return len(sizes), sizes[0] if sizes else 1


__all__ = ["can_infer"]
