"""The one call form: text and builder make every node here.

``apply`` takes what the user wrote (values, literals, ``None`` for an absent operand, raw attribute values),
gives literals their dtype, canonicalises attributes, infers the result types and adds the node. A mistake
becomes a diagnostic at the place that the call site knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct, field

from dmlc.diagnostics import Change, Diagnostic, DmlcError, Help, Label, Proposal, Span, around, text_of
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.fix import Part, is_one_operand
from dmlc.ir import (
    CALLEE,
    FOREIGN,
    Attributes,
    DimExpr,
    DType,
    Graph,
    Inference,
    Node,
    Operand,
    Operation,
    OpError,
    Place,
    Tensor,
    Value,
)
from dmlc.ir.dtype import bool_, f32
from dmlc.ir.size_number import Arithmetic
from dmlc.ops.attributes import NumberKind, attribute_specs, show
from dmlc.ops.call_attributes import LIKE, bind_attributes, keywords_of, with_like
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.derived import DerivedOperation
from dmlc.ops.foreign import POWER
from dmlc.ops.index import FULL
from dmlc.ops.literals import Literal, attribute_array, beside_help, literal_array
from dmlc.ops.open_numbers import COMPOSED
from dmlc.ops.rules import check_sizes
from dmlc.ops.size_numbers import size_scalar
from dmlc.ops.written import cast_help, foreign_error, operand_to_cast, with_expression, written_operand

_INTEGER = re.compile(r"-?[0-9]+")
#: A number, also as the one item of a list.
_NUMBER = re.compile(r"\[? *-?[0-9][0-9_.]*([eE][-+]?[0-9]+)? *\]?")
Argument: TypeAlias = Value | int | float | bool | Arithmetic | None


class AttributeSite(Struct, frozen=True):
    """Source locations of one keyword of a call: its name, its value, and the elements of a list."""

    name: Span | None = None
    value: Span | None = None
    elements: tuple[Span, ...] = ()


class CallSite(Struct, frozen=True):
    """Source locations of a call. A builder's call has only ``span``, the Python line.

    ``names`` are the operands as the user wrote them, for messages ("image has 4 axes"). ``outer`` are the calls of the
    ``def`` blocks around the call, innermost first. ``callee`` is the name that is called.
    """

    span: Span | None = None
    operands: Sequence[Span | None] = ()
    attributes: Mapping[str, AttributeSite] = field(default_factory=dict)
    names: Sequence[str | None] = ()
    outer: Sequence[Span] = ()
    callee: Span | None = None

    @property
    def spans(self) -> tuple[Span, ...]:
        return (self.span,) if self.span else ()

    def place(self, at: Place, keyword: str | None = None) -> Span | None:
        """The span of a part of the call, or of the whole call."""
        found = self.part(at, keyword)
        if found is None and isinstance(at, tuple):
            found = self.part(at[0], keyword)
        return found or self.span

    def part(self, at: Place, keyword: str | None = None) -> Span | None:
        """The span of a part of the call; None if the part is not known, or is not written there."""
        if isinstance(at, int):
            return self.operands[at] if at < len(self.operands) else None
        if at == CALLEE:
            return self.callee
        if isinstance(at, str):
            site = self.attributes.get(keyword or at)
            return site.value if site else None
        if isinstance(at, tuple):
            site = self.attributes.get(keyword or at[0])
            if site is not None and at[1] < len(site.elements):
                return site.elements[at[1]]
            is_number = site is not None and site.value is not None and _INTEGER.fullmatch(text_of(site.value))
            return site.value if site is not None and is_number and at[1] == 0 else None
        return self.span

    def changed(self, change: Change, at: Place, keyword: str | None, *, is_name: bool) -> Span | None:
        """The span that a change of this call is about; ``at`` is the guilty part, ``is_name`` selects a keyword's name
        from its value."""
        part = at if change.at is None else change.at
        found = self._changed(part, at, keyword, item=change.item, is_name=is_name)
        is_number = _INTEGER.fullmatch(change.text) is not None
        # a name or an expression that gives the number stays, here and where a def is called
        return None if found is None or (is_number and not _NUMBER.fullmatch(text_of(found))) else found

    def _changed(self, part: Part, at: Place, keyword: str | None, *, item: bool, is_name: bool) -> Span | None:
        if isinstance(part, Span):
            return part
        if isinstance(part, str) and part != CALLEE and (item or (is_name and part == at)):
            site = self.attributes.get(keyword or part)
            if site is None or site.name is None or site.value is None:
                return None
            return site.name.to(site.value) if item else site.name
        return self.part(part, keyword)


def apply(
    graph: Graph, op: Operation, arguments: Sequence[Argument], keywords: Mapping[str, Any], site: CallSite
) -> Node:
    """Check the call of an operation that graphs hold, and add its node. Raises ``DmlcError`` with the place of the
    mistake."""
    written: dict[str, str] = {}
    try:
        keywords = with_like(op, keywords, written) if LIKE in keywords else keywords
        made = _of_dims(graph, op, arguments, keywords, site, written)
        if made is not None:
            return made
        operands = bind_operands(graph, op, arguments, site)
        attributes = _attributes(op, operands, keywords, site, written)
        check_constants(op, operands)
        if op.symbol_dtypes:
            _check_symbol(op, operands, arguments, site)
        return check_sizes(graph.add(op, operands, attributes, spans=site.spans))
    except OpError as error:
        raise DmlcError(diagnose(error, site, arguments, written)) from None


def check_constants(op: Operation, operands: Sequence[Value | None]) -> None:
    """Refuse operands whose constants make no sense, such as a divisor of 0. Raises ``OpError``."""
    if op.check is not None:
        op.check([constant_of(v) for v in operands])


def call_results(
    graph: Graph, op: Operation, arguments: Sequence[Argument], keywords: Mapping[str, Any], site: CallSite
) -> Sequence[Value]:
    """Check the call of any operation, add its node or those that it stands for, and return its results.

    Raises ``DmlcError`` with the place of the mistake.
    """
    if not isinstance(op, DerivedOperation):
        return apply(graph, op, arguments, keywords, site).results
    written: dict[str, str] = {}

    def add(inner: Operation, values: Sequence[Value], attributes: Attributes) -> Sequence[Value]:
        return check_sizes(graph.add(inner, values, attributes, spans=site.spans)).results

    try:
        keywords = with_like(op, keywords, written) if LIKE in keywords else keywords
        operands = [v for v in bind_operands(graph, op, arguments, site) if v is not None]
        attributes = _attributes(op, operands, keywords, site, written)
        op.infer(Inference(attributes, [v.type for v in operands], graph.dims))
        return op.expand(add, operands, attributes)
    except OpError as error:
        raise DmlcError(diagnose(error, site, arguments, written)) from None


def diagnose(
    error: OpError,
    site: CallSite,
    arguments: Sequence[Argument] = (),
    written: Mapping[str, str] | None = None,
) -> Diagnostic:
    """An ``OpError`` at its place in the source."""
    at = error.at
    name = at if isinstance(at, str) else at[0] if isinstance(at, tuple) else None
    spelled = (written or {}).get(name) if name else None
    span = site.place(at, spelled)
    keyword = site.attributes.get(name) if name else None
    is_name = error.code in (codes.UNKNOWN_ATTRIBUTE, codes.BOTH_SYNONYMS) and keyword is not None
    if is_name and keyword is not None:
        span = keyword.name or span
    labels = [Label(span, error.under)] if span else []
    about = error.about
    if about is not None and about < len(arguments):
        value = arguments[about]
        if isinstance(value, Value) and value.span is not None:
            labels.append(Label(value.span, f"{value.name or 'it'} has this type{_unless_written(value)}"))
    if error.code in (codes.MIXED_DTYPES, codes.DOES_NOT_BROADCAST):
        labels += _operand_types(site, arguments, at)
    labels += [Label(outer, "in this call") for outer in site.outer]
    help = error.help
    if isinstance(help, Proposal):
        help = with_expression(help, site).with_parts(lambda change: site.changed(change, at, spelled, is_name=is_name))
    return Diagnostic.of(error.code, error.message, *labels, help=help)


def _unless_written(value: Value) -> str:
    """The type of a value, for a label; empty where the place of the label is the written type."""
    span = value.span
    if span is not None and span.line == span.end_line:
        written = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
        if written == str(value.type):
            return ""
    return f": {value.type}"


def _operand_types(site: CallSite, arguments: Sequence[Argument], at: Place) -> list[Label]:
    """The type of each tensor of a mismatch but the one at ``at``, at its place."""
    out = []
    for i, argument in enumerate(arguments):
        span = site.operands[i] if i < len(site.operands) else None
        if span is not None and i != at and isinstance(argument, Value):
            name = (site.names[i] if i < len(site.names) else None) or argument.name
            out.append(Label(span, f"{name or 'this'} is {argument.type}"))
    return out


def _attributes(
    op: Operation,
    operands: Sequence[Value | None],
    keywords: Mapping[str, Any],
    site: CallSite,
    written: dict[str, str],
) -> Attributes:
    if not keywords and op.attributes is Attributes:
        return op.attributes()
    names = [_name(site, i, operands) for i in range(len(operands))]
    return bind_attributes(op, operands, keywords, names, written)


# --- operands


def bind_operands(graph: Graph, op: Operation, arguments: Sequence[Argument], site: CallSite) -> list[Value | None]:
    """The operands as values: literals become constants of the dtype that their group has. Raises ``OpError``."""
    declared = declared_operands(op, len(arguments))
    given: list[Argument] = [*arguments, *([None] * (len(declared) - len(arguments)))]
    for i, (spec, argument) in enumerate(zip(declared, given, strict=True)):
        if isinstance(argument, Value) and argument.type.dtype is FOREIGN and FOREIGN not in spec.dtypes:
            raise foreign_error(op.symbol or op.name, _name(site, i, given), i, about=i)
    dtypes = _group_dtypes(declared, given, site)
    out: list[Value | None] = []
    for i, (spec, argument) in enumerate(zip(declared, given, strict=True)):
        if argument is None:
            if not spec.optional and i < len(arguments):
                raise OpError(codes.OPERAND_COUNT, f"{op.symbol or op.name} needs {spec.name}, none is given", at=i)
            if not spec.optional:
                raise _count_error(op, len(arguments))
            out.append(None)
            continue
        if isinstance(argument, Value):
            if argument.type.dtype not in spec.dtypes:
                raise _dtype_error(op, spec, argument.type.dtype, *_tensors(declared, given, spec.group))
            out.append(argument)
            continue
        dtype = dtypes.get(spec.group)
        if dtype is None and len(spec.dtypes) == 1:
            dtype = spec.dtypes[0]
        if dtype is None:
            raise no_dtype(argument, i, spec.dtypes)
        if dtype not in spec.dtypes:
            raise _dtype_error(op, spec, dtype, *_tensors(declared, given, spec.group))
        try:
            out.append(literal_value(graph, argument, dtype, i, site))
        except OpError as error:
            tensors = _tensors(declared, given, spec.group)
            if tensors and isinstance(argument, (int, float)):
                other = operand_to_cast(site, tensors[0])
                error.help = (
                    beside_help(argument, op.symbol, other, dtype, spec.dtypes, is_left=i < tensors[0]) or error.help
                )
            raise
    return out


def _tensors(declared: Sequence[Operand], given: Sequence[Argument], group: str) -> list[int]:
    """The places of the tensors of a group."""
    return [i for i, argument in enumerate(given) if isinstance(argument, Value) and declared[i].group == group]


def declared_operands(op: Operation, count: int) -> Sequence[Operand]:
    declared = op.operands
    if declared and declared[-1].variadic:
        if count < len(declared):
            raise _count_error(op, count)
        return [*declared, *([declared[-1]] * (count - len(declared)))]
    least = sum(not o.optional for o in declared)
    if not least <= count <= len(declared):
        raise _count_error(op, count)
    return declared


def _group_dtypes(declared: Sequence[Operand], given: Sequence[Argument], site: CallSite) -> dict[str, DType]:
    found: dict[str, DType] = {}
    first: dict[str, int] = {}
    for i, (spec, argument) in enumerate(zip(declared, given, strict=True)):
        if not isinstance(argument, Value):
            continue
        dtype = argument.type.dtype
        if found.setdefault(spec.group, dtype) is not dtype:
            before = first[spec.group]
            left, right = _name(site, before, given), _name(site, i, given)
            to, cast = (found[spec.group], i) if found[spec.group] in spec.dtypes else (dtype, before)
            raise OpError(
                codes.MIXED_DTYPES,
                f"dtypes differ: {left} is {found[spec.group].name}, {right} is {dtype.name}",
                at=i,
                under=f"this is {argument.type}",
                help=cast_help("cast one of them, such as", to, cast),
            )
        first.setdefault(spec.group, i)
    return found


#: The help where an operation has too few operands.
_TOO_FEW = {
    "max": "the max of one tensor along axes is reduce_max(x, axes=[1])",
    "min": "the min of one tensor along axes is reduce_min(x, axes=[1])",
    "layer_norm": "without scale and bias it is mean_variance_norm(x, axes=[-1])",
    "rms_norm": "without a scale it is x / sqrt(reduce_mean(x * x, axes=[-1]) + 1e-5)",
}


def _count_error(op: Operation, count: int) -> OpError:
    names = ", ".join(o.name + ("..." if o.variadic else "") for o in op.operands) or "none"
    least, most = sum(not o.optional for o in op.operands), len(op.operands)
    wanted = f"{least} or {most}" if least == most - 1 and not op.operands[-1].variadic else f"{most}"
    help = _TOO_FEW.get(op.name, "") if count < least else ""
    specs = attribute_specs(op.attributes)
    if count > most and not specs and most == 2:
        help = f"call it twice: {op.name}({op.name}(a, b), c)"
    elif count > most and specs:
        help = f"attributes are written as keywords, such as {specs[0].name}=..."
    many = "operand" if most == 1 else "operands"
    return OpError(codes.OPERAND_COUNT, f"{op.name} takes {wanted} {many} ({names}), {count} given", help=help)


def _name(site: CallSite, index: int, given: Sequence[Argument]) -> str:
    text = written_operand(site, index)
    if text:
        return text
    argument = given[index] if index < len(given) else None
    return (argument.name if isinstance(argument, Value) and argument.name else None) or f"operand {index + 1}"


def _dtype_error(op: Operation, spec: Operand, dtype: DType, index: int, *others: int) -> OpError:
    """The error of an operand; ``others`` have its dtype too."""
    allowed = ", ".join(d.name for d in spec.dtypes)
    to = f32 if f32 in spec.dtypes else bool_ if bool_ in spec.dtypes else spec.dtypes[0]
    cast = cast_help(f"cast {'them' if others else 'it'}, such as", to, index, *others)
    return OpError(
        codes.OPERAND_DTYPE,
        f"{op.symbol or op.name} does not take {dtype.name}: it takes {allowed}",
        at=index,
        under=f"this is {dtype.name}",
        about=index,
        help=POWER if op.symbol == "^" and dtype.is_float else cast,
    )


def no_dtype(number: Literal | Arithmetic, index: int, allowed: Sequence[DType] = (f32,)) -> OpError:
    """A number where a tensor is needed and nothing gives its dtype: E0312, and E0330 for one with dims.

    The help casts it to f32 or, of the ``allowed`` dtypes, to the first that holds the number.
    """
    written, code, what = show(number), codes.NO_DTYPE, show(number)
    if isinstance(number, Arithmetic):
        is_dim = isinstance(number, DimExpr) and number.name is not None
        code, written = codes.DIM_AS_TENSOR, str(number) if is_dim else f"({number})"
        what = f"{'the dim' if is_dim else 'the number'} {number}"
    to = _dtype_for(number, allowed)
    if to is None:
        help: Help = f"it takes {', '.join(dtype.name for dtype in allowed)}"
    else:
        help = around(f"write {written} as {to.name}", f"{{}} as {to.name}", index)
    return OpError(code, f"nothing gives {what} a dtype here", at=index, help=help)


def _dtype_for(number: Literal | Arithmetic, allowed: Sequence[DType]) -> DType | None:
    """The dtype that a help proposes for a number; None where none of the allowed ones holds it."""
    if f32 in allowed:
        return f32
    for dtype in allowed:
        try:
            if not isinstance(number, Arithmetic):
                literal_array(number, dtype, 0)
        except OpError:
            continue
        return dtype
    return None


def _check_symbol(
    op: Operation, operands: Sequence[Value | None], arguments: Sequence[Argument], site: CallSite
) -> None:
    """Refuse ``/`` between integers. Raises ``OpError`` E0343."""
    dtype = next(v.type.dtype for v in operands if v is not None)
    if op.has_symbol_for(dtype):
        return
    tensors = [i for i, argument in enumerate(arguments) if isinstance(argument, Value)]
    texts = [_text(site, i, argument) for i, argument in enumerate(arguments)]
    help: Help = "// rounds down, and as f32 makes the quotient real"
    if all(texts):
        real = f" {op.symbol} ".join([f"({text} as f32)" if i in tensors else text for i, text in enumerate(texts)])
        casts = tuple([Change("{} as f32", i, keeps=True) for i in tensors])
        help = Proposal(f"write {' // '.join(texts)} to round down, or {real}", casts)
    first = tensors[0]
    message = f"{op.symbol} is real division, and {texts[first] or _name(site, first, arguments)} is {dtype.name}"
    raise OpError(codes.INTEGER_QUOTIENT, message, at=first, under=f"this is {dtype.name}", about=first, help=help)


def _text(site: CallSite, index: int, argument: Argument) -> str:
    """An operand as the user wrote it, in parentheses where a cast or a sign would not take all of it."""
    span = site.operands[index] if index < len(site.operands) else None
    if span is None:
        return "" if isinstance(argument, Value) else str(argument)
    text = " ".join(text_of(span).split())
    return text if is_one_operand(text) else f"({text})"


def literal_value(graph: Graph, literal: Literal | Arithmetic, dtype: DType, index: int, site: CallSite) -> Value:
    """A scalar of that dtype: a constant, or what a number with dims is. Raises ``OpError`` where it does not fit."""
    span = site.place(index)
    spans = (span,) if span else ()
    if isinstance(literal, Arithmetic):
        return size_scalar(graph, literal, dtype, index, spans)
    array = literal_array(literal, dtype, index)
    return graph.add(CONSTANT, (), ConstantAttributes(value=Tensor(array)), spans=spans).result


# --- numbers with dims


def _of_dims(
    graph: Graph,
    op: Operation,
    arguments: Sequence[Argument],
    keywords: Mapping[str, Any],
    site: CallSite,
    written: dict[str, str],
) -> Node | None:
    """Make the node of a call whose operand or attributes are numbers with dims in another way than others.

    A dim is cast by filling a scalar. An operation with an open number as an attribute is composed of operations that
    take the number as an operand. None for a call that is made as any other.
    """
    if op is CAST and len(arguments) == 1 and isinstance(arguments[0], Arithmetic):
        to = _attributes(op, (), keywords, site, written)
        assert isinstance(to, CastAttributes)
        made = size_scalar(graph, arguments[0], to.to, 0, [site.span] if site.span else ()).producer
        assert made is not None
        return made
    open_ones = [name for name, value in keywords.items() if isinstance(value, Arithmetic)]
    known = keywords_of(op.attributes) if open_ones else {}
    open_ones = [name for name in open_ones if name in known and isinstance(known[name][0].kind, NumberKind)]
    if not open_ones or (op is FULL and isinstance(keywords["value"], DimExpr)):
        return None
    operands = bind_operands(graph, op, arguments, site)
    record = _attributes(op, operands, {**keywords, **dict.fromkeys(open_ones, 1)}, site, written)
    op.infer(Inference(record, [None if v is None else v.type for v in operands], graph.dims))
    given = {name: keywords[name] for name in open_ones}
    made = COMPOSED[op](_OpenCall(graph, site, record, [v for v in operands if v is not None], given)).producer
    assert made is not None
    return made


class _OpenCall:
    """A call whose attributes ``given`` are numbers with dims; what it adds is blamed on the call."""

    def __init__(
        self, graph: Graph, site: CallSite, record: Attributes, operands: Sequence[Value], given: Mapping[str, Any]
    ) -> None:
        self.graph = graph
        self.site = CallSite(site.span, (), {}, (), site.outer)
        self.record: Any = record
        self.operands = operands
        self.given = given

    def add(self, op: Operation, *operands: Value, **attributes: Any) -> Value:
        return apply(self.graph, op, operands, attributes, self.site).result

    def number(self, name: str, dtype: DType) -> Value | None:
        number = self.given.get(name)
        if number is not None:
            return size_scalar(self.graph, number, dtype, name, self.site.spans)
        fixed = getattr(self.record, name)
        if fixed is None:
            return None
        tensor = Tensor(attribute_array(fixed, dtype, name))
        return self.graph.add(CONSTANT, (), ConstantAttributes(value=tensor), spans=self.site.spans).result
