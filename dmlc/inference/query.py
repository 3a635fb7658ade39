"""The question that a rule answers: one node and what is known of its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dmlc.diagnostics.counted import counted
from dmlc.inference.fact import NOTHING, OPEN, Elements, Fact, Open, as_dim, is_size
from dmlc.ir import Dim, DimExpr, DimTable, Shape, floordiv, product, substitute


class Fault(ValueError):
    """A reason why no runtime loads a node, in words: operands that do not fit one another or the attributes."""


class Query:
    """One node: its operands' facts, its attributes as plain values, and the number of its results.

    A tensor among the attributes is a ``Tensor``, or a fact where the language has no such element type. ``opset`` is
    the version of the operator's domain. ``new_dim`` makes a dim for a size that cannot be expressed. ``windows_fit``
    promises that no window of a pool is larger than the size that it slides over. ``infer`` leaves in ``fault`` why no
    runtime loads the node, and in ``failure`` why it fails in each run though it loads; both are empty for a node that
    runs.
    """

    __slots__ = (
        "attributes",
        "dims",
        "domain",
        "failure",
        "fault",
        "new_dim",
        "op_type",
        "operands",
        "opset",
        "results",
        "windows_fit",
    )

    def __init__(
        self,
        op_type: str,
        operands: Sequence[Fact | None],
        *,
        opset: int,
        results: int = 1,
        domain: str = "",
        attributes: Mapping[str, Any] | None = None,
        dims: DimTable,
        new_dim: Callable[[], Dim],
        windows_fit: bool = False,
    ) -> None:
        self.op_type: str = op_type
        self.domain: str = domain
        self.opset: int = opset
        self.operands: Sequence[Fact | None] = operands
        self.attributes: Mapping[str, Any] = attributes or {}
        self.results: int = results
        self.dims: DimTable = dims
        self.new_dim: Callable[[], Dim] = new_dim
        self.windows_fit: bool = windows_fit
        self.fault: str = ""
        self.failure: str = ""

    # --- operands

    def has(self, index: int) -> bool:
        return index < len(self.operands) and self.operands[index] is not None

    def fact(self, index: int) -> Fact:
        """The fact about an operand; ``NOTHING`` where it is absent."""
        found = self.operands[index] if index < len(self.operands) else None
        return found or NOTHING

    def shape(self, index: int) -> Shape | None:
        return self.fact(index).shape

    def rank(self, index: int) -> int | None:
        return self.fact(index).rank

    def element(self, index: int) -> int:
        return self.fact(index).element

    def elements(self, index: int) -> Elements | None:
        return self.fact(index).elements

    def numbers(self, index: int) -> tuple[int, ...] | None:
        return self.fact(index).numbers

    def sizes(self, index: int) -> list[Dim | Open] | None:
        """The elements of a list of sizes, ``OPEN`` for each that is not known; as many as its own size says where only
        that is known. None where the length is unknown."""
        fact = self.fact(index)
        if fact.elements is not None:
            return [as_dim(e) if is_size(e) else OPEN for e in fact.elements.ravel().tolist()]
        if fact.shape is not None and len(fact.shape) == 1 and isinstance(fact.shape[0], int) and fact.shape[0] <= 64:
            return [OPEN] * fact.shape[0]
        return None

    # --- attributes

    def integer(self, name: str, default: int = 0) -> int:
        found = self.attributes.get(name)
        return int(found) if isinstance(found, (int, float)) else default

    def integers(self, name: str) -> tuple[int, ...] | None:
        found = self.attributes.get(name)
        return tuple([int(i) for i in found]) if isinstance(found, (tuple, list)) else None

    def word(self, name: str, default: str = "") -> str:
        found = self.attributes.get(name)
        return found if isinstance(found, str) else default

    def axes(self, since: int) -> tuple[int, ...] | None:
        """Axes or a list like them: an attribute before opset ``since``, an operand from then on. None where unknown;
        callers ask ``has`` and ``attributes`` for absence."""
        return self.integers("axes") if self.opset < since else self.numbers(1)

    def axis(self, default: int, rank: int) -> int:
        """The axis of the attribute, counted from the front. Raises ``Fault`` where it does not exist.

        ONNX cuts larger numbers to 32 bits, and then finds an axis: these raise ``ValueError``, and nothing follows.
        """
        axis = self.integer("axis", default)
        if not -(2**31) <= axis < 2**31:
            raise ValueError(f"axis {axis}")
        return place(axis, rank)

    # --- faults

    def fails(self, why: str) -> None:
        """Note why the node fails in each run, though it loads. The rule goes on: its facts are those of the load."""
        self.failure = self.failure or why

    def need_rank(self, index: int, least: int, most: int | None = None) -> None:
        """Raise ``Fault`` for an operand that is known to have fewer axes than ``least``, or more than ``most``;
        ``most`` is ``least`` where it is not given, and -1 for no limit."""
        rank = self.rank(index)
        most = least if most is None else most
        if rank is not None and (rank < least or 0 <= most < rank):
            wanted = str(least) if most == least else f"at least {least}" if most < 0 else f"{least} to {most}"
            raise Fault(f"operand {index + 1} has {counted(rank, 'axis')}, not {wanted}")

    def need_length(self, name: str, count: int) -> None:
        """Raise ``Fault`` for a list among the attributes that has another length."""
        found = self.attributes.get(name)
        if isinstance(found, (tuple, list)) and len(found) != count:
            raise Fault(f"{name} has {len(found)} elements, not {count}")

    def fails_unless_equal(self, a: Dim, b: Dim, what: str) -> None:
        """Note that the node fails in each run where two numbers differ."""
        if isinstance(a, int) and isinstance(b, int) and a != b:
            self.fails(f"{what} differ: {a} and {b}")

    def fails_unless_divides(self, block: int, size: Dim, what: str) -> None:
        """Note that the node fails in each run where ``block`` does not divide a number."""
        if isinstance(size, int) and size % block:
            self.fails(f"{block} does not divide {what}, {size}")

    # --- sizes

    def fresh_shape(self, rank: int) -> Shape:
        """A shape of that rank of which no size is known."""
        return tuple([self.new_dim() for _ in range(rank)])

    def size_of(self, size: Dim | Open) -> Dim:
        return self.new_dim() if isinstance(size, Open) else size

    def broadcast(self, *shapes: Shape | None) -> Shape | None:
        """NumPy's broadcasting. Two open sizes that are not proved equal give a new one.

        ``s`` and ``min(s, 64)`` give ``s``: a run in which they differ fails.
        """
        out: Shape = ()
        for shape in shapes:
            if shape is None:
                return None
            if len(shape) < len(out):
                out, shape = shape, out
            head = len(shape) - len(out)
            out = (*shape[:head], *[self._joined(a, b) for a, b in zip(shape[head:], out, strict=True)])
        return out

    def _joined(self, a: Dim, b: Dim) -> Dim:
        if a == b or b == 1:
            return a
        if a == 1:
            return b
        if isinstance(a, int) or isinstance(b, int):
            if isinstance(a, int) and isinstance(b, int):
                raise Fault(f"sizes {b} and {a} do not broadcast")
            return a if isinstance(a, int) else b  # the other is that number, or 1
        if self.dims.equal(a, b) or self._is_cut(b, a):
            return a
        return b if self._is_cut(a, b) else self.new_dim()

    def _is_cut(self, part: DimExpr, whole: DimExpr) -> bool:
        """Return whether ``part`` is the smaller of ``whole`` and another size, which is 1 or more."""
        clamp = part.as_clamp()
        if clamp is None or clamp[0] != "min" or whole not in clamp[1:]:
            return False
        return self.dims.interval(clamp[1] if clamp[2] == whole else clamp[2])[0] >= 1


def need_equal(a: Dim, b: Dim, what: str) -> None:
    """Raise ``Fault`` for two numbers that differ."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise Fault(f"{what} differ: {a} and {b}")


def place(axis: int, rank: int) -> int:
    """The axis counted from the front. Raises ``Fault`` where it does not exist."""
    found = within(axis, rank)
    if found is None:
        raise Fault(f"axis {axis} does not exist: there are {rank} axes")
    return found


def within(axis: int, rank: int) -> int | None:
    """The axis counted from the front; None where it does not exist."""
    axis = axis + rank if axis < 0 else axis
    return axis if 0 <= axis < rank else None


def ends_at_front(end: object, step: object) -> bool:
    """True for the end of a backward slice that ONNX Runtime takes for the front of the axis.

    ONNX clamps it to the last element, and nothing is left.
    """
    return end in (2**31 - 1, 2**63 - 1) and isinstance(step, int) and step < 0


def remaining(have: Sequence[Dim], others: Sequence[Dim]) -> Dim:
    """The size that is left for -1 in a reshape of ``have`` to ``others``. Raises ``ZeroDivisionError``.

    Equal sizes cancel first, so that products stay short and divide.
    """
    mine, theirs = list(have), []
    for size in others:
        if size in mine and size != 0:
            mine.remove(size)
        else:
            theirs.append(size)
    return floordiv(product(mine), product(theirs))


def vanishes_with(own: Dim, size: DimExpr) -> bool:
    """True where the operand's own size is 0 wherever ``size`` is, so that a reshape may read it as a copy."""
    if own == size:
        return True
    if isinstance(own, int) or len(size.terms) != 1:
        return own == 0
    ((factors, _),) = size.terms
    return all(
        substitute(own, {factor: 0}) == 0 if isinstance(factor, str) else all(factor in m for m, _ in own.terms)
        for factor in factors
    )
