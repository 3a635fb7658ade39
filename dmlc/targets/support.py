"""Queries of a target's execution provider: its kernels, and its known faults."""

from __future__ import annotations

from dmlc.ir import DType
from dmlc.targets.provider import Failure, Kernel, Provider, provider
from dmlc.targets.target import Target


class ProviderSupport:
    """The provider of a target at an opset, asked by ONNX operator. Answers are kept.

    A target without a provider has no kernels and no faults here: ``kernel`` is None for each operator.
    """

    def __init__(self, target: Target, opset: int) -> None:
        self.target = target
        self.opset = opset
        self._kernels: dict[tuple[str, str], Kernel | None] = {}
        self._found: dict[tuple[str, str], Failure | None] = {}

    @property
    def exists(self) -> bool:
        """True if the target names a provider."""
        return self.target.provider is not None

    @property
    def table(self) -> Provider | None:
        return None if self.target.provider is None else provider(self.target.provider)

    def kernel(self, op_type: str, domain: str = "") -> Kernel | None:
        """The kernel that takes the operator at the opset."""
        table = self.table
        if table is None:
            return None
        key = (domain, op_type)
        if key not in self._kernels:
            row = table.row(domain, op_type)
            self._kernels[key] = None if row is None else row.kernel(self.opset, self.target.release)
        return self._kernels[key]

    def of_kernel(self, failure: str, op_type: str) -> Failure | None:
        """The row of that id, if it is about the kernel that takes the operator at the opset in this release."""
        key = (failure, op_type)
        if key not in self._found:
            self._found[key] = next((f for f in self._failures(op_type) if f.id == failure), None)
        return self._found[key]

    def _failures(self, op_type: str) -> list[Failure]:
        kernel, table = self.kernel(op_type), self.table
        if kernel is None or table is None:
            return []
        return [f for f in table.failures_of(op_type, self.target.release) if not f.since or kernel.since in f.since]

    def has_type(self, failure: str, op_type: str, parameter: str, dtype: DType) -> bool:
        """True if the row is about the operator's kernel, and that dtype of one of its type parameters."""
        found = self.of_kernel(failure, op_type)
        return found is not None and found.types is not None and dtype.name in found.types.get(parameter, ())

    def leaves(self, op_type: str, dtype: DType, parameter: str = "T", domain: str = "") -> bool:
        """True if the provider leaves the operator on the dtype to others: no kernel takes it."""
        kernel = self.kernel(op_type, domain)
        return kernel is None or dtype.name not in kernel.types.get(parameter, ())

    def computes(self, op_type: str, dtype: DType, parameter: str = "T") -> bool:
        """True if the provider runs the operator on the dtype: a kernel takes it, and no session fails for the type."""
        return not self.leaves(op_type, dtype, parameter) and not any(
            f.effect == "fails" and f.types is not None and dtype.name in f.types.get(parameter, ())
            for f in self._failures(op_type)
        )
