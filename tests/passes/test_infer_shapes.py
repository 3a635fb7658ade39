"""infer-shapes: types are renewed, dtypes are checked, errors stand at the node's place."""

from __future__ import annotations

import pytest
from pass_helpers import Building, context, run

from dmlc.diagnostics import DmlcError
from dmlc.inference.carried import CarriedAttributes, carry
from dmlc.ir import TensorType
from dmlc.ir.dtype import f16, f32, i32
from dmlc.ops.binary import ADD
from dmlc.ops.call import CallSite
from dmlc.ops.elementwise import EXP
from dmlc.ops.index import GATHER
from dmlc.ops.move import CONCAT, SQUEEZE
from dmlc.ops.normalize import LAYER_NORM
from dmlc.ops.reduce import REDUCE_SUM
from dmlc.ops.select import TOP_K
from dmlc.passes.infer_shapes import InferShapes

PASS = InferShapes()


def test_types_from_birth_need_no_renewal() -> None:
    b = Building()
    graph = b.done(b(REDUCE_SUM, b(EXP, b.input("x", ("n", 3))), axes=[1]))
    ctx = context()
    assert not PASS.run(graph, ctx)


def test_types_are_renewed_after_an_operand_changed() -> None:
    b = Building(n=(1, 8))
    x = b.input("x", ("n", 3))
    y = b(EXP, x)
    total = b(REDUCE_SUM, y, axes=[1], keepdims=False)
    graph = b.done(total)
    x.type = TensorType(f32, (5, 3))
    ctx = context()
    assert PASS.run(graph, ctx)
    assert [str(n.result.type) for n in graph] == ["f32[5, 3]", "f32[5]"]
    assert not PASS.run(graph, ctx)


def test_after_binding_there_is_nothing_left_to_renew() -> None:
    b = Building(n=(1, 8))
    graph = b.done(b(REDUCE_SUM, b.input("x", ("n", 3)), axes=[1])).clone({"n": 4})
    assert [str(n.result.type) for n in graph] == ["f32[4, 1]"]
    assert not PASS.run(graph, context())


def test_new_conditions_are_kept_with_the_place() -> None:
    b = Building(n=(4, 8))
    x = b.input("x", ("n",))
    graph = b.done(*b.node(TOP_K, x, k=3))
    assert not graph.conditions
    graph.dims.bounds["n"] = (1, 8)
    run(PASS, graph)
    assert {str(c): span.line for c, span in graph.conditions.items() if span} == {"3 <= n": 1}


def test_the_graph_takes_the_opset_of_the_context() -> None:
    b = Building()
    graph = b.done(b.input("x", (2,)))
    ctx = context(opset=17)
    assert PASS.run(graph, ctx)
    assert not PASS.run(graph, ctx)
    assert graph.opset == 17


def test_carried_operators_are_meant_at_the_new_opset() -> None:
    b = Building()
    x = b.input("x", (2, 3))
    (value,) = carry(b.graph, "", "Gelu", [x], {}, 1, CallSite(span=b.span())).results
    graph = b.done(value)
    assert not PASS.run(graph, context())
    assert PASS.run(graph, context(opset=20))
    assert [n.attributes_as(CarriedAttributes).opset for n in graph] == [20]
    with pytest.raises(DmlcError) as caught:
        PASS.run(graph, context(opset=19))  # Gelu came with opset 20
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0501"
    assert diagnostic.span is not None
    assert diagnostic.span.line == 1


def test_a_type_that_fits_no_more_is_an_error_at_the_place_of_the_node() -> None:
    b = Building()
    x = b.input("x", (1, 3))
    graph = b.done(b(SQUEEZE, x, axes=[0]))
    x.type = TensorType(f32, (2, 3))
    with pytest.raises(DmlcError) as caught:
        PASS.run(graph, context())
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0317"
    assert "only an axis of size 1" in diagnostic.message
    assert diagnostic.span is not None
    assert diagnostic.span.line == 1


@pytest.mark.parametrize(("dtype", "code", "message"), [
    (i32, "E0309", "exp does not take i32: it takes f16, f32, f64"), (f16, None, ""),
])  # fmt: skip
def test_operand_dtypes_are_checked(dtype: object, code: str | None, message: str) -> None:
    b = Building()
    x = b.input("x", (3,))
    graph = b.done(b(EXP, x))
    x.type = TensorType(dtype, (3,))  # type: ignore[arg-type]
    if code is None:
        assert PASS.run(graph, context())
        return
    with pytest.raises(DmlcError) as caught:
        PASS.run(graph, context())
    assert caught.value.diagnostics[0].code.id == code
    assert caught.value.diagnostics[0].message == message


def test_operands_of_one_group_have_one_dtype() -> None:
    for make in (lambda b, x, y: b(ADD, x, y), lambda b, x, y: b(CONCAT, x, x, y, axis=0)):
        b = Building()
        x, y = b.input("x", (3,)), b.input("y", (3,))
        graph = b.done(make(b, x, y))
        y.type = TensorType(f16, (3,))
        with pytest.raises(DmlcError) as caught:
            PASS.run(graph, context())
        assert caught.value.diagnostics[0].code.id == "E0310"
        assert caught.value.diagnostics[0].message.startswith("dtypes differ: f32 and f16")


def test_operands_of_different_groups_may_differ_and_constants_have_none() -> None:
    b = Building()
    graph = b.done(b(GATHER, b.input("x", (3,)), b.constant([0, 1], i32)))
    assert not PASS.run(graph, context())


def test_absent_operands_are_skipped() -> None:
    b = Building()
    graph = b.done(b(LAYER_NORM, b.input("x", (2, 3)), b.input("scale", (3,)), None))
    assert not PASS.run(graph, context())
