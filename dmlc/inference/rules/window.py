"""Convolutions and pools: a window that slides over the spatial axes."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape, floordiv


def _list(q: Query, name: str, count: int, default: int) -> list[int] | None:
    given = q.integers(name)
    if given is None:
        return [default] * count
    return list(given) if len(given) == count else None


def slid(q: Query, sizes: Shape, kernel: Sequence[Dim]) -> list[Dim] | None:
    """The sizes after a window of ``kernel`` has slid over them; None where attributes have a wrong length."""
    count = len(sizes)
    strides, dilations = _list(q, "strides", count, 1), _list(q, "dilations", count, 1)
    pads = _list(q, "pads", 2 * count, 0)
    auto = q.word("auto_pad", "NOTSET")
    if len(kernel) != count or strides is None or dilations is None or pads is None or min(strides, default=1) < 1:
        return None
    out: list[Dim] = []
    for i, size in enumerate(sizes):
        stride, span = strides[i], (kernel[i] - 1) * dilations[i] + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out.append(floordiv(size + (stride - 1), stride))
            continue
        before, after = (0, 0) if auto == "VALID" else (pads[i], pads[i + count])
        room = size + (before + after) - span
        if not q.integer("ceil_mode"):
            out.append(floordiv(room, stride) + 1)
        elif isinstance(room, int) and isinstance(size, int):
            steps = -(-room // stride) + 1
            # the last window starts inside the data or its first padding (from opset 22 on in onnx, always in runtimes)
            out.append(steps - 1 if (steps - 1) * stride >= size + before else steps)
        else:
            out.append(floordiv(room, stride) + 1 if stride == 1 else q.new_dim())
    return out


def _convolved(q: Query, x: Shape | None, w: Shape | None) -> Shape | None:
    if x is None:
        return None if w is None else q.fresh_shape(len(w))
    if w is None or len(w) != len(x) or len(x) < 2:
        return q.fresh_shape(len(x))
    kernel = q.integers("kernel_shape") or w[2:]
    out = slid(q, x[2:], kernel)
    return None if out is None else (x[0], w[0], *out)


@rule("Conv")
def conv(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), _convolved(q, q.shape(0), q.shape(1)))]


@rule("ConvInteger")
def conv_integer(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT32, _convolved(q, q.shape(0), q.shape(1)))]


@rule("QLinearConv")
def quantized_conv(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(7), _convolved(q, q.shape(0), q.shape(3)))]


@rule("DeformConv")
def deformable_conv(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), _convolved(q, q.shape(0), q.shape(1)))]


@rule("ConvTranspose")
def conv_transpose(q: Query) -> Sequence[Fact]:
    x, w = q.shape(0), q.shape(1)
    if x is None or w is None or len(x) != len(w) or len(x) < 3:
        return [Fact(q.element(0), None if x is None else q.fresh_shape(len(x)))]
    count = len(x) - 2
    strides, dilations = _list(q, "strides", count, 1), _list(q, "dilations", count, 1)
    pads, extra = _list(q, "pads", 2 * count, 0), _list(q, "output_padding", count, 0)
    wanted, auto = q.integers("output_shape"), q.word("auto_pad", "NOTSET")
    if strides is None or dilations is None or pads is None or extra is None:
        return []
    head = (x[0], w[1] * q.integer("group", 1))
    if wanted is not None:
        return [Fact(q.element(0), (*head, *wanted[-count:]))]
    kernel = q.integers("kernel_shape") or w[2:]
    out: list[Dim] = []
    for i, size in enumerate(x[2:]):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out.append(size * strides[i])
            continue
        cut = 0 if auto == "VALID" else pads[i] + pads[i + count]
        out.append((size - 1) * strides[i] + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - cut)
    return [Fact(q.element(0), (*head, *out))]


@rule("AveragePool", "LpPool", "MaxPool")
def pool(q: Query) -> Sequence[Fact]:
    x, kernel = q.shape(0), q.integers("kernel_shape")
    if x is None:
        shape = None if kernel is None else q.fresh_shape(len(kernel) + 2)
    elif kernel is None:
        shape = None
    else:
        out = slid(q, x[2:], kernel)
        shape = None if out is None else (*x[:2], *out)
    return [Fact(q.element(0), shape), Fact(TensorProto.INT64, shape)]


@rule("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def global_pool(q: Query) -> Sequence[Fact]:
    x = q.shape(0)
    return [Fact(q.element(0), None if x is None else (*x[:2], *[1] * (len(x) - 2)))]


@rule("MaxUnpool")
def unpool(q: Query) -> Sequence[Fact]:
    x = q.shape(0)
    if q.has(2):
        sizes = q.sizes(2)
        return [Fact(q.element(0), None if sizes is None else tuple([q.size_of(s) for s in sizes]))]
    kernel = q.integers("kernel_shape")
    if x is None or kernel is None or len(kernel) != len(x) - 2:
        return [Fact(q.element(0))]
    strides, pads = _list(q, "strides", len(kernel), 1), _list(q, "pads", 2 * len(kernel), 0)
    if strides is None or pads is None:
        return []
    sizes_out = [(d - 1) * strides[i] + kernel[i] - pads[i] - pads[i + len(kernel)] for i, d in enumerate(x[2:])]
    return [Fact(q.element(0), (*x[:2], *sizes_out))]


@rule("MaxRoiPool")
def roi_pool(q: Query) -> Sequence[Fact]:
    x, rois, pooled = q.shape(0), q.shape(1), q.integers("pooled_shape")
    if x is None or rois is None or pooled is None:
        return [Fact(q.element(0), q.fresh_shape(4))]
    return [Fact(q.element(0), (rois[0], x[1], *pooled))]


@rule("RoiAlign")
def roi_align(q: Query) -> Sequence[Fact]:
    x, rois = q.shape(0), q.shape(1)
    count = q.new_dim() if rois is None else rois[0]
    channels = q.new_dim() if x is None else x[1]
    return [Fact(q.element(0), (count, channels, q.integer("output_height", 1), q.integer("output_width", 1)))]


@rule("GridSample")
def grid_sample(q: Query) -> Sequence[Fact]:
    x, grid = q.shape(0), q.shape(1)
    if x is None or grid is None:
        return [Fact(q.element(0), None if x is None else q.fresh_shape(len(x)))]
    return [Fact(q.element(0), (*x[:2], *grid[1:-1]))]


@rule("AffineGrid")
def affine_grid(q: Query) -> Sequence[Fact]:
    sizes = q.sizes(1)
    if sizes is None:
        return [Fact(q.element(0))]
    shape = [q.size_of(s) for s in sizes]
    return [Fact(q.element(0), (shape[0], *shape[2:], len(shape) - 2))]


@rule("Col2Im")
def columns_to_image(q: Query) -> Sequence[Fact]:
    x, sizes, block = q.shape(0), q.sizes(1), q.numbers(2)
    if sizes is None:
        return [Fact(q.element(0))]
    image = [q.size_of(s) for s in sizes]
    if x is None or block is None:
        return [Fact(q.element(0), (*q.fresh_shape(2), *image))]
    area = 1
    for size in block:
        area *= size
    return [Fact(q.element(0), (x[0], floordiv(x[1], area), *image))]
