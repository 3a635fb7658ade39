"""Pools: how windows that hang over the data are counted, and how many of them there are."""

from __future__ import annotations

from dmlc.onnx_schema.moves.draft import Draft, Unmovable
from dmlc.onnx_schema.moves.rows import Row

#: Measured: onnxruntime 1.23 and 1.24 differ below and from opset 19 on where the pads are not all the same or
#: windows hang over them (ceil_mode); 1.31 gives one result.
_HANGING = "what count_include_pad counts where windows hang over the padding"
_CEILING = "a window that begins behind the data is not counted by ONNX's inference, and was before"


def _hanging(draft: Draft) -> None:
    if not draft.get("count_include_pad", 0):
        return
    uneven = len(set(draft.get("pads", []))) > 1 or draft.get("auto_pad", "NOTSET").startswith("SAME")
    if uneven or (draft.get("ceil_mode", 0) and not _fits(draft)):
        raise Unmovable("windows that hang over uneven padding are averaged differently since opset 19")


def _fits(draft: Draft) -> bool:
    """Return whether the sizes are known to be such that no window hangs over the padding."""
    kernel, sizes = draft.get("kernel_shape"), draft.sizes(0)
    axes = len(kernel)
    pads, steps = draft.get("pads", [0] * (2 * axes)), draft.get("strides", [1] * axes)
    for axis, size in enumerate((sizes or [None] * (axes + 2))[2:]):
        width = (kernel[axis] - 1) * draft.get("dilations", [1] * axes)[axis] + 1
        if not isinstance(size, int) or (size + pads[axis] + pads[axis + axes] - width) % steps[axis]:
            return False
    return True


def _ceiling_down(draft: Draft) -> None:
    """No runtime computes a window that begins behind the data, but before opset 22 ONNX's inference counted it. Where
    that would contradict the result's declared shape, floors are taken of sizes that are padded at their ends."""
    if not draft.get("ceil_mode", 0):
        return
    kernel, auto_pad = draft.get("kernel_shape", []), draft.get("auto_pad", "NOTSET")
    if auto_pad.startswith("SAME"):  # the strides alone decide
        if set(draft.get("dilations", [])) - {1}:
            raise Unmovable("ONNX Runtime counts dilated windows otherwise without ceil_mode")
        draft.pop("ceil_mode")
        return
    sizes, axes = draft.sizes(0), len(kernel)
    if sizes is None or not any(_is_miscounted(draft, axis, sizes[axis + 2]) for axis in range(axes)):
        return
    if draft.get("count_include_pad", 0):
        raise Unmovable(f"{_CEILING}; padding that is counted cannot make up for it")
    pads = draft.get("pads", [0] * (2 * axes))
    for axis in range(axes):
        size = sizes[axis + 2]
        if not isinstance(size, int):
            raise Unmovable(f"{_CEILING}, and the size of an axis is not known")
        windows, _, step, width = _windows(draft, axis, size)
        end = (windows - 1) * step + width - size - pads[axis]
        if end >= kernel[axis]:
            raise Unmovable(f"{_CEILING}, and the padding that says it would be as long as the kernel")
        pads[axis + axes] = max(pads[axis + axes], end)
    for name in ("ceil_mode", "auto_pad"):
        draft.pop(name)
    draft.set("pads", pads)


def _is_miscounted(draft: Draft, axis: int, size: int | str | None) -> bool:
    if not isinstance(size, int):
        return False
    windows, counted, _, _ = _windows(draft, axis, size)
    return windows != counted


def _windows(draft: Draft, axis: int, size: int) -> tuple[int, int, int, int]:
    """The number of windows along an axis, the number that ONNX's inference counted, their step and their width."""
    kernel = draft.get("kernel_shape")
    axes = len(kernel)
    pads, step = draft.get("pads", [0] * (2 * axes)), draft.get("strides", [1] * axes)[axis]
    width = (kernel[axis] - 1) * draft.get("dilations", [1] * axes)[axis] + 1
    counted = -(-(size + pads[axis] + pads[axis + axes] - width) // step) + 1
    behind = (counted - 1) * step >= size + pads[axis]
    return counted - behind, counted, step, width


ROWS: tuple[Row, ...] = (
    Row("AveragePool", 19, _HANGING, _hanging, _hanging),
    *[Row(op, 22, _CEILING, down=_ceiling_down) for op in ("MaxPool", "AveragePool", "LpPool")],
)
