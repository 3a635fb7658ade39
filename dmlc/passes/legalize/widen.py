"""A missing kernel is replaced by the kernel of a wider type, with casts around it; and the base of these rules."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.diagnostics import DmlcError, Label, fail
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import Attributes, DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import f64, i8, i16, i32, i64, u8, u16, u32, u64
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, GatherAttributes
from dmlc.ops.move import PadAttributes
from dmlc.passes.node_maker import Maker, dtype_of
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.targets.needed_kernels import NEEDS, Need


class LegalRule(Rule[Match]):
    """A rule whose root alone says whether it fires. A node as an imported model has it is what its user runs.

    ``keeps_promise`` rules see to what the language says and ONNX does not (integers that wrap): imported models have
    what their runtime does. ``for_cpu`` rules replace what ONNX Runtime's CPU provider lacks or computes wrongly: a
    node that the execution provider computes stays where the CPU need not run it.
    """

    optional = False
    keeps_promise: ClassVar[bool] = False
    for_cpu: ClassVar[bool] = False

    def match(self, node: Node, graph: Graph) -> Match | None:
        if (node.origin is not None and not _is_lowered(node, graph)) or (self.keeps_promise and graph.dims.least == 0):
            return None
        if self.for_cpu and self.capabilities.is_native(node.op, dtype_of(node)):
            return None
        return Match(node) if self.wants(node, graph) else None

    @abstractmethod
    def wants(self, node: Node, graph: Graph) -> bool:
        """Return whether the node is not legal as it stands."""

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [self.make(match.root, Maker(rewriter))]

    def make(self, node: Node, make: Maker) -> Value:
        """Return the replacement of the only result."""
        raise NotImplementedError


#: From here on a lower opset takes what a higher one does, but for types that the language lacks.
_WIDE_OPSET = 20


def _is_lowered(node: Node, graph: Graph) -> bool:
    """Return whether an imported node has an older opset, whose operator may not take its type."""
    return bool(graph.opset < min(node.origin.version, _WIDE_OPSET))


class WidenDtype(LegalRule):
    """A node whose dtype has no kernel is computed in a wider one, with casts around it.

    The rule of the table: it comes after the others, so what it cannot do nobody can.
    """

    name = "widen-dtype"
    roots: ClassVar[tuple[Operation, ...]] = tuple(NEEDS)

    def wants(self, node: Node, graph: Graph) -> bool:
        dtype = _dtype(node)
        home = self.capabilities.compute_dtype(node.op, dtype)
        if home is None:
            raise self._refuse(node, dtype)
        return home is not dtype

    def describe(self, match: Match) -> str:
        dtype = _dtype(match.root)
        return f"{match.root.op.name} of {dtype.name} in {self.capabilities.compute_dtype(match.root.op, dtype)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        need, dtype = NEEDS[node.op], _dtype(node)
        home = self.capabilities.compute_dtype(node.op, dtype)
        assert home is not None
        which = range(len(node.operands)) if need.operands is None else need.operands
        operands = [make.cast(v, home) if v is not None and i in which else v for i, v in enumerate(node.operands)]
        wide = rewriter.add_node(node.op, operands, _adapted(node.attributes, dtype))
        back = range(len(node.results)) if need.results is None else need.results
        return [
            make.cast(new, old.type.dtype) if i in back else new
            for i, (new, old) in enumerate(zip(wide.results, node.results, strict=True))
        ]

    def _refuse(self, node: Node, dtype: DType) -> DmlcError:
        labels = [Label(span) for span in node.spans[:1]]
        kernels = " and ".join(name for name, _ in NEEDS[node.op].kernels)
        message = f"{node.op.name} of {dtype.name} has no exact form: ONNX Runtime has no such kernel of {kernels}"
        wide = "f32" if dtype is f64 else "a dtype that it takes"
        return fail(
            codes.NO_EXACT_FORM, message, *labels, help=f"cast the operand to {wide}, if the precision suffices"
        )


def _dtype(node: Node) -> DType:
    need: Need = NEEDS[node.op]
    return node.operand(need.operands[0] if need.operands else 0).type.dtype


def _adapted(attributes: Attributes, dtype: DType) -> Attributes:
    if isinstance(attributes, PadAttributes) and dtype.kind == "bool":
        return replace(attributes, value=int(attributes.value))
    return attributes


class SignedIndices(LegalRule):
    """Unsigned indices are cast to i64: ONNX takes i32 and i64, and GatherND i64 only."""

    name = "signed-indices"
    roots: ClassVar[tuple[Operation, ...]] = (GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS)

    def wants(self, node: Node, graph: Graph) -> bool:
        dtype = node.operand("i").type.dtype
        is_nd = node.op is GATHER and node.attributes_as(GatherAttributes).batch_axes > 0
        return dtype in (u32, u64) or (is_nd and dtype is not i64)

    def make(self, node: Node, make: Maker) -> Value:
        operands = [make.cast(v, i64) if i == 1 else v for i, v in enumerate(node.operands) if v is not None]
        return make(node.op, *operands, attributes=node.attributes)


#: Integer types whose sums i64 holds, and f64 too unless there are millions of the largest.
NARROW: tuple[DType, ...] = (i8, i16, i32, u8, u16, u32)
RULES: tuple[type[LegalRule], ...] = (SignedIndices,)
