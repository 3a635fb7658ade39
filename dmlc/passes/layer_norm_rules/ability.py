"""Support of the target for layer and RMS normalization."""

from __future__ import annotations

from dmlc.ir import DType, Operation
from dmlc.ir.dtype import f64
from dmlc.ops.normalize import LAYER_NORM, RMS_NORM
from dmlc.passes.manager import PassContext
from dmlc.passes.rewrite import Miss
from dmlc.records import dataclass
from dmlc.targets import Target, kernel_table


@dataclass(frozen=True, slots=True)
class Ability:
    """Support for a normalization as one node on the target; the lowerings use the same conditions."""

    target: Target
    opset: int

    @classmethod
    def of(cls, context: PassContext) -> Ability:
        return cls(context.target, context.opset)

    def why_not(self, op: Operation, dtype: DType) -> Miss | None:
        table = kernel_table(self.target)
        if table is None:
            return Miss("the target {0} has no such operator", (self.target.name,))
        if dtype is f64:
            return Miss("the fused operator takes its statistics and epsilon in f32, and this is f64")
        wanted = _OPERATOR[op]
        if op is RMS_NORM and self.target.own_schemas:
            wanted = (_OWN, 1)
        name, first = wanted
        if self.opset < first:
            return Miss("{0} needs opset {1}, and opset {2} is emitted", (name, first, self.opset))
        if table.is_wrong(name, dtype):
            return Miss("{0} of {1} loses large means in the installed ONNX Runtime", (name, dtype))
        return None


_OWN = "SimplifiedLayerNormalization"
_OPERATOR = {LAYER_NORM: ("LayerNormalization", 17), RMS_NORM: ("RMSNormalization", 23)}
