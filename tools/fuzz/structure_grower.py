"""Random ONNX models whose structure varies: unknown ranks and sizes, control flow, functions, names, declarations.

A model begins as those of ``onnx_models``, with values of unknown shape among them. Then parts of it move into
branches, loops and functions, names change, declarations go, and initializers become inputs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx
from onnx import ModelProto, TensorProto, helper

from tools.fuzz.onnx_models import F16, F32, F64, I32, I64, Grower, MisfitError, Size, cleaned

#: The opsets of ONNX's domain, and how often each is drawn.
OPSETS = (7, 8, 9, 10, 11, 11, 12, 12, 13, 13, 14, 15, 16, 17, 17, 18, 18, 19, 20, 20, 21, 21, 22, 23, 24)
#: The IR version that an opset came with, at least (onnx, docs/Versioning.md).
_FIRST_IR = {7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
#: The newest IR version that is drawn.
_LAST_IR = 13
DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 2}
Recipe = Callable[["StructureGrower"], object]


@dataclass(frozen=True)
class StructureModel:
    """A model, and how it is to be saved: ``external`` with its data in a file of its own."""

    model: ModelProto
    external: bool = False
    #: Changes that were made to the model, for the report of a run.
    traits: tuple[str, ...] = field(default=(), compare=False)

    def text(self) -> str:
        text: str = onnx.printer.to_text(self.model)
        return text


class StructureGrower(Grower):
    """Grows values of known shape as its base does, and ``loose`` ones: of a dtype, with at least so many axes."""

    def __init__(self, seed: int | str) -> None:
        super().__init__(seed)
        rng = self.rng = random.Random(f"structure {seed}")
        self.opset = rng.choice(OPSETS)
        self.main = rng.choices((F32, F16, F64, I32, I64), (16, 2, 1, 1, 1))[0]
        self.dims = rng.sample("NMK", rng.choice((0, 0, 1, 1, 2)))
        self.loose: dict[str, tuple[int, int]] = {}
        self.typed: dict[str, onnx.TypeProto] = {}  # sequences, optionals, maps
        self.domains: set[str] = set()

    def size(self) -> Size:
        """No size is 0: over nothing, ONNX Runtime's kernels do not agree with each other."""
        if self.dims and self.chance(0.4):
            return self.rng.choice(self.dims)
        return self.rng.choice((1, 2, 2, 3, 3, 4, 5, 6, 8))

    # --- building

    def raw(
        self, op: str, operands: Sequence[str], results: int = 1, *, domain: str = "", **attributes: object
    ) -> list[str]:
        """Add a node whose results have no known type yet."""
        names = [self.fresh("v") for _ in range(results)]
        kept = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op, list(operands), names, domain=domain, **kept))
        if domain:
            self.domains.add(domain)
        return names

    def lax(self, op: str, operands: Sequence[str], dtype: int, least: int = 0, **attributes: object) -> str:
        """Add a node whose result is loose."""
        name = self.raw(op, operands, **attributes)[0]  # type: ignore[arg-type]
        self.loose[name] = dtype, least
        return name

    def known(self, name: str, dtype: int, shape: Sequence[Size]) -> str:
        """Record that a value has a shape that inference may not see."""
        self.loose.pop(name, None)
        self.kinds[name] = dtype, tuple(shape)
        self.values.append(name)
        return name

    def one_of_shape(self, name: str, rank: int) -> str:
        """The value's Shape; its rank is at least ``rank``."""
        shape = self.raw("Shape", [name])[0]
        self.kinds[shape] = I64, (rank,)
        return shape

    def lax_reduce(self, op: str, x: str, axis: int, dtype: int, keepdims: int) -> str:
        """A reduction over one axis of a loose value, in the opset's form."""
        if self.opset >= (13 if op == "ReduceSum" else 18):
            return self.lax(op, [x, self.const([axis])], dtype, keepdims, keepdims=keepdims)
        return self.lax(op, [x], dtype, keepdims, axes=[axis], keepdims=keepdims)

    def raw_known(self, op: str, operands: Sequence[str], dtype: int) -> str:
        """Add a node of which inference knows the result's rank, but perhaps not its sizes."""
        return self.lax(op, operands, dtype, 1)

    def any_loose(self, dtypes: Sequence[int], least: int = 0) -> str:
        found = [name for name, (dtype, rank) in self.loose.items() if dtype in dtypes and rank >= least]
        if not found:
            raise MisfitError("no such value")
        return self.rng.choice(found[-3:])

    def either(self, dtypes: Sequence[int], least: int = 0) -> tuple[str, int]:
        """A loose value, or one of known shape, and its dtype."""
        if self.chance(0.7):
            try:
                name = self.any_loose(dtypes, least)
                return name, self.loose[name][0]
            except MisfitError:
                pass
        name = self.any(dtypes, least)
        return name, self.kinds[name][0]

    def flag(self, value: bool | None = None) -> str:
        """A condition: a constant, an input, or a comparison of a result."""
        turn = self.rng.randrange(4)
        if turn == 0 or value is not None:
            return self.const(self.rng.choice((True, False)) if value is None else value, TensorProto.BOOL)
        if turn == 1:
            name = f"x{len(self.inputs)}"
            self.inputs[name] = self.kinds[name] = TensorProto.BOOL, ()
            return name
        x = self.any((F32, F64, F16) if turn == 2 else (F32, I32, I64))
        total = self.reduce("ReduceMax", x, None, 0)
        return self.one("Greater", total, self.const(self.rng.choice((0, 1, -1)), self.kinds[x][0]))

    # --- the whole

    def grown(self, recipes: Sequence[tuple[int, Recipe]]) -> ModelProto:
        return self.model(recipes)  # type: ignore[arg-type]

    def _grow(self, recipe: Callable[[Grower], object]) -> None:
        nodes, values, loose = len(self.nodes), len(self.values), dict(self.loose)
        typed, inputs = dict(self.typed), dict(self.inputs)
        try:
            recipe(self)
        except MisfitError:
            del self.nodes[nodes:], self.values[values:]
            self.loose, self.typed, self.inputs = loose, typed, inputs

    def _finished(self) -> ModelProto:
        rng = self.rng
        used = {name for node in self.nodes for name in node.input}
        made = [name for name in (*self.values, *self.loose, *self.typed) if name not in self.inputs]
        ends = [name for name in made if name not in used]
        outputs = rng.sample(ends, min(len(ends), 4))
        rest = [name for name in made if name in used]
        if rest and self.chance(0.4):
            outputs += rng.sample(rest, min(len(rest), rng.choice((1, 1, 2))))
        if not outputs:
            raise MisfitError("nothing was made")
        inputs = [
            helper.make_tensor_value_info(name, dtype, list(shape)) for name, (dtype, shape) in self.inputs.items()
        ]
        graph = helper.make_graph(
            self.nodes, "fuzz", inputs, [self._info(name) for name in outputs], list(self.weights.values())
        )
        graph.input.extend(self._info(name) for name in sorted(self.open_weights))
        if self.chance(0.2):
            infos = [self._info(name) for name in rest if name not in outputs]
            graph.value_info.extend(infos)
        opsets = [helper.make_opsetid("", self.opset), *[helper.make_opsetid(d, DOMAINS[d]) for d in self.domains]]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=self._ir_version())
        return cleaned(model)

    def _ir_version(self) -> int:
        first = _FIRST_IR.get(self.opset, 10)
        if self.chance(0.2):
            return self.rng.randint(3, _LAST_IR)
        return self.rng.choice((first, first, 8, 10, _LAST_IR)) if first <= 8 else self.rng.randint(first, _LAST_IR)

    def _info(self, name: str) -> onnx.ValueInfoProto:
        if name in self.typed:
            return helper.make_value_info(name, self.typed[name])
        if name in self.loose:
            return helper.make_tensor_value_info(name, self.loose[name][0], None)
        dtype, shape = self.kinds[name]
        return helper.make_tensor_value_info(name, dtype, list(shape))
