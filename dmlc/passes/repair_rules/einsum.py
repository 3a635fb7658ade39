"""Einsum with an ellipsis, which the provider does not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_lowercase

from dmlc.ir import FOREIGN, Graph, Node, Shape, Value
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Miss, Rewriter
from dmlc.records import dataclass

_DOTS = "..."


@dataclass(slots=True, eq=False)
class _EllipsisMatch(Match):
    """``terms`` are those of the operands, ``result`` is that of the result, which may be missing."""

    terms: tuple[str, ...] = ()
    result: str | None = None


class SpellEllipsis(RepairRule[_EllipsisMatch]):
    """An Einsum's ellipsis becomes letters, where the axes it stands for have the same sizes in all operands."""

    name = "spell-ellipsis"
    optional = True
    roots = (OPAQUE,)
    repairs = ("einsum-ellipsis",)

    def match(self, node: Node, graph: Graph) -> _EllipsisMatch | None:
        (failure,) = self.repairs
        if not is_opaque(node, "Einsum") or self.support.of_kernel(failure, "Einsum") is None:
            return None
        left, arrow, right = str(attribute_of(node, "equation", "")).replace(" ", "").partition("->")
        terms = tuple(left.split(","))
        if _DOTS not in left or len(terms) != len(node.operands):
            return None
        return _EllipsisMatch(node, terms=terms, result=right if arrow else None)

    def check(self, match: _EllipsisMatch, graph: Graph) -> Miss | None:
        if any(v is None or v.type.dtype is FOREIGN for v in match.root.operands):
            return Miss("the axes of an operand are not known")
        dotted = _dotted(match)
        if any(sizes != dotted[0] for sizes in dotted):
            return Miss("the axes of the ellipsis differ: {0}", (" and ".join(_text(sizes) for sizes in dotted),))
        if match.result is not None and _DOTS not in match.result:
            return Miss("its result has no ellipsis")
        return None if len(_free(match)) >= len(dotted[0]) else Miss("there are not enough letters")

    def describe(self, match: _EllipsisMatch) -> str:
        return f"Einsum {attribute_of(match.root, 'equation')}"

    def build(self, match: _EllipsisMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, letters = match.root, _free(match)[: len(_dotted(match)[0])]
        result = _implied(match.terms) if match.result is None else match.result
        equation = f"{','.join(match.terms)}->{result}".replace(_DOTS, letters)
        record = OpaqueAttributes(op_type="Einsum", types=(root.result.type,), attributes=(("equation", equation),))
        return [rewriter.add(OPAQUE, root.operands, record)]


def _dotted(match: _EllipsisMatch) -> list[Shape]:
    """The sizes that the ellipsis stands for in each operand that has one."""
    out = []
    for term, value in zip(match.terms, match.root.operands, strict=True):
        before, dots, after = term.partition(_DOTS)
        if dots and value is not None:
            out.append(value.shape[len(before) : value.type.rank - len(after)])
    return out


def _text(sizes: Shape) -> str:
    return f"[{', '.join(map(str, sizes))}]"


def _free(match: _EllipsisMatch) -> str:
    """Letters that the equation does not use."""
    used = {*"".join(match.terms), *(match.result or "")}
    return "".join(letter for letter in ascii_lowercase if letter not in used)


def _implied(terms: Sequence[str]) -> str:
    """The result where none is written: the ellipsis, then the letters that stand once, in their order."""
    counts = Counter("".join(terms).replace(".", ""))
    return _DOTS + "".join(sorted(letter for letter, count in counts.items() if count == 1))
