"""Expressions to values: nodes of the graph where tensors meet, plain arithmetic where all is known."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

from dmlc.diagnostics import Change, Diagnostic, DmlcError, Help, Proposal, Span, proposal, suggestion, text_of, writing
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import DTYPE_BY_NAME, DimExpr, DType, OpError, Tensor, Value, symbol
from dmlc.ir.dtype import bool_
from dmlc.ir.size_number import Arithmetic
from dmlc.ops import INFIX, OPERATIONS, PREFIX
from dmlc.ops.call import CallSite, apply, diagnose, no_dtype
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.foreign import dtype_named
from dmlc.ops.indexing import SliceItem, index_list, index_tensor, place_of
from dmlc.ops.literals import literal_array
from dmlc.text.elaborate import literals
from dmlc.text.elaborate.scope import (
    LITERALS,
    POISON,
    WORDS,
    Frame,
    Place,
    Several,
    Unit,
    Word,
    bare,
    described,
    quoted,
    written,
)
from dmlc.text.syntax import tree

#: Types of the values that operators compute while compiling.
PLAIN = (bool, int, float, Arithmetic)
#: A constant with more elements is not a list of an attribute.
_MAX_LIST = 4096


class Asked(Enum):
    """Use of an expression, which decides what its names and numbers mean."""

    OPERAND = auto()
    #: A number, a dim or a list of them.
    KNOWN = auto()
    #: As ``KNOWN``, or a word.
    ANY = auto()
    #: As ``KNOWN``, or any word.
    FREE = auto()
    #: A word, even where a value has that name.
    WORD = auto()
    #: A size in a type: names are dims.
    SIZE = auto()


class Evaluator:
    """Evaluates the expressions of one block. ``calls.py`` adds calls to it."""

    def __init__(self, unit: Unit, frame: Frame) -> None:
        self.unit = unit
        self.frame = frame

    def evaluate(self, expr: tree.Expr, asked: Asked = Asked.OPERAND, results: int = 1) -> Any:
        """The value of an expression; ``results`` is how many a carried operator is to have. Raises ``DmlcError``."""
        expr = bare(expr)
        if isinstance(expr, tree.Call):
            return self.call(expr, asked, results)
        if isinstance(expr, tree.Infix):
            sign = expr.rest[0][0]
            if sign == "|>":
                return self.pipe(expr, asked, results)
            return self.cast(expr, asked) if sign == "as" else self.infix(expr, asked)
        if isinstance(expr, tree.Name):
            return self.name(expr, asked)
        if isinstance(expr, tree.Number):
            return self.number(expr)
        if isinstance(expr, tree.String):
            return Word(expr.text, is_string=True)
        if isinstance(expr, tree.Prefix):
            return self.prefix(expr, asked)
        if isinstance(expr, tree.Index):
            return self.index(expr, asked)
        assert isinstance(expr, tree.ListOf)
        return self.list_of(expr, asked)

    def call(self, expr: tree.Call, asked: Asked, results: int = 1, piped: tuple[Any, Place] | None = None) -> Any:
        raise NotImplementedError

    def pipe(self, expr: tree.Infix, asked: Asked, results: int = 1) -> Any:
        raise NotImplementedError

    # --- leaves

    def number(self, expr: tree.Number) -> int | float:
        try:
            return literals.number(expr.text)
        except OpError as error:
            raise self.located(error, CallSite(expr.span)) from None

    def name(self, expr: tree.Name, asked: Asked) -> Any:
        text = expr.text
        if asked is Asked.SIZE:
            return self.size_name(expr)
        if not expr.quoted and text in LITERALS:
            return LITERALS[text]
        if asked is Asked.WORD:
            found = self.frame.names.get(text)
            is_word = found is None or isinstance(found, Value) or text in WORDS or text in DTYPE_BY_NAME
            return Word(text) if is_word else found
        if text in self.frame.names:
            found = self.frame.names[text]
            is_dim = isinstance(found, Value) and text in self.unit.dims and self.frame.depth == 0
            if is_dim and asked is not Asked.OPERAND:
                return symbol(text)  # an input and a dim of one name: an attribute means the dim
            self.frame.used.add(text)
            if asked is Asked.OPERAND:
                return found
            return self.known(found, at(expr), asked)
        if asked is Asked.OPERAND and text in self.unit.consts:
            return self.unit.const(text) or POISON
        if text in self.unit.dims:
            return symbol(text)
        if text in self.unit.unsolved:
            return POISON
        if text in self.unit.consts:
            tensor = self.unit.consts[text].tensor()
            return POISON if tensor is None else self.numbers(tensor, at(expr), asked)
        if text in self.unit.names.missing:
            return POISON
        if text in self.unit.names.hidden_dims:
            raise self.hidden_dim(expr)
        if asked in (Asked.ANY, Asked.FREE) and not expr.quoted and (text in WORDS or text in DTYPE_BY_NAME):
            return Word(text)
        if asked is Asked.FREE and not expr.quoted:
            return Word(text)
        raise self.unknown(expr)

    def size_name(self, expr: tree.Name) -> DimExpr:
        if not expr.quoted and (expr.text in LITERALS or expr.text in ("_", "None")):
            help = "a dynamic size has a name, such as N"
            raise self.frame.fail(codes.WRONG_SIZE, f"{expr.text} is not a size", expr.span, help=help)
        return symbol(expr.text)

    def hidden_dim(self, expr: tree.Name) -> DmlcError:
        message = f"{expr.text} is a dim of {self.unit.names.label}, and dims do not come along with a def"
        help = f"make it a parameter: a def with ..., *, {expr.text}) is called with {expr.text}=..."
        return self.frame.fail(name_codes.FOREIGN_DIM, message, expr.span, "a dim of the used file", help=help)

    def unknown(self, expr: tree.Name) -> DmlcError:
        text = expr.text
        if text in self.unit.declared:
            help = f"give an input an axis of size {text} alone"
            return self.frame.fail(name_codes.UNSOLVED_DIM, f"no input gives the size of {text}", expr.span, help=help)
        known = [*self.frame.names, *self.unit.consts, *self.unit.dims]
        near = suggestion(text, known, spelled=quoted)
        if text == "_" and not expr.quoted:
            message, near = "_ names nothing: it drops a result", "give the result a name"
        elif text in ("True", "False", "None"):
            message, near = f"nothing is named {text}", writing(text.lower(), safe=True)
        elif text in OPERATIONS or text in self.unit.defs:
            message, near = f"no value is named {text}; it is called with operands", f"write {text}(...)"
        elif text in DTYPE_BY_NAME:
            message, near = f"{text} is a dtype, not a value", "a cast is written x as f32"
        elif text in WORDS:
            message, near = f"{text} is a word of some attributes, not a value", ""
        else:
            message = f"nothing is named {text}"
        return self.frame.fail(name_codes.UNKNOWN_NAME, message, expr.span, "not found", help=near)

    # --- trees

    def list_of(self, expr: tree.ListOf, asked: Asked) -> Any:
        if asked is Asked.SIZE:
            raise self.frame.fail(codes.WRONG_SIZE, "a list is not a size", expr.span)
        out: list[Any] = []
        for item in expr.items:
            try:
                value = self.evaluate(item, Asked.KNOWN if asked is Asked.OPERAND else asked)
            except DmlcError as error:
                first = error.diagnostics[0]
                if asked is not Asked.OPERAND or first.code is not codes.NOT_KNOWN:
                    raise
                raise DmlcError(Diagnostic.of(first.code, first.message, *first.labels, help=_bared(expr))) from None
            out.append(value)
        return POISON if any(value is POISON for value in out) else out

    def index(self, expr: tree.Index, asked: Asked) -> Any:
        """Part of a tensor, or an element of a list. Raises E0340, E0341."""
        if asked is Asked.SIZE:
            raise self.frame.fail(codes.WRONG_SIZE, "an index is not a size", expr.span)
        value = self.evaluate(expr.operand, asked if asked is Asked.OPERAND else Asked.KNOWN)
        value, place = self.single(value, at(expr.operand)), at(expr.operand)
        for items in expr.subscripts:
            parts = [self.index_item(item, expr.operand) for item in items]
            if value is POISON or any(part is POISON for part in parts):
                return POISON
            site = CallSite(expr.span, [item.span for item in items], {}, [place.name], self.frame.outer)
            if not isinstance(value, (Value, list)):
                message = f"{described(value) if not isinstance(value, (int, float)) else 'a number'} has no index"
                raise self.frame.fail(codes.WRONG_INDEX, message, place.span)
            try:
                if isinstance(value, list):
                    value = index_list(value, parts)
                else:
                    value = index_tensor(self.unit.graph, value, parts, site)
            except OpError as error:
                raise self.located(error, site) from None
        return value

    def index_item(self, item: tree.Expr | tree.Slice | tree.Ellipsis, operand: tree.Expr) -> Any:
        """An item of an index: a number, a dim, a ``SliceItem`` or Python's ``Ellipsis``. Raises E0340."""
        if isinstance(item, tree.Ellipsis):
            return Ellipsis
        is_slice = isinstance(item, tree.Slice)
        ends = []
        for expr in (item.start, item.stop, item.step) if isinstance(item, tree.Slice) else (item,):
            value = None
            if isinstance(expr, tree.Name) and self.is_new_axis(expr.text):
                self.check_place(None, expr)
            elif expr is not None:
                try:
                    value = self.evaluate(expr, Asked.KNOWN)
                except DmlcError as error:
                    if error.diagnostics[0].code is not codes.NOT_KNOWN:
                        raise
                    help = _instead_of_index(
                        self.evaluate(expr, Asked.OPERAND), text_of(operand.span), text_of(expr.span)
                    )
                    message = "a tensor is not an index"
                    raise self.frame.fail(codes.WRONG_INDEX, message, expr.span, help=help) from None
                if value is not POISON:
                    self.check_place(value, expr)
            ends.append(value)
        if any(end is POISON for end in ends):
            return POISON
        return SliceItem(*ends) if is_slice else ends[0]

    def is_new_axis(self, text: str) -> bool:
        """True for what NumPy calls a new axis, which the language has no name for."""
        known = (self.frame.names, self.unit.consts, self.unit.dims)
        return text in ("None", "newaxis") and not any(text in names for names in known)

    def check_place(self, value: Any, expr: tree.Expr) -> None:
        try:
            place_of(value, 0)
        except OpError as error:
            raise self.located(error, CallSite(expr.span, (expr.span,))) from None

    def infix(self, expr: tree.Infix, asked: Asked) -> Any:
        left, place = self.evaluate(expr.first, _part(asked)), at(expr.first)
        for sign, operand in expr.rest:
            right, span = self.evaluate(operand, _part(asked)), expr.first.span.to(operand.span)
            left = self.combine(sign, (left, right), (place, at(operand)), span, asked)
            place = Place(span)
        return left

    def prefix(self, expr: tree.Prefix, asked: Asked) -> Any:
        value = self.evaluate(expr.operand, _part(asked))
        return self.combine(expr.sign, (value,), (at(expr.operand),), expr.span, asked)

    def combine(self, sign: str, values: Sequence[Any], places: Sequence[Place], span: Span, asked: Asked) -> Any:
        """An operator on one or two values."""
        if any(value is POISON for value in values):
            return POISON
        site = CallSite(span, [p.span for p in places], names=[p.name for p in places], outer=self.frame.outer)
        if all(isinstance(value, PLAIN) for value in values):
            try:
                return literals.infix(sign, *values) if len(values) == 2 else literals.prefix(sign, *values)
            except OpError as error:
                raise self.located(error, site) from None
        if asked is not Asked.OPERAND:
            value, place = next(pair for pair in zip(values, places, strict=True) if not isinstance(pair[0], PLAIN))
            message = f"{sign} takes numbers and dims here, not {described(value)}"
            raise self.frame.fail(codes.NOT_KNOWN, message, place.span)
        operands = [self.operand(value, place) for value, place in zip(values, places, strict=True)]
        op = (INFIX if len(values) == 2 else PREFIX)[sign]
        return apply(self.unit.graph, op, operands, {}, site).result

    # --- what a value may be

    def known(self, found: Any, place: Place, asked: Asked = Asked.KNOWN) -> Any:
        """Return a value that is known while compiling. Raises E0331."""
        if not isinstance(found, Value):
            return self.single(found, place)
        tensor = constant_of(found)
        if tensor is None:
            message = f"{place.name or 'this'} is computed when the program runs, and here a value is needed before"
            raise self.frame.fail(codes.NOT_KNOWN, message, place.span, "not known while compiling")
        return self.numbers(tensor, place, asked)

    def numbers(self, tensor: Tensor, place: Place, asked: Asked) -> Any:
        """A constant as Python numbers, for an ONNX attribute as an array."""
        if asked is Asked.FREE:
            return tensor.array
        if tensor.array.size > _MAX_LIST:
            raise self.frame.fail(codes.NOT_KNOWN, f"a const of {tensor.array.size} elements is not a list", place.span)
        return tensor.array.tolist()

    def single(self, found: Any, place: Place) -> Any:
        """Return the one value of an expression. Raises E0207 if there are several."""
        if isinstance(found, Several):
            message = f"{found.what} gives {counted(len(found.values), 'result')}, one is needed here"
            help = "give them names first: a, b = ..."
            raise self.frame.fail(name_codes.RESULT_COUNT, message, place.span, help=help)
        return found

    def operand(self, value: Any, place: Place) -> Any:
        """A value that may be an operand: a tensor, a number or none. Raises E0207, E0335."""
        value = self.single(value, place)
        if isinstance(value, (list, Word)):
            help = "give it a dtype and a shape as a const" if isinstance(value, list) else ""
            message = f"{described(value)} is where a tensor is needed"
            raise self.frame.fail(codes.NOT_A_TENSOR, message, place.span, help=help)
        return value

    def tensor(self, value: Any, place: Place) -> Value:
        """A value that must be a tensor. Raises E0312 for a number, E0330 for a dim."""
        value = self.operand(value, place)
        if isinstance(value, Value):
            return value
        if value is None:
            raise self.frame.fail(codes.NOT_A_TENSOR, "a tensor is needed, not none", place.span)
        raise self.located(no_dtype(value, 0), CallSite(place.span, (place.span,)))

    # --- casts

    def cast(self, expr: tree.Infix, asked: Asked) -> Any:
        if asked is not Asked.OPERAND:
            message = "a cast makes a tensor; here a plain number is known while compiling"
            help = proposal("take the cast away", "", behind(expr.first.span, expr.span))
            raise self.frame.fail(codes.NOT_KNOWN, message, expr.span, help=help)
        value = self.evaluate(expr.first)
        for _, name in expr.rest:
            assert isinstance(name, tree.Name)
            dtype = self.dtype(name)
            if value is POISON or dtype is None:
                value = POISON
            else:
                value = self.cast_to(self.operand(value, at(expr.first)), dtype, expr.first, name)
        return value

    def cast_to(self, value: Any, dtype: DType, operand: tree.Expr, name: tree.Name) -> Value:
        if value is None:
            raise self.frame.fail(codes.NOT_A_TENSOR, "none has no dtype", operand.span)
        span = operand.span.to(name.span)
        site = CallSite(span, (operand.span,), names=[written(operand)], outer=self.frame.outer)
        if isinstance(value, (Value, Arithmetic)):
            return apply(self.unit.graph, OPERATIONS["cast"], [value], {"to": dtype}, site).result
        # The dtypes of true and false are known, so these are converted; another number takes the dtype and must fit.
        if isinstance(value, bool) or dtype.kind == "bool":
            value = dtype.numpy.type(bool(value) if dtype.kind == "bool" else int(value)).item()
        try:
            tensor = Tensor(literal_array(value, dtype, 0))
        except OpError as error:
            raise self.located(error, site) from None
        return self.unit.graph.add(CONSTANT, (), ConstantAttributes(value=tensor), spans=(span,)).result

    def dtype(self, name: tree.Name) -> DType | None:
        """The dtype of that name; a parameter of a def may stand for one. None after a mistake. Raises E0211."""
        found = self.frame.names.get(name.text)
        if found is POISON and name.text not in DTYPE_BY_NAME:
            return None
        text = found.text if isinstance(found, Word) else name.text
        if text in DTYPE_BY_NAME and (text != name.text or not name.quoted):
            return DTYPE_BY_NAME[text]
        raise self.frame.fail(name_codes.UNKNOWN_DTYPE, f"{text} is not a dtype", name.span, help=dtype_help(text))

    def located(self, error: OpError, site: CallSite) -> DmlcError:
        """An error without a place, at its place."""
        outer = site.outer or self.frame.outer
        return DmlcError(diagnose(error, CallSite(site.span, site.operands, site.attributes, site.names, outer)))


def at(expr: tree.Expr) -> Place:
    """The place of a whole expression."""
    return Place(expr.span, written(expr))


def _part(asked: Asked) -> Asked:
    """Return the use of the operands of an operator."""
    return asked if asked in (Asked.OPERAND, Asked.SIZE) else Asked.KNOWN


def _bared(expr: tree.ListOf) -> Help:
    """The proposal to take the brackets of a list of operands away."""
    span, first, last = expr.span, expr.items[0].span, expr.items[-1].span
    items = text_of(first.to(last))
    before = span.source.line(span.line)[: span.column - 1].rstrip()
    if not before.endswith(("(", ",")):
        return f"a list holds no tensors; concat({items}, axis=0) and stack({items}) join them"
    opener = Span(span.source, span.line, span.column, first.line, first.column)
    closer = Span(span.source, last.end_line, last.end_column, span.end_line, span.end_column)
    help = f"a list holds no tensors; operands are written without brackets: {items}"
    return Proposal(help, (Change("", opener), Change("", closer)), safe=True)


def behind(part: Span, whole: Span) -> Span:
    """The text of a span behind its first part."""
    return Span(whole.source, part.end_line, part.end_column, whole.end_line, whole.end_column)


def dtype_help(text: str) -> Help:
    """The dtype that another spelling means. It is not safe for those that other libraries read differently."""
    if text.lower() in ("bf16", "bfloat16"):
        return "the language has no bfloat16; f32 has its range, f16 ends at 65504"
    near = dtype_named(text)
    if near:
        return proposal(f'did you mean "{near}"?', near, safe=text.lower() not in ("float", "int", "long", "byte"))
    return suggestion(text, DTYPE_BY_NAME) or f"dtypes are {', '.join(DTYPE_BY_NAME)}"


def _instead_of_index(tensor: Any, operand: str, index: str) -> str:
    """The help for an index that is a tensor: a condition, or numbers of rows."""
    if isinstance(tensor, Value) and tensor.type.dtype is bool_:
        return f"how many elements a condition keeps is not known; where({index}, {operand}, 0) keeps their places"
    return f"write gather({operand}, {index}, axis=0)"
