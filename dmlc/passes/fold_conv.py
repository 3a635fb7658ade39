"""``fold-conv``: linear operations before and after a convolution become part of its weights, and a scale behind a
matrix product; zeros around a convolution, and around an average pool, part of its window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Array, Dim, Graph, Node, Operation, StoredTensor, Tensor, Value
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.constant import constant_of
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import PAD, PadAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, Plain, attribute_of, is_opaque
from dmlc.passes.expressions import Sketch, Term, Written
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, made_by
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rewrite, rules_of, used_elsewhere


class Conv(Struct, frozen=True):
    """A convolution or a transposed one.

    ``weight`` is [outputs, inputs / groups, ...], and [inputs, outputs / groups, ...] of a transposed one. ``bias`` has
    an element for each output, if there is one. ``groups`` are a transposed convolution's, else 0.
    """

    node: Node
    weight: Tensor
    bias: Tensor | None
    groups: int = 0

    @property
    def channels(self) -> int:
        size = self.weight.type.shape[1 if self.groups else 0]
        assert isinstance(size, int)
        return size * (self.groups or 1)

    def columns(self, values: Array) -> Array:
        """Values, one for each output, in a shape that broadcasts to the weights."""
        rank = self.weight.type.rank
        if not self.groups:
            return values.reshape(-1, *[1] * (rank - 1))
        inputs = self.weight.array.shape[0] // self.groups
        return np.repeat(values.reshape(self.groups, -1), inputs, axis=0).reshape(
            self.weight.array.shape[0], -1, *[1] * (rank - 2)
        )


def conv_of(value: Value) -> Conv | None:
    """The convolution that the value is; None where its weights are not known, or are in another file."""
    node = value.producer
    if node is None or not (is_opaque(node, "Conv") or is_opaque(node, "ConvTranspose")):
        return None
    weight = constant_of(node.operands[1])
    bias = constant_of(node.operands[2]) if len(node.operands) > 2 else None
    if weight is None or (bias is None and len(node.operands) > 2 and node.operands[2] is not None):
        return None
    if any(isinstance(t, StoredTensor) and t.is_apart for t in (weight, bias)):
        return None
    return Conv(node, weight, bias, attribute_of(node, "group", 1) if is_opaque(node, "ConvTranspose") else 0)


def channel_values(tensor: Tensor, conv: Conv) -> Array | None:
    """The elements of a tensor that varies by the channels of the convolution's result alone, one for each channel.

    None for another tensor, and for one that broadcasts the result to more axes.
    """
    rank = conv.node.result.type.rank
    shape = (*[1] * (rank - tensor.type.rank), *tensor.type.shape)
    if len(shape) != rank or any(size != 1 for axis, size in enumerate(shape) if axis != 1):
        return None
    if shape[1] not in (1, conv.channels):
        return None
    values: Array = np.broadcast_to(tensor.array.reshape(-1), (conv.channels,))
    return values


def _with_constants(e: Sketch, conv: Conv, x: Value, weight: Array | None, bias: Array | None) -> Term:
    """The convolution of ``x`` with other weights and another bias (None: its own)."""
    node, dtype = conv.node, conv.weight.dtype
    operands: list[Written] = [x, node.operand(1), *node.operands[2:3]]
    if weight is not None:
        operands[1] = e.number(weight, dtype)
    if bias is not None:
        operands[2:] = [e.number(bias, dtype)]
    return e(OPAQUE, *operands, attributes=node.attributes)


def wide(tensors: Sequence[Tensor]) -> list[np.ndarray[Any, Any]]:
    """The data in f64, so that folding rounds once."""
    return [t.array.astype(np.float64) for t in tensors]


def known(value: Value | None) -> Tensor | None:
    """The constant that the value is, unless its data are in another file."""
    tensor = constant_of(value)
    return None if isinstance(tensor, StoredTensor) and tensor.is_apart else tensor


def _folded(e: Sketch, conv: Conv, made: str, scale: Array | None, shift: Array | None) -> Lowered:
    """The convolution times a scale for each channel, plus a shift: computed in f64 and rounded once."""
    weight = bias = None
    with np.errstate(all="ignore"):
        if scale is not None:
            weight = (wide([conv.weight])[0] * conv.columns(scale)).astype(conv.weight.dtype.numpy)
        if conv.bias is not None or shift is not None:
            old = np.zeros(()) if conv.bias is None else wide([conv.bias])[0]
            old = old if scale is None else old * scale
            bias = (old if shift is None else old + shift).astype(conv.weight.dtype.numpy)
    if any(array is not None and not np.isfinite(array).all() for array in (weight, bias)):
        return Miss("the {0} the range of {1}", (made, conv.weight.dtype))
    return used_elsewhere(conv.node.result) or _with_constants(e, conv, conv.node.operand(0), weight, bias)


@simplifies(onnx=("BatchNormalization",), gives=REASSOCIATES)
def fold_batch_norm(e: Sketch, node: Node, x: Term, *statistics: Term) -> Lowered:
    """BatchNormalization(Conv(x)) becomes a Conv with scaled weights and a bias; so does one of a ConvTranspose.

    ``reassociates``: the scale is multiplied into the weights instead of the sums. The statistics are constants, as in
    inference; the new weights are computed in f64 and rounded once.
    """
    conv = conv_of(x.value)
    if conv is None or attribute_of(node, "training_mode", 0) or any(r.uses for r in node.results[1:]):
        return KEEP
    found = [tensor for v in node.operands[1:] if (tensor := known(v)) is not None]
    if len(found) != 4:
        return KEEP
    e.taken.append(conv.node)
    if any(t.type.shape != (conv.channels,) for t in found):
        return Miss("its statistics are not one for each of the {0} channels", (conv.channels,))
    if len({t.dtype for t in (conv.weight, *found)}) > 1:
        return Miss("weights and statistics have several dtypes")
    gamma, beta, mean, variance = wide(found)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + attribute_of(node, "epsilon", 1e-5))
        return _folded(e, conv, "folded weights leave", scale, beta - mean * scale)


def _conv_and_numbers(e: Sketch, node: Node) -> tuple[Conv, Array] | Miss | None:
    """Return the convolution and the number for each of its channels, in f64, that an operation combines."""
    is_symmetric = node.op in (ADD, MUL)
    for value, other in both_ways(node) if is_symmetric else [(node.operand("a"), node.operand("b"))]:
        conv, tensor = conv_of(value), known(other)
        if conv is None or tensor is None:
            continue
        e.taken.append(conv.node)
        values = channel_values(tensor, conv)
        if values is None:
            return Miss("{0} varies along other axes than the channels", (tensor.type,))
        return conv, values.astype(np.float64)
    return KEEP


@simplifies(ADD, fed_by=(OPAQUE,), gives=REASSOCIATES)
def fold_bias_into_conv(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """Conv(x) + c with one c for each channel becomes a Conv with a bias; so does a ConvTranspose.

    ``reassociates``: a runtime may add the bias to the sum before its last term.
    """
    found = _conv_and_numbers(e, node)
    if not isinstance(found, tuple):
        return found
    conv, bias = found
    return _folded(e, conv, "folded bias leaves", None, bias)


@simplifies(MUL, DIV, fed_by=(OPAQUE,), gives=REASSOCIATES)
def fold_scale_into_conv(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """Conv(x) * c and Conv(x) / c with one c for each channel become a Conv, or a ConvTranspose, with scaled weights.

    ``reassociates``: the scale is multiplied into the weights instead of the sums. The new weights are computed in f64
    and rounded once.
    """
    found = _conv_and_numbers(e, node)
    if not isinstance(found, tuple):
        return found
    conv, scale = found
    with np.errstate(all="ignore"):
        return _folded(e, conv, "scaled weights leave", scale if node.op is MUL else 1 / scale, None)


@simplifies(MUL, fed_by=(ADD, MATMUL), gives=REASSOCIATES)
def fold_scale_into_product(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """(matmul(x, w) + b) * c with constants, and one c for each column, becomes matmul(x, w * c) + b * c.

    ``reassociates``, as for convolutions. ConvNeXt and other vision models scale each layer so.
    """
    for value, other in both_ways(node) if node.result.type.dtype.is_float else ():
        scale = constant_of(other)
        if scale is None or scale.size < 2 or other.shape[-1] != scale.size or other.type.rank > value.type.rank:
            continue
        total = made_by(value, ADD)
        for inner, bias in ((value, None),) if total is None else both_ways(total):
            found = made_by(inner, MATMUL)
            values = () if found is None else (found.operand("b"), *([] if bias is None else [bias]))
            data = [tensor for v in values if (tensor := constant_of(v)) is not None]
            if found is not None and len(data) == len(values) and _are_columns(values, scale):
                e.taken += [found] if total is None else [total, found]
                return _scaled_product(e, found, data, scale)
    return KEEP


def _scaled_product(e: Sketch, product: Node, data: Sequence[Tensor], scale: Tensor) -> Lowered:
    if any(isinstance(t, StoredTensor) and t.is_apart for t in (*data, scale)):
        return Miss("the weights are in another file")
    with np.errstate(all="ignore"):  # in f64, rounded once
        columns = wide([scale])[0].reshape(-1)
        scaled = [(array * columns).astype(scale.dtype.numpy) for array in wide(data)]
    if any(not np.isfinite(array).all() for array in scaled):
        return Miss("the scaled weights leave the range of {0}", (data[0].dtype,))
    used = [*[taken.result for taken in e.taken], product.operand("b")]
    if reason := next(filter(None, map(used_elsewhere, used)), None):
        return reason
    matrix, *bias = [e.number(array, scale.dtype) for array in scaled]
    made = e.matmul(product.operand("a"), matrix)
    return made + bias[0] if bias else made


def _are_columns(operands: Sequence[Value], scale: Tensor) -> bool:
    """Return whether the operands are a matrix and a bias whose columns are as many as the scales."""
    matrix, *bias = operands
    fits = all(v.shape[-1:] == (scale.size,) for v in operands)
    return fits and matrix.type.rank == 2 and all(v.type.rank == 1 for v in bias)


class _ConvOperand(Struct, frozen=True):
    """A convolution of ``x`` beside a constant: ``before`` is the operation on both."""

    conv: Conv
    before: Node
    x: Value
    constant: Tensor


def _input_of(e: Sketch, node: Node, *ops: Operation) -> _ConvOperand | None:
    """An operation with a constant before a convolution."""
    conv, before = conv_of(node.result), made_by(node.operand(0), *ops)
    if conv is None or before is None:
        return None
    pairs = both_ways(before) if before.op in (MUL, ADD) else [(before.operand("a"), before.operand("b"))]
    for x, other in pairs:
        constant = known(other)
        if constant is not None:
            e.taken.append(before)
            return _ConvOperand(conv, before, x, constant)
    return None


def _why_no_input(found: _ConvOperand) -> Miss | None:
    if _by_input(found) is None or found.x.type != found.before.result.type:
        return Miss("{0} varies along other axes than the channels", (found.constant.type,))
    return used_elsewhere(found.before.result)


@simplifies(onnx=("Conv",), fed_by=(MUL, DIV), gives=REASSOCIATES)
def fold_input_scale_into_conv(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """Conv(x * c) and Conv(x / c) with one c, or one for each channel, become a Conv of x with scaled weights.

    ``reassociates``: the scale is multiplied into the weights instead of the operands; padding is 0 either way. The new
    weights are computed in f64 and rounded once.
    """
    found = _input_of(e, node, MUL, DIV)
    if found is None:
        return KEEP
    if reason := _why_no_input(found):
        return reason
    scaled = _scaled_inputs(found)
    sizes = np.abs(scaled[found.conv.weight.array != 0])
    if not np.isfinite(scaled).all() or (sizes < np.finfo(scaled.dtype).tiny).any():
        return Miss("the scaled weights leave the range of {0}", (found.conv.weight.dtype,))
    return _with_constants(e, found.conv, found.x, scaled, None)


@simplifies(onnx=("Conv",), fed_by=(ADD, SUB), gives=REASSOCIATES)
def fold_input_shift_into_conv(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """Conv(x + c) and Conv(x - c) with one c, or one for each channel, become a Conv of x with another bias.

    ``reassociates``: the constant is added to the sums instead of the operands. The convolution has no padding, which
    would be 0 after the constant was added. The new bias is computed in f64 and rounded once.
    """
    found = _input_of(e, node, ADD, SUB)
    if found is None:
        return KEEP
    if any(attribute_of(node, "pads", ())) or attribute_of(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Miss("the convolution pads its operand")
    if attribute_of(node, "group", 1) != 1:
        return Miss("the convolution has groups")
    if reason := _why_no_input(found):
        return reason
    bias = _shifted_bias(found)
    if not np.isfinite(bias).all():
        return Miss("the new bias leaves the range of {0}", (found.conv.weight.dtype,))
    return _with_constants(e, found.conv, found.x, None, bias)


#: Windows of one padding that are looked at.
_MOST_WINDOWS = 16


class _Padded(Struct, frozen=True):
    """``pads`` are zeros around ``x``, which the node ``before`` makes, before the window's own."""

    window: Node
    before: Node

    @property
    def x(self) -> Value:
        return self.before.operand("x")

    @property
    def pads(self) -> tuple[Dim, ...]:
        return self.before.attributes_as(PadAttributes).pads


_WINDOWS = ("Conv", "AveragePool")


@simplifies(onnx=_WINDOWS, fed_by=(PAD,), gives=REASSOCIATES)
def fold_pad_into_window(e: Sketch, node: Node, y: Term, *operands: Term | None) -> Lowered:
    """Conv and AveragePool of pad(x) with zeros around the spatial axes become one of x that pads by itself.

    Exporters write so where the two ends differ (TensorFlow's "SAME" of even sizes), and around each average pool that
    counts its padding. ``reassociates``: a kernel may leave the zeros out of its sums. A pad of several windows goes
    where each of them takes it.
    """
    before = e.made_by(y, PAD)
    if before is None:
        return KEEP
    found = _Padded(node, before)
    if reason := _why_not_padded(found):
        return reason
    users = [user for user in y.value.users[:_MOST_WINDOWS] if any(is_opaque(user, name) for name in _WINDOWS)]
    taken = [user for user in users if user.operand(0) is y.value and not _why_not_padded(_Padded(user, before))]
    if len(taken) != len(y.value.uses) and (reason := used_elsewhere(y.value)):
        return reason
    record = node.attributes_as(OpaqueAttributes)
    changed: dict[str, Plain] = {"auto_pad": "NOTSET", "pads": _all_around(found)}
    if is_opaque(node, "AveragePool"):
        changed["count_include_pad"] = 1
    attributes = tuple(sorted({**dict(record.attributes), **changed}.items()))
    return e(OPAQUE, found.x, *operands, attributes=replace(record, attributes=attributes))


def _why_not_padded(found: _Padded) -> Miss | None:
    """The reason why the window does not take the padding."""
    node, rank = found.window, found.x.type.rank
    if found.before.attributes_as(PadAttributes).value != 0:
        return Miss("the padding is not 0")
    if any(found.pads[axis] != 0 for axis in (0, 1, rank, rank + 1)):
        return Miss("the padding is around other axes than the spatial ones")
    auto = attribute_of(node, "auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID"):
        return Miss("the padding of the {0} depends on its sizes", (auto,))
    if auto == "VALID" and any(attribute_of(node, "pads", ())):
        return Miss("the window states its padding twice")
    if not all(isinstance(size, int) for size in found.pads):
        return Miss("the padding is not known")
    return _why_no_pool(found) if is_opaque(node, "AveragePool") else None


def _why_no_pool(found: _Padded) -> Miss | None:
    """ONNX Runtime takes no padding as large as the window (PoolAttributes)."""
    node, kernel = found.window, attribute_of(found.window, "kernel_shape", ())
    if attribute_of(node, "ceil_mode", 0):
        return Miss("the last window may reach over the end")
    if any(attribute_of(node, "pads", ())) and not attribute_of(node, "count_include_pad", 0):
        return Miss("the pool leaves its own padding out")
    if any(size >= window for size, window in zip(_all_around(found), 2 * kernel, strict=True)):
        return Miss("the padding is as large as the window")
    return None


def _all_around(match: _Padded) -> tuple[int, ...]:
    """The padding of the spatial axes, the window's own included: before each, then after each."""
    rank = match.x.type.rank
    around = [size for size in (*match.pads[2:rank], *match.pads[rank + 2 :]) if isinstance(size, int)]
    own = attribute_of(match.window, "pads", ()) or (0,) * len(around)
    return tuple([size + more for size, more in zip(around, own, strict=True)])


def _by_input(match: _ConvOperand) -> Array | None:
    """The constant in f64, to be broadcast with the weights.

    None if it has neither one number nor one for each channel, or if it has several and the convolution has groups.
    """
    weight, array = match.conv.weight.array, match.constant.array
    shape = (*[1] * (weight.ndim - array.ndim), *array.shape)
    if any(size != 1 for axis, size in enumerate(shape) if axis != 1):
        return None
    is_grouped = attribute_of(match.conv.node, "group", 1) != 1
    if shape[1] != 1 and (is_grouped or shape[1] != weight.shape[1]):
        return None
    found: Array = array.astype(np.float64).reshape(shape)
    return found


def _scaled_inputs(match: _ConvOperand) -> Array:
    """The weights times the scale of their inputs, rounded to their own dtype."""
    factors, (weight,) = _by_input(match), wide([match.conv.weight])
    assert factors is not None
    with np.errstate(all="ignore"):
        found = weight * factors if match.before.op is MUL else weight / factors
        out: Array = found.astype(match.conv.weight.dtype.numpy)
    return out


def _shifted_bias(match: _ConvOperand) -> Array:
    """The bias with the sum of the weights times the shift of their inputs, rounded to its own dtype."""
    shift, (weight,) = _by_input(match), wide([match.conv.weight])
    assert shift is not None
    bias = np.zeros(()) if match.conv.bias is None else wide([match.conv.bias])[0]
    with np.errstate(all="ignore"):
        moved = (weight * shift).reshape(weight.shape[0], -1).sum(1)
        out: Array = (bias + moved if match.before.op is ADD else bias - moved).astype(match.conv.weight.dtype.numpy)
    return out


_RULES = rules_of(globals())


class FoldConv(RewritePass, frozen=True):
    """Weights in other files are never read for it."""

    name: ClassVar[str] = "fold-conv"
    summary: ClassVar[str] = "Fold batch normalizations, biases, scales and padding into convolutions."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return _RULES

    def run(self, graph: Graph, context: PassContext) -> bool:
        return graph.holds([OPAQUE, MATMUL]) and rewrite(graph, self.rules(context), context)
