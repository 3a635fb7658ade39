"""Syntax tree to graph: a whole file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dmlc.diagnostics import DmlcError, Label, Span, did_you_mean, fail
from dmlc.diagnostics.catalogue import names as codes
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.text.elaborate.blocks import Block
from dmlc.text.elaborate.cycles import find_cycles
from dmlc.text.elaborate.declarations import read_bounds, read_const
from dmlc.text.elaborate.model import ModelReader
from dmlc.text.elaborate.scope import LITERALS, POISON, RESERVED, ConstData, Frame, Problems, Unit
from dmlc.text.elaborate.trampoline import run
from dmlc.text.syntax import tree
from dmlc.text.syntax.parser import together


def elaborate(program: tree.Program, folder: Path | None, model: str | None, opset: int, limits: Limits) -> Graph:
    """The graph of one model of a program. Raises ``DmlcError`` with every mistake that is found."""
    return _File(program, folder, opset, limits).graph(model)


class _File:
    def __init__(self, program: tree.Program, folder: Path | None, opset: int, limits: Limits) -> None:
        self.opset = opset
        self.limits = limits
        self.problems = Problems()
        items = program.items
        self.models = [item for item in items if isinstance(item, tree.Model)]
        dims = [item for item in items if isinstance(item, tree.Dim)]
        consts = [item for item in items if isinstance(item, tree.Const)]
        defs = [item for item in items if isinstance(item, tree.Def)]
        self.once("dim or const", [item.name for item in items if isinstance(item, (tree.Dim, tree.Const))])
        self.once("def", [item.name for item in defs])
        self.once("model", [item.name for item in self.models])
        for definition in defs:
            self.check_parameters(definition)
        self.defs: dict[str, tree.Def] = {}
        for definition in defs:
            self.defs.setdefault(definition.name.text, definition)
        self.cyclic, circles = find_cycles(self.defs)
        self.problems.found += circles
        self.consts: dict[str, ConstData] = {}
        self.bounds: dict[str, tuple[int, int]] = {}
        plain = Unit(Graph("constants"), self.problems, {}, frozenset(), {}, limits=limits)
        for dim in dims:
            try:
                self.bounds.setdefault(dim.name.text, read_bounds(plain, dim))
            except DmlcError as error:
                self.problems.add(error)
                self.bounds.setdefault(dim.name.text, (0, 2**63 - 1))
        for const in consts:
            self.consts.setdefault(const.name.text, read_const(plain, const, folder))

    def graph(self, wanted: str | None) -> Graph:
        called: set[str] = set()
        chosen = self.choose(wanted)
        graph = Graph(chosen.name.text if chosen else "none", opset=self.opset)
        for model in self.models:
            unit = self.unit(graph if model is chosen else Graph(model.name.text, opset=self.opset), called)
            unit.model, unit.names_only = model, model is not chosen
            ModelReader(unit, model, self.bounds).read()
        for name, definition in self.defs.items():
            if name not in called:
                self.look_at(definition, called)
        if self.problems.found:
            raise together(self.problems.found)
        if len(graph) > self.limits.nodes:
            raise self.limits.passed("nodes", f"model {graph.name} has", len(graph))
        return graph

    def unit(self, graph: Graph, called: set[str]) -> Unit:
        unit = Unit(graph, self.problems, self.defs, self.cyclic, self.consts, limits=self.limits, called=called)
        unit.declared = set(self.bounds)
        return unit

    def choose(self, wanted: str | None) -> tree.Model | None:
        names = list(dict.fromkeys(model.name.text for model in self.models))
        listed = f"models of this file: {', '.join(names)}"
        if not names:
            error = fail(codes.WHICH_MODEL, "the program has no model", help="write model m(x: f32[3]) -> (y) { ... }")
        elif wanted is None and len(names) == 1:
            return self.models[0]
        elif wanted is None:
            label = Label(self.models[1].name.span, "another model")
            help = f"pick one with --model; {listed}"
            error = fail(codes.WHICH_MODEL, "the program has several models", label, help=help)
        elif wanted in names:
            return next(model for model in self.models if model.name.text == wanted)
        else:
            help = "; ".join(filter(None, [did_you_mean(wanted, names), listed]))
            error = fail(codes.WHICH_MODEL, f"the program has no model {wanted}", help=help)
        self.problems.add(error)
        return None

    # --- names

    def once(self, what: str, names: Iterable[tree.Name]) -> None:
        """Each name stands for one thing of its kind. Notes E0204, and E0205 for what is not a name."""
        seen: dict[str, Span] = {}
        for name in names:
            reserved = RESERVED if what == "def" else {*LITERALS, "_"}
            if name.text in reserved and (what == "def" or not name.quoted):
                self.reserved(name, what)
            if name.text in seen:
                labels = (Label(name.span, "again"), Label(seen[name.text], "first here"))
                message = f"{name.text} names more than one {what}"
                self.problems.add(fail(codes.NAME_TWICE, message, *labels, help="call one of them otherwise"))
            seen.setdefault(name.text, name.span)

    def reserved(self, name: tree.Name, what: str) -> None:
        message = f"{name.text} cannot name a {what}: it means something already"
        self.problems.add(fail(codes.RESERVED_NAME, message, Label(name.span), help="choose another name"))

    def check_parameters(self, definition: tree.Def) -> None:
        seen: dict[str, Span] = {}
        for name in (*definition.parameters, *(k.name for k in definition.keywords)):
            if name.text in RESERVED:
                self.reserved(name, "parameter")
            if name.text in seen:
                labels = (Label(name.span, "again"), Label(seen[name.text], "first here"))
                message = f"two parameters of {definition.name.text} are named {name.text}"
                self.problems.add(fail(codes.NAME_TWICE, message, *labels, help="call one of them otherwise"))
            seen.setdefault(name.text, name.span)

    def look_at(self, definition: tree.Def, called: set[str]) -> None:
        """Find the names in a def that nothing calls that do not exist. What its parameters are is not known."""
        unit = self.unit(Graph("names", opset=self.opset), called)
        unit.names_only = True
        unit.dims |= set(self.bounds)
        for model in self.models:
            for item in model.inputs:
                unit.dims |= {size.text for size in item.type.sizes if isinstance(size, tree.Name)}
        frame = Frame()
        for name in (*definition.parameters, *(k.name for k in definition.keywords)):
            frame.names[name.text], frame.places[name.text] = POISON, name.span
        run(Block(unit, frame).body(definition.body, definition.result))
