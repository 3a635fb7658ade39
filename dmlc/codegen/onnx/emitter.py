"""The writer that lowerings emit with: nodes, sizes as ONNX values, and reshapes.

Where a reshape can copy a size with 0 or infer it with -1, no node is made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.codegen.onnx.layouts import LayoutWriter
from dmlc.codegen.onnx.writer import tensor_proto
from dmlc.diagnostics import fail, option
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Dim, DimExpr, DType, Shape, Tensor, product
from dmlc.ir.dim import FloorDiv

#: "To the end" as exporters write it; ONNX clamps.
FAR = 2**63 - 1


class Emitter(LayoutWriter):
    """The state of one emission. Lowerings use ``of``, ``op``, ``ops``, the constants, ``cast``, and the sizes."""

    # --- reshapes

    def reshape(self, name: str, have: Shape, want: Shape, dtype: DType) -> str:
        """The same elements in another shape; the name itself where the shapes are equal."""
        name, have = self.before(name, have, want)
        if have == want:
            return name
        out = self._reshape(name, have, want, dtype)
        self.lay_out(out, name, have)
        return out

    def squeeze(self, op_type: str, name: str, axes: Sequence[int], have: Shape, want: Shape) -> str:
        """Squeeze or Unsqueeze: the axes are an attribute below opset 13."""
        source, shape = self.before(name, have, want)
        if shape == want:
            return source
        if self.opset < 13:
            out = self.op(op_type, [name], axes=tuple(axes))
        else:
            out = self.op(op_type, [name, self.ints(axes)])
        self.lay_out(out, name, have)
        return out

    def _reshape(self, name: str, have: Shape, want: Shape, dtype: DType) -> str:
        if all(isinstance(size, int) for size in want) and 0 in want:
            return self.tensor(Tensor(np.zeros([size for size in want if isinstance(size, int)], dtype.numpy)))
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
                help=f"compile with {option('--opset ', 'opset=')}14, or declare the dims as 1 or more",
            )
        for size in want:
            self.merge(size, name, have)
        return self.op("Reshape", [name, self.sizes(want)], allowzero=1)

    def _spell(self, have: Shape, want: Shape) -> tuple[Dim, ...] | None:
        """``want`` with 0 for the input's own sizes and -1 for one that is left; None where a size that must be
        computed may be 0, which Reshape would read as a copy."""
        dims = self.graph.dims
        out = [0 if not isinstance(d, int) and i < len(have) and have[i] == d else d for i, d in enumerate(want)]
        left = [i for i, d in enumerate(out) if not isinstance(d, int)]
        if not left:
            return tuple(out)
        divisors = {
            d for i in left for d in _divisors(want[i])
        }  # not 0, or the size that is divided would have no value
        # -1 stands for the most intricate size, where the others are known to hold an element.
        for spared in sorted(left, key=lambda i: -len(str(want[i]))):
            others = [d for i, d in enumerate(want) if i != spared and d not in divisors]
            if dims.interval(product(others))[0] >= 1:
                out[spared] = -1
                left.remove(spared)
                break
        if any(dims.interval(want[i])[0] < 1 and want[i] not in divisors for i in left):
            return None
        # ONNX Runtime's ReshapeFusion makes -1 of a computed size, which fails beside a copied one that is 0; it leaves
        # alone what has allowzero.
        if left and self.opset >= 14 and any(dims.promises_empty(want[i]) for i, d in enumerate(out) if d == 0):
            return None
        return tuple(out)


def _divisors(size: Dim) -> set[Dim]:
    """The sizes that a quotient divides by, which are not 0 wherever the quotient is defined."""
    found: set[Dim] = set()
    if isinstance(size, DimExpr):
        atoms = [atom for monomial, _ in size.terms for atom in monomial if isinstance(atom, FloorDiv)]
        for atom in atoms:
            found.add(atom.denominator)
            if isinstance(atom.denominator, DimExpr) and len(atom.denominator.terms) == 1:
                ((factors, _),) = atom.denominator.terms
                found.update(DimExpr((((factor,), 1),)) for factor in factors)
    return found
