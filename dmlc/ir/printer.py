"""A graph as text in the language's own spelling, for people, for ``after_pass`` dumps and for tests.

The text is ``.dml``: one assignment a node, its result types behind ``#``, constants above the model. Infix
operations print with their symbol (the operands of a line are names or numbers, so nothing needs brackets).
Three things are not parsable: constants of more than ``max_elements`` elements (``...``), a reduction with
``axes=[]`` (the graph's "no axis", which a program cannot say), and conditions, which are comments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir.dim import Dim, DimExpr, Interval, dim_names, floordiv, substitute, symbol
from dmlc.ir.dtype import DTYPE_BY_NAME, DType
from dmlc.ir.graph import Graph, Node, Value
from dmlc.ir.operation import Attributes, Operand
from dmlc.ir.tensor import Tensor
from dmlc.ir.types import TensorType, is_absent

#: Words that cannot stand as a bare name.
_KEYWORDS = frozenset(DTYPE_BY_NAME) | {
    *("dml", "dim", "in", "const", "def", "model", "return", "load", "as"),
    *("true", "false", "inf", "nan", "none", "_"),
}


#: Gives the name of the result of a call, which gets a statement of its own.
Before: TypeAlias = Callable[[str, TensorType], str]
#: Writes a node whose operands have these names in a way of its own; None for the call of its operation. The third
#: argument writes a size.
Spell: TypeAlias = Callable[[Node, list[str], Callable[[Dim], str], Before], "str | None"]
#: The shapes of a node's results as reading its call infers them, from the sizes that it knows for some dims; a text
#: is a size that it leaves open, one text for equal ones. None for a node whose types are the graph's.
ReadShapes: TypeAlias = Callable[[Node, Mapping[str, Dim]], "list[list[Dim | str]] | None"]


class UnwritableSize(Exception):
    """No program can write a size."""


def print_graph(
    graph: Graph,
    *,
    max_elements: int | None = 16,
    load: Callable[[Tensor], str | None] | None = None,
    spell: Spell | None = None,
    read_shapes: ReadShapes | None = None,
) -> str:
    """The graph as text that ends with a newline.

    ``max_elements=None`` prints every constant whole, but those for which ``load`` gives a text instead. With ``spell``
    the text is a program. There a size with ``min`` or ``max``, or of a dim that no input has, is taken from an earlier
    value. A result is reshaped to its sizes in the graph if reading would infer others. Raises ``UnwritableSize`` where
    no value has a size.
    """
    return "\n".join(_Printer(graph, max_elements, load, spell, read_shapes).lines()) + "\n"


def quoted(name: str) -> str:
    """A name as a program writes it: bare where it can be, else between backticks."""
    return name if name.isidentifier() and name.isascii() and name not in _KEYWORDS else f"`{name}`"


def spelled(dim: Dim) -> str:
    """A size as a program writes it: its names may be any text, where a model of ONNX gave them."""
    odd = {name: symbol(quoted(name)) for name in dim_names(dim) if quoted(name) != name}
    return str(substitute(dim, odd) if odd else dim)


def _typed(type: TensorType) -> str:
    if all(quoted(name) == name for size in type.shape for name in dim_names(size)):
        return str(type)
    return f"{type.dtype.name}[{', '.join(map(spelled, type.shape))}]"


class _Printer:
    def __init__(
        self,
        graph: Graph,
        max_elements: int | None,
        load: Callable[[Tensor], str | None] | None = None,
        spell: Spell | None = None,
        read_shapes: ReadShapes | None = None,
    ) -> None:
        self.graph = graph
        self.load = load
        self.spell = spell
        self.read_shapes = read_shapes
        self.own = {name for value in graph.inputs for size in value.type.shape for name in dim_names(size)}
        self.told: dict[str, str] = {}  # dims that no input has, and how to ask a value for them
        self.holders: dict[Dim, str] = {}  # sizes that no program can write, and how to ask a value for them
        self.read: dict[str, Dim] = {}  # dims that no input has, and the sizes that reading infers for them
        self.numbered: dict[str, str] = {}  # dims that no input has, and their names behind #
        self.numbers = count()
        self.given: dict[str, str] = {}  # calls that ``spell`` asked for, and the names of their results
        self.earlier: list[str] = []
        self.max_elements = max_elements
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set(graph.dims.bounds)
        self.fresh = 0
        self.inline: dict[Value, str] = {}

    def lines(self) -> Iterator[str]:
        graph = self.graph
        for name, interval in graph.dims.bounds.items():
            if not self.spell or interval != (1, math.inf):  # a program says nothing of a dim that is 1 or more
                yield f"dim {quoted(name)} {_bounds(interval)}"
        for value in graph.inputs:
            self.names[value] = self._unique(value.name)
            if self.spell and _is_long(value.type):
                raise UnwritableSize(f"a size of input {value.name} is too long an expression")
        constants = []
        for node, tensor in _constants_in_use_order(graph):
            if not self._inlined(node.result, tensor):
                name = self.names[node.result] = self._unique(node.result.name, "c")
                constants.append(f"const {quoted(name)}: {tensor.type} = {self._data(tensor)}")
        body = ["    " + self._statement(node) for node in graph if _constant(node) is None]
        yield from constants
        if graph.dims.bounds or constants:
            yield ""
        yield f"model {quoted(graph.name)}("
        for value in graph.inputs:
            promised = graph.ranges.get(value.name or "")
            kept = "" if promised is None else f" in {number_text(promised[0])}..{number_text(promised[1])}"
            yield f"    {quoted(self.names[value])}: {_typed(value.type)}{kept},"
        yield ") -> ("
        for output, value in graph.outputs:
            written = "" if self.spell and not self._is_written(value.type) else f": {_typed(self._type(value.type))}"
            yield f"    {quoted(output)}{written},"
        yield ") {"
        for condition in () if self.spell else graph.conditions:  # reading a program finds its conditions
            yield f"    # requires {condition}"
        yield from body
        yield f"    return {', '.join(self._use(v) for _, v in graph.outputs)}"
        yield "}"

    # --- statements

    def _statement(self, node: Node) -> str:
        operands = [self._use(v) for v in node.operands]
        call = _infix(node, operands) or (self.spell(node, operands, self.held, self.before) if self.spell else None)
        if call is None:
            name, keywords = _call(node, self.held if self.spell else spelled)
            call = f"{name}({', '.join([*operands, *keywords])})"
        shapes = self.read_shapes(node, self.read) if self.read_shapes else None
        self.unread: dict[str, Dim] = {}
        reshaped = []
        left = []
        types = []
        for i, value in enumerate(node.results):
            is_dropped = self.spell is not None and self._is_dropped(value)
            raw = None if shapes is None or is_dropped else self._raw(value, shapes[i])
            left.append("_" if is_dropped else self._define(value) if raw is None else quoted(raw[0]))
            types.append("_" if is_dropped else self._comment(value.type if raw is None else raw[1]))
            if raw is not None:
                sizes = ", ".join(map(self.held, value.type.shape))
                text = f"{self._define(value)} = reshape({quoted(raw[0])}, shape=[{sizes}])"
                reshaped.append(f"{text}  # {self._comment(value.type)}")
        earlier, self.earlier = self.earlier, []
        return "\n    ".join([*earlier, f"{', '.join(left)} = {call}  # {', '.join(types)}", *reshaped])

    def _raw(self, value: Value, read: list[Dim | str]) -> tuple[str, TensorType] | None:
        """A name for the value before it is reshaped to the sizes that the graph knows, and the type that it has there.

        None if reading knows them.
        """
        new: dict[str, int] = {}
        sizes: list[Dim] = []
        is_known = True
        for axis, (wanted, given) in enumerate(zip(value.type.shape, read, strict=True)):
            size, found = self._as_read(wanted), given if isinstance(given, str) else self._as_read(given)
            if isinstance(found, str):
                found = self.unread.get(found, found)
            name = None if isinstance(size, int) else size.name
            is_new = name is not None and not {name} & {*self.own, *self.told, *new}
            if name is not None and is_new and isinstance(found, str):
                new[name], self.unread[found] = axis, size
            elif name is not None and is_new and not isinstance(found, str) and name not in dim_names(found):
                self.read[name] = found
            elif size != found:
                is_known = False
            if isinstance(found, str) and not is_new:
                self.unread[found] = symbol(f"{found} {len(self.names)}")  # no other value has it
                found = self.unread[found]
            sizes.append(size if isinstance(found, str) else found)
        if is_known:
            return None
        raw = self._unique(None)
        self.told.update({name: f"size({quoted(raw)}, axis={axis})" for name, axis in new.items()})
        return raw, value.type.with_shape(tuple(sizes))

    def _is_dropped(self, value: Value) -> bool:
        """Return whether nothing needs the result, not even a size that only it has."""
        if is_absent(value.type):
            return True
        names = {name for size in self._type(value.type).shape for name in dim_names(size)}
        return not value.uses and len(value.producer.results if value.producer else ()) > 1 and names <= self.own

    def _as_read(self, size: Dim) -> Dim:
        """The size as reading knows it."""
        return substitute(size, self.read) if self.read and not isinstance(size, int) else size

    def _type(self, type: TensorType) -> TensorType:
        return type.with_shape(tuple(map(self._as_read, type.shape))) if self.read and type.shape else type

    def _comment(self, type: TensorType) -> str:
        """The type behind ``#``. In a program, dims that no input has are numbered as they come."""
        if self.spell is None:
            return _typed(type)
        type = self._type(type)
        for name in [name for size in type.shape for name in sorted(dim_names(size)) if name not in self.own]:
            if name not in self.numbered:
                self.numbered[name] = next(new for i in self.numbers if (new := f"unknown_{i}") not in self.own)
        shown: dict[str, Dim] = {name: symbol(new) for name, new in self.numbered.items()}
        return _typed(type.with_shape(tuple([substitute(size, shown) for size in type.shape])))

    def before(self, call: str, type: TensorType) -> str:
        """The name of a value that a statement of its own gives, which stands before the one that is being written."""
        if call not in self.given:
            self.given[call] = self._unique(None)
            self.earlier.append(f"{quoted(self.given[call])} = {call}  # {self._comment(type)}")
        return quoted(self.given[call])

    def _is_written(self, type: TensorType) -> bool:
        """Return whether a program can declare the type of a result."""
        type = self._type(type)
        names = {name for size in type.shape for name in dim_names(size)}
        return not _is_clamped(type) and not _is_long(type) and names <= self.own

    def _define(self, value: Value) -> str:
        name = self.names[value] = self._unique(value.name)
        if self.spell:
            for axis, size in enumerate(self._type(value.type).shape):
                if isinstance(size, DimExpr):
                    text = f"size({quoted(name)}, axis={axis})"
                    if size.is_clamped or size.is_long:
                        self.holders.setdefault(size, text)
                    elif size.name is not None and size.name not in self.own:
                        self.told.setdefault(size.name, text)
        return quoted(name)

    def held(self, size: Dim) -> str:
        """A size of an attribute as a program writes it: as it is, or from a size of a value before."""
        size = self._as_read(size)
        if isinstance(size, int) or not (size.is_clamped or size.is_long):
            return self._told_size(size)
        if size.is_long:
            if size not in self.holders:
                raise UnwritableSize(f"no value has the size {str(size)[:40]}..., which is too long an expression")
            return self.holders[size]
        for held, text in self.holders.items():
            rest = size - held
            if rest == 0:
                return text
            if isinstance(rest, int) or not rest.is_clamped:
                return f"{text} + {self._told_size(rest)}"
            factor = floordiv(size, held)
            if factor * held == size:
                return f"({self.held(factor)}) * {text}"
        raise UnwritableSize(f"no value has the size {size}")

    def _told_size(self, size: Dim) -> str:
        """A size by the names of inputs' dims, and by the values that have the others."""
        names = dim_names(size) - self.own
        unknown = sorted(name for name in names if name not in self.told)
        if unknown:
            raise UnwritableSize(f"no value before has the size {unknown[0]}")
        texts = {name: self.told.get(name) or quoted(name) for name in dim_names(size)}
        return str(substitute(size, {name: symbol(text) for name, text in texts.items() if text != name}))

    def _use(self, value: Value | None) -> str:
        if value is None:
            return "none"
        inline = self.inline.get(value)
        return inline if inline is not None else quoted(self.names[value])

    def _unique(self, wanted: str | None, prefix: str = "t") -> str:
        if wanted is not None and wanted not in self.taken:
            self.taken.add(wanted)
            return wanted
        while True:
            name = f"{wanted}_{self.fresh}" if wanted else f"{prefix}{self.fresh}"
            self.fresh += 1
            if name not in self.taken:
                self.taken.add(name)
                return name

    # --- constants

    def _inlined(self, value: Value, tensor: Tensor) -> bool:
        """Return whether each use can write the number itself, because another operand of its group gives the dtype."""
        if tensor.type.shape or not value.uses or not all(_dtype_is_given(node, i) for node, i in value.uses):
            return False
        text = number_text(tensor.array[()])
        self.inline[value] = f"({text})" if text.startswith("-") else text
        return True

    def _data(self, tensor: Tensor) -> str:
        loaded = None if self.load is None else self.load(tensor)
        if loaded is not None:
            return loaded
        if self.max_elements is not None and tensor.size > self.max_elements:
            origin = f" of {tensor.note}" if tensor.note else ""
            return f"...  # {tensor.size} elements{origin}"
        return _nested(tensor.array)


def _constants_in_use_order(graph: Graph) -> list[tuple[Node, Tensor]]:
    """The constants as the body uses them: reading a program and writing it again keeps this order."""
    used = [value.producer for node in graph for value in node.operands if value is not None]
    used += [value.producer for _, value in graph.outputs]
    found = [(node, _constant(node)) for node in dict.fromkeys([*used, *graph]) if node is not None]
    return [(node, tensor) for node, tensor in found if tensor is not None]


def _constant(node: Node) -> Tensor | None:
    found = getattr(node.attributes, "value", None)
    return found if isinstance(found, Tensor) else None


def _operand(node: Node, index: int) -> Operand | None:
    declared = node.op.operands
    if index < len(declared):
        return declared[index]
    return declared[-1] if declared else None


def _dtype_is_given(node: Node, index: int) -> bool:
    mine = _operand(node, index)
    if mine is None:
        return False
    for i, other in enumerate(node.operands):
        if i == index or other is None or (other.producer is not None and _constant(other.producer) is not None):
            continue
        theirs = _operand(node, i)
        if theirs is not None and theirs.group == mine.group and not theirs.variadic:
            return True
    return False


def _infix(node: Node, operands: list[str]) -> str | None:
    symbol, first = node.op.symbol, node.operands[0] if node.operands else None
    if symbol is None or (first is not None and not node.op.has_symbol_for(first.type.dtype)):
        return None
    if len(operands) == 2:
        return f"{operands[0]} {symbol} {operands[1]}"
    return f"{symbol}{operands[0]}" if len(operands) == 1 else None


def _is_clamped(type: TensorType) -> bool:
    return any(isinstance(size, DimExpr) and size.is_clamped for size in type.shape)


def _is_long(type: TensorType) -> bool:
    return any(isinstance(size, DimExpr) and size.is_long for size in type.shape)


def _call(node: Node, write: Callable[[Dim], str]) -> tuple[str, list[str]]:
    """The name that a program calls and the keywords that differ from their defaults."""
    attributes: Any = node.attributes
    op_type = getattr(attributes, "op_type", None)
    if op_type is not None:
        return onnx_call(attributes.domain, op_type, attributes.attributes)
    rank = len(node.operands[0].shape) if node.operands and node.operands[0] is not None else 0
    keywords = []
    for name, default, extra in _defaults(type(node.attributes)):
        value = getattr(attributes, name)
        default = getattr(attributes, getattr(default, "text", ""), default)  # one that is another attribute's value
        if not _is_default(value, default, rank + extra):
            keywords.append(f"{name}={_text(value, write=write)}")
    return f"onnx.{node.op.onnx_title}" if node.op.symbol_dtypes else node.op.name, keywords


def onnx_call(domain: str, op_type: str, attributes: Iterable[tuple[str, Any]]) -> tuple[str, list[str]]:
    """The name that a program calls an ONNX operator by, and its keywords."""
    parts = [*domain.split("."), op_type] if domain else [op_type]
    keywords = [f"{quoted(name)}={_text(value, quote=True)}" for name, value in attributes]
    return ".".join(["onnx", *map(quoted, parts)]), keywords


_NO_DEFAULT = object()


@cache
def _defaults(record: type[Attributes]) -> list[tuple[str, Any, int]]:
    """Each attribute's name, written default, and how many axes the result has more than the operand."""
    specs = record.declarations().items()
    return [
        (name, getattr(spec, "default", _NO_DEFAULT), getattr(getattr(spec, "kind", None), "extra", 0))
        for name, spec in specs
    ]


def _is_default(value: Any, default: Any, rank: int) -> bool:
    """Return whether leaving the attribute out gives the canonical ``value`` on an operand of that rank."""
    if value is None or default is None:
        return value is default
    if isinstance(value, tuple):
        if repr(default) == "all":
            return value == tuple(range(rank))
        return isinstance(default, int) and value == (default + rank if default < 0 else default,)
    if isinstance(default, int) and not isinstance(default, bool) and default < 0 and isinstance(value, int):
        return value == default + rank
    return type(value) is type(default) and bool(value == default)


# --- texts


def _bounds(interval: Interval) -> str:
    low, high = interval
    return f"in {low}.." if math.isinf(high) else f"in {low}..{high}"


def number_text(number: Any) -> str:
    """A NumPy or Python number as a literal that reads back as the same number."""
    if isinstance(number, (bool, np.bool_)):
        return "true" if number else "false"
    if isinstance(number, (int, np.integer)):
        return str(int(number))
    if not math.isfinite(number):
        return str(float(number))
    # the digits are NumPy's, the form is Python's: when NumPy takes to exponents depends on its version
    short = repr(float(str(number)))
    exact = not isinstance(number, np.floating) or type(number)(float(short)) == number
    text = short if exact else repr(float(number))
    return text if "." in text or "e" in text else f"{text}.0"


def _nested(array: np.ndarray[Any, np.dtype[Any]]) -> str:
    if array.ndim == 0:
        return number_text(array[()])
    return "[" + ", ".join([_nested(row) for row in array]) + "]"


def _text(value: Any, *, quote: bool = False, write: Callable[[Dim], str] = spelled) -> str:
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join([_text(v, quote=quote, write=write) for v in value]) + "]"
    if isinstance(value, (bool, int, float)):
        return number_text(value)
    if isinstance(value, DType):
        return value.name
    if isinstance(value, Tensor):
        return str(value.type)
    if isinstance(value, np.ndarray):
        return _nested(value)
    if value is None:
        return "none"
    if isinstance(value, DimExpr):
        return write(value)
    return string_text(value) if quote and isinstance(value, str) else str(value)


def string_text(text: str) -> str:
    """A text as a literal that reads back as the same text; one with control characters but these has none."""
    for sign, escape in (("\\", r"\\"), ('"', r"\""), ("\n", r"\n"), ("\t", r"\t")):
        text = text.replace(sign, escape)
    return f'"{text}"'
