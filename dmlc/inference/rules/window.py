"""Convolutions and pools: a window that slides over the spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np
from onnx import TensorProto

from dmlc.diagnostics.counted import counted
from dmlc.inference.fact import Fact, Open
from dmlc.inference.query import Fault, Query, need_equal, place
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape, floordiv


def _list(q: Query, name: str, count: int, default: int) -> list[int]:
    q.need_length(name, count)
    given = q.integers(name)
    return [default] * count if given is None else list(given)


def slid(q: Query, sizes: Shape, kernel: Sequence[Dim]) -> list[Dim]:
    """The sizes after a window of ``kernel`` has slid over them. Raises ``Fault`` for attributes of a wrong length."""
    count = len(sizes)
    strides, dilations = _list(q, "strides", count, 1), _list(q, "dilations", count, 1)
    pads = _list(q, "pads", 2 * count, 0)
    auto = q.word("auto_pad", "NOTSET")
    need_equal(len(kernel), count, "the numbers of axes of the window and of spatial axes")
    for name, values in (("strides", strides), ("dilations", dilations), ("kernel_shape", kernel)):
        if any(isinstance(value, int) and value < 1 for value in values):
            raise Fault(f"{name} are {list(values)}")
    if min(pads, default=0) < 0:
        raise Fault(f"pads are {pads}")
    out: list[Dim] = []
    for i, size in enumerate(sizes):
        stride, span = strides[i], (kernel[i] - 1) * dilations[i] + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            # ONNX Runtime pads a pool for its window without dilations, so that places are missing
            is_sure = dilations[i] == 1 or kernel[i] == 1 or "Pool" not in q.op_type
            out.append(floordiv(size + (stride - 1), stride) if is_sure else q.new_dim())
            continue
        before, after = (0, 0) if auto == "VALID" else (pads[i], pads[i + count])
        room = size + (before + after) - span
        least = 0 if q.op_type == "Conv" else 1 - 2 * stride  # a pool of no places loads and runs
        if isinstance(room, int) and not q.integer("ceil_mode") and room < least:
            q.fails(f"a window of {span} does not fit the padded size {size + (before + after)}")
        if not q.integer("ceil_mode"):
            out.append(_places(q, size, room, stride))
        elif isinstance(room, int) and isinstance(size, int):
            steps = -(-room // stride) + 1
            # the last window starts inside the data or its first padding (from opset 22 on in onnx, always in runtimes)
            out.append(steps - 1 if (steps - 1) * stride >= size + before else steps)
        else:
            out.append(floordiv(room, stride) + 1 if stride == 1 else q.new_dim())
    return out


def _places(q: Query, size: Dim, room: Dim, stride: int) -> Dim:
    """The number of places of a window, with so many elements beside the first.

    A pool rounds the steps toward 0: of a size of 1 it makes 1 with a window of 2 and steps of 2. A convolution fails.
    """
    if "Pool" not in q.op_type or stride == 1:
        return floordiv(room, stride) + 1
    if isinstance(room, int):
        return (room // stride if room >= 0 else -(-room // stride)) + 1
    smallest = max(q.dims.interval(size)[0], 1)  # an axis without elements is not pooled
    missing = room - size
    fits = q.windows_fit or (isinstance(missing, int) and smallest + missing >= 0)
    return floordiv(room, stride) + 1 if fits else q.new_dim()


def _convolved(q: Query, x: Shape | None, w: Shape | None) -> Shape | None:
    if x is None:
        return None if w is None else q.fresh_shape(len(w))
    if w is None:
        return q.fresh_shape(len(x))
    if len(x) < 2:
        raise Fault(f"the operand has {counted(len(x), 'axis')}, not at least 2")
    kernel = q.integers("kernel_shape")
    if len(w) != len(x):
        if kernel is None and q.op_type in ("Conv", "ConvInteger", "QLinearConv"):
            raise Fault(f"the weights have {len(w)} axes, not {len(x)}")
        return q.fresh_shape(len(x))
    if q.op_type != "DeformConv":
        q.fails_unless_equal(
            x[1], w[1] * q.integer("group", 1), "the numbers of channels of the operand and the weights"
        )
    return (x[0], w[0], *slid(q, x[2:], kernel or w[2:]))


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
    if x is None or w is None:
        return [Fact(q.element(0), None if x is None else q.fresh_shape(len(x)))]
    q.need_rank(0, 2, -1)
    q.need_length("kernel_shape", len(x) - 2)
    if len(w) != len(x):
        if "kernel_shape" not in q.attributes:
            raise Fault(f"the weights have {len(w)} axes, not {len(x)}")
        return [Fact(q.element(0), q.fresh_shape(len(x)))]
    count = len(x) - 2
    strides, dilations = _list(q, "strides", count, 1), _list(q, "dilations", count, 1)
    pads, extra = _list(q, "pads", 2 * count, 0), _list(q, "output_padding", count, 0)
    wanted, auto = q.integers("output_shape"), q.word("auto_pad", "NOTSET")
    head = (x[0], w[1] * q.integer("group", 1))
    if min(pads, default=0) < 0:
        raise Fault(f"pads are {pads}")
    if wanted is not None:
        return [Fact(q.element(0), (*head, *wanted[-count:]))]
    kernel = q.integers("kernel_shape") or w[2:]
    out: list[Dim] = []
    for i, size in enumerate(x[2:]):
        reach = extra[i] + (kernel[i] - 1) * dilations[i] + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            # with less reach than the stride, ONNX Runtime ends where the last window does
            out.append(size * strides[i] if q.dims.at_most(strides[i], reach) else q.new_dim())
            continue
        cut = 0 if auto == "VALID" else pads[i] + pads[i + count]
        out.append((size - 1) * strides[i] + reach - cut)
    return [Fact(q.element(0), (*head, *out))]


@rule("AveragePool", "LpPool", "MaxPool")
def pool(q: Query) -> Sequence[Fact]:
    x, kernel = q.shape(0), q.integers("kernel_shape")
    if x is None:
        shape = None if kernel is None else q.fresh_shape(len(kernel) + 2)
    elif kernel is None:
        shape = None
    else:
        q.need_rank(0, 2, -1)
        shape = (*x[:2], *slid(q, x[2:], kernel))
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
    need_equal(len(x), len(grid), "the numbers of axes of the operands")
    need_equal(x[0], grid[0], "the batches of the operands")
    need_equal(grid[-1], len(x) - 2, "the last size of the grid and the number of spatial axes")
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
        return [Fact(q.element(0), (q.new_dim() if x is None else x[0], q.new_dim(), *image))]
    area = 1
    for size in block:
        area *= size
    return [Fact(q.element(0), (x[0], floordiv(x[1], area), *image))]


# --- Resize and its forerunner


@rule("Upsample")
def upsample(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    scales = q.attributes.get("scales") if q.opset < 9 else _floats(q, 1)
    if shape is None:
        return [Fact(q.element(0))]
    return [Fact(q.element(0), _scaled(q, shape, scales))]


@rule("Resize")
def resize_without_region(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else _scaled(q, shape, _floats(q, 1)))]


@rule("Resize", since=11)
def resize(q: Query) -> Sequence[Fact]:
    shape, axes = q.shape(0), q.integers("axes")
    if q.opset >= 13 and q.has(2) == q.has(3) and q.shape(2) != (0,):
        raise Fault("it takes either sizes or scales")
    if q.has(2) and q.shape(2) != (0,) and q.word("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Fault("a keep_aspect_ratio_policy is for sizes, and it is given scales")
    if shape is None:
        return [Fact(q.element(0))]
    places = [place(a, len(shape)) for a in (range(len(shape)) if axes is None else axes)]
    part = tuple([shape[p] for p in places])
    q.need_rank(3, 1)
    sizes = q.sizes(3) if q.has(3) and q.shape(3) != (0,) else None
    if sizes is not None and len(sizes) == len(part):
        out = _sized(q, part, sizes, q.word("keep_aspect_ratio_policy", "stretch"))
    elif (q.has(3) and q.shape(3) != (0,)) or q.word("coordinate_transformation_mode") == "tf_crop_and_resize":
        out = q.fresh_shape(len(part))
    else:
        out = _scaled(q, part, _floats(q, 2))
    full = list(shape)
    for at, size in zip(places, out, strict=True):
        full[at] = size
    return [Fact(q.element(0), tuple(full))]


def _sized(q: Query, shape: Shape, sizes: Sequence[Dim | Open], policy: str) -> Shape:
    """The sizes asked for; a policy other than ``stretch`` scales all axes by one factor and rounds halves up."""
    if policy == "stretch":
        return tuple([q.size_of(s) for s in sizes])
    pairs = [(d, s) for d, s in zip(shape, sizes, strict=True) if isinstance(d, int) and isinstance(s, int) and d]
    if len(pairs) < len(shape):
        return q.fresh_shape(len(shape))
    factors = [s / d for d, s in pairs]
    factor = min(factors) if policy == "not_larger" else max(factors)
    return tuple([floor(d * factor + 0.5) for d, _ in pairs])


def _floats(q: Query, index: int) -> list[float | Open] | None:
    elements = q.elements(index)
    if elements is None:
        return None
    return [e if isinstance(e, Open) else float(e) for e in elements.ravel().tolist()]


def _scaled(q: Query, shape: Shape, scales: object) -> Shape:
    """``floor(size * scale)`` of each, in f32 as runtimes compute it; a whole scale multiplies open sizes too."""
    if not isinstance(scales, (list, tuple)) or len(scales) != len(shape):
        return q.fresh_shape(len(shape))
    out: list[Dim] = []
    for size, scale in zip(shape, scales, strict=True):
        if isinstance(scale, Open):
            out.append(q.new_dim())
        elif isinstance(size, int):
            out.append(floor(np.float32(size) * np.float32(scale)))
        else:
            out.append(size * int(scale) if float(scale).is_integer() else q.new_dim())
    return tuple(out)


# --- Fourier transforms


@rule("DFT")
def transform(q: Query) -> Sequence[Fact]:
    x, element = q.shape(0), q.element(0)
    if not x:
        return [Fact(element)]
    if q.opset < 20:
        axis: int | None = q.axis(1, len(x))
    else:
        given = q.numbers(2) if q.has(2) else (-2,)
        axis = place(given[0], len(x)) if given else None
    is_inverse, is_half = q.integer("inverse"), q.integer("onesided")
    parts = 1 if is_half and is_inverse else 2
    if axis is None:
        keeps_sizes = not is_half and not q.has(1)
        return [Fact(element, (*(x[:-1] if keeps_sizes else q.fresh_shape(len(x) - 1)), parts))]
    size: Dim = x[axis]
    if q.has(1):
        length = q.sizes(1)
        size = q.size_of(length[0]) if length else q.new_dim()
    out = list(x)
    if is_half and is_inverse:
        size = size if q.has(1) else (size - 1) * 2
    out[axis] = floordiv(size, 2) + 1 if is_half and not is_inverse else size
    out[-1] = parts
    return [Fact(element, tuple(out))]


@rule("STFT")
def short_time_transform(q: Query) -> Sequence[Fact]:
    x, element = q.shape(0), q.element(0)
    step, length = q.numbers(1), q.numbers(3) if q.has(3) else None
    window = q.shape(2) if q.has(2) else None
    size: Dim | None = length[0] if length else (window[0] if window else None)
    if x is None:
        return [Fact(element, q.fresh_shape(4))]
    if size is None or not step:
        return [Fact(element, (x[0], *q.fresh_shape(2), 2))]
    bins = floordiv(size, 2) + 1 if q.integer("onesided", 1) else size
    return [Fact(element, (x[0], floordiv(x[1] - size, step[0]) + 1, bins, 2))]
