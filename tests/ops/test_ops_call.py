"""The one call form: literals, groups, synonyms, places of errors."""

from __future__ import annotations

import numpy as np
import pytest
from ops_calls import code_of, node_of, typed, types_of

from dmlc.diagnostics import Diagnostic, DmlcError, Source, Span
from dmlc.ir import Graph, OpError
from dmlc.ops import INFIX, OPERATIONS
from dmlc.ops.attributes import AxesKind, Binding, DimsKind, IntsKind, NumberKind
from dmlc.ops.call import AttributeSite, CallSite, apply
from dmlc.ops.constant import CONSTANT, constant_of

SOURCE = Source("m.dml", "y = argmax(image, axes=[1, 4], keepdims=false)")


def span(start: int, end: int) -> Span:
    return Span(SOURCE, 1, start, 1, end)


def failing(op_name: str, *operands: str, site: CallSite, **keywords: object) -> Diagnostic:
    graph = Graph("m")
    values = [graph.add_input(f"x{i}", typed(o), span(12, 17)) for i, o in enumerate(operands)]
    with pytest.raises(DmlcError) as caught:
        apply(graph, OPERATIONS[op_name], values, keywords, site)
    (diagnostic,) = caught.value.diagnostics
    return diagnostic


def test_an_error_stands_at_the_element_of_the_list() -> None:
    site = CallSite(
        span=span(5, 46),
        operands=[span(12, 17)],
        attributes={"axes": AttributeSite(span(19, 23), span(24, 30), (span(25, 26), span(28, 29)))},
        names=["image"],
    )
    found = failing("argmax", "f16[2, 3]", site=site, axes=[1, 4])
    assert found.code.id == "E0301"
    assert found.message == "axis 4 does not exist: image has 2 axes, 0 to 1"
    assert [label.span.column for label in found.labels] == [28, 12]
    assert found.labels[1].text == "x0 has this type: f16[2, 3]"


def test_an_error_about_a_synonym_stands_at_what_was_written() -> None:
    site = CallSite(span=span(1, 46), attributes={"axis_direction": AttributeSite(None, span(30, 40))})
    found = failing("argmax", "f32[2]", site=site, axis_direction="up")
    assert found.code.id == "E0304"
    assert found.span == span(30, 40)


def test_calls_of_defs_are_shown() -> None:
    site = CallSite(span=span(1, 5), outer=[span(40, 46)])
    found = failing("argmax", "bool[2]", site=site)
    assert [label.text for label in found.labels][-1] == "in this call"


def test_an_unknown_keyword_gets_the_nearest_name() -> None:
    found = failing("argmax", "f32[2]", site=CallSite(), tie="first")
    assert found.code.id == "E0305"
    assert 'did you mean "ties"?' in found.help


def test_literals_become_constants_of_the_group() -> None:
    node = node_of(INFIX["*"], "f16[N]", 0.5)
    constant = constant_of(node.operands[1])
    assert constant is not None
    assert constant.array.dtype == np.float16
    assert constant.array.shape == ()
    assert constant_of(node.operands[0]) is None
    assert constant_of(None) is None
    assert constant_of(node.result) is None
    assert node.graph is not None
    assert [n.op for n in node.graph] == [CONSTANT, INFIX["*"]]


def test_a_failed_call_adds_no_node() -> None:
    graph = Graph("m")
    x = graph.add_input("x", typed("i32[2]"))
    with pytest.raises(DmlcError):
        apply(graph, INFIX["/"], [x, 0], {}, CallSite())
    graph.erase_dead(list(graph))
    assert len(graph) == 0
    assert not x.uses


def test_operand_counts() -> None:
    for name, count in (("abs", 1), ("pow", 2), ("where", 3), ("matmul", 2)):
        for given in range(5):
            operands = ["bool[2]" if name == "where" and i == 0 else "f32[2]" for i in range(given)]
            assert code_of(OPERATIONS[name], *operands) == ("" if given == count else "E0308")
    assert code_of(OPERATIONS["abs"], None) == "E0308"


def test_bool_and_numbers_do_not_mix() -> None:
    assert code_of(INFIX["&"], "bool[2]", 1) == "E0311"
    assert code_of(INFIX["&"], "bool[2]", True) == ""
    assert code_of(INFIX["+"], "i32[2]", True) == "E0311"


def test_integers_beyond_i64_are_refused() -> None:
    huge = 2**50000  # more digits than Python prints
    assert code_of(OPERATIONS["iota"], length=huge, dtype="f32") == "E0304"
    assert code_of(OPERATIONS["pad"], "f32[1]", pads=[0, huge]) == "E0304"
    assert code_of(OPERATIONS["top_k"], "f32[4]", k=2**63) == "E0304"
    assert code_of(OPERATIONS["top_k"], "f32[4]", k=2**63 - 1) == "E0316"
    assert code_of(OPERATIONS["full"], shape=[], value=huge, dtype="f64") == "E0311"
    assert code_of(OPERATIONS["clip"], "i64[4]", min=huge) == "E0311"
    assert code_of(OPERATIONS["argmax"], "f32[4]", axes=huge) == "E0301"
    assert code_of(INFIX["+"], "f32[4]", huge) == "E0311"


def test_numpy_values_are_taken_as_attributes() -> None:
    op = OPERATIONS["reduce_sum"]
    assert types_of(op, "f32[2, 3]", axes=np.int64(1)) == ["f32[2, 1]"]
    assert types_of(op, "f32[2, 3]", axes=np.array([0, 1])) == ["f32[1, 1]"]
    assert types_of(OPERATIONS["clip"], "f32[2]", min=np.float32(0.5)) == ["f32[2]"]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (AxesKind(), (0, [1], (0, 1), [-1]), ("0", 1.0, None, [None], [True], {0})),
        (IntsKind(), (0, [1, -2], []), (1.5, "1", [1.5], None)),
        (NumberKind(), (1, 0.5, True, np.float16(2)), ("1", [1], None)),
        (DimsKind(), ("N", 3, ["N", 1], []), (1.5, "N + 1", [None], [True])),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, (AxesKind, IntsKind, NumberKind, DimsKind)) else "",
)
def test_kinds_take_what_they_say(kind: AxesKind, good: tuple[object, ...], bad: tuple[object, ...]) -> None:
    at = Binding("attr", "op", [typed("f32[2, 3]")], ["x"])
    for raw in good:
        kind.convert(raw, at)
    for raw in bad:
        with pytest.raises(OpError) as caught:
            kind.convert(raw, at)
        assert caught.value.code.id == "E0304"
