"""Capabilities of the target for selections, max and min."""

from __future__ import annotations

from dmlc.ir import DType, Operation
from dmlc.ir.dtype import f16, f32, i64, u32, u64
from dmlc.ops.reduce import Reduction
from dmlc.passes.manager import PassContext
from dmlc.passes.rewrite import Miss
from dmlc.records import dataclass
from dmlc.targets import Target, kernel_table
from dmlc.targets.cost import cost_model
from dmlc.targets.support import ProviderSupport


@dataclass(frozen=True, slots=True)
class Goal:
    """The target and the opset that rules ask."""

    target: Target
    opset: int

    @classmethod
    def of(cls, context: PassContext) -> Goal:
        return cls(context.target, context.opset)

    @property
    def has_kernels(self) -> bool:
        """Return whether the target emits ONNX nodes, not NumPy code or text."""
        return self.target.kernels is not None

    @property
    def has_dispatches(self) -> bool:
        """True if nodes are dispatched by an execution provider: top_k once for each row, a search once for all."""
        return self.target.provider is not None

    def cost_per_element(self, op_type: str, dtype: DType) -> float:
        """The nanoseconds per element that a kernel takes off the last axis, f16 in f32; 0 without a cost model."""
        model = cost_model(self.target)
        if model is None:
            return 0
        rates = model.rates(op_type, f32 if dtype is f16 else dtype)
        return rates.read + rates.run

    def takes(self, op_type: str, dtype: DType, *, inserted: bool | None = None) -> bool:
        """Return whether the ONNX operator has a kernel for the dtype.

        ``inserted`` includes f16 kernels that ONNX Runtime computes in f32 with inserted casts.
        """
        table = kernel_table(self.target)
        if table is None:
            return True
        return dtype in table.dtypes(
            op_type, self.opset, inserted=self.target.native_f16 if inserted is None else inserted
        )

    def why_no_extreme(self, op: Operation, dtype: DType) -> Miss | None:
        """The reason against a new ``reduce_max`` or ``reduce_min`` (``op``) of the dtype where there was none.

        i64 (and what is computed in it) is compared wrongly by ONNX Runtime's CPU provider. An execution provider has
        it where a kernel takes the dtype and no session fails for it.
        """
        if not self.has_kernels:
            return None
        if dtype in (i64, u32, u64):
            return Miss("ReduceMax and ReduceMin of {0} need detours: kernels compare large ones wrongly", (dtype,))
        assert isinstance(op, Reduction)
        support, op_type = ProviderSupport(self.target, self.opset), op.onnx
        if support.exists and not support.computes(op_type, dtype):
            return Miss("{0} has no {1} of {2} at opset {3}", (self.target.name, op_type, dtype, self.opset))
        return None
