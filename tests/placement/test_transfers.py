"""Transfers between CPU and GPU inside a placed model: one for each value that the other side reads."""

from __future__ import annotations

import random

from onnx import parser

from dmlc.placement.report import Placement, placement
from dmlc.targets import load_target
from tests.rows import each_row


def report(body: str, opset: int = 21) -> Placement:
    sets = f'"": {opset}, "com.microsoft": 1, "acme": 1'
    model = parser.parse_model(f"<ir_version: 8, opset_import: [{sets}]> g {body}")
    return placement(model, load_target("directml"))


def edges(body: str, opset: int = 21) -> list[str]:
    found = report(body, opset).transfers
    return [f"{t.value}: {t.maker} {t.from_device} > {t.to_device} {' '.join(t.readers)}, {t.bytes}" for t in found]


_X = "(float[4,8] x) => (float[4,8] y)"
#: Det and HardSwish have no kernel of the provider, Relu, Exp, Add and Mul do.
COPIES = {
    "none": (f"{_X} {{ h = Relu(x) y = Exp(h) }}", []),
    "there and back": (
        f"{_X} {{ h = Relu(x) c = HardSwish(h) y = Exp(c) }}",
        ["h: h gpu > cpu c, 128", "c: c cpu > gpu y, 128"],
    ),
    "one for several readers": (
        f"{_X} {{ h = Relu(x) c = HardSwish(h) d = HardSwish(h)"
        " e = Mul(c, c) f = Exp(c) k = Add(e, f) y = Add(k, d) }",
        ["h: h gpu > cpu c d, 128", "c: c cpu > gpu e f, 128", "d: d cpu > gpu y, 128"],
    ),
    "a value of the CPU that the CPU reads": (
        f"{_X} {{ h = Relu(x) c = HardSwish(h) d = HardSwish(c) y = Exp(d) }}",
        ["h: h gpu > cpu c, 128", "d: d cpu > gpu y, 128"],
    ),
    "inputs and outputs": (f"{_X} {{ h = Relu(x) c = HardSwish(x) y = HardSwish(c) }}", []),
    "an output that the CPU reads too": (
        "(float[4,8] x) => (float[4,8] h, float[4,8] y) { h = Relu(x) y = HardSwish(h) }",
        ["h: h gpu > cpu y, 128"],
    ),
    "a constant that both read": (
        "(float[8] x) => (float[8] y, float[1] z) <float[8] w = {1, 2, 3, 4, 5, 6, 7, 8}>"
        " { y = Add(x, w) z = acme.Op(x, w) }",
        [],
    ),
    "open sizes": (
        "(float[N,8] x) => (float[N,8] y) { h = Relu(x) c = HardSwish(h) y = Exp(c) }",
        ["h: h gpu > cpu c, 32 * N", "c: c cpu > gpu y, 32 * N"],
    ),
    "an unknown shape": (
        "(float[2,8] x, int64[k] s) => (float[a] y) { h = Reshape(x, s) c = HardSwish(h) y = Exp(c) }",
        ["h: h gpu > cpu c, None", "c: c cpu > gpu y, None"],
    ),
    "a shape computed on the GPU": (
        "(float[N,8] x) => (float y) { h = Relu(x) k = ArgMax<axis = 0, keepdims = 0>(h) y = Reshape(h, k) }",
        ["k: k gpu > cpu y, 64"],
    ),
    "a shape that is an input": (
        "(float[N,8] x, int64[2] k) => (float[a,b] y) { h = Relu(x) y = Reshape(h, k) }", [],
    ),
    "a shape computed from shapes": (
        "(float[N,8] x) => (float[a,b] y) { h = Relu(x) s = Shape(h) y = Reshape(h, s) }", [],
    ),
    "a number computed from a shape": (
        "(float[N,8] x) => (float16[2] y) { h = Relu(x) s = Shape(h) c = Cast<to = 10>(s) y = Exp(c) }",
        ["c: c cpu > gpu y, 4"],
    ),
}  # fmt: skip


@each_row("name", COPIES)
def test_copies(name: str) -> None:
    body, expected = COPIES[name]
    assert edges(body) == expected


_IF = (
    "(float[4,8] x, bool c) => (float[4,8] y) { h = Relu(x) v = If(c)<then_branch = a () => (float[4,8] p)"
    " { p = %s(h) }, else_branch = b () => (float[4,8] q) { q = %s(h) }> y = Exp(v) }"
)
_CPU_IF = ["v: v cpu > gpu y, 128"]
#: Branches, opset, copies. The provider has a kernel of If up to opset 20.
BRANCHES = {
    "on the CPU, branches on the GPU": (
        "Exp", "Exp", 21, [*_CPU_IF, "p: v/p gpu > cpu v, 128", "q: v/q gpu > cpu v, 128"],
    ),
    "on the CPU, branches too": (
        "HardSwish", "HardSwish", 21, [*_CPU_IF, "h: h gpu > cpu v/p, 128", "h: h gpu > cpu v/q, 128"],
    ),
    "on the GPU, branches too": ("Exp", "Exp", 17, []),
    "on the GPU, one branch not": ("Exp", "HardSwish", 17, ["h: h gpu > cpu v/q, 128", "q: v/q cpu > gpu v, 128"]),
}  # fmt: skip


@each_row("name", BRANCHES)
def test_branches(name: str) -> None:
    first, second, opset, expected = BRANCHES[name]
    assert edges(_IF % (first, second), opset) == expected


def test_condition_of_if_is_read_on_the_cpu() -> None:
    body = _IF.replace("h = Relu(x)", "h = Relu(x) s = ReduceMax<keepdims = 0>(h) b = Cast<to = 9>(s)")
    assert edges(body.replace("If(c)", "If(b)") % ("Exp", "Exp"), 17) == ["b: b gpu > cpu v, 1"]


def test_loops_copy_their_states_and_what_they_read() -> None:
    body = (
        "(float[4,8] x, int64 n, bool c) => (float[4,8] y) { h = Relu(x) g = Exp(x) k = Exp(x)"
        " v = Loop(n, c, h)<body = b (int64 i, bool t, float[4,8] s) => (bool u, float[4,8] r)"
        " { u = Identity(t) a = Add(s, g) d = HardSwish(k) r = Add(a, d) }> y = Exp(v) }"
    )
    found = edges(body)
    assert found[:2] == ["h: h gpu > cpu v, 128", "v: v cpu > gpu y, 128"]
    assert set(found[2:]) == {
        "t: v cpu > gpu v/u, 1",  # the condition, in and out
        "u: v/u gpu > cpu v, 1",
        "s: v cpu > gpu v/a, 128",  # the state, in and out
        "r: v/r gpu > cpu v, 128",
        "k: k gpu > cpu v/d, 128",  # a value of outside that the body reads on another side
        "d: v/d cpu > gpu v/r, 128",
    }


def test_an_input_of_the_model_that_only_a_body_reads_is_where_its_holder_runs() -> None:
    body = (
        "(float[4,8] x, bool c) => (float[4,8] y) { v = If(c)<then_branch = a () => (float[4,8] p) { p = Exp(x) },"
        " else_branch = b () => (float[4,8] q) { q = Exp(x) }> y = Exp(v) }"
    )
    assert edges(body, 17) == []
    assert edges(body, 21)[1:3] == ["x: v cpu > gpu v/p, 128", "p: v/p gpu > cpu v, 128"]


def test_a_node_of_unknown_place_makes_copies_possible_only() -> None:
    found = report("(float[4,8] x) => (float[4,8] y) { h = Relu(x) c = acme.Op(h) y = Exp(c) }")
    assert found.transfers == []
    assert found.possible_transfers == 2
    assert report(COPIES["there and back"][0]).possible_transfers == 0


def test_bytes_are_the_sum_or_unknown() -> None:
    assert report(COPIES["there and back"][0]).transferred == 256
    assert str(report(COPIES["open sizes"][0]).transferred) == "64 * N"
    assert report(COPIES["an unknown shape"][0]).transferred is None
    assert report(COPIES["none"][0]).transferred == 0
    (first, _) = report(COPIES["open sizes"][0]).transfers
    assert first.open_dims == ["N"]


def test_cures_name_what_to_change() -> None:
    cures = [copy.cure for copy in report(COPIES["there and back"][0]).transfers]
    assert all(cure.startswith("run HardSwish c on the GPU: ") for cure in cures)
    (copy,) = report(COPIES["a shape computed on the GPU"][0]).transfers
    assert copy.cure == "a constant operand 1 of Reshape y"
    (copy,) = report(COPIES["a number computed from a shape"][0]).transfers
    assert copy.cure == "--bind N=SIZE makes it a constant"


@each_row("seed", range(20))
def test_copies_of_random_graphs_are_the_values_that_cross(seed: int) -> None:
    rng = random.Random(seed)
    lines, values = [], ["x"]
    for number in range(30):
        op = rng.choice(("Relu", "Exp", "HardSwish", "Add"))
        operands = ", ".join(rng.choices(values[-6:], k=2 if op == "Add" else 1))
        lines.append((f"v{number}", op, operands))
        values.append(f"v{number}")
    body = " ".join(f"{name} = {op}({operands})" for name, op, operands in lines)
    found = report(f"(float[4] x) => (float[4] v29) {{ {body} }}")
    where = {node.name: node.where for node in found.nodes}
    crossing = {
        (operand, where[name]) for name, _, operands in lines for operand in operands.split(", ")
        if operand != "x" and where[operand] != where[name]
    }  # fmt: skip
    assert {(t.value, "provider" if t.to_device == "gpu" else "cpu") for t in found.transfers} == crossing
    assert len(found.transfers) == len(crossing)
