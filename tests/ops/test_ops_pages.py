"""Pages of operations, and their examples."""

from __future__ import annotations

from dmlc import text
from dmlc.diagnostics import Source
from dmlc.ir import Operation
from dmlc.ops import ALL_OPERATIONS, FAMILIES, INFIX, OPERATIONS
from dmlc.ops.pages import AttributeLine, OperandLine, describe
from tests.rows import each_row
from tools.site.operation_examples import example_program

#: As the language reference spells them.
SIGNATURES = [
    "argmax(x, *, axes, ties=first|last, dtype=u32|i32|i64|u64, keepdims=true)",
    "argmin(x, *, axes, ties=first|last, dtype=u32|i32|i64|u64, keepdims=true)",
    "top_k(x, *, k, axis=-1, order=largest|smallest, dtype=u32|i32|i64|u64)",
    "hardmax(x, *, axes=[-1])",
    "reduce_log_sum_exp(x, *, axes, keepdims=true)",
    "softmax(x, *, axes=[-1])",
    "mean_variance_norm(x, *, axes, epsilon=1e-5, variance=true)",
    "layer_norm(x, scale, bias, *, axis=-1, epsilon=1e-5)",
    "rms_norm(x, scale, *, axis=-1, epsilon=1e-5)",
    "lp_norm(x, *, axis=-1, p=2)",
    "cumsum(x, *, axis, exclusive=false, reverse=false)",
    "one_hot(indices, *, depth, axis=-1, on=1, off=0, dtype=f32)",
    "abs(x)",
    "where(cond, a, b)",
    "clip(x, *, min, max)",
    "cast(x, *, to)",
    "reshape(x, *, shape)",
    "concat(x, ..., *, axis)",
    "split(x, *, axis, sizes)",
    "slice(x, *, starts, ends, axes, steps)",
    "pad(x, *, pads, value=0)",
    "scatter_elements(x, i, updates, *, axis=0)",
    "iota(*, length, dtype)",
    "full(*, shape, value, dtype)",
    "matmul(a, b)",
]


@each_row("signature", SIGNATURES)
def test_signatures_are_those_of_the_language_page(signature: str) -> None:
    assert describe(OPERATIONS[signature.partition("(")[0]]).signature == signature


def test_signs() -> None:
    assert describe(OPERATIONS["pow"]).signature == "pow(a, b) or a ** b"
    assert describe(OPERATIONS["neg"]).signature == "neg(x) or -x"
    assert describe(INFIX["//"]).signature == "a // b"


def test_a_page() -> None:
    page = describe(OPERATIONS["top_k"])
    assert (page.name, page.family, page.results) == ("top_k", "Selection", ("values", "indices"))
    assert page.operands == (OperandLine("x", "numbers (floats and integers)", ""),)
    k, axis, order, dtype = page.attributes
    assert k == AttributeLine("k", "size", "", "how many, 1 to the length of the axis")
    assert axis.default == "-1"
    assert order.default == "largest"
    assert order.doc.endswith("axis_direction=decreasing|increasing says the same as largest|smallest")
    assert dtype.values == "indices (u32, i32, i64, u64)"
    assert {"ties", "nan", "nan on DirectML", "empty"} <= set(page.notes)
    assert "DML_TOP_K1_OPERATOR_DESC" in page.source


def test_defaults_in_words() -> None:
    def defaults(name: str) -> dict[str, str]:
        return {line.name: line.default for line in describe(OPERATIONS[name]).attributes}

    assert defaults("argmax") == {"axes": "all axes", "ties": "first", "dtype": "u32", "keepdims": "true"}
    assert defaults("transpose") == {"perm": "reversed"}
    assert defaults("clip") == {"min": "none", "max": "none"}
    assert defaults("layer_norm") == {"axis": "-1", "epsilon": "1e-5"}


def test_kinds_of_operands() -> None:
    assert [o.kind for o in describe(OPERATIONS["layer_norm"]).operands] == ["", "", "may be left out"]
    assert [o.kind for o in describe(OPERATIONS["concat"]).operands] == ["one or more"]
    assert [o.dtypes for o in describe(OPERATIONS["where"]).operands] == ["bool", "all dtypes", "all dtypes"]


@each_row("op", ALL_OPERATIONS[1:], ids=lambda op: op.name)
def test_every_operation_has_a_page(op: Operation) -> None:
    page = describe(op)
    assert page.signature
    assert page.family


@each_row("op", [op for family in FAMILIES.values() for op in family], ids=lambda op: op.name)
def test_every_operation_has_an_example(op: Operation) -> None:
    """The site shows it; it calls the operation by its name or its sign."""
    program = example_program(op.name)
    graph = text.load(Source("example.dml", program))
    assert op.name in {node.op.name for node in graph} or f"{op.name}(" in program
