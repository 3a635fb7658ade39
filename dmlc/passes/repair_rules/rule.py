"""How the rules of ``repair`` are shaped, and what they know of the provider."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

from dmlc.ir import DType
from dmlc.passes.manager import PassContext
from dmlc.passes.rewrite import Match, Rule
from dmlc.targets import Target
from dmlc.targets.provider import Failure, Kernel, provider

M = TypeVar("M", bound=Match)


class Trouble:
    """What is known to go wrong with a target's provider at an opset: the rows of its table, asked by their ids.

    Answers are kept: each is looked for once.
    """

    def __init__(self, target: Target, opset: int) -> None:
        self.target = target
        self.opset = opset
        self._kernels: dict[str, Kernel | None] = {}
        self._found: dict[tuple[str, str], Failure | None] = {}

    @classmethod
    def of(cls, context: PassContext) -> Trouble:
        return cls(context.target, context.opset)

    def kernel(self, op_type: str) -> Kernel | None:
        """The kernel that takes the operator at the opset."""
        if self.target.provider is None:
            return None
        if op_type not in self._kernels:
            row = provider(self.target.provider).row("", op_type)
            self._kernels[op_type] = None if row is None else row.kernel(self.opset, self.target.release)
        return self._kernels[op_type]

    def of_kernel(self, failure: str, op_type: str) -> Failure | None:
        """The row of that id, where it is about the kernel that takes the operator at the opset."""
        key = (failure, op_type)
        if key not in self._found:
            self._found[key] = self._find(failure, op_type)
        return self._found[key]

    def _find(self, failure: str, op_type: str) -> Failure | None:
        kernel = self.kernel(op_type)
        if kernel is None or self.target.provider is None:
            return None
        rows = provider(self.target.provider).failures_of(op_type)
        found = next((f for f in rows if f.id == failure), None)
        return None if found is None or (found.since and kernel.since not in found.since) else found

    def has_type(self, failure: str, op_type: str, parameter: str, dtype: DType) -> bool:
        """Whether the row is about the operator's kernel, and that dtype of one of its type parameters."""
        found = self.of_kernel(failure, op_type)
        return found is not None and found.types is not None and dtype.name in found.types.get(parameter, ())


class RepairRule(Rule[M], Generic[M]):
    """A rule that makes what the provider computes wrongly, not at all, or on the CPU, from what it has.

    ``repairs`` are the ids of the provider's known failures that it sees to; their rows say for which operators,
    types and versions. The target cannot do without those that keep every bit.
    """

    optional = False
    repairs: ClassVar[tuple[str, ...]]

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble
