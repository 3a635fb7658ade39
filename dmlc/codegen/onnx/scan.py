"""Running sums and products."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, NodeProto

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.move import slice_of
from dmlc.codegen.onnx.registry import lowers
from dmlc.codegen.onnx.writer import tensor_proto, value_info
from dmlc.ir import DType, Node, Shape, TensorType
from dmlc.ir.dtype import i64
from dmlc.ops.scan import CUMPROD, CUMSUM, ScanAttributes


@lowers(CUMSUM)
def cumsum(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(ScanAttributes)
    operands = [emitter.operand(node, 0), emitter.scalar(a.axis, i64)]
    return emitter.op("CumSum", operands, exclusive=int(a.exclusive), reverse=int(a.reverse))


@lowers(CUMPROD)
def cumprod(emitter: Emitter, node: Node) -> str:
    """ONNX has none below opset 26. Over a known size it is made by doubling: after the step of size s each element
    holds the product of the last 2 s ones. Over a symbolic size it is a Scan, one element after another."""
    a, x = node.attributes_as(ScanAttributes), node.operand("x")
    home = x.type.dtype.accumulator
    name = emitter.cast(emitter.of(x), home, have=x.type.dtype)
    size = x.shape[a.axis]
    if isinstance(size, int):
        out = _by_doubling(emitter, name, x.shape, size, a, home)
    else:
        empty = [axis for axis, size in enumerate(x.shape) if emitter.graph.dims.promises_empty(size)]
        out = _by_longer_scan(emitter, name, x.shape, empty, a, home)
    return emitter.cast(out, x.type.dtype, have=home)


def _by_doubling(emitter: Emitter, name: str, shape: Shape, size: int, a: ScanAttributes, dtype: DType) -> str:
    if a.exclusive and size:
        name = _moved(emitter, name, shape, 1, a, dtype)
    step = 1
    while step < size:
        name = emitter.op("Mul", [name, _moved(emitter, name, shape, step, a, dtype)])
        step *= 2
    return name


def _moved(emitter: Emitter, name: str, shape: Shape, step: int, a: ScanAttributes, dtype: DType) -> str:
    """The elements ``step`` places further on, ones in front of them.

    Where no element stays the ones come first: DirectML's provider computes nothing from an empty slice.
    """
    size = shape[a.axis]
    start, pads = step if a.reverse else 0, [0] * (2 * len(shape))
    pads[len(shape) + a.axis if a.reverse else a.axis] = step
    ones = [emitter.ints(pads), emitter.scalar(1, dtype)]
    if step == size:
        return slice_of(emitter, emitter.op("Pad", [name, *ones]), size + step, a.axis, start, start + size)
    kept = slice_of(emitter, name, size, a.axis, start, start + size - step)
    return emitter.op("Pad", [kept, *ones])


def _by_longer_scan(
    emitter: Emitter, name: str, shape: Shape, empty: list[int], a: ScanAttributes, dtype: DType
) -> str:
    """ONNX Runtime's Scan fails on no element and ends the process where an element holds nothing: along axes that
    may be ``empty`` one more is put where it runs last, and is cut off again."""
    grown, pads, starts = list(shape), [0] * (2 * len(shape)), [0] * len(shape)
    for axis in empty:
        grown[axis] = shape[axis] + 1
        starts[axis] = int(a.reverse and axis == a.axis)
        pads[axis if starts[axis] else len(shape) + axis] = 1
    if empty:
        name = emitter.op("Pad", [name, emitter.ints(pads), emitter.scalar(1, dtype)])
    out = _by_scan(emitter, name, tuple(grown), a, dtype)
    for axis in empty:
        out = slice_of(emitter, out, grown[axis], axis, starts[axis], starts[axis] + shape[axis])
    return out


def _by_scan(emitter: Emitter, name: str, shape: Shape, a: ScanAttributes, dtype: DType) -> str:
    rest = (*shape[: a.axis], *shape[a.axis + 1 :])
    ones = emitter.op("ConstantOfShape", [emitter.sizes(rest)], value=tensor_proto(np.ones(1, dtype=dtype.numpy)))
    if not rest:
        ones = emitter.scalar(1, dtype)
    _, out = emitter.ops(
        "Scan",
        [ones, name],
        2,
        body=_body(emitter, TensorType(dtype, rest), a.exclusive),
        num_scan_inputs=1,
        scan_input_axes=(a.axis,),
        scan_input_directions=(int(a.reverse),),
        scan_output_axes=(a.axis,),
        scan_output_directions=(int(a.reverse),),
    )
    return out


def _body(emitter: Emitter, type: TensorType, exclusive: bool) -> GraphProto:
    new = emitter.values.new
    before, element, after, running = new("before"), new("element"), new("after"), new("running")
    body = GraphProto(name="running_product")
    body.input.extend([value_info(before, type), value_info(element, type)])
    body.node.append(NodeProto(op_type="Mul", input=[before, element], output=[after]))
    body.node.append(NodeProto(op_type="Identity", input=[before if exclusive else after], output=[running]))
    body.output.extend([value_info(after, type), value_info(running, type)])
    return body
