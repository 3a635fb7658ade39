"""Random valid ONNX models: every node is typed by ONNX's own inference, every model loads in ONNX Runtime."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper, shape_inference

from dmlc.onnx_schema.nested import values_read_by
from tools.model_checks import checker_complaint, loads

F32, F16, F64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
I32, I64, BOOL = TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL
FLOATS, INTEGERS = (F32, F16, F64), (I32, I64)
NUMBERS = (*FLOATS, *INTEGERS)
OPSETS = tuple(range(9, 22))
#: The first opset at which ONNX's inference knows all axes of a Squeeze that are not in order.
_AXES_IN_ANY_ORDER = 11
Size = int | str
#: An element type and a shape.
Kind = tuple[int, tuple[Size, ...]]


class MisfitError(Exception):
    """Raised where the drawn parts do not fit together; others are drawn."""


def is_valid(model: ModelProto) -> bool:
    """Return whether ONNX's checker and ONNX Runtime take the model."""
    return checker_complaint(model) is None and loads(model)


def fits(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """True if two shapes broadcast for any sizes."""
    return all(x == y or 1 in (x, y) for x, y in zip(reversed(a), reversed(b), strict=False))


class Grower:
    """Grows one model. The same seed gives the same model."""

    def __init__(self, seed: int | str) -> None:
        self.rng = rng = random.Random(seed)
        self.opset = rng.choice(OPSETS)
        self.main = rng.choices((F32, F16, F64, I32, I64), (14, 3, 1, 1, 1))[0]
        self.dims = rng.sample("NMK", rng.choice((0, 0, 0, 1, 1, 2)))
        self.nodes: list[NodeProto] = []
        self.inputs: dict[str, Kind] = {}
        self.weights: dict[str, TensorProto] = {}
        self.open_weights: set[str] = set()
        self.kinds: dict[str, Kind] = {}
        self.values: list[str] = []  # values that recipes draw from: no shapes, no constants
        self.made = 0

    # --- drawing

    def chance(self, part: float) -> bool:
        return self.rng.random() < part

    def size(self) -> Size:
        if self.dims and self.chance(0.4):
            return self.rng.choice(self.dims)
        return self.rng.choice((1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 0 if self.chance(0.1) else 2))

    def rank(self, name: str) -> int:
        return len(self.kinds[name][1])

    def shape(self, name: str) -> tuple[Size, ...]:
        return self.kinds[name][1]

    def any(self, dtypes: Iterable[int] = NUMBERS, least: int = 0, *, most: int = 9) -> str:
        """A value of one of the dtypes and of at least that rank; often a late one."""
        found = [v for v in self.values if self.kinds[v][0] in dtypes and least <= self.rank(v) <= most]
        if not found:
            raise MisfitError("no such value")
        return self.rng.choice(found[-3:] if self.chance(0.6) else found)

    def some_axes(self, name: str) -> list[int]:
        rank = self.rank(name)
        if not rank:
            raise MisfitError("no axis")
        return sorted(self.rng.sample(range(rank), self.rng.randint(1, rank) if self.chance(0.4) else 1))

    def sign(self, axis: int, rank: int) -> int:
        """The axis, sometimes counted from the end."""
        return axis - rank if self.chance(0.4) else axis

    def partner(self, name: str, dtype: int | None = None) -> str:
        """Something that broadcasts with the value, of its dtype: another value, itself or a constant."""
        dtype, shape = dtype or self.kinds[name][0], self.shape(name)
        found = [v for v in self.values if self.kinds[v][0] == dtype and fits(self.shape(v), shape)]
        if found and self.chance(0.6):
            return self.rng.choice(found)
        return self.weight(dtype, self.like(shape))

    def like(self, shape: Sequence[Size]) -> list[int]:
        """A constant shape that broadcasts into this one."""
        sizes = [size if isinstance(size, int) and self.chance(0.6) else 1 for size in shape]
        return sizes[self.rng.randint(0, len(sizes)) :] if self.chance(0.5) else sizes if self.chance(0.6) else []

    # --- building

    def fresh(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    def input(self) -> None:
        shape = tuple(self.size() for _ in range(self.rng.choice((0, 1, 2, 2, 3, 3, 3, 4, 4))))
        if not self.inputs:
            shape += tuple(dim for dim in self.dims if dim not in shape)
        elif self.chance(0.5):
            shape = self.shape(self.rng.choice(self.values))
        dtype = self.main if not self.inputs or self.chance(0.7) else self.rng.choice((F32, F16, F64, I32, I64, BOOL))
        shape = tuple(s for s in shape if isinstance(s, int) or not self.inputs or s in self.named())
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.kinds[name] = (dtype, shape)
        self.values.append(name)

    def named(self) -> set[str]:
        return {size for _, shape in self.inputs.values() for size in shape if isinstance(size, str)}

    def const(self, data: object, dtype: int = I64) -> str:
        """A constant: an initializer, or a Constant node."""
        array = np.asarray(data).astype(helper.tensor_dtype_to_np_dtype(dtype))
        name = self.fresh("c")
        tensor = numpy_helper.from_array(array, name)
        self.kinds[name] = (dtype, array.shape)
        if self.chance(0.2):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            self.weights[name] = tensor
        return name

    def weight(self, dtype: int, shape: Sequence[int]) -> str:
        """Numbers of that type; sometimes an initializer that is an input too."""
        rng, count = self.rng, int(np.prod(shape, dtype=int))
        pool: tuple[float, ...] = (
            (0, 1, 1, 2, -1, 3) if dtype not in FLOATS else (0, 1, 1, 2, -1, 0.5, 0.37, -1.9, 1e-5)
        )
        if dtype == BOOL:
            pool = (0, 1)
        data = [rng.choice(pool)] * count if self.chance(0.4) else [rng.choice(pool) for _ in range(count)]
        name = self.const(np.array(data, np.float64).reshape(shape), dtype)
        if name in self.weights and self.chance(0.08):
            self.open_weights.add(name)
        return name

    def put(
        self, op: str, operands: Sequence[str], results: int = 1, *, shape: Sequence[Size] | None = None,
        hidden: bool = False, dtype: int | None = None, **attributes: object,
    ) -> list[str]:  # fmt: skip
        """Add a node; ``shape`` is what its first result has where inference cannot tell. Raises ``MisfitError``."""
        names = [self.fresh("v") for _ in range(results)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        node = helper.make_node(op, list(operands), names, **kept)
        types = {name: _type(self.kinds[name]) for name in operands if name}
        data = {n: self.weights[n] for n in operands if n in self.weights and n not in self.open_weights}
        for made in self.nodes:
            if made.op_type == "Constant" and made.output[0] in operands:
                data[made.output[0]] = made.attribute[0].t
        try:
            schema = onnx.defs.get_schema(op, self.opset, "")
            found = shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=[helper.make_opsetid("", self.opset)]
            )
        except Exception as error:
            raise MisfitError(str(error)) from None
        kinds = {}
        for number, name in enumerate(names):
            if name not in found:
                raise MisfitError(f"{op} has no type")
            kinds[name] = _kind(found[name], shape if number == 0 else None)
        self.kinds.update(kinds)
        self.nodes.append(node)
        if not hidden:
            self.values += names
        return names

    def one(self, op: str, *operands: str, **attributes: object) -> str:
        return self.put(op, operands, **attributes)[0]  # type: ignore[arg-type]

    def swapped(self, op: str, a: str, b: str) -> str:
        """A commutative operation in either order."""
        return self.one(op, *((a, b) if self.chance(0.5) else (b, a)))

    def _with_axes(self, op: str, x: str, axes: Sequence[int] | None, since: int, **attributes: object) -> str:
        if axes is not None and self.opset >= since:
            return self.one(op, x, self.const(list(axes)), **attributes)
        return self.one(op, x, axes=None if axes is None else list(axes), **attributes)

    def reduce(self, op: str, x: str, axes: Sequence[int] | None, keepdims: int | None = 1) -> str:
        """A reduction in the opset's form."""
        rank = self.rank(x)
        given = None if axes is None else [self.sign(axis, rank) for axis in axes]
        if keepdims == 1 and self.chance(0.5):
            keepdims = None
        return self._with_axes(op, x, given, 13 if op == "ReduceSum" else 18, keepdims=keepdims)

    def squeeze(self, x: str, axes: Sequence[int]) -> str:
        """Below opset 11 ONNX's inference keeps the axes behind one that is not in order, which the kernel drops."""
        axes = axes if self.opset >= _AXES_IN_ANY_ORDER else sorted(axes)
        return self._with_axes("Squeeze", x, axes, 13)

    def unsqueeze(self, x: str, axes: Sequence[int]) -> str:
        return self._with_axes("Unsqueeze", x, axes, 13)

    # --- the whole

    def model(self, recipes: Sequence[tuple[int, Callable[[Grower], object]]]) -> ModelProto:
        rng = self.rng
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            self.input()
        wanted = rng.choice((1, 2, 4, 6, 8, 12, 16, 20))
        weights = [weight for weight, _ in recipes]
        for _ in range(wanted * 5):
            if len(self.nodes) >= wanted:
                break
            self._grow(rng.choices(recipes, weights)[0][1])
        return self._finished()

    def _grow(self, recipe: Callable[[Grower], object]) -> None:
        nodes, values = len(self.nodes), len(self.values)
        try:
            recipe(self)
        except MisfitError:
            if not self.chance(0.5):  # half of the time what was begun stays
                del self.nodes[nodes:], self.values[values:]

    def _finished(self) -> ModelProto:
        rng = self.rng
        used = {name for node in self.nodes for name in node.input}
        made = [name for name in self.values if name not in self.inputs]
        outputs = [name for name in made if name not in used]
        rest = [name for name in made if name in used]
        outputs = rng.sample(outputs, min(len(outputs), 5))
        if rest and self.chance(0.3):
            outputs += rng.sample(rest, min(len(rest), rng.choice((1, 1, 2))))
        if not outputs:
            raise MisfitError("nothing was made")
        graph = helper.make_graph(
            self.nodes,
            "fuzz",
            [*(_info(n, k) for n, k in self.inputs.items())],
            [_info(name, self.kinds[name]) for name in outputs],
            list(self.weights.values()),
        )
        graph.input.extend(_info(name, self.kinds[name]) for name in sorted(self.open_weights))
        if self.chance(0.2):
            graph.value_info.extend(_info(n, self.kinds[n]) for n in rest if n not in outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        return cleaned(model)


def cleaned(model: ModelProto) -> ModelProto:
    """Without nodes, inputs and weights that nothing uses."""
    out = ModelProto()
    out.CopyFrom(model)
    used, nodes = {info.name for info in out.graph.output}, []
    for node in reversed(model.graph.node):
        if used.intersection(node.output):
            nodes.append(node)
            used.update(values_read_by(node))
    made = {name for node in nodes for name in node.output}
    parts = {
        "node": nodes[::-1],
        "input": [info for info in model.graph.input if info.name in used and info.name not in made],
        "initializer": [tensor for tensor in model.graph.initializer if tensor.name in used],
        "value_info": [info for info in model.graph.value_info if info.name in made],
    }
    for name, part in parts.items():
        out.graph.ClearField(name)
        getattr(out.graph, name).extend(part)
    return out


def _type(kind: Kind) -> TypeProto:
    return helper.make_tensor_type_proto(kind[0], list(kind[1]))


def _info(name: str, kind: Kind) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind[0], list(kind[1]))


def _kind(type_: TypeProto, shape: Sequence[Size] | None) -> Kind:
    tensor = type_.tensor_type
    if shape is not None:
        return tensor.elem_type, tuple(shape)
    if not tensor.HasField("shape"):
        raise MisfitError("unknown rank")
    sizes: list[Size] = []
    for dim in tensor.shape.dim:
        if dim.dim_param:
            sizes.append(dim.dim_param)
        elif dim.HasField("dim_value"):
            sizes.append(dim.dim_value)
        else:
            raise MisfitError("unknown size")
    return tensor.elem_type, tuple(sizes)


def generate(seed: int) -> ModelProto:
    """The model of that seed: the first that is valid of those it begins."""
    from tools.fuzz.onnx_patterns import PATTERNS
    from tools.fuzz.onnx_recipes import OPERATORS

    for attempt in range(50):
        try:
            model = Grower(f"{seed}/{attempt}").model((*OPERATORS, *PATTERNS))
        except MisfitError:
            continue
        if is_valid(model):
            return model
    raise AssertionError(f"seed {seed} yields no valid model")


def of_pattern(pattern: Callable[[Grower], object], seed: int = 0) -> ModelProto:
    """The first valid model of a written-out pattern that the seed leads to."""
    for attempt in range(200):
        try:
            model = Grower(f"{pattern.__name__}/{seed}/{attempt}").model(((1, pattern),))
        except MisfitError:
            continue
        if model.graph.node and is_valid(model):
            return model
    raise AssertionError(f"{pattern.__name__} yields no valid model")
