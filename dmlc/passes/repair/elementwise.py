"""Repairs of elementwise operations: powers, remainders, truths, casts and clips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ir.dtype import bool_, f16, f32
from dmlc.ops.binary import ADD, AND, DIV, EQUAL, LESS, MOD, MUL, NOT_EQUAL, POW, SUB, XOR
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes, ClipAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import IS_INF, NOT
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.intervals import RangedRule
from dmlc.passes.node_maker import Maker, dtype_of
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class PowerByProducts(Rule[Match]):
    """A power of i32 by a constant becomes products, of which a power of a program is made already."""

    name = "power-by-products"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (POW, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("pow-int",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if (node.op is not POW or node.origin is None) and not is_opaque(node, "Pow"):
            return None
        base, exponent = node.operands[:2]
        if base is None or exponent is None:
            return None
        (failure,) = self.repairs
        data = constant_of(exponent)
        wrong = (
            self.capabilities.has_fault(failure, "Pow", "T", base.type.dtype) and data is not None and data.size == 1
        )
        return Match(node) if wrong else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        data = constant_of(match.root.operand(1))
        number = None if data is None else data.array.reshape(())[()]
        if number is None or not 0 <= number < 2**31 or number != int(number):
            return Miss("the exponent {0} is negative or not an integer", (number,))
        return None

    def describe(self, match: Match) -> str:
        return f"power of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        base = root.operand(0)
        return [make(POW, base, make.cast(root.operand(1), base.type.dtype))]  # legalize makes products of it


class RemainderByDivision(RangedRule, Rule[Match]):
    """A remainder of 64-bit integers becomes a - (a / b) * b, with b added where the signs differ.

    The provider has no kernel of Mod for them, and one of Div, which truncates. Where neither number is negative
    nothing needs to be added. A remainder by zero is unspecified.
    """

    name = "remainder-by-division"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (MOD,)
    repairs: ClassVar[tuple[str, ...]] = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        dtype, ask = dtype_of(node), self.capabilities
        return Match(node) if dtype.is_integer and ask.leaves("Mod", dtype) and not ask.leaves("Div", dtype) else None

    def describe(self, match: Match) -> str:
        return f"remainder of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, make = match.root, Maker(rewriter)
        a, b, dtype = node.operand("a"), node.operand("b"), dtype_of(node)
        rest = make(SUB, a, make(MUL, make(DIV, a, b), b))
        is_positive = self.interval(b, rewriter.graph)[0] >= 0
        if dtype.kind == "uint" or (is_positive and self.interval(a, rewriter.graph)[0] >= 0):
            return [rest]
        zero = make.constant(0, dtype)
        negative = make(LESS, rest, zero)
        if is_positive:
            return [make(WHERE, negative, make(ADD, rest, b), rest)]
        differs = make(XOR, negative, make(LESS, b, zero))
        return [make(WHERE, make(AND, make(NOT_EQUAL, rest, zero), differs), make(ADD, rest, b), rest)]


class EqualTruths(Rule[Match]):
    """``a == b`` of truths becomes ``!(a ^ b)``.

    The provider has no kernel of Equal for truths, and one of Xor.
    """

    name = "equality-of-truths"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (EQUAL,)
    repairs: ClassVar[tuple[str, ...]] = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        has_xor = not self.capabilities.leaves("Xor", bool_)
        return Match(node) if node.operand("a").type.dtype is bool_ and has_xor else None

    def describe(self, match: Match) -> str:
        return "equality of truths"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        differ = rewriter.add(XOR, [match.root.operand("a"), match.root.operand("b")])
        return [rewriter.add(NOT, [differ])]


class InfinityOfHalf(Rule[Match]):
    """``is_inf`` of f16 is asked of the number in f32, which keeps every f16 and its infinities.

    The provider has no kernel of IsInf for f16, and the node would wait for a copy to the CPU.
    """

    name = "infinity-of-half"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (IS_INF, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is not IS_INF and not is_opaque(node, "IsInf"):
            return None
        x = node.operands[0]
        has_kernel = not self.capabilities.leaves("IsInf", f32, "T1")
        return Match(node) if x is not None and x.type.dtype is f16 and has_kernel else None

    def describe(self, match: Match) -> str:
        return "is_inf of f16 in f32"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        wide = Maker(rewriter).cast(match.root.operand(0), f32)
        return list(rewriter.add_node(match.root.op, [wide], match.root.attributes).results)


class TruthByComparison(Rule[Match]):
    """A cast of numbers to bool becomes Not(Equal(x, 0)), of which a NaN is true as it is in the cast."""

    name = "truth-by-comparison"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (CAST, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("cast-bool", "cast-integer-bool", "cast-int-bool")

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is CAST:
            op_type = "Cast"
            if node.attributes_as(CastAttributes).to is not bool_:
                return None
        elif is_opaque(node, "CastLike") and node.result.type.dtype is bool_ and node.operands[0] is not None:
            op_type = "CastLike"
        else:
            return None
        dtype = dtype_of(node)
        is_wrong = any(self.capabilities.has_fault(failure, op_type, "T1", dtype) for failure in self.repairs)
        return Match(node) if is_wrong else None

    def describe(self, match: Match) -> str:
        return f"cast of {dtype_of(match.root)} to bool"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, x = Maker(rewriter), match.root.operand(0)
        return [make(NOT, make(EQUAL, x, make.constant(0, x.type.dtype)))]


class BothBounds(Rule[Match]):
    """A clip with a missing bound gets the lowest or highest number of its dtype."""

    name = "both-bounds"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (CLIP, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("clip-64",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.op is CLIP:
            a = node.attributes_as(ClipAttributes)
            given = [a.min is not None, a.max is not None]
        elif is_opaque(node, "Clip"):
            given = [index < len(node.operands) and node.operands[index] is not None for index in (1, 2)]
        else:
            return None
        if all(given) or node.operands[0] is None:
            return None
        (failure,) = self.repairs
        return Match(node) if self.capabilities.has_fault(failure, "Clip", "T", dtype_of(node)) else None

    def describe(self, match: Match) -> str:
        return f"clip of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root, dtype = match.root, dtype_of(match.root)
        ends = (int(dtype.lowest), int(dtype.highest))
        if root.op is CLIP:
            a = root.attributes_as(ClipAttributes)
            low, high = (end if bound is None else bound for bound, end in zip((a.min, a.max), ends, strict=True))
            return [rewriter.add(CLIP, root.operands, replace(a, min=low, max=high))]
        given = [*root.operands[1:], None, None][:2]
        bounds = [
            Maker(rewriter).constant(end, dtype) if bound is None else bound
            for bound, end in zip(given, ends, strict=True)
        ]
        record = OpaqueAttributes(op_type="Clip", types=(root.result.type,))
        return [rewriter.add(OPAQUE, [root.operand(0), *bounds], record)]
