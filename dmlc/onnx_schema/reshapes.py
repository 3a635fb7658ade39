"""Sizes of ONNX's Reshape, where 0 copies one of the input's and -1 stands for one that is left."""

from __future__ import annotations

from dmlc.ir import Dim, DimExpr, DimTable, Shape, product
from dmlc.ir.dim import FloorDiv

#: Reshape has ``allowzero``, and with it takes computed sizes that are 0, from here on.
ALLOWZERO_OPSET = 14


def copied_sizes(dims: DimTable, have: Shape, want: Shape) -> tuple[Dim, ...] | None:
    """``want`` with 0 for the input's own sizes and -1 for one that is left; None where a size that must be
    computed may be 0, which Reshape would read as a copy."""
    out = [0 if not isinstance(d, int) and i < len(have) and have[i] == d else d for i, d in enumerate(want)]
    left = [i for i, d in enumerate(out) if not isinstance(d, int)]
    if not left:
        return tuple(out)
    divisors = {d for i in left for d in _divisors(want[i])}  # not 0, or the size that is divided would have no value
    # -1 stands for the most intricate size, where the others are known to hold an element.
    for spared in sorted(left, key=lambda i: -len(str(want[i]))):
        others = [d for i, d in enumerate(want) if i != spared and d not in divisors]
        if dims.interval(product(others))[0] >= 1:
            out[spared] = -1
            left.remove(spared)
            break
    if any(dims.interval(want[i])[0] < 1 and want[i] not in divisors for i in left):
        return None
    # ONNX Runtime's ReshapeFusion makes -1 of a computed size, which fails beside a copied one that is 0; it leaves
    # alone what has allowzero.
    if left and any(dims.promises_empty(want[i]) for i, d in enumerate(out) if d == 0):
        return None
    return tuple(out)


def _divisors(size: Dim) -> set[Dim]:
    """The sizes that a quotient divides by, which are not 0 wherever the quotient is defined."""
    found: set[Dim] = set()
    if isinstance(size, DimExpr):
        atoms = [atom for monomial, _ in size.terms for atom in monomial if isinstance(atom, FloorDiv)]
        for atom in atoms:
            found.add(atom.denominator)
            if isinstance(atom.denominator, DimExpr) and len(atom.denominator.terms) == 1:
                ((factors, _),) = atom.denominator.terms
                found.update(DimExpr((((factor,), 1),)) for factor in factors)
    return found
