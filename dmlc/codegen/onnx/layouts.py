"""Reshapes in a row: what one lowering reshapes and the next one reshapes back is not reshaped at all."""

from __future__ import annotations

from typing import TypeVar

from dmlc.codegen.onnx.sizes import SizeWriter
from dmlc.diagnostics import Span
from dmlc.ir import Shape, Value
from dmlc.onnx_schema.nested import values_read_by
from dmlc.ops.opaque import OPAQUE_IMPURE

_Writer = TypeVar("_Writer", bound="LayoutWriter")


class LayoutWriter(SizeWriter):
    """A node writer that knows what each reshape was made of, and the shape that it had there."""

    def _begin(self: _Writer, parent: _Writer | None) -> None:
        super()._begin(parent)
        self._layouts: dict[str, tuple[str, Shape]] = {}

    def lay_out(self, out: str, name: str, shape: Shape) -> None:
        """Remember that ``out`` has the elements of ``name``, whose shape is given, in their order."""
        self._layouts[out] = (name, shape)

    def is_laid_out(self, value: Value) -> bool:
        """True for what a lowering reshaped, so that a reshape of it may be shorter than it is written."""
        return bool(self._layouts) and self._names.get(value) in self._layouts

    def before(self, name: str, have: Shape, want: Shape) -> tuple[str, Shape]:
        """Return the value whose elements a reshape should take.

        Of two reshapes in a row, the first is left out if it is undone, or if the second then needs no computed size.
        """
        source, shape = self._layouts.get(name, (name, have))
        if source == name or not (shape == want or all(isinstance(size, int) for size in want)):
            return name, have
        self._bypassed.add(name)
        return source, shape

    def flush(self, span: Span | None, renamed: dict[str, str] | None = None, *, between: bool = False) -> None:
        super().flush(span, renamed, between=between)
        if not renamed or not (self._bypassed or self._layouts):
            return
        for old, new in renamed.items():
            if old in self._bypassed:
                self._bypassed.add(new)
            if old in self._layouts:
                source, shape = self._layouts.pop(old)
                self._layouts[new] = (renamed.get(source, source), shape)

    def drop_unused(self) -> None:
        """Erase the nodes of this graph that something else stands for by now, once the graph is written, and those
        that only they read."""
        if not self._bypassed:
            return
        used = set(self._outputs)
        for impure in self.graph.nodes_of((OPAQUE_IMPURE,)):
            used.update([self._names[value] for value in impure.results if value in self._names])
        unread = set(self._bypassed)
        unused = []
        for place in range(len(self.nodes) - 1, -1, -1):
            node = self.nodes[place]
            if not unread.isdisjoint(node.output) and used.isdisjoint(node.output):
                unused.append(place)
                unread.update(values_read_by(node))
                self._dropped.update(node.output)
            else:
                used.update(values_read_by(node))
        for place in unused:
            del self.nodes[place]
