"""Recipes of structure: sizes that only a node knows, missing operands, quantised nodes, sequences, other domains."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tools.fuzz.onnx_models import BOOL, F16, F32, F64, I32, I64, MisfitError
from tools.fuzz.structure_grower import StructureGrower

I8, U8 = TensorProto.INT8, TensorProto.UINT8
_REAL = (F32, F32, F16, F64)


# --- sizes and ranks that only a node knows


def _sized_by_data(g: StructureGrower) -> tuple[str, int, int]:
    """A value whose size depends on the numbers of its operand: its name, dtype and rank."""
    turn = g.rng.randrange(5)
    if turn == 0 and g.opset >= 9:
        x = g.any((F32, I32, I64, BOOL), 1)
        return g.raw("NonZero", [x])[0], I64, 2
    if turn == 1 and g.opset >= 11:
        x = g.any((F32, F64, I64), 1)
        return g.raw("Unique", [x])[0], g.kinds[x][0], 1
    if turn == 2 and g.opset >= 9:
        x = g.any((F32, F16, I64), 1)
        keep = [g.rng.random() < 0.6 for _ in range(3)]
        return g.raw("Compress", [x, g.const(keep or [True], BOOL)])[0], g.kinds[x][0], 1
    if turn == 3 and g.opset >= 10:
        x = g.any((F32, F64, I64), 1)
        axis = g.rng.randrange(g.rank(x))
        ends = [g.const([v]) for v in (0, g.rng.choice((1, 2, 2**40)))]
        return g.raw("Slice", [x, *ends, g.const([axis]), g.const([g.rng.choice((1, 2))])])[0], g.kinds[x][0], g.rank(x)
    return _branch_of_ranks(g)


def _branch_of_ranks(g: StructureGrower) -> tuple[str, int, int]:
    """An If whose branches give other sizes or other ranks: nothing says which."""
    x = g.any((F32, F64, F16, I64), 1)
    dtype, rank = g.kinds[x][0], g.rank(x)
    same = g.chance(0.5)
    name = g.fresh("b")
    then = [helper.make_node("Concat", [x, x], [f"{name}t"], axis=g.rng.randrange(rank))]
    if same:
        other = [helper.make_node("Identity", [x], [f"{name}e"])]
    else:
        other = [helper.make_node("Flatten", [x], [f"{name}e"], axis=1)]
    graphs = {
        "then_branch": helper.make_graph(then, "then", [], [helper.make_tensor_value_info(f"{name}t", dtype, None)]),
        "else_branch": helper.make_graph(other, "else", [], [helper.make_tensor_value_info(f"{name}e", dtype, None)]),
    }
    if dtype == F16 and g.opset < 9:
        raise MisfitError("Flatten of f16")
    return g.raw("If", [g.flag()], **graphs)[0], dtype, rank if same else min(rank, 2)


def unknown_size(g: StructureGrower) -> None:
    """A value of unknown size that is read like any other."""
    name, dtype, least = _sized_by_data(g)
    g.loose[name] = dtype, least


def only_its_shape(g: StructureGrower) -> None:
    """A value of unknown size that is used for nothing but its Shape."""
    name, _, rank = _sized_by_data(g)
    shape = g.one_of_shape(name, rank)
    turn = g.rng.randrange(5)
    if turn == 0 and g.opset >= 8:
        g.lax("Expand", [g.const(np.ones([1] * rank), g.main), shape], g.main, rank)
    elif turn == 1 and g.opset >= 9:
        value = numpy_helper.from_array(np.array([g.rng.choice((0, 1, 2))], np.float32))
        g.lax("ConstantOfShape", [shape], F32, rank, value=value)
    elif turn == 2:
        total = g.raw("ReduceProd", [shape], keepdims=0)[0]
        g.known(total, I64, ())
    elif turn == 3 and g.opset >= 11:
        first = g.raw("Gather", [shape, g.const(0)])[0]
        g.lax("Range", [g.const(0), first, g.const(1)], I64, 1)
    else:
        g.known(g.raw("Size", [name])[0], I64, ())


def shape_of_operator(g: StructureGrower) -> None:
    """The size that a window, a resize or a tile makes, where that node is used for nothing else."""
    x = g.any((F32,), 3, most=5)
    rank = g.rank(x)
    turn = g.rng.randrange(4)
    if turn == 0:
        kernel = [1] * (rank - 2)
        name = g.raw("MaxPool", [x], kernel_shape=kernel, strides=[g.rng.choice((1, 2))] * (rank - 2))[0]
    elif turn == 1:
        name = g.raw("AveragePool", [x], kernel_shape=[1] * (rank - 2), strides=[2] * (rank - 2))[0]
    elif turn == 2:
        repeats = [g.rng.choice((1, 2)) for _ in range(rank)]
        name = g.raw("Tile", [x, g.const(repeats)])[0]
    else:
        pads = [g.rng.choice((0, 1)) for _ in range(2 * rank)]
        if g.opset < 11:
            name = g.raw("Pad", [x], pads=pads)[0]
        else:
            name = g.raw("Pad", [x, g.const(pads)])[0]
    if g.chance(0.3):
        g.loose[name] = F32, rank
    shape = g.one_of_shape(name, rank)
    if g.opset >= 8:
        g.lax("Expand", [g.const(np.ones([1] * rank), F32), shape], F32, rank)


def computed_reshape(g: StructureGrower) -> None:
    """A reshape whose shape is computed from Shape, as old exporters write it."""
    x = g.any((F32, F64, F16, I64), 2)
    shape = g.one_of_shape(x, g.rank(x))
    first = g.raw("Gather", [shape, g.const([0])])[0]
    sizes = [first, g.const([-1])]
    g.lax("Reshape", [x, g.raw("Concat", sizes, axis=0)[0]], g.kinds[x][0], 2)


def fed_reshape(g: StructureGrower) -> None:
    """A reshape by a shape that is an input: the rank is unknown."""
    x, dtype = g.either((F32, F64, F16), 0)
    name = f"x{len(g.inputs)}"
    g.inputs[name] = g.kinds[name] = I64, (g.rng.choice(("L", 1, 2)),)
    g.lax("Reshape", [x, name], dtype, 0)


def unknown_rank_arithmetic(g: StructureGrower) -> None:
    x, dtype = g.either((F32, F64, F16, I32, I64))
    least = g.loose.get(x, (0, 0))[1]
    turn = g.rng.randrange(6)
    if turn == 0:
        g.lax(g.rng.choice(("Relu", "Neg", "Abs", "Tanh", "Sigmoid")), [x], dtype, least)
    elif turn == 1:
        g.lax(g.rng.choice(("Add", "Mul", "Sub", "Max")), [x, g.const(g.rng.choice((1, 2, 3)), dtype)], dtype, least)
    elif turn == 2:
        g.lax("Cast", [x], to := g.rng.choice((F32, F64, I32, BOOL)), least, to=to)
    elif turn == 3:
        g.lax("Add", [x, g.lax("Neg", [x], dtype, least)], dtype, least)
    elif turn == 4 and g.opset >= 9:
        condition = g.raw("Greater", [x, g.const(1, dtype)])[0]
        g.lax("Where", [condition, x, g.const(0, dtype)], dtype, least)
    else:
        g.lax("Identity", [x], dtype, least)


_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp", "ReduceL2")


def unknown_rank_reduction(g: StructureGrower) -> None:
    """A reduction or a selection of a value of unknown rank."""
    x, dtype = g.either((F32, F64, F16, I64), 1)
    turn = g.rng.randrange(5)
    if turn == 0:
        g.known(g.raw(g.rng.choice(_REDUCTIONS[:5]), [x], keepdims=0)[0], dtype, ())
    elif turn == 1:
        axis = g.rng.choice((0, -1))
        op = g.rng.choice(_REDUCTIONS if dtype != I64 else _REDUCTIONS[:4])
        if g.opset < 11:
            axis = 0
        g.lax_reduce(op, x, axis, dtype, g.rng.choice((0, 1)))
    elif turn == 2:
        g.lax(g.rng.choice(("ArgMax", "ArgMin")), [x], I64, 1, axis=0, keepdims=1)
    elif dtype == I64:
        raise MisfitError("softmax of integers")
    elif turn == 3:
        g.lax(g.rng.choice(("Softmax", "LogSoftmax")), [x], dtype, 1, axis=0 if g.opset < 11 else g.rng.choice((0, -1)))
    else:
        axis = 0 if g.opset < 11 else -1
        shifted = g.lax("Sub", [x, g.lax_reduce("ReduceMax", x, axis, dtype, 1)], dtype, 1)
        e = g.lax("Exp", [shifted], dtype, 1)
        g.lax("Div", [e, g.lax_reduce("ReduceSum", e, axis, dtype, 1)], dtype, 1)


def chosen_by_argmax(g: StructureGrower) -> None:
    """An arg reduction, and what it chooses gathered again."""
    x = g.any(_REAL, 1)
    axis = g.rng.randrange(g.rank(x))
    if g.opset < 11:
        raise MisfitError("GatherElements is newer")
    scores = g.one("Softmax", x, axis=-1) if g.chance(0.4) else x
    index = g.one("ArgMax", scores, axis=axis, keepdims=1)
    g.one("GatherElements", scores, index, axis=axis)
    if g.chance(0.5):
        g.reduce("ReduceMax", scores, [axis], 1)


# --- operands that are absent


def missing_operand(g: StructureGrower) -> None:
    turn = g.rng.randrange(6)
    if turn == 0 and g.opset >= 11:
        x = g.any((F32, F64))
        g.put("Clip", [x, "", g.const(2, g.kinds[x][0])] if g.chance(0.7) else [x, "", ""])
    elif turn == 1 and g.opset >= 18:
        x = g.any(_REAL)
        g.put(g.rng.choice(("ReduceSum", "ReduceMax", "ReduceMean")), [x, ""], keepdims=g.rng.choice((0, 1)))
    elif turn == 2 and g.opset >= 18:
        x = g.any(_REAL, 1)
        g.put("Pad", [x, g.const([0, 1]), "", g.const([g.rng.randrange(g.rank(x))])])
    elif turn == 3 and g.opset >= 13:
        x = g.any((F32,))
        g.put("Dropout", [x, "", ""] if g.chance(0.5) else [x, g.const(0.5, F32), ""])
    elif turn == 4 and g.opset >= 17:
        x = g.any((F32, F16, F64), 1)
        size = g.shape(x)[-1]
        if not isinstance(size, int):
            raise MisfitError("open size")
        g.put("LayerNormalization", [x, g.weight(g.kinds[x][0], [size])], 3, axis=-1)
    elif turn == 5 and g.opset >= 13:
        x = g.any((F32, I64), 1)
        g.put("Squeeze", [g.unsqueeze(x, [0]), g.const([0])])
    elif g.opset >= 10:
        x = g.any((F32, I64), 1)
        steps = g.const([g.rng.choice((1, -1))])
        ends = (0, 2**40) if g.chance(0.5) else (0, 1)
        g.raw_known("Slice", [x, g.const([ends[0]]), g.const([ends[1]]), "", steps], g.kinds[x][0])


# --- quantised nodes


def quantised(g: StructureGrower) -> None:
    """DequantizeLinear before, and QuantizeLinear after, what a rewrite may look at."""
    if g.opset < 10:
        raise MisfitError("no such operator")
    dtype = g.rng.choice((I8, U8))
    zero = g.rng.choice((0, 0, 3))
    scale = g.const(g.rng.choice((0.5, 0.25, 0.1)), F32)
    if g.chance(0.5):
        x = g.any((F32,), 1)
        q = g.raw("QuantizeLinear", [x, scale, g.const(zero, dtype)])[0]
        shape = g.shape(x)
    else:
        name = f"x{len(g.inputs)}"
        shape = tuple(g.rng.choice((2, 3, 4)) for _ in range(g.rng.choice((2, 3, 4))))
        g.inputs[name] = g.kinds[name] = dtype, shape
        q = name
    d = g.raw("DequantizeLinear", [q, scale, g.const(zero, dtype)])[0]
    g.known(d, F32, shape)
    y = d
    turn = g.rng.randrange(7)
    if turn == 0:
        y = g.one("Transpose", d)
    elif turn == 1:
        y = g.one("Reshape", d, g.const([-1]))
    elif turn == 2 and shape:
        y = g.reduce("ReduceMean", d, [len(shape) - 1], 1)
    elif turn == 3 and shape:
        y = g.one("Softmax", d, axis=len(shape) - 1)
    elif turn == 4:
        y = g.unsqueeze(d, [0])
    elif turn == 5 and shape:
        y = g.reduce("ReduceMax", d, [0], 1)
    if g.chance(0.6):
        out = g.raw("QuantizeLinear", [y, scale, g.const(zero, dtype)])[0]
        g.known(out, dtype, g.shape(y))
        if g.chance(0.4):
            last = g.raw("DequantizeLinear", [out, scale, g.const(zero, dtype)])[0]
            g.known(last, F32, g.shape(y))


def dynamic_quantised(g: StructureGrower) -> None:
    if g.opset < 11:
        raise MisfitError("no such operator")
    x = g.any((F32,), 1)
    q, scale, zero = g.raw("DynamicQuantizeLinear", [x], 3)
    d = g.raw("DequantizeLinear", [q, scale, zero])[0]
    g.known(d, F32, g.shape(x))
    g.reduce("ReduceSum", d, g.some_axes(d), g.rng.choice((0, 1)))


# --- sequences


def sequence(g: StructureGrower) -> None:
    if g.opset < 11:
        raise MisfitError("no such operator")
    x = g.any((F32, I64, F64), 1)
    dtype, rank = g.kinds[x][0], g.rank(x)
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(dtype, None))
    turn = g.rng.randrange(3)
    if turn == 0:
        seq = g.raw("SequenceConstruct", [x, x, g.one("Neg" if dtype != I64 else "Abs", x)])[0]
    elif turn == 1:
        seq = g.raw("SplitToSequence", [x], axis=g.rng.randrange(rank), keepdims=1)[0]
    else:
        seq = g.raw(
            "SequenceInsert", [g.raw("SequenceConstruct", [x])[0], x, *([g.const(0)] if g.chance(0.5) else [])]
        )[0]
    if g.chance(0.5) and g.opset >= 14:
        seq = g.raw("Identity", [seq])[0]
    if g.chance(0.4):
        g.typed[seq] = kind
    turn = g.rng.randrange(3)
    if turn == 0:
        g.lax("SequenceAt", [seq, g.const(0)], dtype, rank)
    elif turn == 1:
        g.lax("ConcatFromSequence", [seq], dtype, rank, axis=g.rng.randrange(rank))
    else:
        g.known(g.raw("SequenceLength", [seq])[0], I64, ())


def optional(g: StructureGrower) -> None:
    if g.opset < 15:
        raise MisfitError("no such operator")
    x = g.any((F32, I64), 1)
    wrapped = g.raw("Optional", [x])[0]
    if g.chance(0.5):
        g.known(g.raw("OptionalHasElement", [wrapped])[0], BOOL, ())
    g.lax("OptionalGetElement", [wrapped], g.kinds[x][0], g.rank(x))


# --- other domains


def microsoft(g: StructureGrower) -> None:
    x = g.any((F32,), 1)
    shape, size = g.shape(x), g.shape(x)[-1]
    turn = g.rng.randrange(4)
    if turn == 0:
        y = g.raw("Gelu", [x], domain="com.microsoft")[0]
    elif turn == 1 and isinstance(size, int):
        y = g.raw("BiasGelu", [x, g.weight(F32, [size])], domain="com.microsoft")[0]
    elif turn == 2 and isinstance(size, int) and len(shape) >= 2:
        y = g.raw("FusedMatMul", [x, g.weight(F32, [size, size])], domain="com.microsoft", alpha=0.5)[0]
    else:
        y = g.raw("QuickGelu", [x], domain="com.microsoft", alpha=1.702)[0]
    g.known(y, F32, shape)


def ml(g: StructureGrower) -> None:
    x = g.any((F32,), 2, most=2)
    shape = g.shape(x)
    turn = g.rng.randrange(4)
    if turn == 0:
        y = g.raw("Scaler", [x], domain="ai.onnx.ml", offset=[0.5], scale=[2.0])[0]
        g.known(y, F32, shape)
    elif turn == 1:
        y = g.raw("Normalizer", [x], domain="ai.onnx.ml", norm=g.rng.choice(("MAX", "L1", "L2")))[0]
        g.known(y, F32, shape)
    elif turn == 2:
        y = g.raw("ArrayFeatureExtractor", [x, g.const([0])], domain="ai.onnx.ml")[0]
        g.known(y, F32, (shape[0], 1))
    elif isinstance(shape[1], int) and shape[1]:
        y = g.raw("ZipMap", [x], domain="ai.onnx.ml", classlabels_int64s=list(range(shape[1])))[0]
        value = helper.make_tensor_type_proto(F32, ())
        g.typed[y] = helper.make_sequence_type_proto(helper.make_map_type_proto(I64, value))


def loop_of_rows(g: StructureGrower) -> None:
    """A Loop that gathers row after row and reduces each: the scan output's first size is the trip count."""
    x = g.any((F32, F64), 2)
    dtype, name = g.kinds[x][0], g.fresh("l")
    reduced = helper.make_node("ReduceSum" if g.opset < 13 else "ReduceMax", [f"{name}row"], [f"{name}sum"], keepdims=0)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Gather", [x, f"{name}i"], [f"{name}row"], axis=0),
            reduced,
            helper.make_node("Add", [f"{name}state", f"{name}sum"], [f"{name}next"]),
            helper.make_node("Identity", [f"{name}c"], [f"{name}go"]),
            helper.make_node("Identity", [f"{name}row"], [f"{name}out"]),
        ],
        "body",
        [info(f"{name}i", I64, []), info(f"{name}c", BOOL, []), info(f"{name}state", dtype, [])],
        [info(f"{name}go", BOOL, []), info(f"{name}next", dtype, []), info(f"{name}out", dtype, None)],
    )
    if g.chance(0.5):
        count = g.const(1)
    else:
        shape = g.one_of_shape(x, g.rank(x))
        count = g.raw("Gather", [shape, g.const(0)])[0]
    state, rows = g.raw("Loop", [count, "" if g.chance(0.3) else g.flag(True), g.const(0, dtype)], 2, body=body)
    g.known(state, dtype, ())
    if g.chance(0.5):
        g.loose[rows] = dtype, g.rank(x)
    elif g.opset >= 8:
        shape = g.raw("Shape", [rows])[0]
        g.lax("Expand", [g.const([1] if g.rank(x) == 1 else 1, F32), shape], F32, g.rank(x))


def scan_of_rows(g: StructureGrower) -> None:
    """A Scan that normalises row after row."""
    if g.opset < 9:
        raise MisfitError("another form")
    x = g.any((F32, F64), 2)
    dtype, shape, name = g.kinds[x][0], g.shape(x), g.fresh("s")
    info = helper.make_tensor_value_info
    axis = len(shape) - 2
    if g.opset < 13:
        total = helper.make_node("ReduceSum", [f"{name}e"], [f"{name}t"], axes=[axis], keepdims=1)
    else:
        total = helper.make_node("ReduceSum", [f"{name}e", g.const([axis])], [f"{name}t"], keepdims=1)
    body = helper.make_graph(
        [
            helper.make_node("Exp", [f"{name}row"], [f"{name}e"]),
            total,
            helper.make_node("Div", [f"{name}e", f"{name}t"], [f"{name}y"]),
        ],
        "body",
        [info(f"{name}row", dtype, list(shape[1:]))],
        [info(f"{name}y", dtype, list(shape[1:]) if g.chance(0.5) else None)],
    )
    g.known(g.raw("Scan", [x], num_scan_inputs=1, body=body)[0], dtype, shape)


STRUCTURES = (
    (3, unknown_size),
    (5, only_its_shape),
    (3, shape_of_operator),
    (3, computed_reshape),
    (2, fed_reshape),
    (5, unknown_rank_arithmetic),
    (5, unknown_rank_reduction),
    (3, chosen_by_argmax),
    (4, missing_operand),
    (4, quantised),
    (1, dynamic_quantised),
    (3, sequence),
    (1, optional),
    (2, microsoft),
    (2, ml),
    (2, loop_of_rows),
    (2, scan_of_rows),
)
