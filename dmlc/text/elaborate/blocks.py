"""Blocks: the statements of a model, and of a def where it is called, with their calls of operations and defs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dmlc.diagnostics import (
    Change,
    Diagnostic,
    DmlcError,
    Help,
    Label,
    Proposal,
    Span,
    proposal,
    suggestion,
    text_of,
    writing,
)
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import DTYPE_BY_NAME, Node, Operation, OpError, Value
from dmlc.ir.size_number import Arithmetic
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import DTypeKind, Kind, NumberKind, WordKind, attribute_specs
from dmlc.ops.call import AttributeSite, CallSite, call_results, declared_operands
from dmlc.ops.call_attributes import LIKE, like_attribute
from dmlc.ops.foreign import (
    MODULES,
    NO_METHODS,
    NORMS,
    NOT_SIZES,
    call_instead,
    instead_of,
    normalized_sizes,
    operation_named,
)
from dmlc.ops.model_call import CallableModel, call_model
from dmlc.ops.size_of import SIZE, size_of
from dmlc.text.elaborate.cycles import Unfolded, unfolded
from dmlc.text.elaborate.evaluate import Asked, Evaluator, at, dtype_help
from dmlc.text.elaborate.scope import LITERALS, POISON, Definition, Frame, Place, Several, Word, bare, quoted
from dmlc.text.standard_library import std_blocks, using, writing_call
from dmlc.text.stopping import checkpoint
from dmlc.text.syntax import tree

#: Statements and nodes that are unfolded before the size of the whole is counted in advance.
_FEW_STATEMENTS, _FEW_NODES = 1000, 2000
#: So many of the calls around a mistake are shown.
_MAX_OUTER = 8


class Block(Evaluator):
    """Runs the statements of a block. A mistake in one is noted, and what it would define is silent from then on."""

    # --- statements

    def body(self, statements: Sequence[tree.Assign], result: tree.Return) -> list[Any]:
        """Runs a block and gives the values it returns, ``POISON`` for those with a mistake."""
        for statement in statements:
            checkpoint()
            try:
                self.assign(statement)
            except DmlcError as error:
                self.unit.problems.add(error)
                for target in statement.targets:
                    self.frame.names.setdefault(target.text, POISON)
        out = []
        for expr in result.values:
            try:
                value = self.evaluate(expr)
                value = self.single(value, at(expr))
            except DmlcError as error:
                self.unit.problems.add(error)
                value = POISON
            out.append(value)
        return out

    def assign(self, statement: tree.Assign) -> None:
        targets = statement.targets
        value = self.evaluate(statement.value, Asked.OPERAND, len(targets))
        if value is POISON:
            values: tuple[Any, ...] = (POISON,) * len(targets)
        else:
            values = value.values if isinstance(value, Several) else (value,)
        if len(values) != len(targets):
            self.unit.problems.add(self.wrong_count(statement, value, len(values)))
            values = (POISON,) * len(targets)
        for target, item in zip(targets, values, strict=True):
            self.bind(target, item)

    def wrong_count(self, statement: tree.Assign, value: Any, count: int) -> DmlcError:
        targets = statement.targets
        what = value.what if isinstance(value, Several) else "the right side"
        names = counted(len(targets), "name")
        verb = "is" if len(targets) == 1 else "are"
        message = f"{what} gives {counted(count, 'result')}, and {names} {verb} before ="
        given = [t.text for t in targets][:count]
        names_wanted = ", ".join(given + ["_"] * (count - len(given)))
        text = f"write {names_wanted} = {text_of(statement.value.span)}" + (
            "; _ drops a result" if count > len(targets) else ""
        )
        help = proposal(text, ", ".join([quoted(name) for name in given] + ["_"] * (count - len(given))))
        label = Label(statement.value.span, counted(count, "result"))
        span = targets[0].span.to(targets[-1].span)
        return self.frame.fail(name_codes.RESULT_COUNT, message, span, names, label, help=help)

    def bind(self, target: tree.Name, value: Any) -> None:
        """Let a name stand for a value. A name that has a meaning keeps it, and the mistake is noted."""
        text = target.text
        if text == "_" and not target.quoted:
            return
        if text in LITERALS and not target.quoted:
            message = f"{text} is a word of the language"
            error = self.frame.fail(
                name_codes.RESERVED_NAME, message, target.span, help=proposal(f"quote it: `{text}`", f"`{text}`")
            )
            self.unit.problems.add(error)
            return
        const = self.unit.consts.get(text)
        before = self.frame.places.get(text) or (const.line.name.span if const else None)
        if before is not None:
            message = f"{text} has a value already"
            label = Label(before, "given here")
            new = next(
                name for i in range(2, len(self.frame.names) + 3) if (name := f"{text}_{i}") not in self.frame.names
            )
            written = target.span.source.line(target.span.line)[target.span.end_column - 1 :].strip()
            help = f"a name is given once; read {new} below, and write {new} {written}"
            help = help if written.startswith("=") else "a name is given once: choose another"
            error = self.frame.fail(name_codes.NAME_TWICE, message, target.span, "again", label, help=help)
            self.unit.problems.add(error)
            return
        self.frame.names[text] = value
        self.frame.places[text] = target.span
        # Only the model's own names reach the output: a def may be called many times.
        is_free = isinstance(value, Value) and (value.name is None or value in self.unit.called_results)
        if is_free and not self.frame.outer:
            self.unit.called_results.discard(value)
            value.name = text

    # --- calls of defs

    def unfold(
        self,
        definition: Definition,
        expr: tree.Call,
        values: Sequence[Any],
        places: Sequence[Place],
        keywords: Mapping[str, Any],
    ) -> Any:
        """The results of a def: its statements with the operands in place of the parameters."""
        unit, line = self.unit.within(definition.home), definition.line
        unfolding = unit.unfolding
        if unit.names_only or definition.is_cyclic:
            return POISON
        unfolding.called.add(definition)
        outer = (expr.span, *self.frame.outer)
        if self.frame.depth >= unit.limits.nesting:
            labels = self.frame.labels(expr.span)
            raise unit.limits.passed("nesting", "calls of defs nest", self.whole().depth, *labels)
        if unfolding.is_full:
            return POISON
        unfolding.statements += len(line.body) + 1
        if not unfolding.is_counted:
            few = min(_FEW_STATEMENTS, unit.limits.statements)
            if unfolding.statements > few or len(unit.graph) > _FEW_NODES:
                self.count(expr)
        if len(outer) > _MAX_OUTER:
            outer = (*outer[: _MAX_OUTER - 1], outer[-1])
        frame = Frame(outer=outer, depth=self.frame.depth + 1)
        for parameter, value, place in zip(line.parameters, values, places, strict=True):
            frame.names[parameter.text] = self.single(value, place)
            frame.places[parameter.text] = parameter.span
        for keyword in line.keywords:
            value = keywords.get(keyword.name.text)
            if keyword.name.text not in keywords and keyword.default is not None:
                around = Block(unit, Frame(outer=outer))
                value = around.evaluate(keyword.default, Asked.ANY)
            frame.names[keyword.name.text] = value
            frame.places[keyword.name.text] = keyword.name.span
        results = Block(unit, frame).body(line.body, line.result)
        return results[0] if len(results) == 1 else Several(expr.callee[0].text, tuple(results))

    def count(self, expr: tree.Call) -> None:
        """Look once what the whole model unfolds to, before most of it is made. Raises E0117, E0441."""
        unit, whole = self.unit, self.whole()
        unit.unfolding.is_counted = True
        for limit, have in (("statements", whole.statements), ("nodes", whole.nodes)):
            if have > getattr(unit.limits, limit):
                unit.unfolding.is_full = True
                raise unit.limits.passed(limit, "the defs unfold to", have, *self.frame.labels(expr.span))

    def whole(self) -> Unfolded:
        assert self.unit.model is not None
        return unfolded(self.unit.model, self.unit.unfolding.names)

    def check_call(self, definition: Definition, expr: tree.Call, count: int) -> None:
        """Operands and keywords against the parameters. Raises E0305, E0306, E0308."""
        name, line = expr.callee[0].text, definition.line
        wanted = [p.text for p in line.parameters]
        known = {k.name.text: k for k in line.keywords}
        given = {k.name.text for k in expr.keywords}
        for keyword in expr.keywords:
            if keyword.name.text not in known:
                message = f"{name} has no parameter {keyword.name.text} after *"
                help = suggestion(keyword.name.text, known, spelled=quoted)
                if keyword.name.text in wanted:
                    help = "it is an operand: write it before the keywords, without its name"
                raise self.frame.fail(codes.UNKNOWN_ATTRIBUTE, message, keyword.name.span, help=help)
        if count != len(wanted):
            shown = f" ({', '.join(wanted)})" if wanted else ""
            message = f"{name} takes {counted(len(wanted), 'operand')}{shown}, {count} given"
            help = f"write {', '.join(known)} as keywords" if known and count > len(wanted) else ""
            if len(known) == 1 and not expr.keywords and count == len(wanted) + 1 and expr.operands:
                (only,), last = known, expr.operands[-1]
                help = Proposal(
                    f"{only} is given as a keyword: write {only}=...",
                    (Change(f"{quoted(only)}={{}}", last.span, True),),
                    safe=True,
                )
            raise self.frame.fail(codes.OPERAND_COUNT, message, expr.span, help=help)
        for text, parameter in known.items():
            if text not in given and parameter.default is None:
                message = f"{name} needs {text}"
                raise self.frame.fail(codes.MISSING_ATTRIBUTE, message, expr.span, help=f"write {text}=...")

    # --- calls

    def pipe(self, expr: tree.Infix, asked: Asked, results: int = 1) -> Any:
        calls = [call for _, call in expr.rest if isinstance(call, tree.Call)]
        before = Asked.OPERAND if self.is_size(calls[-1]) else asked
        value, place = self.evaluate(expr.first, before), at(expr.first)
        for call in calls[:-1]:
            value = self.call(call, before, 1, (value, place))
            place = Place(expr.first.span.to(call.span))
        return self.call(calls[-1], asked, results, (value, place))

    def call(self, expr: tree.Call, asked: Asked, results: int = 1, piped: tuple[Any, Place] | None = None) -> Any:
        """The one result of a call, or ``Several``. ``results`` is how many a carried operator is to have."""
        name = ".".join([part.text for part in expr.callee])
        if self.is_size(expr) and asked is not Asked.SIZE:
            return self.size(expr, piped)
        if asked is not Asked.OPERAND:
            message = f"a call of {name} is not known while compiling"
            raise self.frame.fail(
                codes.NOT_KNOWN, message, expr.span, help="numbers, dims, lists and words are allowed here"
            )
        definition = self.unit.defs.get(name) if len(expr.callee) == 1 else None
        op = OPERATIONS.get(name) if len(expr.callee) == 1 and definition is None else None
        is_carried = len(expr.callee) > 1 and expr.callee[0].text == "onnx"
        if definition is None and name in self.unit.names.missing:
            return POISON
        model = self.unit.names.models.get(name) if len(expr.callee) == 1 else None
        if model is not None:
            return self.call_model(model, expr, piped)
        if definition is None and op is None and not is_carried:
            raise self.unknown_operation(expr, name)
        if definition is not None:
            self.check_call(definition, expr, len(expr.operands) + (piped is not None))
        if op is not None:
            self.check_count(op, expr, len(expr.operands) + (piped is not None))
        values, places = self.operands(expr.operands, piped)
        kinds = _kinds(op)
        keywords: dict[str, Any] = {}
        for keyword in expr.keywords:
            if op is not None and keyword.name.text == LIKE and like_attribute(op) is not None:
                value = self.evaluate(keyword.value)
                keywords[LIKE] = value if value is POISON else self.tensor(value, at(keyword.value))
                continue
            wanted = Asked.ANY if definition is not None else _asked(kinds.get(keyword.name.text))
            help = "" if definition is None else "a tensor is given to a parameter before the *"
            help = help if op is None else _instead(name, keyword, places)
            keywords[keyword.name.text] = self.keyword_value(keyword, wanted, help)
        if definition is not None:
            return self.unfold(definition, expr, values, places, keywords)
        operands: list[Any] = [v if v is POISON else self.operand(v, p) for v, p in zip(values, places, strict=True)]
        if any(v is POISON for v in (*operands, *keywords.values())):
            return POISON
        site = self.site(expr, places)
        if op is not None:
            known = [(n, kinds.get(n), v) for n, v in keywords.items()]
            attributes = {n: v if isinstance(v, Value) else self.attribute(k, v, n, op, site) for n, k, v in known}
            made = call_results(self.unit.graph, op, operands, attributes, site)
        else:
            made = self.carried(expr, operands, keywords, results, site).results
        for result in made:
            if len(result.type.shape) > self.unit.limits.rank:
                rank, labels = len(result.type.shape), self.frame.labels(expr.span)
                raise self.unit.limits.passed("rank", "the result has", rank, *labels)
        return made[0] if len(made) == 1 else Several(name, tuple(made))

    def operands(self, written: Sequence[tree.Expr], piped: tuple[Any, Place] | None) -> tuple[list[Any], list[Place]]:
        """The values of the operands of a call, and their places."""
        before = [piped] if piped is not None else []
        pairs = before + [(self.evaluate(operand), at(operand)) for operand in written]
        return [value for value, _ in pairs], [place for _, place in pairs]

    def keyword_value(self, keyword: tree.Keyword, wanted: Asked, help: str) -> Any:
        """The value of a keyword, which is known while compiling. Raises E0331 with ``help`` for another."""
        try:
            value = self.evaluate(keyword.value, wanted)
            return self.known(value, at(keyword.value))
        except DmlcError as error:
            first = error.diagnostics[0]
            if first.code is not codes.NOT_KNOWN or first.help:
                raise
            raise DmlcError(Diagnostic.of(first.code, first.message, *first.labels, help=help)) from None

    def call_model(self, model: CallableModel, expr: tree.Call, piped: tuple[Any, Place] | None) -> Any:
        """The results of an ONNX model that a ``use`` line brought."""
        values, places = self.operands([*expr.operands, *[keyword.value for keyword in expr.keywords]], piped)
        operands: list[Any] = [v if v is POISON else self.operand(v, p) for v, p in zip(values, places, strict=True)]
        if self.unit.names_only or any(value is POISON for value in operands):
            return POISON
        count = len(operands) - len(expr.keywords)
        given = {k.name.text: v for k, v in zip(expr.keywords, operands[count:], strict=True)}
        name, site = expr.callee[0].text, self.site(expr, places[:count])
        results = call_model(self.unit.graph, model, name, operands[:count], given, site)
        if len(self.unit.graph) > self.unit.limits.nodes:
            labels = self.frame.labels(expr.span)
            raise self.unit.limits.passed("nodes", "the called models have", len(self.unit.graph), *labels)
        self.unit.called_results.update([value for value in results if value not in operands])
        return results[0] if len(results) == 1 else Several(name, tuple(results))

    def is_size(self, expr: tree.Call) -> bool:
        """Return whether a call is ``size(x)``, which a def of that name hides."""
        return len(expr.callee) == 1 and expr.callee[0].text == SIZE and SIZE not in self.unit.defs

    def size(self, expr: tree.Call, piped: tuple[Any, Place] | None) -> Any:
        """A size of an operand, or its number of elements. Raises E0301, E0304, E0305, E0308."""
        values, places = self.operands(expr.operands, piped)
        if len(values) != 1:
            message = f"size takes 1 operand (x), {len(values)} given"
            help: Help = ""
            if len(values) == 2 and not expr.keywords:
                change = Change("axis={}", expr.operands[-1].span, keeps=True)
                help = Proposal("the axis is a keyword: size(x, axis=1)", (change,), safe=True)
            raise self.frame.fail(codes.OPERAND_COUNT, message, expr.span, help=help)
        axis = None
        for keyword in expr.keywords:
            if keyword.name.text != "axis":
                message, help = f"size has no attribute {keyword.name.text}", "it takes axis"
                raise self.frame.fail(codes.UNKNOWN_ATTRIBUTE, message, keyword.name.span, help=help)
            axis = self.evaluate(keyword.value, Asked.KNOWN)
        if values[0] is POISON or axis is POISON:
            return POISON
        x, site = self.tensor(values[0], places[0]), self.site(expr, places)
        if expr.keywords and axis is None:
            raise self.located(OpError(codes.WRONG_ATTRIBUTE, "axis must be an integer, not none", at="axis"), site)
        try:
            return size_of(x, axis, places[0].name)
        except OpError as error:
            raise self.located(error, site) from None

    def site(self, expr: tree.Call, places: Sequence[Place]) -> CallSite:
        attributes = {}
        for keyword in expr.keywords:
            value = bare(keyword.value)
            elements = tuple([item.span for item in value.items]) if isinstance(value, tree.ListOf) else ()
            attributes[keyword.name.text] = AttributeSite(keyword.name.span, keyword.value.span, elements)
        spans, names = [p.span for p in places], [p.name for p in places]
        return CallSite(expr.span, spans, attributes, names, self.frame.outer, expr.callee[-1].span)

    def attribute(self, kind: Kind | None, value: Any, name: str, op: Operation, site: CallSite) -> Any:
        """A keyword's value as the operation's kinds take it. Raises E0304, E0311."""
        if isinstance(value, Word) and isinstance(kind, (WordKind, DTypeKind)):
            if isinstance(kind, DTypeKind) and value.text not in DTYPE_BY_NAME:
                error = OpError(codes.WRONG_ATTRIBUTE, f"{value} is not a dtype", at=name, help=dtype_help(value.text))
                raise self.located(error, site)
            return value.text
        for i, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(item, int) and not isinstance(kind, NumberKind) and not -(2**63) <= item < 2**63:
                where = name if i is None else (name, i)
                raise self.located(OpError(codes.LITERAL_DOES_NOT_FIT, f"{item} does not fit 64 bits", at=where), site)
        return value

    def carried(
        self, expr: tree.Call, operands: Sequence[Any], keywords: Mapping[str, Any], results: int, site: CallSite
    ) -> Node:
        """An ONNX operator, as it is. onnx is loaded only for programs that have one."""
        from dmlc.inference.carried import carry

        attributes = {}
        for name, value in keywords.items():
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Arithmetic):
                    message = f"{item} is a dim; an ONNX attribute holds numbers"
                    raise self.located(OpError(codes.NOT_KNOWN, message, at=name), site)
            attributes[name] = [_plain(item) for item in value] if isinstance(value, list) else _plain(value)
        parts = [part.text for part in expr.callee]
        domain = ".".join(parts[1:-1])
        return carry(self.unit.graph, domain, parts[-1], operands, attributes, results, site)

    def unknown_operation(self, expr: tree.Call, name: str) -> DmlcError:
        first, is_value = expr.callee[0], name in self.frame.names or name in self.unit.consts
        message = f"there is no operation {name}"
        other = operation_named(name)
        if len(expr.callee) > 1:
            near = self.method_help(expr)
        elif name == "load":
            message = "load is not an operation"
            near = 'load is a const line by itself: const w: f32[4] = load("w.npy")'
        elif name == "onnx":
            near = "operators of ONNX are called as onnx.Name(...)"
        elif name in std_blocks():
            text = f"it is a block of the standard library: begin the file with use {name} from std"
            near = Proposal(text, (using(name, first.span.source),), safe=True)
        elif name in DTYPE_BY_NAME and not is_value:
            message, near = f"{name} is a dtype, not an operation", f"a cast is written x as {name}"
        else:
            names = [*self.unit.defs, *self.unit.names.models, *OPERATIONS]
            near = self.instead(name, expr, before=f'did you mean "{other}"? ' if other else "")
            message = f"{name} is a value, not an operation" if is_value and not near else message
            near = near or suggestion(name, names, spelled=quoted)
        span = first.span.to(expr.callee[-1].span)
        return self.frame.fail(name_codes.UNKNOWN_OPERATION, message, span, "not found", help=near)

    def method_help(self, expr: tree.Call) -> Help:
        """The help for ``x.sum(axis=1)`` and ``np.exp(x)``."""
        owner, method = expr.callee[0].text, expr.callee[-1].text
        is_value = owner in self.frame.names or owner in self.unit.consts
        if is_value or owner in MODULES:
            return self.instead(method, expr, [expr.callee[0].span] if is_value else []) or NO_METHODS
        name = ".".join([part.text for part in expr.callee]) if owner in ("com", "ai") else method
        return f"operators of ONNX are called as onnx.{name}(...)"

    def instead(self, name: str, expr: tree.Call, owner: Sequence[Span] = (), *, before: str = "") -> Help:
        """The proposal to write a call of the language for one of another library; empty for an unknown name."""
        spans = [*owner, *[operand.span for operand in expr.operands]]
        keywords = {k.name.text: k.value.span for k in expr.keywords}
        is_foreign = operation_named(name) != name or bool(owner) or len(expr.callee) > 1
        found = instead_of(
            name,
            self.whole_order(name, [_text(span) for span in spans]),
            {key: _text(span) for key, span in keywords.items()},
            is_foreign=is_foreign and not name.startswith("reduce_"),
        )
        text = f"{before}write {found.help}" if found.help else ""
        is_split = any(span.line != span.end_line for span in (*spans, *keywords.values()))
        if "..." in text or not found.text or not spans or is_split:
            return text
        made = writing_call(found.text, expr.span, safe=found.is_same)
        return replace(made, text=f"{before}{made.text}")

    def whole_order(self, name: str, texts: Sequence[str]) -> Sequence[str]:
        """The arguments of PyTorch's transpose, whose two axes change places, with the order of all axes."""
        value = self.frame.names.get(texts[0]) if texts else None
        if name not in ("transpose", "swapaxes") or len(texts) != 3 or not isinstance(value, Value):
            return texts
        try:
            order = list(range(value.type.rank))
            a, b = order[int(texts[1])], order[int(texts[2])]
        except (ValueError, IndexError):
            return texts
        order[a], order[b] = b, a
        return [texts[0], *map(str, order)]

    def check_count(self, op: Operation, expr: tree.Call, count: int) -> None:
        """The number of operands of an operation, before they are evaluated. Raises E0308 with what to write, and E0335
        for sizes that PyTorch's norms take as their second argument."""
        if op.name in NORMS and len(expr.operands) > 1 and count == len(expr.operands):
            self.check_scale(op, expr)
        try:
            declared_operands(op, count)
        except OpError as error:
            if error.help:
                texts = [_text(operand.span) for operand in expr.operands]
                keywords = {k.name.text: _text(k.value.span) for k in expr.keywords}
                found = call_instead(op.name, texts, keywords)
                whole = found.text if len(texts) == count else ""
                is_other = whole != f"{op.name}({', '.join(texts)})"
                stray = [text for text in texts[len(op.operands) :] if text in self.frame.names]
                if whole and is_other and not stray and (count == 1 or "=" in whole):
                    is_safe = count > 1 and found.is_same
                    error.help = f"write {whole}" if "..." in whole else writing(whole, safe=is_safe)
            kinds = _kinds(op)
            named = [k for k in expr.keywords if k.name.text not in (*kinds, LIKE)]
            if named and not error.help and count < len(op.operands):
                parts = [*expr.operands, *[k.value for k in named]]
                written = [_text(part.span) for part in parts]
                written += [f"{k.name.text}={_text(k.value.span)}" for k in expr.keywords if k.name.text in kinds]
                error.help = f"operands are given by position: {op.name}({', '.join(written)})"
            raise self.located(error, CallSite(expr.span)) from None

    def check_scale(self, op: Operation, expr: tree.Call) -> None:
        """Refuse a size or a list of sizes in place of the scale of a norm."""
        texts = [_text(operand.span) for operand in expr.operands]
        keywords = {k.name.text: _text(k.value.span) for k in expr.keywords}
        if normalized_sizes(op.name, texts, keywords):
            message = NOT_SIZES.format(op.name)
            help = proposal(f"write {(new := call_instead(op.name, texts, keywords).text)}", new, expr.span)
            raise self.frame.fail(codes.NOT_A_TENSOR, message, expr.operands[1].span, "a size", help=help)


def _text(span: Span) -> str:
    """The text of a span on one line; ``...`` for a longer one."""
    return span.source.line(span.line)[span.column - 1 : span.end_column - 1] if span.line == span.end_line else "..."


def _plain(value: Any) -> Any:
    """An attribute of ONNX: a number, a text, a dtype."""
    if isinstance(value, Word):
        return value.text if value.is_string else DTYPE_BY_NAME.get(value.text, value.text)
    return float(value) if isinstance(value, float) else value


def _instead(name: str, keyword: tree.Keyword, places: Sequence[Place]) -> str:
    """The help where an attribute of an operation is computed when the program runs."""
    text, bound = keyword.name.text, {"min": "max", "max": "min"}
    if name == "clip" and text in bound and places:
        operands = f"{_text(places[0].span)}, {_text(keyword.value.span)}"
        return f"clip takes numbers; with a tensor write {bound[text]}({operands})"
    return f"{text} takes what is known before the program runs: numbers, lists, dims, consts and words"


def _kinds(op: Operation | None) -> dict[str, Kind]:
    """The kind of each keyword of an operation."""
    out: dict[str, Kind] = {}
    for spec in attribute_specs(op.attributes) if op is not None else ():
        out[spec.name] = spec.kind
        if spec.synonym is not None:
            out[spec.synonym.name] = WordKind(*spec.synonym.words)
    return out


def _asked(kind: Kind | None) -> Asked:
    if kind is None:
        return Asked.FREE
    return Asked.WORD if isinstance(kind, (WordKind, DTypeKind)) else Asked.KNOWN
