"""Tensors as DirectML sees them: sizes and strides over a buffer. Moving an axis moves a number, not the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Array, DType

Sizes = tuple[int, ...]


class Buffer:
    """A resource. ``data`` are its values at the start (None: zeros), ``iota`` says that they are 0, 1, 2 and so on,
    ``file`` that the user makes them. Buffers compare by identity; ``name`` is what the file calls it.
    """

    __slots__ = ("count", "data", "dtype", "file", "iota", "name")

    def __init__(self, dtype: DType, count: int, *, data: Array | None = None, iota: bool = False) -> None:
        self.dtype: DType = dtype
        self.count: int = count
        self.data: Array | None = data
        self.iota: bool = iota
        self.file: str = ""
        self.name: str = ""


class BufferView(Struct, frozen=True):
    """A tensor over a buffer; ``strides`` count elements of ``dtype``, which may be another one than the buffer's."""

    buffer: Buffer
    dtype: DType
    sizes: Sizes
    strides: Sizes

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @property
    def count(self) -> int:
        return math.prod(self.sizes)

    @property
    def is_packed(self) -> bool:
        """Return whether the elements lie one after another in row-major order."""
        return all(
            n == 1 or have == want
            for n, have, want in zip(self.sizes, self.strides, packed_strides(self.sizes), strict=True)
        )

    def transposed(self, perm: Sequence[int]) -> BufferView:
        return replace(self, sizes=tuple(self.sizes[i] for i in perm), strides=tuple(self.strides[i] for i in perm))

    def broadcast(self, sizes: Sizes) -> BufferView:
        """Broadcast by strides of 0, as NumPy does; the sizes are known to fit."""
        missing = len(sizes) - self.rank
        own = zip(self.sizes, self.strides, sizes[missing:], strict=True)
        strides = (0,) * missing + tuple(0 if n == 1 and n != wanted else stride for n, stride, wanted in own)
        return replace(self, sizes=sizes, strides=strides)

    def padded(self, rank: int) -> BufferView:
        """With axes of size 1 put before the others, up to a rank."""
        return self.broadcast((1,) * (rank - self.rank) + self.sizes)

    def reshaped(self, sizes: Sizes) -> BufferView | None:
        """The same elements in row-major order in other sizes; None where no strides say it."""
        strides = _restride(self, sizes)
        return None if strides is None else replace(self, sizes=sizes, strides=strides)

    def narrowed(self, dtype: DType) -> BufferView:
        """Each integer's lowest bytes as a narrower one: the value modulo 2^n, as memory is little-endian."""
        factor = self.dtype.bits // dtype.bits
        return replace(self, dtype=dtype, strides=tuple(stride * factor for stride in self.strides))

    def squashed(self) -> BufferView:
        """Without the copies that strides of 0 make: those axes have size 1."""
        pairs = list(zip(self.sizes, self.strides, strict=True))
        return replace(self, sizes=tuple(1 if stride == 0 else n for n, stride in pairs))


def packed(buffer: Buffer, sizes: Sizes) -> BufferView:
    """The whole buffer, row-major."""
    return BufferView(buffer, buffer.dtype, sizes, packed_strides(sizes))


def packed_strides(sizes: Sequence[int]) -> Sizes:
    """Row-major strides."""
    out: list[int] = []
    step = 1
    for n in reversed(sizes):
        out.append(step)
        step *= n
    return tuple(reversed(out))


def broadcast_sizes(views: Sequence[BufferView]) -> Sizes:
    """Return the sizes that all broadcast to."""
    rank = max(view.rank for view in views)
    padded = [(1,) * (rank - view.rank) + view.sizes for view in views]
    return tuple(next((n for n in column if n != 1), 1) for column in zip(*padded, strict=True))


def _restride(view: BufferView, sizes: Sizes) -> Sizes | None:
    runs: list[tuple[int, int]] = []  # ranges of memory: how many elements, how far apart
    for n, stride in zip(view.sizes, view.strides, strict=True):
        if n == 1:
            continue
        if runs and runs[-1][1] == n * stride:
            runs[-1] = (runs[-1][0] * n, stride)
        else:
            runs.append((n, stride))
    out: list[int] = []
    left, step = 1, 1
    for n in reversed(sizes):
        if n > 1 and left == 1:
            left, step = runs.pop()
        out.append(step)
        if left % n:
            return None
        left //= n
        step *= n
    return tuple(reversed(out))


def merged(views: Sequence[BufferView], most: int) -> list[BufferView]:
    """Views of the same sizes with neighbouring axes merged where all of them allow it, until the rank is ``most``."""
    views = list(views)
    axis = views[0].rank - 2
    while axis >= 0 and views[0].rank > most:
        if all(_is_run(view, axis) for view in views):
            views = [_without(view, axis) for view in views]
        axis -= 1
    return views


def _is_run(view: BufferView, axis: int) -> bool:
    """Return whether an axis and the next one can be merged: together they are one range of memory."""
    n, stride = view.sizes[axis + 1], view.strides[axis + 1]
    return 1 in (view.sizes[axis], n) or view.strides[axis] == n * stride


def _without(view: BufferView, axis: int) -> BufferView:
    """With an axis merged into the next."""
    (n, stride), (m, inner) = ((view.sizes[i], view.strides[i]) for i in (axis, axis + 1))
    sizes = (*view.sizes[:axis], n * m, *view.sizes[axis + 2 :])
    return replace(
        view, sizes=sizes, strides=(*view.strides[:axis], stride if m == 1 else inner, *view.strides[axis + 2 :])
    )
