"""Sizes as ONNX values: where each open size can be read, and lists of sizes in the fewest nodes.

A size is read from the shape of a value that has it as an axis, be it a dim or an expression of dims. Consecutive axes
of one value are read at once. Each size, and each list of sizes, is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dmlc.codegen.onnx.apart import apart
from dmlc.codegen.onnx.listed import Sizes, sizes_listed
from dmlc.codegen.onnx.writer import NodeWriter
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Dim, DimExpr, Node, Value, product, symbol
from dmlc.ir.dim import Atom, FloorDiv, Monomial, Negative
from dmlc.ir.dtype import i64

#: So many values are remembered for two sizes that stand side by side.
_MOST_RUNS = 4


def _is_subtracted(term: tuple[Monomial, int]) -> bool:
    return term[1] < 0


_Writer = TypeVar("_Writer", bound="SizeWriter")


class SizeWriter(NodeWriter):
    """A node writer that computes sizes. ``parent`` is the writer of the graph around this one, which sees no more than
    what was computed there before it."""

    def _begin(self: _Writer, parent: _Writer | None) -> None:
        super()._begin(parent)
        self._ones: dict[Dim, str] = {} if parent is None else dict(parent._ones)
        self._vectors: dict[Sizes, str] = {} if parent is None else dict(parent._vectors)
        self._shapes: dict[str, str] = {} if parent is None else dict(parent._shapes)
        self._holders: dict[Dim, tuple[str, int]] = {} if parent is None else dict(parent._holders)
        self._runs: dict[Sizes, tuple[_Run, ...]] = {} if parent is None else dict(parent._runs)
        self._scalars: dict[Dim, str] = {} if parent is None else dict(parent._scalars)
        #: The sizes that values of the graph list.
        self._listed: dict[Value, Sizes] = {}
        #: Names of values that something else stands for by now; those that nothing reads are dropped in the end.
        self._bypassed: set[str] = set()

    # --- where sizes are

    def hold(self, value: Value) -> None:
        """Remember the sizes of a value, so that each can be asked for, and the sizes that it lists."""
        shape = value.type.shape
        self._hold_sizes(value, shape)
        for name, axis in self.graph.provides.get(value, ()):
            if shape[axis] != symbol(name):  # merged nodes had dims of their own for the same sizes
                self._hold_sizes(value, (*shape[:axis], symbol(name), *shape[axis + 1 :]))
        listed = self._listed.get(value)
        if listed is not None:
            self._keep(listed, self.of(value), is_scalar=not shape)

    def _hold_sizes(self, value: Value, shape: Sizes) -> None:
        holders = self._holders
        for axis, size in enumerate(shape):
            if isinstance(size, int):
                continue
            if size not in holders:
                holders[size] = (self.of(value), axis)
            if axis + 1 < len(shape):
                self._hold_run(shape, axis, value)
            if axis and isinstance(shape[axis - 1], int):
                self._hold_run(shape, axis - 1, value)
                if axis > 1 and all(isinstance(before, int) for before in shape[:axis]):
                    self._hold_run(shape, 0, value)  # the whole shape, which begins with numbers

    def _hold_run(self, shape: Sizes, axis: int, value: Value) -> None:
        pair = shape[axis : axis + 2]
        have = self._runs.get(pair, ())
        if len(have) < _MOST_RUNS:
            self._runs[pair] = (*have, (self.of(value), shape, axis))

    def reuse(self, node: Node) -> bool:
        """Let a value that lists the same sizes stand for the node's result; return whether there is one."""
        sizes = sizes_listed(node, self._listed, self.graph.dims)
        if sizes is None:
            return False
        value = node.result
        self._listed[value] = sizes
        if value.type.rank:
            name = self._ones.get(sizes[0]) if len(sizes) == 1 else self._vectors.get(sizes)
        else:
            name = self._scalars.get(sizes[0])
        if name is None or value in self._output_names:
            return False
        self._names[value] = name
        pending = [node]
        while pending:
            for operand in pending.pop().operands:
                had = None if operand is None else self._names.get(operand)
                if had is None or had in self._bypassed:
                    continue
                self._bypassed.add(had)
                if operand in self._listed and operand.producer is not None:
                    pending.append(operand.producer)
        return True

    def _keep(self, sizes: Sizes, name: str, *, is_scalar: bool = False) -> str:
        if is_scalar:
            self._scalars.setdefault(sizes[0], name)
        elif len(sizes) == 1:
            self._ones.setdefault(sizes[0], name)
        else:
            self._vectors.setdefault(sizes, name)
        return name

    # --- one size

    def size(self, size: Dim) -> str:
        """A size as an i64 vector of one element."""
        if isinstance(size, int):
            return self.ints([size])
        found = self._ones.get(size)
        return self._keep((size,), self._expression(size)) if found is None else found

    def merge(self, size: Dim, name: str, shape: Sizes) -> None:
        """Compute a size that joins consecutive axes of the named value as their product, where nothing has it yet."""
        if isinstance(size, int) or size.name is not None or size in self._ones or size in self._holders:
            return
        for start in range(len(shape) - 1):
            for end in range(start + 2, len(shape) + 1):
                if product(shape[start:end]) == size:
                    whole = end - start == len(shape)
                    listed = self._shape(name) if whole else self._read(name, start, end, f"dims_of_{name}")
                    self._ones[size] = self.op("ReduceProd", [listed], keepdims=1)
                    return

    def size_scalar(self, size: Dim) -> str:
        """A size as an i64 scalar."""
        if isinstance(size, int):
            return self.scalar(size, i64)
        return self._keep((size,), self.size_result(size), is_scalar=True)

    def size_result(self, size: Dim) -> str:
        """A size as the i64 scalar that is a node's result: it is kept under the name that it gets then."""
        found = self._scalars.get(size)
        return self.op("Squeeze", [self.size(size)]) if found is None else found

    def _expression(self, size: DimExpr) -> str:
        held = self._holders.get(size)
        if held is not None:
            return self._read(held[0], held[1], held[1] + 1, f"dim_{size}")
        if size.name is not None:
            raise fail(INTERNAL, f"dim {size} is not a size of any input", exit_code=3)
        clamp = size.as_clamp()
        if clamp is not None and self.opset >= 12:
            return self.op(clamp[0].capitalize(), [self.size(clamp[1]), self.size(clamp[2])])
        total: str | None = None
        for monomial, coefficient in sorted(size.terms, key=_is_subtracted):
            term = self._term(monomial, abs(coefficient))
            if total is None:
                total = term if coefficient > 0 else self.op("Sub", [self.ints([0]), term])
            else:
                total = self.op("Add" if coefficient > 0 else "Sub", [total, term])
        assert total is not None
        return total

    def _term(self, monomial: Monomial, coefficient: int) -> str:
        """A product of atoms and a positive number, which is kept: longer expressions share it."""
        if not monomial:
            return self.ints([coefficient])
        alone = DimExpr(((monomial, coefficient),))
        if alone not in self._ones:
            term = self._factor(monomial[0]) if len(monomial) == 1 else self._term(monomial[:-1], 1)
            if len(monomial) > 1:
                term = self.op("Mul", [term, self._factor(monomial[-1])])
            if coefficient != 1:
                term = self.op("Mul", [term, self.ints([coefficient])])
            self._ones[alone] = term
        return self._ones[alone]

    def _factor(self, atom: Atom) -> str:
        if isinstance(atom, FloorDiv):
            alone = DimExpr((((atom,), 1),))
            if alone not in self._ones:
                self._ones[alone] = self._quotient(atom)
            return self._ones[alone]
        if isinstance(atom, Negative):
            size = self.size(atom.size)
            if self.opset >= 12:
                return self.op("Min", [size, self.ints([0])])
            # below opset 12 Min takes floats only: the size less its magnitude is twice that, or 0
            return self.op("Div", [self.op("Sub", [size, self.op("Abs", [size])]), self.ints([2])])
        return self.size(symbol(atom))

    def _quotient(self, atom: FloorDiv) -> str:
        a, b = self.size(atom.numerator), self.size(atom.denominator)
        low, high = self.graph.dims.interval(atom.numerator)
        if low < 0:
            remainder = self.op("Mod", [a, b])
            a = self.op("Sub", [a, remainder])  # Div truncates; a less its floor remainder divides evenly
        quotient = self.op("Div", [a, b])
        may_divide_one = low <= 1 <= high and not isinstance(atom.denominator, int)
        return apart(self, quotient, i64) if may_divide_one else quotient

    # --- lists of sizes

    def reads_in_one(self, sizes: Sizes, *, rather_than: Sizes) -> bool:
        """Return whether a list is the whole shape of a value, where ``rather_than`` takes more than one node."""
        run, unread = self._run_of(sizes), [s for s in rather_than if not isinstance(s, int) and s not in self._ones]
        is_whole = sizes in self._vectors or (run is not None and len(run[1]) == len(sizes))
        return is_whole and bool(unread) and rather_than not in self._vectors

    def sizes(self, sizes: Sequence[Dim]) -> str:
        """A shape as an i64 vector."""
        key = tuple(sizes)
        if all(isinstance(s, int) for s in key):
            return self.ints([s for s in key if isinstance(s, int)])
        if len(key) == 1:
            return self.size(key[0])
        found = self._vectors.get(key)
        if found is not None:
            return found
        parts = [self._part(part) for part in self._parts(key)]
        return self._keep(
            key, parts[0] if len(parts) == 1 else self.op("Concat", parts, axis=0, label=self._label("sizes"))
        )

    def _parts(self, key: Sizes) -> list[Sizes]:
        """The list in parts that are a constant, one size, or read from one value at once."""
        parts: list[Sizes] = []
        start = 0
        while start < len(key):
            end = self._run_end(key, start)
            if end is None:
                end = start + 1
                while isinstance(key[start], int) and end < len(key) and isinstance(key[end], int):
                    end += 1
                    if self._run_end(key, end - 1) is not None:
                        end -= 1
                        break
            parts.append(key[start:end])
            start = end
        return parts

    def _run_end(self, key: Sizes, start: int) -> int | None:
        """The end of the longest run from there that is worth a node of its own; None where there is none."""
        for end in range(len(key), start + 1, -1):
            run = key[start:end]
            if run in self._vectors:
                return end
            unread = {s for s in run if not isinstance(s, int) and s not in self._ones}
            is_all = start == 0 and end == len(key)
            if (len(unread) > 1 or (is_all and unread)) and self._run_of(run) is not None:
                return end
        return None

    def _run_of(self, run: Sizes) -> tuple[str, Sizes, int] | None:
        for name, shape, axis in self._runs.get(run[:2], ()):
            if shape[axis : axis + len(run)] == run:
                return name, shape, axis
        return None

    def _part(self, part: Sizes) -> str:
        if all(isinstance(s, int) for s in part):
            return self.ints([s for s in part if isinstance(s, int)])
        if len(part) == 1:
            return self.size(part[0])
        found = self._vectors.get(part)
        if found is not None:
            return found
        run = self._run_of(part)
        assert run is not None
        name, shape, axis = run
        if len(part) < len(shape):
            return self._keep(part, self._read(name, axis, axis + len(part), f"dims_of_{name}"))
        return self._keep(part, self._shape(name))

    def _shape(self, name: str) -> str:
        found = self._shapes.get(name)
        if found is None:
            found = self._shapes[name] = self.op("Shape", [name], label=self._label(f"shape_of_{name}"))
        return found

    def _read(self, name: str, start: int, end: int, label: str) -> str:
        """The sizes of consecutive axes of a value."""
        if self.opset >= 15:
            return self.op("Shape", [name], start=start, end=end, label=self._label(label))
        shape = self._shape(name)
        if end == start + 1:
            return self.op("Gather", [shape, self.ints([start])], axis=0)
        if self.opset >= 10:
            return self.op("Slice", [shape, self.ints([start]), self.ints([end])])
        return self.op("Slice", [shape], starts=(start,), ends=(end,))

    def _label(self, kind: str) -> str:
        return f"{kind}_{len(self._ones) + len(self._vectors) + len(self._shapes)}"


#: A value's name, its shape, and an axis of it.
_Run = tuple[str, Sizes, int]
