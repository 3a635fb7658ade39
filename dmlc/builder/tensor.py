"""Tensors of a graph under construction, and the one way in which the builder calls operations.

A tensor belongs to a graph through its home. Constants, and values computed from nothing but constants, belong to no
graph yet: their home is a loose graph of their own. The first operation or output that joins them with a graph's tensor
copies them there, once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from dmlc import ir
from dmlc.builder import foreign
from dmlc.builder.place import PythonSpan, call_site, caller, foreign_call
from dmlc.builder.protocols import PythonProtocols
from dmlc.diagnostics import Code, Diagnostic, DmlcError, Label, fail
from dmlc.diagnostics.catalogue import builder as codes
from dmlc.diagnostics.catalogue import names, shapes
from dmlc.diagnostics.catalogue.limits import RANK
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir import DTYPE_BY_NAME, Array, Dim, DType, Operation, OpError, as_dtype
from dmlc.ir.size_number import Arithmetic
from dmlc.ops import INFIX, OPERATIONS, PREFIX
from dmlc.ops.call import Argument, CallSite, call_results, diagnose
from dmlc.ops.call_attributes import LIKE
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.foreign import NORMS, NOT_SIZES, SIGNS, call_instead, normalized_sizes
from dmlc.ops.indexing import SliceItem, index_tensor, place_of

#: Spellings of a dtype: ``dmlc.f32``, ``"f32"``, ``"float32"``, ``np.float32``, ``np.dtype("f4")``.
DTypeLike: TypeAlias = "DType | str | np.dtype[Any] | type[Any]"


class Home:
    """The graph that tensors live in. ``adopted`` maps values of loose graphs to their copies here."""

    __slots__ = ("adopted", "graph", "loose")

    def __init__(self, graph: ir.Graph, *, loose: bool) -> None:
        self.graph: ir.Graph = graph
        self.loose: bool = loose
        self.adopted: dict[ir.Value, ir.Value] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return _home, (self.graph, self.loose)

    def value(self, tensor: Tensor) -> ir.Value:
        """The tensor's value in this graph; a loose tensor is copied here first.

        Raises ``DmlcError`` E0250 for a tensor of another graph.
        """
        if tensor._home is self:
            return tensor._value
        if not tensor._home.loose:
            mine, other = self.graph.name, tensor._home.graph.name
            whose = f"another graph that is named {other} too" if mine == other else f"graph {other}"
            made = tensor._value.span or next(
                iter(tensor._value.producer.spans if tensor._value.producer else ()), None
            )
            raise mistake(
                codes.OTHER_GRAPH,
                f"a tensor of {whose} is used in graph {mine}",
                labels=[Label(made, "the tensor is made here")] if made else (),
                help="build both in one graph, or hand the data over as an input",
            )
        return self._adopt(tensor._value)

    def _adopt(self, value: ir.Value) -> ir.Value:
        stack = [value]
        while stack:
            top = stack[-1]
            if top in self.adopted:
                stack.pop()
                continue
            node = top.producer
            assert node is not None, "a loose graph has no inputs"
            missing = [v for v in node.operands if v is not None and v not in self.adopted]
            if missing:
                stack.extend(missing)
                continue
            operands = [None if v is None else self.adopted[v] for v in node.operands]
            try:
                twin = self.graph.add(node.op, operands, node.attributes, spans=node.spans)
            except OpError as error:  # the bounds of this graph's dims refuse what nothing was known about before
                raise DmlcError(diagnose(error, CallSite(node.spans[0] if node.spans else None))) from None
            self.adopted.update(zip(node.results, twin.results, strict=True))
            stack.pop()
        return self.adopted[value]


def _home(graph: ir.Graph, loose: bool) -> Home:
    return Home(graph, loose=loose)


#: An operator of a tensor and what may stand beside it.
_Infix: TypeAlias = "Callable[[Tensor, TensorLike], Tensor]"


def _operator(sign: str) -> _Infix:
    return lambda self, other: _infix(sign, self, other)


def _reflected(sign: str) -> _Infix:
    return lambda self, other: _infix(sign, other, self)


class Tensor(PythonProtocols):
    """A value of the graph that is being built.

    Python's operators make nodes; comparisons are elementwise, ``==`` and ``!=`` too, so tensors are distinguished and
    hashed by identity. ``&``, ``|``, ``^`` and ``~`` are logical on bool and bitwise on integers; ``@`` is ``matmul``.
    Numbers take the tensor's dtype; NumPy arrays keep theirs.
    """

    __slots__ = ("_home", "_value")

    def __init__(self, home: Home, value: ir.Value) -> None:
        self._home = home
        self._value = value

    def __reduce__(self) -> tuple[Any, ...]:
        """Raises ``TypeError``."""
        raise TypeError(
            "a tensor of the builder belongs to its graph and cannot be copied or pickled without it; "
            "copy or pickle the dmlc.Graph, or the program that dmlc.compile makes of it"
        )

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The sizes: integers and expressions of dims."""
        return self._value.type.shape

    @property
    def dtype(self) -> DType:
        return self._value.type.dtype

    def astype(self, dtype: DTypeLike) -> Tensor:
        """The same values in another dtype; ``dmlc.cast`` says how they convert."""
        return _only(_call(OPERATIONS["cast"], (self,), {"to": dtype}, ("to",), method=True))

    def __repr__(self) -> str:
        name = f" {self._value.name}" if self._value.name else ""
        return f"<Tensor{name}: {self._value.type}>"

    __hash__: ClassVar[Callable[..., int]] = object.__hash__

    def __bool__(self) -> bool:
        raise mistake(
            codes.NO_TRUTH_VALUE,
            "a tensor has no truth value while the graph is built",
            help="choose with dmlc.where(cond, a, b), or combine with & | ~",
        )

    def __array__(self, *_: object, **__: object) -> Array:
        raise mistake(
            codes.NO_TRUTH_VALUE,
            "a tensor holds no data while the graph is built",
            help="use dmlc's operations, or run the program and use its results",
        )

    def __getitem__(self, index: object) -> Tensor:
        """The part that NumPy's basic indexing takes: integers, dims, slices and ``...``.

        Raises ``DmlcError``: E0340 for another index, E0341 for an integer outside of its axis.
        """
        return _indexed(self, index if isinstance(index, tuple) else (index,))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """``array * tensor`` is an operation; other functions of NumPy compute arrays and are refused. E0350."""
        name = ufunc.__name__
        if method == "__call__" and not keywords and len(inputs) == 2:
            if name in SIGNS and not name.startswith("logical_"):  # a logical function takes numbers too
                return _infix(SIGNS[name], *inputs)
            if name == "matmul":
                return _only(_call(OPERATIONS["matmul"], inputs, {}))
        instead = foreign.of_function(name, method, foreign_call(caller()))
        message = f"np.{name} is a ufunc of arrays, and a tensor holds no data while the graph is built"
        help = f"write {instead}" if instead else "use dmlc's operations"
        raise foreign.NotAnArray(mistake(codes.NO_TRUTH_VALUE, message, help=help).diagnostics)

    def __getattr__(self, name: str) -> Any:
        """Raises ``AttributeError``, which is a ``DmlcError`` E0203 that says what to write."""
        if name.startswith("_"):
            raise AttributeError(f"a tensor has no attribute {name}")
        instead = foreign.instead(name, foreign_call(caller()))
        help = (
            f"write {instead}" if instead else "a tensor has shape, dtype and astype; operations are functions of dmlc"
        )
        found = mistake(names.UNKNOWN_OPERATION, f"a tensor has no {name}", help=help)
        raise foreign.NoAttribute(found.diagnostics)

    __add__: ClassVar[_Infix] = _operator("+")
    __radd__: ClassVar[_Infix] = _reflected("+")
    __sub__: ClassVar[_Infix] = _operator("-")
    __rsub__: ClassVar[_Infix] = _reflected("-")
    __mul__: ClassVar[_Infix] = _operator("*")
    __rmul__: ClassVar[_Infix] = _reflected("*")
    __truediv__: ClassVar[_Infix] = _operator("/")
    __rtruediv__: ClassVar[_Infix] = _reflected("/")
    __floordiv__: ClassVar[_Infix] = _operator("//")
    __rfloordiv__: ClassVar[_Infix] = _reflected("//")
    __mod__: ClassVar[_Infix] = _operator("%")
    __rmod__: ClassVar[_Infix] = _reflected("%")
    __pow__: ClassVar[_Infix] = _operator("**")
    __rpow__: ClassVar[_Infix] = _reflected("**")
    __and__: ClassVar[_Infix] = _operator("&")
    __rand__: ClassVar[_Infix] = _reflected("&")
    __or__: ClassVar[_Infix] = _operator("|")
    __ror__: ClassVar[_Infix] = _reflected("|")
    __xor__: ClassVar[_Infix] = _operator("^")
    __rxor__: ClassVar[_Infix] = _reflected("^")
    __eq__: ClassVar[_Infix] = _operator("==")  # type: ignore[assignment]
    __ne__: ClassVar[_Infix] = _operator("!=")  # type: ignore[assignment]
    __lt__: ClassVar[_Infix] = _operator("<")
    __le__: ClassVar[_Infix] = _operator("<=")
    __gt__: ClassVar[_Infix] = _operator(">")
    __ge__: ClassVar[_Infix] = _operator(">=")

    def __matmul__(self, other: Tensor | Array) -> Tensor:
        return _only(_call(OPERATIONS["matmul"], (self, other), {}))

    def __rmatmul__(self, other: Tensor | Array) -> Tensor:
        return _only(_call(OPERATIONS["matmul"], (other, self), {}))

    def __neg__(self) -> Tensor:
        return _only(_call(PREFIX["-"], (self,), {}))

    def __invert__(self) -> Tensor:
        return _only(_call(PREFIX["!"], (self,), {}))

    def __abs__(self) -> Tensor:
        return self._operation("abs")

    def _operation(self, name: str) -> Tensor:
        return _only(_call(OPERATIONS[name], (self,), {}))


#: Operands: a tensor, a NumPy array (a constant), or a number that takes the other operand's dtype.
TensorLike: TypeAlias = "Tensor | int | float | bool | Array | Arithmetic"


def _indexed(x: Tensor, items: tuple[object, ...]) -> Tensor:
    span = caller()
    try:
        parts = [_index_item(item, i) for i, item in enumerate(items)]
        if not parts:
            help = "write an integer, a slice, or ... for all axes"
            raise OpError(shapes.WRONG_INDEX, "an index is empty", help=help)
        return Tensor(x._home, index_tensor(x._home.graph, x._value, parts, CallSite(span)))
    except OpError as error:
        raise DmlcError(in_python(diagnose(error, CallSite(span)))) from None


def _index_item(item: object, position: int) -> object:
    """An item as ``index_tensor`` takes it. Raises ``OpError`` E0340 with the operation to use."""
    message, help = "", ""
    if isinstance(item, slice):
        for end in (item.start, item.stop, item.step):
            if end is not None:
                place_of(_index_item(end, position), position)
        return SliceItem(item.start, item.stop, item.step)
    if item is None:
        message, help = (
            "None is not an index",
            "a new axis is made by dmlc.unsqueeze(x, axes=[K]), where K is its place in the result",
        )
    elif isinstance(item, (bool, np.bool_)) or (isinstance(item, (Tensor, np.ndarray)) and str(item.dtype) == "bool"):
        message, help = "a truth value is not an index", "elements are chosen by dmlc.where(cond, a, b)"
    elif isinstance(item, (Tensor, np.ndarray, list)):
        what = {"ndarray": "an array", "list": "a list"}.get(type(item).__name__, "a tensor")
        message, help = f"{what} is not an index", "rows by number are taken by dmlc.gather(x, i, axis=0)"
    if message:
        raise OpError(shapes.WRONG_INDEX, message, at=position, help=help)
    return item


def _infix(sign: str, left: TensorLike, right: TensorLike) -> Tensor:
    return _only(_call(INFIX[sign], (left, right), {}))


def _only(results: tuple[Tensor, ...]) -> Tensor:
    (tensor,) = results
    return tensor


def call(op: Operation, operands: Sequence[TensorLike | None], keywords: Mapping[str, Any]) -> tuple[Tensor, ...]:
    """Make a node where its operands live. Raises ``DmlcError`` that names the caller's Python line."""
    return _call(op, operands, keywords)


def _call(
    op: Operation,
    operands: Sequence[TensorLike | None],
    keywords: Mapping[str, Any],
    parameters: Sequence[str] = (),
    *,
    method: bool = False,
) -> tuple[Tensor, ...]:
    if len(operands) > len(op.operands) and not (op.operands and op.operands[-1].variadic):
        written = foreign.with_keywords(op, operands[len(op.operands) :])
        count = len(op.operands)
        message = f"{op.name} takes {counted(count, 'operand')}, {len(operands)} given"
        if written and op.symbol is None:
            raise mistake(shapes.OPERAND_COUNT, message, help=f"attributes are keywords: write {written}")
    if op.name in NORMS and len(operands) > 1 and type(operands[1]) in (int, list, tuple):
        _refuse_sizes(op, operands)
    span = caller()
    if isinstance(like := keywords.get(LIKE), Tensor):
        keywords = {**keywords, LIKE: like._value.type}
    home = home_of(operands)
    arguments = arguments_in(home, operands, span)
    try:
        made = call_results(home.graph, op, arguments, keywords, CallSite(span))
    except DmlcError:
        # The call is made again, to fail again, now with the places of its parts: they are read from the source
        # file, which would be too slow for every call that is right.
        for i, (spec, operand) in enumerate(zip(op.operands, operands, strict=False)):
            if operand is None and not spec.optional:
                raise not_a_tensor(operand, i) from None
        site = call_site(span, parameters, method=method, sign=op.symbol)
        try:
            made = call_results(home.graph, op, arguments, keywords, site)
        except DmlcError as error:
            raise DmlcError([in_python(d) for d in error.diagnostics]) from None
    for value in made:
        if len(value.type.shape) > DEFAULTS.rank:
            message = f"the result has {len(value.type.shape)} axes, the limit is {DEFAULTS.rank}"
            raise fail(RANK, message, *([Label(span)] if span else []))
    return tuple([Tensor(home, value) for value in made])


def _refuse_sizes(op: Operation, operands: Sequence[object]) -> None:
    """Raises ``DmlcError`` E0335 for the sizes that PyTorch's norms take in place of a scale."""
    names = [getattr(getattr(operand, "_value", None), "name", None) or str(operand) for operand in operands]
    if normalized_sizes(op.name, names, {}):
        written = re.sub(r"\b([a-z]\w*)\(", r"dmlc.\1(", call_instead(op.name, names, {}).text)
        raise mistake(shapes.NOT_A_TENSOR, NOT_SIZES.format(op.name), at=1, help=f"write {written}")


_CONSTANT = r'write dmlc.constant(\1, dtype="\2")'


def in_python(diagnostic: Diagnostic) -> Diagnostic:
    """The way out as Python spells it, where it is spelled as the language does."""
    made = r'write dmlc.cast(\1, to="\2")' if diagnostic.code is shapes.DIM_AS_TENSOR else _CONSTANT
    help = re.sub(r"^write (\S+|\(.*\)) as (\w+)$", made, diagnostic.help)
    help = re.sub(r"\bis (reduce_\w+\()", r"is dmlc.\1", help)
    help = re.sub(r"^(write it, such as \w+)=(?!true|false)([a-z]\w*)$", r'\1="\2"', help)
    help = re.sub(r"^(write |write it, such as \w+=)(true|false)$", lambda found: found[1] + found[2].title(), help)
    return replace(diagnostic, help=re.sub(r"\((\(.*?\)|\S+) as (\w+)\)", _astype, help))


def _astype(cast: re.Match[str]) -> str:
    """The cast of an operand, which may be an array: NumPy has the long names of dtypes alone."""
    return f'{cast[1]}.astype("{DTYPE_BY_NAME[cast[2]].long_name}")'


def home_of(operands: Sequence[object]) -> Home:
    """The graph that a call belongs to: its operands' graph, else a new loose one."""
    home: Home | None = None
    for operand in operands:
        if type(operand) is Tensor and (home is None or (home.loose and not operand._home.loose)):
            home = operand._home
    return home or Home(ir.Graph("constants"), loose=True)


def arguments_in(home: Home, operands: Sequence[object], span: PythonSpan | None) -> list[Argument]:
    """The operands as the call form takes them. Raises ``DmlcError`` E0250, E0330, E0335 or E0211."""
    out: list[Argument] = []
    for i, operand in enumerate(operands):
        if type(operand) is Tensor:
            out.append(operand._value if operand._home is home else home.value(operand))
        elif operand is None or isinstance(operand, (bool, int, float, Arithmetic)):
            out.append(operand)
        elif isinstance(operand, (np.ndarray, np.generic)):
            out.append(_array_argument(home, operand, span))
        else:
            raise not_a_tensor(operand, i)
    return out


def _array_argument(home: Home, operand: Array | np.generic[Any], span: PythonSpan | None) -> Argument:
    if isinstance(operand, np.generic):  # a number such as np.float32(2) is a literal, as Python's numbers are
        number = operand.item()
        if isinstance(number, (bool, int, float)):
            return number
        raise not_a_tensor(operand)
    return constant_value(home, operand, None, span)


def constant_value(home: Home, data: object, dtype: DType | None, span: PythonSpan | None) -> ir.Value:
    """Data as a constant of the graph. Raises ``DmlcError`` E0211 where the language has no such dtype, E0311 where an
    element does not fit ``dtype``, E0335 where the data is not an array, such as lists of different lengths."""
    if isinstance(data, Arithmetic):
        raise not_a_tensor(data)
    if isinstance(data, np.ma.MaskedArray):
        raise mistake(shapes.NOT_A_TENSOR, "a masked array would lose its mask", help="fill it: array.filled(0)")
    try:
        array = np.asarray(data) if dtype is None else _converted(data, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise mistake(shapes.NOT_A_TENSOR, f"no array can be made of this data: {error}") from None
    try:
        as_dtype(array.dtype)
    except KeyError:
        raise mistake(
            names.UNKNOWN_DTYPE,
            f"the language has no dtype {array.dtype}",
            help="it has f16 f32 f64, i8 to i64, u8 to u64 and bool",
        ) from None
    attributes = ConstantAttributes(value=ir.Tensor(array))
    return home.graph.add(CONSTANT, (), attributes, spans=(span,) if span else ()).result


def _converted(data: object, dtype: DType) -> Array:
    """Data as an array of that dtype. Floats are rounded; no element becomes another integer, or infinite. Raises
    ``DmlcError`` E0311, E0335."""
    given = np.asarray(data)
    if given.dtype.kind not in "biuf":
        raise mistake(shapes.NOT_A_TENSOR, f"no array can be made of this data: it is {given.dtype}, not numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        array: Array = given.astype(dtype.numpy)
        lost = np.isinf(array) & np.isfinite(given) if dtype.is_float else np.asarray(given != array)
    if lost.any():
        first = given[lost].ravel()[0]
        raise mistake(
            shapes.LITERAL_DOES_NOT_FIT,
            f"{first} does not fit {dtype.name}",
            help=f"round or clip the data, or leave it {given.dtype} and convert with dmlc.cast",
        )
    return array


def not_a_tensor(value: object, operand: int | None = None) -> DmlcError:
    """The error for an operand (of that number) or output that is neither tensor, array nor number."""
    if isinstance(value, Arithmetic):
        help = f'write dmlc.cast({value}, to="f32")'
        return mistake(shapes.DIM_AS_TENSOR, f"{value} is a dim, and here a tensor is wanted", at=operand, help=help)
    kind = type(value).__name__
    help = "wrap data in dmlc.constant(...)" if isinstance(value, (list, tuple)) else ""
    if isinstance(value, list) and any(isinstance(v, Tensor) for v in value):
        help = "operands are written without brackets: dmlc.concat(x, y, axis=0), dmlc.stack(x, y)"
    if isinstance(value, tuple) and any(isinstance(v, Tensor) for v in value):
        help = "the operation has several results: take one of them apart, as in v, i = dmlc.top_k(...)"
    return mistake(shapes.NOT_A_TENSOR, f"a tensor is wanted here, not {kind}", at=operand, help=help)


def mistake(
    code: Code, message: str, *, at: int | None = None, help: str = "", labels: Sequence[Label] = ()
) -> DmlcError:
    """An error at the caller's Python line, or at one operand of the call there."""
    span = caller() if at is None else call_site(caller()).place(at)
    primary = (Label(span),) if span else ()
    return fail(code, message, *primary, *labels, help=help)
