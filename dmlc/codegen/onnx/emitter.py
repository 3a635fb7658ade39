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
from dmlc.ir import DType, Shape, Tensor
from dmlc.onnx_schema.reshapes import ALLOWZERO_OPSET, copied_sizes

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
        spelled = copied_sizes(self.graph.dims, have, want)
        if spelled is not None and self.opset >= ALLOWZERO_OPSET and self.reads_in_one(want, rather_than=spelled):
            return self.op("Reshape", [name, self.sizes(want)], allowzero=1)
        if spelled is not None:
            return self.op("Reshape", [name, self.sizes(spelled)])
        if self.opset < ALLOWZERO_OPSET:
            raise fail(
                codes.NEEDS_OPSET,
                f"a reshape to [{', '.join(map(str, want))}], whose sizes may be 0, needs opset 14",
                help=f"compile with {option('--opset ', 'opset=')}14, or declare the dims as 1 or more",
            )
        for size in want:
            self.merge(size, name, have)
        return self.op("Reshape", [name, self.sizes(want)], allowzero=1)
