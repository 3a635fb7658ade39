"""Capabilities of a target: its kernels, its execution provider with the known faults, and its costs."""

from __future__ import annotations

from collections.abc import Mapping

from dmlc.ir import DTYPE_BY_NAME, DType, Operation
from dmlc.ir.dtype import i64
from dmlc.targets.cost import CostModel, cost_model
from dmlc.targets.directml import OperatorRow, operator_rows
from dmlc.targets.kernel_rows import KernelTable
from dmlc.targets.kernels import kernel_table
from dmlc.targets.needed_kernels import NEEDS
from dmlc.targets.provider import Failure, Kernel, Provider, ProviderRow, provider
from dmlc.targets.target import Target


class Capabilities:
    """Kernels, known faults and costs of a target at an opset: the one object that passes and placement ask.

    ``kernel``, ``fault`` and the like are about the target's execution provider; a target without one has no kernels
    and no faults there. ``takes``, ``compute_dtype`` and ``has_kernel`` are about the kernels that nodes are made legal
    for; a target without such a table takes everything. Answers are kept.
    """

    def __init__(self, target: Target, opset: int, options: Mapping[str, str] | None = None) -> None:
        """``options`` go to the provider in a session; without them, whatever a compiled model may ask for."""
        self.target = target
        self.options = options
        self.opset = opset
        self._kernels: dict[tuple[str, str], Kernel | None] = {}
        self._faults: dict[tuple[str, str], Failure | None] = {}
        self._dtypes: dict[tuple[Operation, DType], DType | None] = {}
        self._accepted: dict[tuple[str, str], frozenset[str]] = {}

    # --- the execution provider

    @property
    def provider(self) -> Provider:
        """The table of the execution provider. Raises ``ValueError`` if the target names none."""
        if self.target.provider is None:
            raise ValueError(f"target {self.target.name} has no provider")
        return provider(self.target.provider)

    @property
    def has_provider(self) -> bool:
        """True if the target names an execution provider, which dispatches nodes: top_k once for each row, an arg
        reduction once for all."""
        return self.target.provider is not None

    @property
    def device(self) -> str:
        """The name of the provider's device in messages."""
        return self.provider.device

    def cite(self, operator: str) -> str:
        """The row of the provider's table that an answer about the operator comes from."""
        return f"{self.provider.cite}, row {operator} ({self.provider.date})"

    def row(self, op_type: str, domain: str = "") -> ProviderRow | None:
        """The provider's row of the operator, in the target's release."""
        row = self.provider.row(domain, op_type) if self.has_provider else None
        return None if row is None else row.in_release(self.target.release)

    def kernel(self, op_type: str, domain: str = "") -> Kernel | None:
        """The provider's kernel that takes the operator at the opset."""
        key = (domain, op_type)
        if key not in self._kernels:
            row = self.provider.row(domain, op_type) if self.has_provider else None
            found = None if row is None else row.kernel(self.opset, self.target.release)
            self._kernels[key] = found.with_int64() if found is not None and self._has_int64 else found
        return self._kernels[key]

    @property
    def _has_int64(self) -> bool:
        return self.options is None or self.provider.session.int64_options.items() <= self.options.items()

    def faults(self, op_type: str, domain: str = "") -> tuple[Failure, ...]:
        """The known faults of the operator in the target's release, whatever kernel takes it."""
        found = self.provider.failures_of(op_type, self.target.release, domain) if self.has_provider else ()
        given = (self.options or {}).items()
        return tuple([f for f in found if not f.unless or not f.unless.items() <= given])

    def fault(self, name: str, op_type: str) -> Failure | None:
        """The fault of that id, if it is about the kernel that takes the operator at the opset in this release."""
        key = (name, op_type)
        if key not in self._faults:
            self._faults[key] = next((f for f in self._faults_here(op_type) if f.id == name), None)
        return self._faults[key]

    def _faults_here(self, op_type: str) -> list[Failure]:
        kernel = self.kernel(op_type)
        if kernel is None:
            return []
        return [f for f in self.faults(op_type) if not f.since or kernel.since in f.since]

    def has_fault(self, name: str, op_type: str, parameter: str, dtype: DType) -> bool:
        """True if the fault is about the operator's kernel, and that dtype of one of its type parameters."""
        found = self.fault(name, op_type)
        return found is not None and found.types is not None and dtype.name in found.types.get(parameter, ())

    def leaves(self, op_type: str, dtype: DType, parameter: str = "T", domain: str = "") -> bool:
        """True if the provider leaves the operator on the dtype to others: no kernel takes it."""
        kernel = self.kernel(op_type, domain)
        return kernel is None or dtype.name not in kernel.types.get(parameter, ())

    def reaches(self, op_type: str, domain: str = "") -> bool:
        """True if the feature level of the target has the DirectML operator that the provider's kernel calls."""
        row = self.row(op_type, domain)
        known = operator_rows().get(row.directml[0]) if row is not None and row.directml else None
        return known is None or known.at(self.target.feature_level or "") is not None

    def computes(self, op_type: str, dtype: DType, parameter: str = "T") -> bool:
        """True if the provider runs the operator on the dtype: a kernel takes it, and no session fails for the type."""
        return not self.leaves(op_type, dtype, parameter) and not any(
            f.effect == "fails" and f.is_of_types and dtype.name in (f.types or {}).get(parameter, ())
            for f in self._faults_here(op_type)
        )

    def accepts(self, op_type: str, dtype: DType, parameter: str = "T") -> bool:
        """True if the provider computes the operator on the dtype, ONNX has it, and DirectML's own operator takes it at
        the feature level of the target."""
        key = (op_type, parameter)
        if key not in self._accepted:
            self._accepted[key] = self._accepted_types(op_type, parameter)
        return dtype.name in self._accepted[key]

    def _accepted_types(self, op_type: str, parameter: str) -> frozenset[str]:
        kernel, row = self.kernel(op_type), self.row(op_type)
        if kernel is None or row is None:
            return frozenset()
        row = row.of_kernel(kernel)
        known = operator_rows().get(row.directml[0]) if row.directml else None
        limits = [] if known is None or row.tensors is None else self._limits(known, row, parameter)
        return frozenset(
            name
            for name in kernel.types.get(parameter, frozenset()) - kernel.not_onnx.get(parameter, frozenset())
            if name in DTYPE_BY_NAME and self.computes(op_type, DTYPE_BY_NAME[name], parameter)
            if all(("u8" if name == "bool" else name) in types for types in limits)  # truth values are bytes there
        )

    def _limits(self, known: OperatorRow, row: ProviderRow, parameter: str) -> list[frozenset[str]]:
        """The types of the tensors of a DirectML operator that a type parameter stands for; one of none where the
        operator does not exist yet."""
        tensors = known.at(self.target.feature_level or "")
        if tensors is None:
            return [frozenset()]
        slots = {f"i{index}" for index, name in enumerate(row.inputs) if name == parameter}
        slots |= {f"o{index}" for index, name in enumerate(row.outputs) if name == parameter}
        named = (row.tensors or {}).items()
        return [tensors[tensor].types for tensor, slot in named if slot in slots and tensor in tensors]

    def is_native(self, op: Operation, dtype: DType) -> bool:
        """Return whether the provider computes the operation on the dtype, and no other has to run the artifact."""
        return not self.target.runs_on_cpu and all(
            self.accepts(name, dtype, parameter) for name, parameter in NEEDS[op].kernels
        )

    @property
    def sums_on_provider(self) -> bool:
        """True if the provider adds i64, and has no matrix product of it to do so."""
        return self.computes("ReduceSum", i64) and not self.computes("MatMul", i64)

    # --- the kernels that nodes are made legal for

    @property
    def table(self) -> KernelTable | None:
        """The kernel table that nodes are made legal for; None for NumPy code and text."""
        return kernel_table(self.target)

    @property
    def emits_nodes(self) -> bool:
        """True if the target takes ONNX nodes, not NumPy code or text."""
        return self.target.kernels is not None

    def takes(self, op_type: str, dtype: DType, parameter: str = "T", *, inserted: bool | None = None) -> bool:
        """Return whether the ONNX operator has a kernel for the dtype.

        ``inserted`` includes f16 kernels that ONNX Runtime computes in f32 with inserted casts; by default they count
        where the target computes f16 as f16.
        """
        table = self.table
        if table is None or (not self.target.runs_on_cpu and self.accepts(op_type, dtype, parameter)):
            return True
        counted = self.target.native_f16 if inserted is None else inserted
        return dtype in table.dtypes(op_type, self.opset, parameter, inserted=counted)

    def is_wrong(self, op_type: str, dtype: DType) -> bool:
        """True if the release of the runtime is known to compute the operator wrongly on the dtype."""
        table = self.table
        return table is not None and table.is_wrong(op_type, dtype)

    def compute_dtype(self, op: Operation, dtype: DType) -> DType | None:
        """The dtype itself where the operation's kernels take it, else the wider one to compute in, else None.

        One that the execution provider computes comes before one that it leaves to the CPU.
        f16 stays f16 for DirectML, which has the kernels. For the others it is computed in f32 by casts that stand in
        the graph: those that ONNX Runtime would insert do not round what one node hands to the next.
        """
        if self.table is None:
            return dtype
        key = (op, dtype)
        if key not in self._dtypes:
            need = NEEDS[op]
            wider = (dtype, *need.wider.get(dtype, ()))
            candidates = [d for d in wider if d not in need.wrong or self.is_native(op, d)]
            fits = [
                d
                for d in candidates
                if d in need.rounded_inside or all(self.takes(name, d, parameter) for name, parameter in need.kernels)
            ]
            on_device = (d for d in fits if all(self.computes(name, d, parameter) for name, parameter in need.kernels))
            self._dtypes[key] = next(iter((*on_device, *fits)), None)
        return self._dtypes[key]

    def has_kernel(self, op: Operation, dtype: DType) -> bool:
        """Return whether the operation's kernels take the dtype as it is."""
        return self.compute_dtype(op, dtype) is dtype

    # --- costs

    @property
    def costs(self) -> CostModel | None:
        """The cost model that lowerings are chosen by."""
        return cost_model(self.target)

    def cost_per_element(self, op_type: str, dtype: DType) -> float:
        """The nanoseconds per element that a kernel takes off the last axis, f16 in f32; 0 without a cost model."""
        model = self.costs
        if model is None:
            return 0
        rates = model.rates(op_type, dtype.accumulator)
        return rates.read + rates.run
