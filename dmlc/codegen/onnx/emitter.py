"""What lowerings emit with: nodes, and sizes as ONNX values.

Symbolic sizes come from the shape of an input in which the dim stands alone; each expression is computed once. Where
a reshape can say a size by 0 (as the input's) or -1 (what is left), no node is made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto

from dmlc.codegen.onnx.writer import NodeWriter, tensor_proto
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Dim, DimExpr, DType, Graph, Shape, Value, product, symbol
from dmlc.ir.dim import FloorDiv
from dmlc.ir.dtype import i64
from dmlc.targets import Target

#: "To the end" as exporters write it; ONNX clamps.
FAR = 2**63 - 1


class Emitter(NodeWriter):
    """The state of one emission. Lowerings use ``of``, ``op``, ``ops``, the constants, ``cast``, and the sizes."""

    def __init__(
        self, graph: Graph, target: Target, opset: int, parent: Emitter | None = None, proto: GraphProto | None = None
    ) -> None:
        super().__init__(graph, target, opset, parent, proto)
        self.parent = parent
        # A graph inside a node sees what was computed around it; what it computes is not seen from there.
        self._ones: dict[Dim, str] = {} if parent is None else dict(parent._ones)
        self._vectors: dict[tuple[Dim, ...], str] = {} if parent is None else dict(parent._vectors)
        self._shapes: dict[str, str] = {} if parent is None else dict(parent._shapes)
        self._holders: dict[Dim, tuple[str, int]] = {} if parent is None else dict(parent._holders)

    def hold(self, value: Value) -> None:
        """Remember where a dim stands alone, so that its size can be asked for."""
        holders = self._holders
        for name, axis in value.provides:
            holders.setdefault(symbol(name), (self.of(value), axis))
        for axis, size in enumerate(value.type.shape):
            if not isinstance(size, int) and size not in holders and size.name is not None:
                holders[size] = (self.of(value), axis)

    def size(self, size: Dim) -> str:
        """A size as an i64 vector of one element."""
        if isinstance(size, int):
            return self.ints([size])
        found = self._ones.get(size)
        if found is None:
            found = self._ones[size] = self._expression(size)
        return found

    def size_scalar(self, size: Dim) -> str:
        """A size as an i64 scalar."""
        if isinstance(size, int):
            return self.scalar(size, i64)
        return self.op("Squeeze", [self.size(size)])

    def sizes(self, sizes: Sequence[Dim]) -> str:
        """A shape as an i64 vector."""
        key = tuple(sizes)
        if all(isinstance(s, int) for s in key):
            return self.ints([s for s in key if isinstance(s, int)])
        if len(key) == 1:
            return self.size(key[0])
        found = self._vectors.get(key)
        if found is None:
            found = self._vectors[key] = self._concat(key)
        return found

    def _concat(self, sizes: tuple[Dim, ...]) -> str:
        parts: list[str] = []
        run: list[int] = []
        for size in (*sizes, None):
            if isinstance(size, int):
                run.append(size)
                continue
            if run:
                parts.append(self.ints(run))
                run = []
            if size is not None:
                parts.append(self.size(size))
        return self.op("Concat", parts, axis=0, label=self._label("sizes"))

    def _label(self, kind: str) -> str:
        return f"{kind}_{len(self._ones) + len(self._vectors) + len(self._shapes)}"

    def _expression(self, size: DimExpr) -> str:
        if size.name is not None:
            return self._dim(size)
        total: str | None = None
        for monomial, coefficient in size.terms:
            term: str | None = None
            for atom in monomial:
                factor = self._quotient(atom) if isinstance(atom, FloorDiv) else self.size(DimExpr((((atom,), 1),)))
                term = factor if term is None else self._op("Mul", term, factor)
            if term is None:
                term = self.ints([abs(coefficient)])
            elif abs(coefficient) != 1:
                term = self._op("Mul", term, self.ints([abs(coefficient)]))
            if total is None:
                total = term if coefficient > 0 else self._op("Sub", self.ints([0]), term)
            else:
                total = self._op("Add" if coefficient > 0 else "Sub", total, term)
        assert total is not None
        return total

    def _op(self, op_type: str, a: str, b: str) -> str:
        return self.op(op_type, [a, b])

    def _quotient(self, atom: FloorDiv) -> str:
        a, b = self.size(atom.numerator), self.size(atom.denominator)
        if self.graph.dims.interval(atom.numerator)[0] < 0:
            a = self._op("Sub", a, self._op("Mod", a, b))  # Div truncates; a less its floor remainder divides evenly
        return self._op("Div", a, b)

    def _dim(self, size: DimExpr) -> str:
        found = self._holders.get(size)
        if found is None:
            raise fail(INTERNAL, f"dim {size} stands alone in no value", exit_code=3)
        name, axis = found
        if self.opset >= 15:
            return self.op("Shape", [name], start=axis, end=axis + 1, label=self._label(f"dim_{size}"))
        shape = self._shapes.get(name)
        if shape is None:
            shape = self._shapes[name] = self.op("Shape", [name], label=self._label(f"shape_of_{name}"))
        return self.op("Gather", [shape, self.ints([axis])], axis=0)

    # --- reshapes

    def reshape(self, name: str, have: Shape, want: Shape, dtype: DType) -> str:
        """The same elements in another shape; the name itself where the shapes are equal."""
        if have == want:
            return name
        if 0 in want:
            value = tensor_proto(np.zeros(1, dtype=dtype.numpy))
            return self.op("ConstantOfShape", [self.sizes(want)], value=value)
        spelled = self._spell(have, want)
        if spelled is not None:
            return self.op("Reshape", [name, self.sizes(spelled)])
        if self.opset < 14:
            raise fail(
                codes.NEEDS_OPSET,
                f"a reshape to [{', '.join(map(str, want))}], whose sizes may be 0, needs opset 14",
                help="compile with --opset 14, or declare the dims as 1 or more",
            )
        return self.op("Reshape", [name, self.sizes(want)], allowzero=1)

    def _spell(self, have: Shape, want: Shape) -> tuple[Dim, ...] | None:
        """``want`` with 0 for the input's own sizes and -1 for one that is left; None where a size that must be
        computed may be 0, which Reshape would read as a copy."""
        dims = self.graph.dims
        out = [0 if not isinstance(d, int) and i < len(have) and have[i] == d else d for i, d in enumerate(want)]
        left = [i for i, d in enumerate(out) if not isinstance(d, int)]
        if not left:
            return tuple(out)
        # -1 stands for the most intricate size, where the others are known to hold an element.
        for spared in sorted(left, key=lambda i: -len(str(want[i]))):
            if dims.interval(product([d for i, d in enumerate(want) if i != spared]))[0] >= 1:
                out[spared] = -1
                left.remove(spared)
                break
        if any(dims.interval(want[i])[0] < 1 for i in left):
            return None
        # ONNX Runtime's ReshapeFusion makes -1 of a computed size, which fails beside a copied one that is 0; it leaves
        # alone what has allowzero.
        if left and self.opset >= 14 and any(dims.promises_empty(want[i]) for i, d in enumerate(out) if d == 0):
            return None
        return tuple(out)
