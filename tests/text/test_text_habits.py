"""Messages for what NumPy, PyTorch and Python users write: each says what to write instead."""

from __future__ import annotations

from text_helpers import codes, diagnostics, graph_of, in_model, source

from dmlc.diagnostics import Diagnostic, render
from dmlc.diagnostics.fix import edited
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import REQUIRED, attribute_specs
from tests.rows import each_row

INPUTS = "x: f32[4, 3], m: bool[4, 3], n: i32[4, 3]"

#: A statement, the code of its error, and what the help says.
HABITS = [
    ("y = x.sum(axis=1)", "E0203", "reduce_sum(x, axes=[1], keepdims=false)"),
    ("y = x.sum(axis=[0, 1])", "E0203", "reduce_sum(x, axes=[0, 1], keepdims=false)"),
    ("y = x.mean()", "E0203", "reduce_mean(x, keepdims=false)"),
    ("y = x.max(1)", "E0203", "reduce_max(x, axes=[1], keepdims=false)"),
    ("y = x.mean(axis=-1, keepdims=false)", "E0203", "reduce_mean(x, axes=[-1], keepdims=false)"),
    ("y = x.reshape(4, 3)", "E0203", "reshape(x, shape=[4, 3])"),
    ("y = x.reshape((4, 3))", "E0101", "write reshape(x, shape=[4, 3])"),
    ("y = x.astype(f16)", "E0203", "x as f16"),
    ("y = x.exp()", "E0203", "exp(x)"),
    ("y = x.clamp(min=0)", "E0203", "clip(x, min=0)"),
    ("y = np.exp(x)", "E0203", "exp(x)"),
    ("y = np.sum(x, axis=0)", "E0203", "reduce_sum(x, axes=[0], keepdims=false)"),
    ("y = torch.softmax(x, axis=1)", "E0203", "softmax(x, axes=[1])"),
    ("y = torch.softmax(x, dim=1)", "E0101", "axes=[1]"),
    ("y = softmax(x, dim=-1)", "E0101", "axes=[-1]"),
    ("y = reshape(x, shape=(2, -1))", "E0101", "in brackets: [2, -1]"),
    ("y = x.T", "E0101", "transpose(x)"),
    ("y = (x + 1).T", "E0101", "transpose(x + 1)"),
    ("y = exp(x)[0].T", "E0101", "transpose(exp(x)[0])"),
    ("y = (x).shape[0] * x", "E0101", "size(x, axis=0)"),
    ("y = (x > 0).any()", "E0101", "reduce_any(x > 0, keepdims=false)"),
    ("y = exp(x).sum(1, keepdims=true)", "E0101", "reduce_sum(exp(x), axes=[1])"),
    ("y = exp(x)[0].sum(axis=(0, 1))", "E0101", "reduce_sum(exp(x)[0], axes=[0, 1], keepdims=false)"),
    ("y = (x + 1).reshape(3, 4)", "E0101", "reshape(x + 1, shape=[3, 4])"),
    ("y = x.sum().exp()", "E0101", "write exp(reduce_sum(x, keepdims=false))"),
    ("y = (x).nothing()", "E0101", "dmlc ops lists them"),
    ("y = (x).nothing", "E0101", "has no attributes"),
    ("y = x * np.inf", "E0101", "write inf"),
    ("y = x * math.pi", "E0101", "write 3.14159"),
    ("y = x.astype(np.float32)", "E0101", "write x as f32"),
    ('y = x.astype("float16")', "E0203", "x as f16"),
    ("y = x.to(f16)", "E0203", "x as f16"),
    ("y = x.half()", "E0203", "x as f16"),
    ("y = np.float32(n)", "E0203", "n as f32"),
    ("y = x[..., None]", "E0340", "unsqueeze"),
    ("y = x[newaxis]", "E0340", "unsqueeze"),
    ("y = x[:, np.newaxis]", "E0101", "unsqueeze"),
    ("y = x ^ 2", "E0309", "x ** 2"),
    ("y = x.shape[0] * x", "E0101", "size(x, axis=0)"),
    ("y = sum(x, axis=1)", "E0203", "reduce_sum(x, axes=[1], keepdims=false)"),
    ("y = mean(x)", "E0203", "reduce_mean(x, keepdims=false)"),
    ("y = max(x, axes=[1])", "E0308", "reduce_max(x, axes=[1])"),
    ("y = min(x, axis=0)", "E0308", "reduce_min(x, axes=[0])"),
    ("y = max(x)", "E0308", "reduce_max(x)"),
    ("y = reshape(x, [3, 4])", "E0308", "reshape(x, shape=[3, 4])"),
    ("y = cast(x, f16)", "E0308", "cast(x, to=f16)"),
    ("y = transpose(x, [1, 0])", "E0308", "transpose(x, perm=[1, 0])"),
    ("y = concat([x, x], axis=0)", "E0331", "operands are written without brackets: x, x"),
    ("y = stack([x, x])", "E0331", "operands are written without brackets: x, x"),
    ("y = x[m]", "E0340", "where(m, x, 0)"),
    ("y = x[x > 0]", "E0340", "where(x > 0, x, 0)"),
    ("y = x[n]", "E0340", "gather(x, n, axis=0)"),
    ("y = float(n)", "E0203", "n as f32"),
    ("y = int(x)", "E0203", "x as i32"),
    ("y = len(x) * x", "E0203", "size(x, axis=0)"),
    ("y = zeros([2])", "E0203", "full(shape=[...], value=0, dtype=f32)"),
    ("y = np.ones_like(x)", "E0203", "full(shape=[...], value=1, like=x)"),
    ("y = relu6(x)", "E0203", "clip(x, min=0, max=6)"),
    ("y = torch.rsqrt(x + 1)", "E0203", "reciprocal(sqrt(x + 1))"),
    ("y = x.square()", "E0203", "x ** 2"),
    ("y = x * 2.", "E0101", "digits are on both sides of the point: 2.0"),
    ("y = clip(x, min=0., max=1.)", "E0101", "digits are on both sides of the point: 0.0"),
    ("y = square(x + 1)", "E0203", "write (x + 1) ** 2"),
    ("y = (x - 1).square()", "E0101", "write (x - 1) ** 2"),
    ("y = mish(-x)", "E0203", "write (-x) * tanh(softplus(-x))"),
    ("y = square(x[0, 1:])", "E0203", "write x[0, 1:] ** 2"),
    ("y = int(x * 2)", "E0203", "write (x * 2) as i32"),
    ("y = (x + 1).astype(f16)", "E0101", "write (x + 1) as f16"),
    ("y = log2(x)", "E0203", "write log(x) * 1.4426950408889634"),
    ("y = exp2(x + 1)", "E0203", "write 2 ** (x + 1)"),
    ("y = tan(x)", "E0203", "write sin(x) / cos(x)"),
    ("y = np.isfinite(x)", "E0203", "write !(is_nan(x) | is_inf(x))"),
    ("y = add(x + 1, x)", "E0203", "write (x + 1) + x"),
    ("y = x.mul(2)", "E0203", "write x * 2"),
    ("y = np.logical_and(m, x > 0)", "E0203", "write m & (x > 0)"),
    ("y = torch.remainder(x, 3)", "E0203", "write x % 3"),
    ("y = divide(x)", "E0203", "write a / b"),
    ("y = conv2d(x, x)", "E0203", "write onnx.Conv(x, x)"),
    ("y = MaxPool(x)", "E0203", "write onnx.MaxPool(x)"),
    ("y = x.detach()", "E0203", "write x"),
    ("y = transpose(x, 0, 1)", "E0308", "write transpose(x, perm=[1, 0])"),
    ("y = x.transpose(0, 1)", "E0203", "write transpose(x, perm=[1, 0])"),
    ("y = split(x, 2)", "E0308", "write split(x, axis=0, sizes=[...])"),
    ("y = np.split(x, 2, axis=1)", "E0203", "write split(x, axis=1, sizes=[...])"),
    ("y = group_norm(x, x, x, groups=2)", "E0203", "begin the file with use group_norm from std"),
    ("y = cross_entropy(x, n)", "E0203", "begin the file with use cross_entropy from std"),
    (
        "y = x.std(-1)",
        "E0203",
        "write standard_deviation(x, axes=[-1], keepdims=false), and use standard_deviation from",
    ),
    ("y = gather(x, 0.5)", "E0312", "it takes u32, i32, i64, u64"),
    ("y = gather(x, 1)", "E0312", "1 as u32"),
    ("y = gather(x, -1)", "E0312", "-1 as i32"),
    ("y = m and m", "E0101", "write m & m"),
    ("y = m or m", "E0101", "write m | m"),
    ("y = not m", "E0101", "write !m"),
    ("y = m && m", "E0101", "write m & m"),
    ("y = m || m", "E0101", "write m | m"),
    ("y = x is n", "E0101", "write x == n"),
    ("y = x if m else n", "E0101", "write where(m, x, n)"),
    ("if m { y = x }", "E0101", "where chooses by a condition"),
    ("for i in x", "E0101", "no loops"),
    ("y = where(x = 0, x, x)", "E0101", "x =="),
    ("y = (x = 0)", "E0101", "=="),
    ("y = reduce_sum(x, axes=(0, 1))", "E0101", "[0, 1]"),
    ("y = reduce_sum(x, axes: [1])", "E0101", "axes="),
    ("y = reduce_sum(x, keepdims=False)", "E0202", "write false"),
    ("y = where(True, x, x)", "E0202", "write true"),
    ("y = onnx.Clip(x, None)", "E0202", "write none"),
    ("y = x as bf16", "E0211", "f32 has its range"),
    ("y = x as bfloat16", "E0211", "f32 has its range"),
    ("y = x as fp16", "E0211", '"f16"'),
    ("let y = x", "E0101", "y = ..."),
    ("var y = x", "E0101", "y = ..."),
    ("y += x", "E0101", "read y_2 below, and write y_2 = y + x"),
    ("y *= x", "E0101", "read y_2 below, and write y_2 = y * x"),
    ("x++", "E0101", "read x_2 below, and write x_2 = x + 1"),
    ("y = F.normalize(x, p=3)", "E0203", "reductions"),
    ("y = max_pool(x, 2)", "E0203", "onnx.MaxPool, with kernel_shape for kernel_size"),
    ("y := x", "E0101", "y = ..."),
    ("print(x)", "E0101", "y = print(...)"),
    ("y = lambda x: x", "E0101", "def"),
    ("y = x @ x", "E0102", "write matmul(x, x)"),
    ("y = relu(x) @ exp(x)", "E0102", "write matmul(relu(x), exp(x))"),
    ("y = 2 * x @ x", "E0102", "matmul with two operands"),
    ("y = 'a'", "E0102", "double quotes"),
    ("y = x << 1", "E0101", "a shift is written a * 2 ** n"),
    ("y = x >> 1", "E0101", "a shift is written a // 2 ** n"),
    ("y = clip(x, min=x)", "E0331", "clip takes numbers; with a tensor write max(x, x)"),
    ("y = clip(x + 1, max=x * 2)", "E0331", "clip takes numbers; with a tensor write min(x + 1, x * 2)"),
    ("y = softmax(x, axes=x)", "E0331", "axes takes what is known before the program runs"),
    ("y = layer_norm(x)", "E0308", "without scale and bias it is mean_variance_norm(x, axes=[-1])"),
    ("y = rms_norm(x)", "E0308", "without a scale it is x / sqrt("),
    ("y = softmax(input=x)", "E0308", "operands are given by position: softmax(x)"),
    ("y = softmax(x=x, axes=[0])", "E0308", "operands are given by position: softmax(x, axes=[0])"),
]


def _first(statement: str) -> Diagnostic:
    return diagnostics(in_model(statement, "return y", inputs=INPUTS))[0]


@each_row(("statement", "code", "help"), HABITS, ids=[statement for statement, *_ in HABITS])
def test_a_habit_of_another_language_gets_its_spelling_here(statement: str, code: str, help: str) -> None:
    found = _first(statement)
    assert found.code.id == code
    assert help in found.help


#: Statements whose help, when it is pasted, is all that is needed.
ONE_STEP = [
    ("y = x.mean(dim=-1)", "y = reduce_mean(x, axes=[-1], keepdims=false)"),
    ("y = x.mean(dim=(0, 1), keepdim=True)", "y = reduce_mean(x, axes=[0, 1])"),
    ("y = x.max(dim=1).values", "y = reduce_max(x, axes=[1], keepdims=false)"),
    ("y = torch.max(x, dim=1)[1]", "y = argmax(x, axes=[1], keepdims=false)"),
    ("y = x.exp().sum(-1) * 2", "y = reduce_sum(exp(x), axes=[-1], keepdims=false) * 2"),
    ("y = relu(x.to(torch.float16).mean(dim=0))", "y = relu(reduce_mean(x as f16, axes=[0], keepdims=false))"),
    ("y = torch.cat((x, x.abs()), dim=1)", "y = concat(x, abs(x), axis=1)"),
    ("y = 2 * x.square()", "y = 2 * (x ** 2)"),
    ("y = x * x.shape[-1]", "y = x * size(x, axis=-1)"),
    ("y = x * x.numel()", "y = x * size(x)"),
    ("y = x * x.size(0)", "y = x * size(x, axis=0)"),
    ("y = x.flatten()", "y = reshape(x, shape=[-1])"),
    ("y = x.var(dim=1, unbiased=False)", "y = variance(x, axes=[1], keepdims=false)"),
    ("y = F.conv2d(i, i, stride=2, padding=(1, 0))", "y = onnx.Conv(i, i, strides=[2, 2], pads=[1, 0, 1, 0])"),
    ("y = F.max_pool2d(i, 2)", "y = onnx.MaxPool(i, kernel_shape=[2, 2], strides=[2, 2])"),
    ("y = i.transpose(1, 2)", "y = transpose(i, perm=[0, 2, 1, 3])"),
    ("y = i.swapaxes(-1, 0)", "y = transpose(i, perm=[3, 1, 2, 0])"),
    ("y = F.linear(x, x, x[:, 0])", "y = matmul(x, transpose(x, perm=[1, 0])) + x[:, 0]"),
    ("y = F.dropout(x, 0.5)", "y = x"),
    ("y = F.normalize(x)", "y = x / max(reduce_l2(x, axes=[1]), 1e-12)"),
    ("y = normalize(x + 1, p=1, axis=-1)", "y = (x + 1) / max(reduce_l1(x + 1, axes=[-1]), 1e-12)"),
    ("y = relu(x++)", "y = relu(x + 1)"),
    ("y = n--", "y = n - 1"),
    ("y = +x", "y = x"),
    ("y = layer_norm(x, 3)", "y = mean_variance_norm(x, axes=[-1])"),
    ("y = layer_norm(x, [4, 3], eps=1e-6)", "y = mean_variance_norm(x, axes=[-2, -1], epsilon=1e-6)"),
    ("y = F.layer_norm(x, (3,), x[0], x[1])", "y = layer_norm(x, x[0], x[1])"),
    ("y = rms_norm(x, [3], x[0])", "y = rms_norm(x, x[0])"),
    ("y = m and x > 0 or m", "y = m & x > 0 | m"),
    ("y = x > 0 && x < 1", "y = x > 0 & x < 1"),
    ("y = x > 0 ? x : 0", "y = where(x > 0, x, 0)"),
    ("y = 0 if m else x", "y = where(m, 0, x)"),
    ("y = x /* half */ * 0.5", "y = x * 0.5"),
    ("y = x /* half */", "y = x  # half"),
    ("y = x |>\n        relu()", "y = (x |>\n        relu())"),
    ("y = x +\n        x *\n        x", "y = (x +\n        x *\n        x)"),
]


@each_row(("statement", "right"), ONE_STEP, ids=[statement for statement, _ in ONE_STEP])
def test_a_help_that_is_pasted_is_a_program(statement: str, right: str) -> None:
    program = in_model(statement, "return y", inputs=f"{INPUTS}, i: f32[1, 1, 8, 8]")
    fix = diagnostics(program)[0].fix
    assert fix is not None
    new = edited(source(program), fix.edits)
    assert f"    {right}\n" in new
    assert codes(new) == []


def test_a_lone_return_gets_the_names_of_the_statement_before() -> None:
    (found,) = diagnostics(in_model("y = x + 1\n    a, b = top_k(y, k=2)", "return", inputs="x: f32[4]"))
    assert (found.code.id, found.help) == ("E0101", "write the results behind it: return a, b")


def test_bounds_of_a_dim_follow_in() -> None:
    (found,) = diagnostics("dim N = 1..64\n" + in_model("return x", inputs="x: f32[N]"))
    assert "dim N in 1..64" in found.help


@each_row(("size", "code"), [("?", "E0102"), ("None", "E0332"), ("_", "E0332"), ("-1", "E0332")])
def test_a_dynamic_size_has_a_name(size: str, code: str) -> None:
    found = diagnostics(in_model("return x", inputs=f"x: f32[{size}, 3]"))[0]
    assert (found.code.id, "a dynamic size has a name, such as N" in found.help) == (code, True)


def test_a_value_named_like_a_module_keeps_its_methods() -> None:
    (found,) = diagnostics(in_model("return np.sum()", inputs="np: f32[3]"))
    assert "reduce_sum(np, keepdims=false)" in found.help


@each_row(
    ("expression", "parts"),
    [
        ("x + n", ["x is f32[4, 3]", "this is i32[4, 3]"]),
        ("where(m, x, n)", ["x is f32[4, 3]", "this is i32[4, 3]"]),
        ("x * 2 + reshape(x, shape=[12])", ["this is f32[4, 3]", "this is f32[12]"]),
        ("m == z", ["m is bool[4, 3]", "z is bool[5]"]),
    ],
)
def test_both_operands_of_a_mismatch_are_labelled_with_their_types(expression: str, parts: list[str]) -> None:
    (found,) = diagnostics(in_model(f"return {expression}", inputs=f"{INPUTS}, z: bool[5]"))
    texts = [label.text for label in found.labels]
    assert all(part in texts for part in parts)
    shown = render(found)
    assert shown.count("return ") == 1  # all under one line


def test_a_label_shows_the_type_where_the_source_does_not() -> None:
    (found,) = diagnostics(in_model("return argmax(x, axes=[4])", inputs="x: f32[ 4,3 ]"))
    assert "x has this type: f32[4, 3]" in [label.text for label in found.labels]
    (found,) = diagnostics(in_model("return argmax(x, axes=[4])", inputs="x: f32[4, 3]"))
    assert "x has this type" in [label.text for label in found.labels]


@each_row(
    ("inputs", "statements", "unused"),
    [
        ("x: f32[4], z: f32[4]", ["return x"], ["input z is not used"]),
        ("x: f32[4]", ["y = x + 1", "return x"], ["y is not used"]),
        ("x: f32[4]", ["v, i = top_k(x, k=2)", "return v"], ["i is not used"]),
        ("x: f32[4]", ["v, _ = top_k(x, k=2)", "return v"], []),
        ("x: f32[4]", ["k = 2", "v, _ = top_k(x, k=k)", "return v"], []),
        ("x: f32[4], z: f32[N]", ["return x * N"], []),
        ("x: f32[N], z: f32[N]", ["return x * N"], ["input z is not used"]),
        ("x: f32[4], z: f16[4]", ["return full(shape=[2], value=0, like=z) + (x[0] as f16)"], []),
    ],
)
def test_unused_inputs_and_values_are_advice(inputs: str, statements: list[str], unused: list[str]) -> None:
    graph = graph_of(in_model(*statements, inputs=inputs))
    assert [d.message for d in graph.advice if d.code.id == "W0621"] == unused
    assert all(d.severity == "advice" for d in graph.advice)


def test_an_operation_needs_no_use_line() -> None:
    (found,) = diagnostics("use softmax from std\n" + in_model("return x", inputs=INPUTS))
    assert (found.code.id, found.help) == ("E0212", "softmax is an operation, which needs no use line")


def test_the_name_of_a_file_stands_in_quotes() -> None:
    (found,) = diagnostics("const w: f32[2] = load(w.npy)\n" + in_model("return x", inputs=INPUTS))
    assert found.fix is not None and found.fix.safe
    assert [edit.text for edit in found.fix.edits] == ['"w.npy"']


@each_row("item", ["def f(a) { return a }", "const k: f32[] = 2", "dim K in 1..4"])
def test_an_item_inside_of_a_block_belongs_outside(item: str) -> None:
    inside = diagnostics(in_model(item, "return x"))
    assert inside[0].help == f"close it with }}, or write the {item.split()[0]} outside: blocks hold no others"
    forgotten = diagnostics("model a(x: f32[2]) -> (y) {\n    return x\n\n" + item + "\n")
    assert forgotten[0].help == "close it with }"


NEEDING = {
    name: [spec.name for spec in attribute_specs(op.attributes) if spec.default is REQUIRED]
    for name, op in OPERATIONS.items()
}


@each_row("name", [name for name, needed in NEEDING.items() if needed])
def test_the_example_of_a_missing_attribute_works(name: str) -> None:
    """Type what the help says, until nothing is missing."""
    inputs, results = f"x: {'u32' if name == 'one_hot' else 'f32'}[1]", "y, i" if name == "top_k" else "y"
    words = ["x"] if OPERATIONS[name].operands else []
    for _ in NEEDING[name]:
        (found,) = diagnostics(in_model(f"{results} = {name}({', '.join(words)})", "return y", inputs=inputs))
        assert found.code.id == "E0306"
        words.append(found.help.removeprefix("write it, such as "))
    left = codes(in_model(f"{results} = {name}({', '.join(words)})", "return y", inputs=inputs))
    assert left == (["E0304"] if name == "pad" else [])  # pads come in pairs, of which one axis has one


def test_an_operand_that_may_be_left_out_is_counted_so() -> None:
    assert _first("y = layer_norm(x)").message == "layer_norm takes 2 or 3 operands (x, scale, bias), 1 given"
    assert _first("y = matmul(x)").message == "matmul takes 2 operands (a, b), 1 given"
