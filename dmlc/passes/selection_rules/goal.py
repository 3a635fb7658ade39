"""What the target has of selections and extremes."""

from __future__ import annotations

from dmlc.ir import DType
from dmlc.ir.dtype import f64, i8, i64, u8, u32, u64
from dmlc.passes.manager import PassContext
from dmlc.passes.rewrite import Miss
from dmlc.records import dataclass
from dmlc.targets import Target, kernel_table


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
        """Whether nodes become nodes of ONNX, not NumPy code or text."""
        return self.target.kernels is not None

    @property
    def is_directml(self) -> bool:
        return self.target.name == "directml"

    @property
    def is_cpu(self) -> bool:
        return self.target.name == "cpu"

    def takes(self, op_type: str, dtype: DType, *, inserted: bool | None = None) -> bool:
        """Whether the ONNX operator has a kernel for the dtype; ``inserted`` counts f16 that is computed in f32."""
        table = kernel_table(self.target)
        if table is None:
            return True
        return dtype in table.dtypes(
            op_type, self.opset, inserted=self.target.native_f16 if inserted is None else inserted
        )

    def why_no_extreme(self, dtype: DType) -> Miss | None:
        """The reason against making a ``reduce_max`` or ``reduce_min`` of the dtype where there was none.

        i64 (and what is computed in it) is compared wrongly by ONNX Runtime's CPU provider. DirectML's execution
        provider registers f64 and then fails, and leaves 8-bit integers to the CPU below opset 20.
        """
        if not self.has_kernels:
            return None
        if dtype in (i64, u32, u64):
            return Miss("ReduceMax and ReduceMin of {0} need detours: kernels compare large ones wrongly", (dtype,))
        if self.is_directml and (dtype is f64 or (dtype in (i8, u8) and self.opset < 20)):
            return Miss("DirectML has no ReduceMax and ReduceMin of {0} at opset {1}", (dtype, self.opset))
        return None
