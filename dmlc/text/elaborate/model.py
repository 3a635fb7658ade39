"""A model: its head to inputs and dims of a graph, its body to nodes, what it returns to outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.diagnostics import Diagnostic, DmlcError, Help, Label, Span, fail, proposal, text_of
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.catalogue.source_advice import HIDDEN_DIM, UNUSED
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.fix import is_one_operand
from dmlc.ir import FOREIGN, Condition, Dim, DimExpr, OpError, TensorType, Value, dim_names
from dmlc.ops.call import CallSite
from dmlc.ops.ranges import range_of
from dmlc.text.elaborate.blocks import Block
from dmlc.text.elaborate.declarations import type_of
from dmlc.text.elaborate.evaluate import Asked, at
from dmlc.text.elaborate.scope import LITERALS, POISON, Frame, Unit
from dmlc.text.syntax import tree

#: A longer expression is not repeated in a help.
_LONGEST_HELP = 100


class ModelReader:
    """Makes the graph of one model. Mistakes are noted in the unit."""

    def __init__(self, unit: Unit, model: tree.Model, bounds: Mapping[str, tuple[int, int]]) -> None:
        self.unit = unit
        self.model = model
        self.bounds = bounds
        self.frame: Frame = Frame()
        self.is_whole: bool = True  # the types of all inputs were understood
        self.types: dict[str, TensorType | None] = {}  # types of results; None where none is written, or it is wrong

    def read(self) -> None:
        self.inputs()
        self.results()
        block = Block(self.unit, self.frame)
        values = block.body(self.model.body, self.model.result)
        if not self.unit.names_only:
            self.returned(block, values)
            self.unit.graph.advice += [*self.hidden_dims(), *self.unused()]

    def hidden_dims(self) -> list[Diagnostic]:
        """The dims whose name an input or value has too. W0620."""
        out = []
        for name, span in self.frame.places.items():
            if name in self.unit.dims:
                message = f"{name} names a value and a dim: in expressions it is the value"
                help = "call one of them otherwise"
                out.append(Diagnostic(HIDDEN_DIM, message, (Label(span, "a value"),), help))
        return out

    def unused(self) -> list[Diagnostic]:
        """The inputs and values that nothing reads. W0621. An input that alone gives the size of a dim is needed."""
        alone = [[size.name for size in value.shape if isinstance(size, DimExpr)] for value in self.unit.graph.inputs]
        givers = Counter([name for names in alone for name in set(names)])
        pairs = zip(self.unit.graph.inputs, alone, strict=True)
        needed = {value.name for value, names in pairs if any(name and givers[name] == 1 for name in names)}
        inputs = {item.name.text for item in self.model.inputs}
        out = []
        for name, span in self.frame.places.items():
            if name in self.frame.used or name in needed:
                continue
            what = f"input {name}" if name in inputs else name
            help = "take it away" if name in inputs else proposal("take it away, or write _ for it", "_")
            out.append(Diagnostic.of(UNUSED, f"{what} is not used", Label(span), help=help))
        return out

    # --- the head

    def inputs(self) -> None:
        types: list[tuple[tree.Input, TensorType]] = []
        for item in self.model.inputs:
            try:
                type = type_of(self.unit, item.type)
            except DmlcError as error:
                self.unit.problems.add(error)
                self.is_whole = False
                value: Any = POISON
            else:
                types.append((item, type))
                value = self.unit.graph.add_input(item.name.text, type, item.type.span)
            Block(self.unit, self.frame).bind(item.name, POISON if self.unit.names_only else value)
        self.dims(types)
        for item, type in types:
            self.range(item, type)

    def range(self, item: tree.Input, type: TensorType) -> None:
        """The range that an input promises. Notes E0342 and E0311."""
        if item.range is None:
            return
        block = Block(self.unit, Frame())
        try:
            bounds = [block.evaluate(expr, Asked.KNOWN) for expr in item.range]
            if not any(bound is POISON for bound in bounds):
                self.unit.graph.ranges[item.name.text] = range_of(type.dtype, *bounds)
        except OpError as error:
            spans = [expr.span for expr in item.range]
            site = CallSite(spans[0].to(spans[1]), spans)
            self.unit.problems.add(block.located(error, site))
        except DmlcError as error:
            self.unit.problems.add(error)

    def dims(self, types: Sequence[tuple[tree.Input, TensorType]]) -> None:
        """The dims that an input gives; E0208 for the others, unless an input's type is wrong itself."""
        used: dict[str, Span] = {}
        for item, type in types:
            for expr, size in zip(item.type.sizes, type.shape, strict=True):
                if isinstance(size, DimExpr) and size.name is not None:
                    self.unit.dims.add(size.name)
                    self.clash(size.name, expr.span)
                for name in sorted(dim_names(size)):
                    used.setdefault(name, expr.span)
        if not self.is_whole:
            self.unit.unsolved |= set(used) | set(self.bounds)
            return
        for name, span in used.items():
            if name not in self.unit.dims:
                self.unit.unsolved.add(name)
                self.unit.problems.add(_unsolved(name, span))
        for name, bounds in self.bounds.items():  # as they were written: sets have no order
            if name in self.unit.dims:
                self.unit.graph.declare_dim(name, bounds)

    def clash(self, name: str, span: Span) -> None:
        const = self.unit.consts.get(name)
        if const is not None and name not in self.bounds:
            labels = (Label(span, "a dim"), Label(const.line.name.span, "a const"))
            message, help = f"{name} is a const and a dim", "call one of them otherwise"
            self.unit.problems.add(fail(name_codes.NAME_TWICE, message, *labels, help=help))

    def results(self) -> None:
        inputs = {item.name.text: item.name.span for item in self.model.inputs}
        for result in self.model.results:
            name = result.name
            if not name.quoted and (name.text in LITERALS or name.text == "_"):
                message, help = f"{name.text} cannot name a result", f"quote it: `{name.text}`"
                self.unit.problems.add(fail(name_codes.RESERVED_NAME, message, Label(name.span), help=help))
            elif name.text in inputs:
                labels = (Label(name.span, "a result"), Label(inputs[name.text], "an input"))
                message, help = f"{name.text} names an input and a result", "call the result otherwise"
                self.unit.problems.add(fail(name_codes.RESULT_LIKE_INPUT, message, *labels, help=help))
            self.types[name.text] = self.result_type(result.type) if result.type is not None else None
        self.unit.problems.check_once([result.name for result in self.model.results], "two results are named {}")

    def result_type(self, written: tree.Type) -> TensorType | None:
        try:
            type = type_of(self.unit, written)
        except DmlcError as error:
            self.unit.problems.add(error)
            return None
        is_known = True
        for expr, size in zip(written.sizes, type.shape, strict=True):
            for name in sorted(dim_names(size) - self.unit.dims):
                is_known = False
                if name not in self.unit.unsolved and self.is_whole:
                    self.unit.unsolved.add(name)
                    self.unit.problems.add(_unsolved(name, expr.span))
        return type if is_known else None

    # --- what is returned

    def returned(self, block: Block, values: Sequence[Any]) -> None:
        """The outputs of the graph, of the types that are written."""
        results, exprs = self.model.results, self.model.result.values
        if len(values) != len(results):
            message = f"{counted(len(values), 'value')} returned, {counted(len(results), 'result')} named"
            head = Label(results[0].name.span.to(results[-1].name.span), counted(len(results), "result"))
            label = Label(self.model.result.span, counted(len(values), "value"))
            help = "return as many values as the head of the model names"
            self.unit.problems.add(fail(name_codes.RESULT_COUNT, message, label, head, help=help))
            return
        outputs: list[tuple[str, Value]] = []
        for result, value, expr in zip(results, values, exprs, strict=True):
            if value is POISON:
                continue
            try:
                tensor = block.tensor(value, at(expr))
                self.check(result, tensor, expr)
            except DmlcError as error:
                self.unit.problems.add(error)
                continue
            if tensor.name is None:
                tensor.name = result.name.text
            outputs.append((result.name.text, tensor))
        self.unit.graph.set_outputs(outputs)

    def check(self, result: tree.Result, value: Value, expr: tree.Expr) -> None:
        """The written type against the inferred one; what hangs on a floor division is left to run time. E0318."""
        wanted, written = self.types[result.name.text], result.type
        if wanted is None or written is None:
            return
        found = value.type
        span = None
        if found.dtype is not wanted.dtype:
            span = written.dtype.span
        elif found.rank != wanted.rank:
            span = written.span
        else:
            for size, have, want in zip(written.sizes, found.shape, wanted.shape, strict=True):
                if self.differs(have, want):
                    span = size.span
                    break
        if span is not None:
            message = f"{result.name.text} is {found}, not {wanted}"
            labels = (Label(span, "written here"), Label(expr.span, f"this is {found}"))
            raise fail(
                codes.RESULT_TYPE,
                message,
                *labels,
                help=_result_help(value, wanted, expr) or _declared_help(result.name.text, found, written.span),
            )
        for have, want in zip(found.shape, wanted.shape, strict=True):
            if self.unit.graph.dims.equal(have, want) is None:
                why = f"the result {result.name.text} is {wanted}"
                self.unit.graph.conditions.setdefault(Condition(have, "==", want, why), written.span)

    def differs(self, have: Dim, want: Dim) -> bool:
        """True if two sizes are known to be different."""
        equal = self.unit.graph.dims.equal(have, want)
        if equal is None:
            return all(isinstance(size, int) or size.is_polynomial for size in (have, want))
        return not equal


def _declared_help(name: str, found: TensorType, span: Span) -> Help:
    """The proposal to declare a result as it is; words alone where the language has no such type."""
    if found.dtype is FOREIGN:
        return "leave the type out: the language has none for it"
    return proposal(f"write {name}: {found}", str(found), span)


def _result_help(value: Value, wanted: TensorType, expr: tree.Expr) -> Help:
    """The change of a result that makes it what is declared: reduced axes left out, and a cast; empty where these do
    not suffice."""
    node, found = value.producer, value.type
    span = node.spans[0] if node is not None and node.spans else expr.span
    text = text_of(span)
    if (
        node is not None
        and getattr(node.attributes, "keepdims", False)
        and text.endswith(")")
        and "keepdims" not in text
    ):
        axes = {axis % found.rank for axis in getattr(node.attributes, "axes", ())}
        if tuple([size for axis, size in enumerate(found.shape) if axis not in axes]) == wanted.shape:
            text, found = f"{text[:-1]}, keepdims=false)", found.with_shape(wanted.shape)
    if found.dtype is not wanted.dtype and found.shape == wanted.shape:
        text = f"{text if is_one_operand(text) else f'({text})'} as {wanted.dtype.name}"
        found = TensorType(wanted.dtype, found.shape)
    if found != wanted or found == value.type or "\n" in text or len(text) > _LONGEST_HELP:
        return ""
    return proposal(f"write {text}", text, span)


def _unsolved(name: str, span: Span) -> DmlcError:
    help = f"give an input an axis of size {name} alone"
    return fail(name_codes.UNSOLVED_DIM, f"no input gives the size of {name}", Label(span), help=help)
