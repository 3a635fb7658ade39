"""Spatial axes of a ConvTranspose: the pads that ONNX gives them, and those that the DirectML provider takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from dmlc.ir import Dim

_UPPER, _SAME = "SAME_UPPER", ("SAME_UPPER", "SAME_LOWER")


class TransposedAxis(Struct, frozen=True):
    """One spatial axis. ``pads`` are the attribute's; ``size`` is the size of the operand, ``kernel`` the size of the
    weights, and ``wanted`` the size that ``output_shape`` asks for."""

    size: Dim
    kernel: int
    stride: int
    dilation: int
    pads: tuple[int, int]
    output_padding: int
    wanted: int | None
    auto_pad: str

    @property
    def reach(self) -> int:
        """The elements of the result that one element of the operand reaches."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_same(self) -> bool:
        """True if auto_pad asks for a result of the operand's size times the stride."""
        return self.wanted is None and self.auto_pad in _SAME

    def explicit(self) -> tuple[int, int, int] | None:
        """Return pads and output padding in numbers; None where they depend on an open size, or where ONNX does not
        define them."""
        if not self.is_same and self.wanted is None:
            pads = (0, 0) if self.auto_pad == "VALID" else self.pads
            return (*pads, self.output_padding)
        if self.wanted is None:
            total = self.output_padding + self.reach - self.stride
        elif isinstance(self.size, int):
            total = (self.size - 1) * self.stride + self.reach + self.output_padding - self.wanted
        else:
            return None
        return None if total < 0 else (*self._shared_out(total), self.output_padding)

    def _shared_out(self, total: int) -> tuple[int, int]:
        less = total // 2
        return (less, total - less) if self.auto_pad == _UPPER else (total - less, less)

    # --- as the provider computes it (onnxruntime, OperatorHelper.cpp)

    @property
    def has_wrong_size(self) -> bool:
        """True if the provider expects another size of the result than ONNX: it takes the padding that a Conv would
        have, by the number of strides in the operand; or it leaves the dilation out where a size is asked for."""
        if self.is_same:
            if not isinstance(self.size, int):
                return self.stride > 1 or self.output_padding != 0
            steps = -(-self.size // self.stride)
            padding = max(0, self.stride * (steps - 1) + self.reach - self.size)
            return (self.size - 1) * self.stride + self.reach + self.output_padding - padding != self.size * self.stride
        if self.wanted is None:
            return False
        return self.reach != self.kernel or (isinstance(self.size, int) and self.wanted < self.size)

    @property
    def has_wrong_start(self) -> bool:
        """True if the provider shares the padding out otherwise: it leaves the output padding out where a size is
        asked for."""
        if self.wanted is None or not self.output_padding or self.has_wrong_size:
            return False
        ours = self.explicit()
        if ours is None or not isinstance(self.size, int):
            return True
        total = max(0, (self.size - 1) * self.stride + self.kernel - self.wanted)
        return self._shared_out(total)[0] != ours[0]


def transposed_axes(
    attribute: Callable[[str], object], sizes: Sequence[Dim], weights: Sequence[Dim]
) -> list[TransposedAxis] | None:
    """Return the spatial axes of a ConvTranspose by its attributes and the shapes of its first two operands; None where
    they do not fit together or the kernel is not known."""
    count = len(sizes) - 2
    kernel: Sequence[Dim] = _numbers(attribute("kernel_shape"), count) or weights[2:]
    wanted = _numbers(attribute("output_shape"), count)
    strides, dilations = (_numbers(attribute(name), count) or (1,) * count for name in ("strides", "dilations"))
    pads = _numbers(attribute("pads"), 2 * count) or (0,) * (2 * count)
    padding = _numbers(attribute("output_padding"), count) or (0,) * count
    known = [size for size in kernel if isinstance(size, int)]
    if count < 1 or len(known) != count:
        return None
    if attribute("output_shape") is not None and wanted is None:
        return None
    return [
        TransposedAxis(
            size=sizes[axis + 2],
            kernel=known[axis],
            stride=strides[axis],
            dilation=dilations[axis],
            pads=(pads[axis], pads[axis + count]),
            output_padding=padding[axis],
            wanted=None if wanted is None else wanted[axis],
            auto_pad=str(attribute("auto_pad") or "NOTSET"),
        )
        for axis in range(count)
    ]


def _numbers(value: object, count: int) -> tuple[int, ...] | None:
    """An attribute of ``count`` numbers; None where it is not given or has another length."""
    return tuple(value) if isinstance(value, (list, tuple)) and len(value) == count else None
