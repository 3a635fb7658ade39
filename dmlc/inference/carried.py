"""Any ONNX operator as a node: carried through to the emitted model, typed by the operator's rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto
from onnx.defs import onnx_opset_version

from dmlc.diagnostics import DmlcError, Label, around, fail, option
from dmlc.diagnostics.catalogue import shapes, targets
from dmlc.diagnostics.given import integer_of
from dmlc.inference.fact import MOST_ELEMENTS, Fact, of_array, of_elements
from dmlc.inference.onnx_evaluator import onnx_evaluator
from dmlc.inference.protos import asked_attributes
from dmlc.inference.query import Query
from dmlc.inference.registry import infer
from dmlc.inference.shape_numbers import as_elements, shape_numbers
from dmlc.ir import (
    Array,
    Attributes,
    Dim,
    DimTable,
    DType,
    Graph,
    Inference,
    Node,
    Operation,
    OpError,
    Shape,
    Tensor,
    TensorType,
    Value,
    as_dtype,
    dim_names,
    substitute,
    symbol,
)
from dmlc.ir.dtype import f32, i64
from dmlc.ir.size_number import Arithmetic
from dmlc.onnx_schema.schemas import DOMAIN_VERSIONS, Formal, Schema, find_schema, later_versions, opset_help
from dmlc.onnx_schema.types import DTYPE_OF, ELEMENT_TYPE, type_proto
from dmlc.onnx_schema.values import AttributeValue, attribute_protos, canonical_attributes
from dmlc.onnx_schema.versions import unchanged
from dmlc.ops import INFIX
from dmlc.ops.attributes import show
from dmlc.ops.call import Argument, CallSite, bind_operands, check_constants, diagnose, literal_value, no_dtype
from dmlc.ops.constant import constant_of
from dmlc.ops.rules import check_sizes

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator


class CarriedAttributes(Attributes, frozen=True, kw_only=True):
    """``attributes`` are the ONNX attributes that were written, sorted by name; ``results`` how many are wanted.

    ``known`` are the small operands whose data was known when the call was read, by their number: shapes may depend
    on them. ``numbers`` are the elements of those that shapes give, with None for each that they do not.
    ``opset`` is the one at which the operator is meant. ``sizes`` names the dims that stand for sizes which no
    rule infers, by the result and the axis where each is first. The values of the node provide them.
    """

    domain: str
    op_type: str
    attributes: tuple[tuple[str, AttributeValue], ...] = ()
    results: int = 1
    known: tuple[tuple[int, Tensor], ...] = ()
    numbers: tuple[tuple[int, tuple[Dim | None, ...]], ...] = ()
    opset: int = 21
    sizes: tuple[tuple[tuple[int, int], str], ...] = ()

    def at_opset(self, opset: int) -> CarriedAttributes:
        """The same call, meant at another opset."""
        return self if opset == self.opset else replace(self, opset=opset)

    def substitute(self, binding: Mapping[str, Dim]) -> CarriedAttributes:
        numbers = [(i, tuple([None if n is None else substitute(n, binding) for n in row])) for i, row in self.numbers]
        return replace(self, numbers=tuple(numbers)) if numbers else self

    @property
    def full_name(self) -> str:
        return f"{self.domain}.{self.op_type}" if self.domain else self.op_type


# --- typing


def _infer(call: Inference) -> Sequence[TensorType]:
    out = []
    dims: dict[Dim, Dim] = {}
    for index, (dtype, shape) in enumerate(infer_types(call.attributes, tuple(call.types))):
        if shape is None:
            raise _unknown_result(call.attributes, index, "has a rank that is not known")
        if any(map(_is_new, shape)):
            named = dict(call.attributes.sizes)
            for axis, size in enumerate(shape):
                if _is_new(size) and (index, axis) in named:
                    dims.setdefault(size, symbol(named[index, axis]))
            if any(_is_new(size) and size not in dims for size in shape):
                raise _unknown_result(call.attributes, index, "has a size that is not known")
            shape = tuple([dims[size] if _is_new(size) else size for size in shape])
        out.append(TensorType(dtype, shape))
    return out


def _is_new(size: Dim) -> bool:
    """Return whether no rule infers the size."""
    return any(name.startswith(_NEW) for name in dim_names(size))


def _with_sizes(graph: Graph, record: CarriedAttributes, types: tuple[TensorType | None, ...]) -> CarriedAttributes:
    """The record with a new dim of the graph for each size that no rule infers."""
    places: dict[Dim, tuple[int, int]] = {}
    for index, (_, shape) in enumerate(infer_types(record, types)):
        for axis, size in enumerate(shape or ()):
            if _is_new(size):
                places.setdefault(size, (index, axis))
    return replace(record, sizes=tuple([(place, str(graph.dims.new_dim())) for place in places.values()]))


@lru_cache(maxsize=4096)
def infer_types(a: CarriedAttributes, types: tuple[TensorType | None, ...]) -> tuple[tuple[DType, Shape | None], ...]:
    """The dtype and shape of each result by the operator's rule; a size that is not known is a dim of a new name.

    Raises ``OpError`` E0501, E0504, E0505 or E0506.
    """
    schema = find_schema(a.domain, a.op_type, a.opset)
    known, numbers = dict(a.known), dict(a.numbers)
    names = count()
    query = Query(
        a.op_type,
        [None if type is None else _fact(type, known.get(i), numbers.get(i)) for i, type in enumerate(types)],
        opset=a.opset if not a.domain else DOMAIN_VERSIONS.get(a.domain, 1),
        results=a.results,
        domain=a.domain,
        attributes=asked_attributes(attribute_protos(a.attributes, schema)),
        dims=DimTable(least=0),
        new_dim=lambda: symbol(f"{_NEW}{next(names)}"),
        windows_fit=True,
    )
    facts = infer(query)
    if query.fault:
        raise OpError(targets.ONNX_REFUSES, f"ONNX refuses {a.full_name}: {query.fault}")
    return tuple([_result(a, index, fact) for index, fact in enumerate(facts)])


#: Begins the names of sizes that no rule infers; no program can write it.
_NEW = "?"


def _fact(type: TensorType, known: Tensor | None, numbers: tuple[Dim | None, ...] | None) -> Fact:
    if known is not None:
        return of_array(ELEMENT_TYPE[type.dtype], known.array)
    if numbers is not None:
        return of_elements(ELEMENT_TYPE[type.dtype], as_elements(type.shape, numbers))
    return Fact(ELEMENT_TYPE[type.dtype], type.shape)


def _result(a: CarriedAttributes, index: int, fact: Fact) -> tuple[DType, Shape | None]:
    dtype = DTYPE_OF.get(fact.element)
    if fact.proto or (fact.element and dtype is None):
        what = "is not a tensor" if fact.proto else "has a dtype that the language does not have"
        help = (
            "values of a program are tensors of the language's dtypes; an ONNX model has others, and use takes it whole"
        )
        raise _unknown_result(a, index, what, help)
    if dtype is None:
        raise _unknown_result(a, index, "has a type that is not known")
    return dtype, fact.shape


def _one_node(schema: Schema, a: CarriedAttributes, types: Sequence[TensorType | None]) -> ModelProto:
    names = ["" if t is None else f"i{i}" for i, t in enumerate(types)]
    node = NodeProto(
        op_type=a.op_type,
        domain=a.domain,
        input=names,
        output=[f"o{i}" for i in range(a.results)],
        attribute=attribute_protos(a.attributes, schema),
    )
    graph = GraphProto(name="one_node", node=[node])
    for name, type in zip(names, types, strict=True):
        if type is not None:
            graph.input.append(ValueInfoProto(name=name, type=type_proto(type)))
    model = ModelProto(ir_version=10, graph=graph)
    model.opset_import.add(domain="", version=a.opset)
    if a.domain:
        model.opset_import.add(domain=a.domain, version=DOMAIN_VERSIONS.get(a.domain, 1))
    return model


def _unknown_result(a: CarriedAttributes, index: int, what: str, help: str = "") -> OpError:
    which = f"result {index + 1} of {a.full_name}" if a.results > 1 else f"the result of {a.full_name}"
    sizes = option("--bind N=4, --shape x=1,3,48", "bind={'N': 4}, shapes={'x': (1, 3, 48)}")
    help = help or f"fix the sizes ({sizes}), or use operations of the language"
    return OpError(targets.ONNX_RESULT_UNKNOWN, f"{which} {what}", help=help)


# --- values


def _reference(a: CarriedAttributes, *arrays: Array | None) -> Array | tuple[Array, ...]:
    """By onnx's reference evaluator. Raises ``DmlcError`` E0507 where it cannot."""
    given = [None if x is None else np.asarray(x) for x in arrays]
    try:
        evaluator = _evaluator(a, tuple([None if x is None else (as_dtype(x.dtype), x.ndim) for x in given]))
        feeds = {f"i{i}": x for i, x in enumerate(given) if x is not None}
        with np.errstate(all="ignore"):
            out = evaluator.run(None, feeds)
    except Exception as error:  # onnx raises whatever the operator's Python code does
        message = (
            f"{a.full_name} has no reference: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        )
        raise fail(
            targets.ONNX_NOT_EVALUABLE, message, help="use " + option("--backend cpu", "backend='cpu'")
        ) from None
    arrays_out = tuple([np.asarray(x) for x in out])
    return arrays_out if a.results > 1 else arrays_out[0]


@lru_cache(maxsize=256)
def _evaluator(a: CarriedAttributes, ranks: tuple[tuple[DType, int] | None, ...]) -> ReferenceEvaluator:
    schema = find_schema(a.domain, a.op_type, a.opset)
    types = [None if r is None else TensorType(r[0], (1,) * r[1]) for r in ranks]
    model = _one_node(schema, a, types)
    for info in model.graph.input:
        info.type.tensor_type.ClearField("shape")
    model.graph.output.extend([ValueInfoProto(name=f"o{i}") for i in range(a.results)])
    return onnx_evaluator(model)


# --- the operations


def _operation(name: str, *, pure: bool) -> Operation:
    return Operation(
        name=name,
        operands=(),
        attributes=CarriedAttributes,
        results=("results",),
        infer=_infer,
        reference=_reference if pure else None,
        summary="An ONNX operator, carried through.",
        pure=pure,
        source="onnx.defs",
    )


CARRIED = _operation("onnx", pure=True)
#: Operators whose results differ from call to call: such nodes are neither merged nor removed.
CARRIED_IMPURE = _operation("onnx_impure", pure=False)
_IMPURE = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
)


#: Operators that are operations of the language for the dtypes that the symbol does not take: ``Div`` of integers.
_OWN = {op.onnx_title: op for op in INFIX.values() if op.symbol_dtypes}


def _is_own(op: Operation, operands: Sequence[Argument]) -> bool:
    dtypes = [v.type.dtype for v in operands if isinstance(v, Value)]
    return bool(dtypes) and all(d in op.operands[0].dtypes and not op.has_symbol_for(d) for d in dtypes)


def carry(
    graph: Graph,
    domain: str,
    op_type: str,
    operands: Sequence[Argument],
    attributes: dict[str, Any],
    results: int,
    site: CallSite,
) -> Node:
    """Add a carried operator: ``operands`` as written (None for an absent one), ``attributes`` by ONNX's names.

    Typed by the operator's rule at ``graph.opset``; ``Div`` of integers becomes the operation of the language.
    Raises ``DmlcError`` E0504 for an unknown operator, E0501 for one that came later, E03 for operands and attributes
    that the schema does not take, E0505 where ONNX refuses the call, E0506 where the type of a result is not known.
    """
    own = _OWN.get(op_type) if not domain and not attributes and results == 1 else None
    try:
        if own is not None and _is_own(own, operands):
            bound = bind_operands(graph, own, operands, site)
            check_constants(own, bound)
            return check_sizes(graph.add(own, bound, own.attributes(), spans=site.spans))
        values, record = _bound(graph, graph.opset, (domain, op_type), operands, attributes, results, site)
        record = replace(record, numbers=_numbers(values, graph.opset))
        record = _with_sizes(graph, record, tuple([None if v is None else v.type for v in values]))
        op = CARRIED_IMPURE if record.domain == "" and op_type in _IMPURE else CARRIED
        return graph.add(op, values, record, spans=(site.span,) if site.span else ())
    except OpError as error:
        raise DmlcError(diagnose(error, site, operands)) from None


def carry_at_lowest_opset(graph: Graph, *call: Any) -> Node:
    """As ``carry`` for a graph that is made for no opset: it goes up to the lowest one that has the operator."""
    opset = graph.opset
    try:
        return carry(graph, *call)
    except DmlcError as error:
        if error.diagnostics[0].code is targets.NEEDS_OPSET:
            for graph.opset in range(opset + 1, onnx_opset_version() + 1):
                with suppress(DmlcError):
                    return carry(graph, *call)
        graph.opset = opset
        raise


def read_shapes(
    graph: Graph,
    opset: int,
    domain: str,
    op_type: str,
    operands: Sequence[Value | None],
    attributes: dict[str, Any],
    results: int,
    sizes: Mapping[str, Dim],
) -> list[tuple[Dim | str, ...] | None]:
    """The shapes that ``carry`` at that opset gives the results of a call, None for a rank that no rule infers, and for
    a size a text, which equal ones share. ``sizes`` are the sizes of dims of the graph.

    Raises ``OpError`` for a call that ``carry`` refuses.
    """
    values, record = _bound(graph, opset, (domain, op_type), operands, attributes, results, CallSite())
    record = replace(record, numbers=_numbers(values, opset)).substitute(sizes)
    types = [None if v is None else v.type.with_shape(tuple([substitute(d, sizes) for d in v.shape])) for v in values]
    found = infer_types(record, tuple(types))
    shapes = [shape for _, shape in found]
    return [None if shape is None else tuple([str(d) if _is_new(d) else d for d in shape]) for shape in shapes]


def require_carried(graph: Graph, opset: int, meant: int | None = None) -> None:
    """Raises ``DmlcError`` E0501 where an operator that is carried through came after the opset.

    With ``meant`` it is the opset at which the calls are meant: also where one means something else.
    """
    for node in graph:
        if isinstance(node.attributes, CarriedAttributes):
            a = node.attributes
            try:
                _bound(graph, opset, (a.domain, a.op_type), node.operands, dict(a.attributes), a.results, CallSite())
                if meant is not None and not _means_the_same(a, len(node.operands), meant, opset):
                    message = f"{a.full_name} of opset {meant} has another form at opset {opset}"
                    raise OpError(targets.NEEDS_OPSET, message)
            except OpError as error:
                raise fail(error.code, error.message, *map(Label, node.spans[:1]), help=error.help) from None


def _means_the_same(a: CarriedAttributes, operands: int, have: int, want: int) -> bool:
    protos = attribute_protos(a.attributes, find_schema(a.domain, a.op_type, have))
    names = [f"i{i}" for i in range(operands)]
    return unchanged(NodeProto(op_type=a.op_type, domain=a.domain, input=names, attribute=protos), have, want)


def opset_of_calls(
    graph: Graph, wanted: int, calls: Sequence[tuple[str, str, Sequence[Value | None], Any, int]]
) -> int:
    """The opset at which a program with these calls is read: the lowest one from ``wanted`` on that has them all, and
    ``wanted`` if none has. A call is a domain, an operator, its operands, its attributes and its number of results."""

    def has(opset: int, call: tuple[str, str, Sequence[Value | None], Any, int]) -> bool:
        domain, op_type, operands, attributes, results = call
        try:
            _bound(graph, opset, (domain, op_type), operands, attributes, results, CallSite())
        except OpError as error:
            return error.code is not targets.NEEDS_OPSET
        return True

    opsets = range(wanted, onnx_opset_version() + 1)
    return next((opset for opset in opsets if all(has(opset, call) for call in calls)), wanted)


def _bound(
    graph: Graph,
    opset: int,
    operator: tuple[str, str],
    operands: Sequence[Argument],
    attributes: dict[str, Any],
    results: int,
    site: CallSite,
) -> tuple[list[Value | None], CarriedAttributes]:
    """The operands and the record of a call, checked against the operator's declaration at the opset.

    Raises ``OpError``: E0501 for a call that a later declaration allows.
    """

    def at(opset: int) -> tuple[list[Value | None], CarriedAttributes]:
        schema = find_schema(*operator, opset)
        values = _bind_operands(graph, schema, operands, site)
        record = CarriedAttributes(
            domain=schema.domain,
            op_type=schema.name,
            attributes=canonical_attributes(schema, attributes),
            results=_check_results(schema, results),
            known=_known(values),
            opset=opset,
        )
        return values, record

    try:
        return at(opset)
    except OpError as error:
        for later in () if error.code is targets.NEEDS_OPSET else later_versions(*operator, opset):
            try:
                at(later)
            except OpError:
                continue
            message = f"{error.message}; ONNX allows it from opset {later} on, not at {opset}"
            raise OpError(targets.NEEDS_OPSET, message, at=error.at, help=opset_help(later)) from None
        raise


def _check_results(schema: Schema, results: int) -> int:
    least, most = schema.results
    asked = integer_of(results)
    if asked is None or not max(1, least) <= asked <= most:
        want = str(most) if least == most else f"{max(1, least)} to {most}"
        raise OpError(shapes.OPERAND_COUNT, f"{schema.full_name} has {want} results, {results!r} are asked for")
    return asked


def _known(values: Sequence[Value | None]) -> tuple[tuple[int, Tensor], ...]:
    data = [(i, constant_of(v)) for i, v in enumerate(values)]
    return tuple([(i, t) for i, t in data if t is not None and t.array.size <= MOST_ELEMENTS])


def _numbers(values: Sequence[Value | None], opset: int) -> tuple[tuple[int, tuple[Dim | None, ...]], ...]:
    found = [(i, None if v is None else shape_numbers(v, opset)) for i, v in enumerate(values)]
    return tuple([(i, row) for i, row in found if row is not None])


def _bind_operands(graph: Graph, schema: Schema, given: Sequence[Argument], site: CallSite) -> list[Value | None]:
    """Operands as values; a number takes the dtype of the operands that share its type in the schema."""
    if not schema.least <= len(given) <= schema.most:
        names = ", ".join(f.name + ("..." if f.variadic else "") for f in schema.operands) or "none"
        want = str(schema.least) if schema.least == schema.most else f"{schema.least} to {min(schema.most, 99)}"
        raise OpError(shapes.OPERAND_COUNT, f"{schema.full_name} takes {want} operands ({names}), {len(given)} given")
    dtypes: dict[str, DType] = {}
    for i, argument in enumerate(given):
        if isinstance(argument, Value):
            _check_dtype(schema, schema.formal(i), argument.type.dtype, i, dtypes)
    out: list[Value | None] = []
    for i, argument in enumerate(given):
        formal = schema.formal(i)
        if argument is None:
            if not formal.optional and i < schema.least:
                raise OpError(shapes.OPERAND_COUNT, f"{schema.full_name} needs {formal.name}", at=i)
            out.append(None)
        elif isinstance(argument, Value):
            out.append(argument)
        else:
            dtype = dtypes.get(formal.letter) or (formal.dtypes[0] if len(formal.dtypes) == 1 else None)
            if dtype is None:
                raise no_dtype(argument, i) if isinstance(argument, Arithmetic) else _no_dtype(argument, formal, i)
            out.append(literal_value(graph, argument, dtype, i, site))
    return out


def _no_dtype(literal: int | float | bool, formal: Formal, index: int) -> OpError:
    likely = next((d for d in (f32, i64, *formal.dtypes) if d in formal.dtypes), f32)
    message = f"nothing gives {show(literal)} a dtype here: {formal.name} may be " + ", ".join(map(str, formal.dtypes))
    help = around(f"write {show(literal)} as {likely}", f"{{}} as {likely}", index)
    return OpError(shapes.NO_DTYPE, message, at=index, help=help)


def _check_dtype(schema: Schema, formal: Formal, dtype: DType, index: int, found: dict[str, DType]) -> None:
    if dtype not in formal.dtypes:
        allowed = ", ".join(d.name for d in formal.dtypes) or "no dtype of the language"
        message = f"{formal.name} of {schema.full_name} cannot be {dtype.name}: it takes {allowed}"
        raise OpError(shapes.OPERAND_DTYPE, message, at=index, under=f"this is {dtype.name}", about=index)
    if not formal.homogeneous:
        return
    first = found.setdefault(formal.letter, dtype)
    if first is not dtype:
        message = f"dtypes differ: {schema.full_name} has {first.name} and {dtype.name}"
        raise OpError(shapes.MIXED_DTYPES, message, at=index, under=f"this is {dtype.name}")
