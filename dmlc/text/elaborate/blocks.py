"""Blocks: the statements of a model, and of a def where it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.diagnostics import Change, DmlcError, Label, Proposal, proposal, suggestion, text_of
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import Value
from dmlc.text.elaborate.calls import Caller
from dmlc.text.elaborate.cycles import Unfolded, unfolded
from dmlc.text.elaborate.evaluate import Asked, at
from dmlc.text.elaborate.scope import LITERALS, POISON, Definition, Frame, Place, Several, quoted
from dmlc.text.stopping import checkpoint
from dmlc.text.syntax import tree

#: Statements and nodes that are unfolded before the size of the whole is counted in advance.
_FEW_STATEMENTS, _FEW_NODES = 1000, 2000
#: So many of the calls around a mistake are shown.
_MAX_OUTER = 8


class Block(Caller):
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
            help = "a name is assigned once: choose another"
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
            help = f"{', '.join(known)} are given as keywords" if known and count > len(wanted) else ""
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
