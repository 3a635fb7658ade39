"""``fold-conv``: linear operations before and after a convolution become part of its weights, and a scale behind a
matrix product; zeros around a convolution, and around an average pool, part of its window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, made_by
from dmlc.passes.rewrite import (
    Match,
    Miss,
    RewritePass,
    Rewriter,
    Rule,
    consumed_elsewhere,
    rewrite,
    used_elsewhere,
)


class FoldConv(RewritePass, frozen=True):
    """Weights in a file of their own are never read for it."""

    name: ClassVar[str] = "fold-conv"
    summary: ClassVar[str] = "Fold batch normalizations, biases, scales and padding into convolutions."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [FoldPad, FoldBatchNorm, FoldBias, FoldScale, FoldColumnScale, FoldInputScale, FoldInputShift]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return graph.holds([OPAQUE, MATMUL]) and rewrite(graph, self.rules(context), context)


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
    """The convolution that the value is; None where its weights are not known, or lie in a file of their own."""
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


def rebuilt(rewriter: Rewriter, conv: Conv, weight: Array | None, bias: Array | None) -> Value:
    """The convolution with other weights and another bias (None: its own)."""
    dtype = conv.weight.dtype
    node = conv.node
    operands: list[Value | None] = [node.operand(0), node.operand(1), *node.operands[2:3]]
    if weight is not None:
        operands[1] = rewriter.constant(weight.astype(dtype.numpy))
    if bias is not None:
        operands[2:] = [rewriter.constant(bias.astype(dtype.numpy))]
    return rewriter.add(OPAQUE, operands, node.attributes_as(OpaqueAttributes))


def fits(conv: Conv, numbers: Array) -> bool:
    """Return whether numbers of f64 stay finite in the dtype of the convolution."""
    largest = np.finfo(conv.weight.dtype.numpy).max
    return bool((np.abs(numbers) <= largest).all())


def wide(tensors: Sequence[Tensor]) -> list[np.ndarray[Any, Any]]:
    """The data in f64, so that folding rounds once."""
    return [t.array.astype(np.float64) for t in tensors]


class _BatchNormMatch(Match, eq=False, kw_only=True):
    conv: Conv
    statistics: tuple[Tensor, ...]


class FoldBatchNorm(Rule[_BatchNormMatch]):
    """BatchNormalization(Conv(x)) becomes a Conv with scaled weights and a bias; so does one of a ConvTranspose.

    ``reassociates``: the scale is multiplied into the weights instead of the sums. The statistics are constants, as in
    inference; the new weights are computed in f64 and rounded once.
    """

    name = "fold-batch-norm"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _BatchNormMatch | None:
        if not is_opaque(node, "BatchNormalization"):
            return None
        conv = conv_of(node.operand(0))
        if conv is None or attribute_of(node, "training_mode", 0) or any(r.uses for r in node.results[1:]):
            return None
        found = [constant_of(v) for v in node.operands[1:]]
        statistics = tuple([t for t in found if t is not None])
        if len(statistics) != 4 or any(isinstance(t, StoredTensor) and t.is_apart for t in statistics):
            return None
        return _BatchNormMatch(node, (conv.node,), conv=conv, statistics=statistics)

    def check(self, match: _BatchNormMatch, graph: Graph) -> Miss | None:
        if any(t.type.shape != (match.conv.channels,) for t in match.statistics):
            return Miss("its statistics are not one for each of the {0} channels", (match.conv.channels,))
        if len({t.dtype for t in (match.conv.weight, *match.statistics)}) > 1:
            return Miss("weights and statistics have several dtypes")
        scale, bias = _normalized(match)
        with np.errstate(all="ignore"):
            largest = np.abs(match.conv.weight.array).max(initial=0).astype(np.float64) * np.abs(scale).max(initial=0)
        if not fits(match.conv, np.append(bias, largest)):
            return Miss("the folded weights leave the range of {0}", (match.conv.weight.dtype,))
        return used_elsewhere(match.conv.node.result)

    def build(self, match: _BatchNormMatch, rewriter: Rewriter) -> Sequence[Value]:
        scale, bias = _normalized(match)
        (weight,) = wide([match.conv.weight])
        made = rebuilt(rewriter, match.conv, weight * match.conv.columns(scale), bias)
        return [made, *match.root.results[1:]]


def _normalized(match: _BatchNormMatch) -> tuple[Array, Array]:
    """The scale of the weights and the new bias, one number for each channel, in f64."""
    gamma, beta, mean, variance = wide(match.statistics)
    old = np.zeros(()) if match.conv.bias is None else wide([match.conv.bias])[0]
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + attribute_of(match.root, "epsilon", 1e-5))
        return scale, old * scale + beta - mean * scale


class _BiasMatch(Match, eq=False, kw_only=True):
    conv: Conv
    bias: Tensor


class FoldBias(Rule[_BiasMatch]):
    """Conv(x) + c with one c for each channel becomes a Conv with a bias; so does a ConvTranspose.

    ``reassociates``: a runtime may add the bias to the sum before its last term.
    """

    name = "fold-bias-into-conv"
    roots: ClassVar[tuple[Operation, ...]] = (ADD,)
    fed_by: ClassVar[Collection[Operation]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _BiasMatch | None:
        for value, other in both_ways(node):
            conv = conv_of(value)
            bias = constant_of(other)
            if conv is not None and bias is not None and not (isinstance(bias, StoredTensor) and bias.is_apart):
                return _BiasMatch(node, (conv.node,), conv=conv, bias=bias)
        return None

    def check(self, match: _BiasMatch, graph: Graph) -> Miss | None:
        if channel_values(match.bias, match.conv) is None:
            return Miss("{0} varies along other axes than the channels", (match.bias.type,))
        if not fits(match.conv, _biased(match)):
            return Miss("the folded bias leaves the range of {0}", (match.conv.weight.dtype,))
        return used_elsewhere(match.conv.node.result)

    def build(self, match: _BiasMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [rebuilt(rewriter, match.conv, None, _biased(match))]


def _biased(match: _BiasMatch) -> Array:
    """The new bias, one number for each channel, in f64."""
    values = channel_values(match.bias, match.conv)
    assert values is not None
    old = np.zeros(()) if match.conv.bias is None else wide([match.conv.bias])[0]
    return np.asarray(old + values.astype(np.float64))


class _ScaleMatch(Match, eq=False, kw_only=True):
    conv: Conv
    scale: Tensor


class FoldScale(Rule[_ScaleMatch]):
    """Conv(x) * c and Conv(x) / c with one c for each channel become a Conv, or a ConvTranspose, with scaled weights.

    ``reassociates``: the scale is multiplied into the weights instead of the sums. The new weights are computed in f64
    and rounded once.
    """

    name = "fold-scale-into-conv"
    roots: ClassVar[tuple[Operation, ...]] = (MUL, DIV)
    fed_by: ClassVar[Collection[Operation]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ScaleMatch | None:
        pairs = both_ways(node) if node.op is MUL else [(node.operand("a"), node.operand("b"))]
        for value, other in pairs:
            conv = conv_of(value)
            scale = constant_of(other)
            if conv is not None and scale is not None and not (isinstance(scale, StoredTensor) and scale.is_apart):
                return _ScaleMatch(node, (conv.node,), conv=conv, scale=scale)
        return None

    def check(self, match: _ScaleMatch, graph: Graph) -> Miss | None:
        conv, scale = match.conv, match.scale
        if channel_values(scale, conv) is None:
            return Miss("{0} varies along other axes than the channels", (scale.type,))
        for data in (conv.weight, *([] if conv.bias is None else [conv.bias])):
            if not np.isfinite(_scaled(match, data)).all():
                return Miss("the scaled weights leave the range of {0}", (data.dtype,))
        return used_elsewhere(conv.node.result)

    def build(self, match: _ScaleMatch, rewriter: Rewriter) -> Sequence[Value]:
        conv = match.conv
        bias = None if conv.bias is None else _scaled(match, conv.bias)
        return [rebuilt(rewriter, conv, _scaled(match, conv.weight), bias)]


def _scaled(match: _ScaleMatch, data: Tensor) -> Array:
    """The weights or the bias times the scale: computed in f64, rounded to their own dtype."""
    values = channel_values(match.scale, match.conv)
    assert values is not None
    (wanted,) = wide([data])
    column = values.astype(np.float64)
    if data is match.conv.weight:
        column = match.conv.columns(column)
    with np.errstate(all="ignore"):
        out: Array = (wanted * column if match.root.op is MUL else wanted / column).astype(data.dtype.numpy)
    return out


class _ColumnScaleMatch(Match, eq=False, kw_only=True):
    """``data`` are the constants to scale: the matrix, and the bias if there is one."""

    x: Value
    data: tuple[Tensor, ...]
    scale: Tensor


class FoldColumnScale(Rule[_ColumnScaleMatch]):
    """(matmul(x, w) + b) * c with constants, and one c for each column, becomes matmul(x, w * c) + b * c.

    ``reassociates``, as for convolutions. ConvNeXt and other vision models scale each layer so.
    """

    name = "fold-scale-into-product"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (ADD, MATMUL)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ColumnScaleMatch | None:
        for value, other in both_ways(node) if node.result.type.dtype.is_float else ():
            scale = constant_of(other)
            if scale is None or scale.size < 2 or other.shape[-1] != scale.size or other.type.rank > value.type.rank:
                continue
            total = made_by(value, ADD)
            for inner, bias in ((value, None),) if total is None else both_ways(total):
                found = made_by(inner, MATMUL)
                operands = () if found is None else (found.operand("b"), *([] if bias is None else [bias]))
                data = tuple([tensor for v in operands if (tensor := constant_of(v)) is not None])
                if found is not None and len(data) == len(operands) and _are_columns(operands, scale):
                    nodes = (found,) if total is None else (total, found)
                    return _ColumnScaleMatch(node, nodes, x=found.operand("a"), data=data, scale=scale)
        return None

    def check(self, match: _ColumnScaleMatch, graph: Graph) -> Miss | None:
        if any(isinstance(t, StoredTensor) and t.is_apart for t in (*match.data, match.scale)):
            return Miss("the weights are in a file of their own")
        if any(not np.isfinite(array).all() for array in _scaled_columns(match)):
            return Miss("the scaled weights leave the range of {0}", (match.data[0].dtype,))
        matrix = match.consumed[-1].operand("b")
        return consumed_elsewhere(match) or used_elsewhere(matrix)

    def build(self, match: _ColumnScaleMatch, rewriter: Rewriter) -> Sequence[Value]:
        matrix, *bias = [rewriter.constant(array) for array in _scaled_columns(match)]
        made = rewriter.add(MATMUL, [match.x, matrix])
        return [rewriter.add(ADD, [made, *bias]) if bias else made]


def _are_columns(operands: Sequence[Value], scale: Tensor) -> bool:
    """Return whether the operands are a matrix and a bias whose columns are as many as the scales."""
    matrix, *bias = operands
    fits = all(v.shape[-1:] == (scale.size,) for v in operands)
    return fits and matrix.type.rank == 2 and all(v.type.rank == 1 for v in bias)


def _scaled_columns(match: _ColumnScaleMatch) -> list[Array]:
    """The constants times the scale: computed in f64, rounded to their own dtype."""
    (scale,) = wide([match.scale])
    with np.errstate(all="ignore"):
        return [(data * scale.reshape(-1)).astype(match.scale.dtype.numpy) for data in wide(match.data)]


class _InputMatch(Match, eq=False, kw_only=True):
    """A convolution of ``x`` beside a constant: ``before`` is the operation on both."""

    conv: Conv
    before: Node
    x: Value
    constant: Tensor


class _InputRule(Rule[_InputMatch]):
    """Base of the rules for an operation with a constant before a convolution."""

    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _InputMatch | None:
        conv = conv_of(node.result) if is_opaque(node, "Conv") else None
        before = None if conv is None else node.operand(0).producer
        if conv is None or before is None or before.op not in self.fed_by:
            return None
        pairs = both_ways(before) if before.op in (MUL, ADD) else [(before.operand("a"), before.operand("b"))]
        for x, other in pairs:
            constant = constant_of(other)
            if constant is not None and not (isinstance(constant, StoredTensor) and constant.is_apart):
                return _InputMatch(node, (before,), conv=conv, before=before, x=x, constant=constant)
        return None

    def check(self, match: _InputMatch, graph: Graph) -> Miss | None:
        if _by_input(match) is None or match.x.type != match.before.result.type:
            return Miss("{0} varies along other axes than the channels", (match.constant.type,))
        return used_elsewhere(match.before.result)


class FoldInputScale(_InputRule):
    """Conv(x * c) and Conv(x / c) with one c, or one for each channel, become a Conv of x with scaled weights.

    ``reassociates``: the scale is multiplied into the weights instead of the operands; padding is 0 either way. The new
    weights are computed in f64 and rounded once.
    """

    name = "fold-input-scale-into-conv"
    fed_by: ClassVar[Collection[Operation]] = (MUL, DIV)

    def check(self, match: _InputMatch, graph: Graph) -> Miss | None:
        missed = super().check(match, graph)
        if missed is not None:
            return missed
        scaled = _scaled_inputs(match)
        sizes = np.abs(scaled[match.conv.weight.array != 0])
        if not np.isfinite(scaled).all() or (sizes < np.finfo(scaled.dtype).tiny).any():
            return Miss("the scaled weights leave the range of {0}", (match.conv.weight.dtype,))
        return None

    def build(self, match: _InputMatch, rewriter: Rewriter) -> Sequence[Value]:
        node = match.conv.node
        operands = [match.x, rewriter.constant(_scaled_inputs(match)), *node.operands[2:]]
        return [rewriter.add(OPAQUE, operands, node.attributes_as(OpaqueAttributes))]


class FoldInputShift(_InputRule):
    """Conv(x + c) and Conv(x - c) with one c, or one for each channel, become a Conv of x with another bias.

    ``reassociates``: the constant is added to the sums instead of the operands. The convolution has no padding, which
    would be 0 after the constant was added. The new bias is computed in f64 and rounded once.
    """

    name = "fold-input-shift-into-conv"
    fed_by: ClassVar[Collection[Operation]] = (ADD, SUB)

    def check(self, match: _InputMatch, graph: Graph) -> Miss | None:
        node = match.conv.node
        if any(attribute_of(node, "pads", ())) or attribute_of(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            return Miss("the convolution pads its operand")
        if attribute_of(node, "group", 1) != 1:
            return Miss("the convolution has groups")
        missed = super().check(match, graph)
        if missed is None and not np.isfinite(_shifted_bias(match)).all():
            return Miss("the new bias leaves the range of {0}", (match.conv.weight.dtype,))
        return missed

    def build(self, match: _InputMatch, rewriter: Rewriter) -> Sequence[Value]:
        node = match.conv.node
        operands = [match.x, node.operand(1), rewriter.constant(_shifted_bias(match))]
        return [rewriter.add(OPAQUE, operands, node.attributes_as(OpaqueAttributes))]


#: Windows of one padding that are looked at.
_MOST_WINDOWS = 16


class _PadMatch(Match, eq=False, kw_only=True):
    """``pads`` are zeros around ``x`` before the window's own."""

    x: Value
    pads: tuple[Dim, ...]


class FoldPad(Rule[_PadMatch]):
    """Conv and AveragePool of pad(x) with zeros around the spatial axes become one of x that pads by itself.

    Exporters write so where the two ends differ (TensorFlow's "SAME" of even sizes), and around each average pool that
    counts its padding. ``reassociates``: a kernel may leave the zeros out of its sums. A pad of several windows goes
    where each of them takes it.
    """

    name = "fold-pad-into-window"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    fed_by: ClassVar[Collection[Operation]] = (PAD,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _PadMatch | None:
        if not (is_opaque(node, "Conv") or is_opaque(node, "AveragePool")):
            return None
        before = node.operand(0).producer
        if before is None or before.op is not PAD:
            return None
        return _PadMatch(node, (before,), x=before.operand("x"), pads=before.attributes_as(PadAttributes).pads)

    def check(self, match: _PadMatch, graph: Graph) -> Miss | None:
        return self._why_not(match) or self._why_shared(match, graph)

    def _why_shared(self, match: _PadMatch, graph: Graph) -> Miss | None:
        """The reason why another use of the padding keeps it."""
        (before,) = match.consumed
        windows = [self.match(user, graph) for user in before.result.users[:_MOST_WINDOWS]]
        taken = [window for window in windows if window is not None and self._why_not(window) is None]
        return None if len(taken) == len(before.result.uses) else used_elsewhere(before.result)

    def _why_not(self, match: _PadMatch) -> Miss | None:
        """The reason why the window does not take the padding."""
        node, (before,), rank = match.root, match.consumed, match.x.type.rank
        if before.attributes_as(PadAttributes).value != 0:
            return Miss("the padding is not 0")
        if any(match.pads[axis] != 0 for axis in (0, 1, rank, rank + 1)):
            return Miss("the padding is around other axes than the spatial ones")
        auto = attribute_of(node, "auto_pad", "NOTSET")
        if auto not in ("NOTSET", "VALID"):
            return Miss("the padding of the {0} depends on its sizes", (auto,))
        if auto == "VALID" and any(attribute_of(node, "pads", ())):
            return Miss("the window states its padding twice")
        if not all(isinstance(size, int) for size in match.pads):
            return Miss("the padding is not known")
        if is_opaque(node, "AveragePool"):
            return self._check_pool(match)
        return None

    def _check_pool(self, match: _PadMatch) -> Miss | None:
        """ONNX Runtime takes no padding as large as the window (PoolAttributes)."""
        node, kernel = match.root, attribute_of(match.root, "kernel_shape", ())
        if attribute_of(node, "ceil_mode", 0):
            return Miss("the last window may reach over the end")
        if any(attribute_of(node, "pads", ())) and not attribute_of(node, "count_include_pad", 0):
            return Miss("the pool leaves its own padding out")
        if any(size >= window for size, window in zip(_all_around(match), 2 * kernel, strict=True)):
            return Miss("the padding is as large as the window")
        return None

    def build(self, match: _PadMatch, rewriter: Rewriter) -> Sequence[Value]:
        record = match.root.attributes_as(OpaqueAttributes)
        changed: dict[str, Plain] = {"auto_pad": "NOTSET", "pads": _all_around(match)}
        if is_opaque(match.root, "AveragePool"):
            changed["count_include_pad"] = 1
        attributes = tuple(sorted({**dict(record.attributes), **changed}.items()))
        return [rewriter.add(OPAQUE, [match.x, *match.root.operands[1:]], replace(record, attributes=attributes))]


def _all_around(match: _PadMatch) -> tuple[int, ...]:
    """The padding of the spatial axes, the window's own included: before each, then after each."""
    rank = match.x.type.rank
    around = [size for size in (*match.pads[2:rank], *match.pads[rank + 2 :]) if isinstance(size, int)]
    own = attribute_of(match.root, "pads", ()) or (0,) * len(around)
    return tuple([size + more for size, more in zip(around, own, strict=True)])


def _by_input(match: _InputMatch) -> Array | None:
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


def _scaled_inputs(match: _InputMatch) -> Array:
    """The weights times the scale of their inputs, rounded to their own dtype."""
    factors, (weight,) = _by_input(match), wide([match.conv.weight])
    assert factors is not None
    with np.errstate(all="ignore"):
        found = weight * factors if match.before.op is MUL else weight / factors
        out: Array = found.astype(match.conv.weight.dtype.numpy)
    return out


def _shifted_bias(match: _InputMatch) -> Array:
    """The bias with the sum of the weights times the shift of their inputs, rounded to its own dtype."""
    shift, (weight,) = _by_input(match), wide([match.conv.weight])
    assert shift is not None
    bias = np.zeros(()) if match.conv.bias is None else wide([match.conv.bias])[0]
    with np.errstate(all="ignore"):
        moved = (weight * shift).reshape(weight.shape[0], -1).sum(1)
        out: Array = (bias + moved if match.before.op is ADD else bias - moved).astype(match.conv.weight.dtype.numpy)
    return out
