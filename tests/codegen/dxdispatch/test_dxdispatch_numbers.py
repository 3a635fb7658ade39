"""The numbers of DxDispatch files are the program's: every operation, its dtypes, its axes, ties first and last."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from dxdispatch_check import check, feeds_of, program_of

from dmlc.ops import elementwise
from tests.rows import each_row

FLOATS = ["f16", "f32"]
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
NUMBERS = FLOATS + INTS
ALL = [*NUMBERS, "f64", "bool"]
INDEX = {"i32": np.int32, "i64": np.int64, "u32": np.uint32, "u64": np.uint64}
AXES = [list(axes) for n in (1, 2, 3) for axes in itertools.combinations(range(3), n)]


def every_third(dtypes: list[str], *turns: int) -> list[str]:
    """A third of the dtypes: with three values of one turn, all."""
    return dtypes[sum(turns) % 3 :: 3]


def one(call: str, dtype: str = "f32", shape: str = "2, 3, 4", results: str = "y") -> str:
    return f"model m(x: {dtype}[{shape}]) -> ({results}) {{\n    {results} = {call}\n    return {results}\n}}\n"


def two(call: str, dtype: str, a: str = "2, 3, 4", b: str = "3, 1") -> str:
    return f"model m(a: {dtype}[{a}], b: {dtype}[{b}]) -> (y) {{\n    y = {call}\n    return y\n}}\n"


# --- the four operators


@each_row("axes", AXES, ids=str)
@each_row("ties", ["first", "last"])
@each_row("op", ["argmax", "argmin"])
def test_arg(op: str, ties: str, axes: list[int]) -> None:
    for dtype in every_third(NUMBERS, len(op), len(ties), AXES.index(axes)):
        assert check(one(f"{op}(x, axes={axes}, ties={ties})", dtype)) == [op.upper()]


@pytest.mark.parametrize("index", ["u32", "i32", "i64", "u64"])
def test_index_dtypes(index: str) -> None:
    assert check(one(f"argmax(x, axes=[0, 2], dtype={index}, keepdims=false)")) == ["ARGMAX"]
    assert check(one(f"top_k(x, k=2, dtype={index})", results="v, i")) == ["TOP_K1"]


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("order", ["largest", "smallest"])
def test_top_k(order: str, axis: int) -> None:
    for dtype in every_third(NUMBERS, axis, len(order)):
        assert check(one(f"top_k(x, k=2, axis={axis}, order={order})", dtype, "3, 2, 4", "v, i")) == ["TOP_K1"]


def test_all_of_top_k() -> None:
    assert check(one("top_k(x, k=4)", results="v, i")) == ["TOP_K1"]


@each_row("axes", AXES, ids=str)
@each_row("dtype", FLOATS)
def test_over_axes(axes: list[int], dtype: str) -> None:
    assert check(one(f"hardmax(x, axes={axes})", dtype)) == ["ACTIVATION_HARDMAX1"]
    assert check(one(f"softmax(x, axes={axes})", dtype)) == ["ACTIVATION_SOFTMAX1"]
    assert check(one(f"log_softmax(x, axes={axes})", dtype)) == ["ACTIVATION_LOG_SOFTMAX1"]


def test_ties_of_minus_zero() -> None:
    feeds = {"x": np.array([[[0.0, -0.0, 0.0]]], np.float32)}
    check(one("argmax(x, axes=[1, 2], ties=last)", shape="1, 1, 3"), feeds)
    check(one("hardmax(x, axes=[1, 2])", shape="1, 1, 3"), feeds)


# --- reductions


@each_row("axes", AXES, ids=str)
@each_row("op", ["sum", "mean", "max", "min", "prod", "l1", "sum_square"])
def test_reduce(op: str, axes: list[int]) -> None:
    for dtype in every_third(NUMBERS, AXES.index(axes)):
        used = check(one(f"reduce_{op}(x, axes={axes}, keepdims=false)", dtype), scale=4)
        assert used.count("REDUCE") == 1 or op == "mean"
        if dtype in FLOATS:
            assert used == ["REDUCE"]


@each_row("axes", AXES, ids=str)
@each_row("dtype", FLOATS)
def test_reduce_floats(dtype: str, axes: list[int]) -> None:
    assert check(one(f"reduce_l2(x, axes={axes})", dtype)) == ["REDUCE"]
    assert check(one(f"reduce_log_sum(abs(x) + 1, axes={axes})", dtype))[-1] == "REDUCE"
    check(one(f"reduce_log_sum_exp(x * 400, axes={axes})", dtype), scale=2)


def test_log_sum_exp_of_infinities() -> None:
    rows = [[-np.inf, -np.inf], [np.inf, 1], [np.inf, -np.inf], [-np.inf, 2], [-200, -200], [100, 100]]
    used = check(one("reduce_log_sum_exp(x, axes=[1])", shape="6, 2"), {"x": np.array(rows, np.float32)})
    names = ["REDUCE", "ELEMENT_WISE_CLIP1", "ELEMENT_WISE_SUBTRACT", "REDUCE", "ELEMENT_WISE_ADD"]
    assert used == names


@pytest.mark.parametrize("op", ["max", "min"])
def test_reduce_bool(op: str) -> None:
    assert check(one(f"reduce_{op}(x, axes=[0, 2])", "bool")) == ["REDUCE"]


@each_row("dtype", INTS)
def test_sums_wrap(dtype: str) -> None:
    limits = np.iinfo(program_of(one("x", dtype)).signature.inputs[0][1].dtype.numpy)
    x = np.full((2, 3, 4), limits.max, limits.dtype)
    x[0, 0] = limits.min
    for call in ("reduce_sum(x, axes=[0, 1])", "reduce_prod(x)", "reduce_sum_square(x, axes=[2])", "cumsum(x, axis=1)"):
        check(one(call, dtype), {"x": x})
    check(one("reduce_mean(x, axes=[1, 2])", dtype), {"x": x})
    check(one("reduce_l1(x, axes=[1, 2])", dtype), {"x": x})


@pytest.mark.parametrize("dtype", ["i64", "u64"])
def test_means_of_wide_integers(dtype: str) -> None:
    rng = np.random.default_rng(5)
    numpy_dtype = np.dtype({"i64": np.int64, "u64": np.uint64}[dtype])
    limits = np.iinfo(numpy_dtype)
    x = rng.integers(limits.min, limits.max, (50, 7), numpy_dtype, endpoint=True)
    small = rng.integers(0 if dtype == "u64" else -9, 10, (50, 7)).astype(numpy_dtype)
    for array in (x, small, np.where(small > 3, x, small)):
        check(one("reduce_mean(x, axes=[1])", dtype, "50, 7"), {"x": array})


@each_row("flags", ["", ", exclusive=true", ", reverse=true", ", exclusive=true, reverse=true"])
@each_row("op", ["cumsum", "cumprod"])
def test_scans(op: str, flags: str) -> None:
    for axis in range(3):
        for dtype in every_third(NUMBERS, axis):
            check(one(f"{op}(x, axis={axis}{flags})", dtype), scale=4)


# --- normalizations


@each_row("axes", AXES, ids=str)
@each_row("dtype", FLOATS)
def test_mean_variance_norm(dtype: str, axes: list[int]) -> None:
    assert check(one(f"mean_variance_norm(x, axes={axes})", dtype)) == ["MEAN_VARIANCE_NORMALIZATION1"]
    check(one(f"mean_variance_norm(x, axes={axes}, variance=false, epsilon=0.5)", dtype))


@each_row("scale", ["4", "3, 4", "3, 1", "", "1, 4"])
@each_row("dtype", FLOATS)
def test_affine_norms(dtype: str, scale: str) -> None:
    head = f"model m(x: {dtype}[2, 3, 4], s: {dtype}[{scale}], b: {dtype}[4]) -> (y) {{\n    return "
    layer, rms = "MEAN_VARIANCE_NORMALIZATION1", "MEAN_VARIANCE_NORMALIZATION2"
    assert check(head + "layer_norm(x, s, b, axis=1)\n}") == [layer]
    assert check(head + "layer_norm(x, s, none, axis=1, epsilon=0.25)\n}") == [layer]
    assert check(head + "rms_norm(x, s, axis=1)\n}") == [rms]


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("dtype", FLOATS)
def test_lp_norm(dtype: str, p: int) -> None:
    for axis in range(3):
        program = program_of(one(f"lp_norm(x, axis={axis}, p={p})", dtype))
        x = feeds_of(program)["x"]
        x[0, 0], x[:, 2], x[..., 3] = 0, 0, 0
        check(one(f"lp_norm(x, axis={axis}, p={p})", dtype), {"x": x})


# --- elementwise

FLOAT_OPS = [op for op in elementwise.UNARY if op.operands[0].dtypes == elementwise.FLOATS]


@each_row("op", FLOAT_OPS, ids=lambda op: op.name)
def test_unary_floats(op: elementwise.UnaryOperation) -> None:
    x = np.array([0.25, 0.5, 1.5, 2.5, 3.5, 0.75, 7, 1e-3, 4.5, 2, 1, 0.125], np.float32).reshape(3, 4)
    for dtype in FLOATS:
        data = x.astype(np.float16 if dtype == "f16" else np.float32)
        if op.name.startswith("is_"):
            data[0] = [np.nan, np.inf, -np.inf, 0]
        assert len(check(one(f"{op.name}(x)", dtype, "3, 4"), {"x": data})) == 1
        if op.domain_from < 0:
            check(one(f"{op.name}(x)", dtype, "3, 4"), {"x": -data})


_MUL = "ELEMENT_WISE_MULTIPLY"


@pytest.mark.parametrize(
    ("call", "level", "expected"),
    [
        ("gelu(x)", "5.1", ["ACTIVATION_GELU"]),
        ("gelu(x)", "5.0", [*[_MUL] * 2, "ELEMENT_WISE_ERF", "ELEMENT_WISE_ADD", _MUL]),
        ("gelu(x, approximate=tanh)", "6.4", [*[_MUL] * 2, "ELEMENT_WISE_ADD", _MUL, "ACTIVATION_SIGMOID", _MUL]),
        ("silu(x)", "6.2", ["ACTIVATION_SWISH"]),
        ("silu(x)", "6.1", ["ACTIVATION_SIGMOID", _MUL]),
        ("leaky_relu(x, alpha=0.5)", "5.0", ["ACTIVATION_LEAKY_RELU"]),
        ("hard_sigmoid(x, alpha=0.5, beta=0.125)", "5.0", ["ACTIVATION_HARD_SIGMOID"]),
    ],
)  # fmt: skip
def test_activations_by_feature_level(call: str, level: str, expected: list[str]) -> None:
    assert check(one(call), feature_level=level) == expected


@each_row(
    ("x", "i", "axis", "batch"),
    [
        ((3, 5), (3, 4), 1, 1),
        ((2, 3, 5), (2,), 2, 1),
        ((2, 3, 5, 2), (2, 3, 4, 2), 2, 2),
        ((2, 3, 5, 2), (2, 4, 2), 2, 1),
        ((2, 3, 5, 2), (2, 4, 2), 3, 1),
    ],
)
@each_row("index", ["i32", "i64", "u32", "u64"])
def test_gather_of_batches(x: tuple[int, ...], i: tuple[int, ...], axis: int, batch: int, index: str) -> None:
    rng = np.random.default_rng(0)
    low = -x[axis] if index[0] == "i" else 0
    feeds = {
        "x": rng.random(x).astype(np.float32),
        "i": rng.integers(low, x[axis], i).astype(index.replace("i", "int").replace("u", "uint")),
    }
    sizes = [", ".join(map(str, shape)) for shape in (x, i)]
    call = f"y = gather(x, i, axis={axis}, batch_axes={batch})"
    text = f"model m(x: f32[{sizes[0]}], i: {index}[{sizes[1]}]) -> (y) {{\n    {call}\n    return y\n}}\n"
    assert [name for name in check(text, feeds) if name != "ELEMENT_WISE_IDENTITY"] == ["GATHER_ND1"]


SIGNED = [d for d in NUMBERS if not d.startswith("u")]


@pytest.mark.parametrize(
    ("call", "dtypes"),
    [("abs(x)", NUMBERS), ("sign(x)", NUMBERS), ("-x", SIGNED), ("relu(x)", SIGNED), ("!x", [*INTS, "bool"])],
    ids=str,
)
def test_unary(call: str, dtypes: list[str]) -> None:
    for dtype in dtypes:
        assert len(check(one(call, dtype))) == 1  # abs of an unsigned integer is a copy


ARITHMETIC = ["a + b", "a - b", "a * b", "min(a, b)", "max(a, b)"]
BITS = ["a & b", "a | b", "a ^ b", "a == b", "a != b"]
COMPARISONS = ["a == b", "a != b", "a < b", "a <= b", "a > b", "a >= b"]


@each_row("call", ARITHMETIC + COMPARISONS)
def test_binary(call: str) -> None:
    for dtype in every_third(NUMBERS, (ARITHMETIC + COMPARISONS).index(call)):
        assert len(check(two(call, dtype))) == (2 if call == "a != b" else 1)


@pytest.mark.parametrize(
    ("call", "dtypes"), [("a / b", FLOATS), ("onnx.Div(a, b)", INTS), ("a // b", NUMBERS), ("a % b", NUMBERS)]
)
def test_division(call: str, dtypes: tuple[str, ...]) -> None:
    for dtype in dtypes:
        program = program_of(two(call, dtype, "11, 1", "10"))
        numpy_dtype = program.signature.inputs[0][1].dtype.numpy
        b = np.array([1, 2, 3, 4, 5, 1, 2, 3, 4, 5]).astype(numpy_dtype)
        a = np.arange(11).astype(numpy_dtype)
        if not dtype.startswith("u"):
            b[5:] = -b[5:]
            a = (np.arange(11) - 5).astype(numpy_dtype)
        if dtype in INTS:
            a[[0, -1]] = np.iinfo(numpy_dtype).min + (0 if dtype.startswith("u") else 1), np.iinfo(numpy_dtype).max
        check(two(call, dtype, "11, 1", "10"), {"a": a.reshape(11, 1), "b": b})


@each_row("call", BITS)
def test_bits(call: str) -> None:
    for dtype in every_third([*INTS, "bool"], BITS.index(call)):
        check(two(call, dtype))


@each_row("power", ["0", "1", "2", "3", "7"])
def test_whole_powers(power: str) -> None:
    for dtype in every_third(NUMBERS, int(power)):
        used = check(one(f"x ** {power}", dtype))
        assert set(used) <= {"ELEMENT_WISE_MULTIPLY", "ELEMENT_WISE_IDENTITY", "ELEMENT_WISE_CONSTANT_POW"}


def test_other_powers() -> None:
    x = {"x": np.array([0.5, 1, 2, 9], np.float32)}
    assert check(one("x ** -1.5", shape="4"), x) == ["ELEMENT_WISE_CONSTANT_POW"]
    feeds = {"a": np.array([[1], [2], [3]], np.int32), "b": np.array([0, 1, 4], np.int32)}
    assert check(two("a ** b", "i32", "3, 1", "3"), feeds) == ["ELEMENT_WISE_POW"]
    floats = {name: array.astype(np.float32) for name, array in feeds.items()}
    assert check(two("a ** b", "f32", "3, 1", "3"), floats) == ["ELEMENT_WISE_POW"]


def test_where() -> None:
    for dtype in ALL:
        text = f"model m(c: bool[3, 1], a: {dtype}[2, 3, 4], b: {dtype}[4]) -> (y) {{\n    return where(c, a, b)\n}}"
        assert check(text) == ["ELEMENT_WISE_IF"]


@pytest.mark.parametrize("bounds", ["min=1", "max=2", "min=1, max=3", "min=3, max=1"])
def test_clip(bounds: str) -> None:
    for dtype in NUMBERS:
        assert check(one(f"clip(x, {bounds})", dtype)) == ["ELEMENT_WISE_CLIP1"]


@each_row("source", ALL)
def test_casts(source: str) -> None:
    for to in every_third(ALL, ALL.index(source)):
        if source == "f64" and to == "bool":
            continue  # refused: nothing compares f64
        negative_to_unsigned = source in ("f16", "f32", "f64") and to.startswith("u")  # unspecified
        check(one(f"x as {to}", source), _positive(source) if negative_to_unsigned else None)


def _positive(source: str) -> dict[str, np.ndarray]:
    return {"x": (np.arange(24) / 4).reshape(2, 3, 4).astype({"f16": "f2", "f32": "f4", "f64": "f8"}[source])}


def test_integer_casts_wrap() -> None:
    x = np.array([2**31 - 1, -(2**31), 255, 256, -1, 70000], np.int64).astype(np.int32)
    for to in INTS:
        check(one(f"x as {to}", "i32", "6"), {"x": x})
        check(one(f"(x as {to}) + 1", "i32", "6"), {"x": x})
        check(one(f"transpose(x as {to})", "i32", "2, 3"), {"x": x.reshape(2, 3)})


def test_casts_to_bool_are_not_zero() -> None:
    x = np.array([0, -0.0, 0.25, -3, np.nan, np.inf], np.float32)
    check(one("x as bool", shape="6"), {"x": x})
    check(one("x as bool", "i64", "3"), {"x": np.array([0, 2**40, -1])})


# --- moving

MOVES = [
    "reshape(x, shape=[4, 6])", "transpose(x)", "transpose(x, perm=[1, 0, 2])", "unsqueeze(x, axes=[0, 2])",
    "expand(unsqueeze(x, axes=[1]), shape=[2, 5, 3, 4])", "reshape(transpose(x), shape=[6, 4])",
    "concat(x, x, axis=1)", "slice(x, starts=[1], ends=[3], axes=[2])", "pad(x, pads=[0, 1, 0, 2, 0, 1])",
    "slice(x, starts=[0], ends=[4], axes=[2], steps=[2])",
    "slice(x, starts=[-1, 2], ends=[0, -5], axes=[2, 1], steps=[-2, -1])",
    "concat(transpose(x), slice(transpose(x), starts=[1], ends=[2]), axis=0)", "x",
    "transpose(slice(x, starts=[0], ends=[2], axes=[1]), perm=[2, 1, 0])",
]  # fmt: skip


@each_row("call", MOVES)
def test_moves(call: str) -> None:
    for dtype in every_third(ALL, MOVES.index(call)):
        check(one(call, dtype))


def test_moving_is_free() -> None:
    """Strides instead of copies: nothing but the reduction is dispatched."""
    call = "reduce_sum(transpose(expand(unsqueeze(x, axes=[1]), shape=[2, 5, 3, 4]), perm=[3, 1, 0, 2]), axes=[0, 1])"
    assert check(one(call)).count("ELEMENT_WISE_IDENTITY") == 0
    assert check(one("argmax(transpose(x), axes=[0, 1])")) == ["ARGMAX"]
    assert check(one("top_k(slice(x, starts=[0], ends=[2], axes=[1]), k=2)", results="v, i")) == ["TOP_K1"]


@pytest.mark.parametrize("value", ["1.5", "inf", "-inf", "nan"])
def test_pad_values(value: str) -> None:
    for dtype in [*FLOATS, "f64"]:
        check(one(f"pad(x, pads=[1, 0, 0, 0, 2, 0], value={value})", dtype))


def test_split() -> None:
    for dtype in ALL:
        assert check(one("split(x, axis=2, sizes=[1, 3])", dtype, results="a, b")) == ["SPLIT"]


#: Each index dtype for each axis and shape of indices, and for each dtype of data.
GATHERS = [*itertools.product([0, 1, 2], [(), (3,), (2, 2)], ["f32"]), *[(1, (2, 2), dtype) for dtype in ALL]]


@each_row("index", INDEX)
@each_row(("axis", "shape", "dtype"), GATHERS)
def test_gather(index: str, axis: int, shape: tuple[int, ...], dtype: str) -> None:
    sizes = ", ".join(map(str, shape))
    text = f"model m(x: {dtype}[2, 3, 4], i: {index}[{sizes}]) -> (y) {{\n    return gather(x, i, axis={axis})\n}}"
    i = np.random.default_rng(1).integers(0 if index.startswith("u") else -2, 2, shape)
    assert check(text, {"i": i.astype(INDEX[index])}) == ["GATHER"]


@each_row("axis", [0, 1, 2])
@each_row("shape", [(2, 3, 4), (1, 2, 3), (2, 1, 2)])
def test_gather_and_scatter_elements(axis: int, shape: tuple[int, ...]) -> None:
    sizes = ", ".join(map(str, shape))
    for dtype in ("f32", "bool", "i64", "f64"):
        head = f"model m(x: {dtype}[2, 3, 4], i: i32[{sizes}], u: {dtype}[{sizes}]) -> (y) {{\n    return "
        gather, scatter = (
            head + f"{call}\n}}"
            for call in (f"gather_elements(x, i, axis={axis})", f"scatter_elements(x, i, u, axis={axis})")
        )
        most = min(shape[axis], (2, 3, 4)[axis])
        places = np.indices(shape)[axis] % most  # each place once
        feeds = {"i": np.where(places % 2 == 1, places - (2, 3, 4)[axis], places).astype(np.int32)}
        check(gather, feeds)
        check(scatter, feeds)


@each_row("index", INDEX)
@each_row("dtype", ALL)
def test_one_hot(dtype: str, index: str) -> None:
    """The axes take turns, so that each meets each of the two dtypes."""
    axis = (ALL.index(dtype) + list(INDEX).index(index)) % 3
    on = "1" if dtype == "bool" else "3"
    call = f"one_hot(i, depth=4, axis={axis}, on={on}, dtype={dtype})"
    text = f"model m(i: {index}[2, 3]) -> (y) {{\n    return {call}\n}}"
    i = np.array([[0, 3, 4], [1, 100, 2]]).astype(INDEX[index])
    check(text, {"i": i if index.startswith("u") else i * np.array([1, -1, -1], i.dtype)})


def test_iota_and_full() -> None:
    for dtype in NUMBERS:
        check(f"model m(x: {dtype}[5]) -> (y, z, w) {{\n    y = iota(length=5, dtype={dtype})\n    z = x + y\n"
              f"    w = full(shape=[2, 3], value=1, dtype={dtype})\n    return y, z, w\n}}")  # fmt: skip
    check("model m(x: f16[3000]) -> (y) {\n    return x * 0 + iota(length=3000, dtype=f16)\n}")


# --- products

SHAPES = [("3, 4", "4, 5"), ("4", "4, 5"), ("3, 4", "4"), ("4", "4"), ("2, 3, 4", "4, 5"), ("2, 1, 3, 4", "3, 4, 2"),
          ("2, 2, 1, 3, 4", "2, 3, 4, 5")]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES, ids=str)
def test_matmul(a: str, b: str) -> None:
    for dtype in every_third(NUMBERS, SHAPES.index((a, b))):
        used = check(two("matmul(a, b)", dtype, a, b), scale=4)
        assert ("GEMM" in used) == (dtype in FLOATS)


def test_transposed_operands_are_strides() -> None:
    assert check(two("matmul(transpose(a), b)", "f32", "4, 3", "4, 5")) == ["GEMM"]


# --- ranks


def test_more_axes_than_directml_has() -> None:
    shape = "2, 1, 2, 1, 2, 1, 2, 1, 2"
    assert check(two("a + b", "f32", shape, shape)) == ["ELEMENT_WISE_ADD"]
    check(one("exp(x)", shape=shape))
    check(one("reduce_sum(x, axes=[3, 4, 5])", shape=shape))


def test_scalars() -> None:
    check(one("reduce_sum(x) + 1", "i8", ""))
    check("model m(x: f32[], i: i32[]) -> (y, z) {\n    y = exp(x)\n    z = one_hot(i, depth=2)\n    return y, z\n}",
          {"x": np.array(1.5, np.float32), "i": np.array(1, np.int32)})  # fmt: skip


def test_the_same_value_twice_and_an_input() -> None:
    check("model m(x: f32[3], c: bool[2]) -> (a, b, d, e) {\n    y = exp(x)\n    return y, y, x, c\n}")
