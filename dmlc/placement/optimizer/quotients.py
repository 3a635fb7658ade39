"""Quotients of one, which ONNX Runtime's DivMulFusion merges with a product: ``b / a`` of ``1 / a * b``.

It takes a constant 1 of one element, also one that was computed while the session was created, and forgets that i32 and
i64 truncate, the axes that only the 1 has, and that another rule removes the node that makes ``b``
(core/optimizer/div_mul_fusion.cc; measured with 1.23.0 to 1.32.0).
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TensorProto

from dmlc.placement.optimizer.view import Copied, GraphView, LookAlike

_TRUNCATING = (TensorProto.INT32, TensorProto.INT64)
_TAKEN = (*_TRUNCATING, TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
#: A dividend is followed back over this many values before it counts as known when a session is created.
_MOST_VALUES = 64


def find(view: GraphView) -> Iterator[LookAlike]:
    """Yield the quotients that a product loses something of."""
    for index in view.of("Div"):
        dividend, divisor = view.nodes[index].input
        if not _may_be_one(view, dividend, divisor) or not _may_meet_product(view, index):
            continue
        product = view.only_reader(index, "Mul")
        why = _difference(view, index) or _dangling(view, index, product)
        if why:
            value = view.nodes[index].output[0]
            is_taken = product is not None and view.number(dividend) == 1
            yield LookAlike("DivMulFusion", "Div(b, a)", index, why, Copied(value), is_taken)


def _may_be_one(view: GraphView, dividend: str, divisor: str) -> bool:
    """Return whether a dividend is a 1 of one element, or may be one by the time that the session is created."""
    if view.element(dividend) not in _TAKEN:
        return False
    if view.fact_of(dividend).elements is not None:
        return view.number(dividend) == 1
    if view.element(dividend) not in _TRUNCATING or view.fact_of(divisor).elements is not None:
        return False  # a quotient by a constant is one by then
    sizes = view.shape(dividend) or ()
    return all(not isinstance(size, int) or size == 1 for size in sizes) and not _reads_data(view, dividend)


def _reads_data(view: GraphView, name: str) -> bool:
    """Return whether a value needs the numbers of an input. Shapes are known where a session fixes the sizes."""
    pending, seen = [name], {name}
    while pending and len(seen) <= _MOST_VALUES:
        found = pending.pop()
        maker = view.made_by.get(found)
        if maker is None:
            if view.fact_of(found).elements is None and not view.is_inner:
                return True
        elif not view.is_operator(maker, "Shape", "Size", "Constant"):
            operands = [each for each in view.nodes[maker].input if each not in seen]
            seen.update(operands)
            pending += operands
    return False


def _may_meet_product(view: GraphView, index: int) -> bool:
    """Return whether a reader of the quotient may be a product, or become one: ONNX Runtime looks through others."""
    value = view.nodes[index].output[0]
    if view.is_inner and value in view.outputs:  # it may go on outside
        return True
    return any(not view.is_operator(user, "Max", "Neg") for user in view.users.get(value, ()))


def _difference(view: GraphView, index: int) -> str:
    """Return why ``b / a`` differs from ``1 / a * b`` by more than rounding."""
    dividend, divisor = view.nodes[index].input
    if view.element(dividend) in _TRUNCATING:
        return "the quotient of integers truncates"
    if (view.rank(dividend) or 0) > (view.rank(divisor) or 0):
        return "the 1 has more axes than the divisor"
    return ""


def _dangling(view: GraphView, index: int, product: int | None) -> str:
    """Return why the result would read a value that no node makes."""
    factor = "" if product is None else view.other(product, view.nodes[index].output[0])
    maker = view.maker(factor, "Identity", "Dropout")
    if maker is None or view.users[factor] != [product] or factor in view.outputs:
        return ""
    return f"the {view.nodes[maker].op_type} that makes the other factor is removed too: the model does not load"
