"""Syntax tree to graph: a whole file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, DmlcError, Label, did_you_mean, fail, option, sentences
from dmlc.diagnostics.catalogue import names as codes
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.ir.providers import record_providers
from dmlc.text.deep import deep
from dmlc.text.elaborate.blocks import Block
from dmlc.text.elaborate.declarations import read_bounds
from dmlc.text.elaborate.model import ModelReader
from dmlc.text.elaborate.names import ModelReading, NameReader
from dmlc.text.elaborate.scope import POISON, Definition, FileNames, Frame, Problems, Unfolding, Unit
from dmlc.text.syntax import tree
from dmlc.text.syntax.parser import together


class LibraryItems(Struct, frozen=True):
    """The defs and consts of a file without a model."""

    defs: tuple[tree.Def, ...]
    consts: tuple[tree.Const, ...]


class LibraryError(DmlcError):
    """Error raised for a file that has no model and no mistakes: a library for other programs."""

    def __init__(
        self, diagnostics: Diagnostic | Iterable[Diagnostic], library: LibraryItems | None = None, *, exit_code: int = 1
    ) -> None:
        super().__init__(diagnostics, exit_code=exit_code)
        self.library: LibraryItems = library or LibraryItems((), ())


@deep()
def elaborate(
    program: tree.Program,
    folder: Path | None,
    model: str | None,
    opset: int,
    limits: Limits,
    *,
    name: str = "",
    include: tuple[Path, ...] = (),
    models: ModelReading | None = None,
) -> Graph:
    """The graph of one model of a program. Raises ``DmlcError`` with every mistake that is found."""
    problems = Problems()
    names = NameReader(problems, limits, include, models).compiled(program, folder, name)
    plain = Unit(Graph("constants"), problems, FileNames(""), Unfolding(FileNames("")), limits=limits)
    bounds: dict[str, tuple[int, int]] = {}
    for dim in program.items:
        if isinstance(dim, tree.Dim):
            try:
                bounds.setdefault(dim.name.text, read_bounds(plain, dim))
            except DmlcError as error:
                problems.add(error)
                bounds.setdefault(dim.name.text, (0, 2**63 - 1))
    file = _File([item for item in program.items if isinstance(item, tree.Model)], name, names, bounds, problems)
    return file.graph(model, opset, limits)


class _File(Struct):
    """A file whose names are read."""

    models: list[tree.Model]
    name: str
    names: FileNames
    bounds: dict[str, tuple[int, int]]
    problems: Problems

    def graph(self, wanted: str | None, opset: int, limits: Limits) -> Graph:
        chosen = self.choose(wanted) if self.models else None
        graph = Graph(chosen.name.text if chosen else "none", opset=opset)
        called: set[Definition] = set()
        for model in self.models:
            own = graph if model is chosen else Graph(model.name.text, opset=opset)
            unit = Unit(own, self.problems, self.names, Unfolding(self.names), limits=limits, model=model)
            unit.declared, unit.names_only = set(self.bounds), model is not chosen
            ModelReader(unit, model, self.bounds).read()
            called |= unit.unfolding.called
        for definition in self.names.defs.values():
            if definition not in called:
                self.look_at(definition, Graph("names", opset=opset), limits)
        if self.problems.found:
            raise together(self.problems.found)
        if not self.models:
            raise self.no_model()
        graph.advice += self.problems.advice
        if len(graph) > limits.nodes:
            raise limits.passed("nodes", f"model {graph.name} has", len(graph))
        if graph.joined is not None or graph.dims.provided:
            record_providers(graph)
        return graph

    def choose(self, wanted: str | None) -> tree.Model | None:
        names = list(dict.fromkeys(model.name.text for model in self.models))
        listed = f"models of this file: {', '.join(names)}"
        if wanted is None and len(names) == 1:
            return self.models[0]
        if wanted is None:
            label = Label(self.models[1].name.span, "another model")
            help = f"pick one with {option('--model', 'model=')}; {listed}"
            error = fail(codes.WHICH_MODEL, "the program has several models", label, help=help)
        elif wanted in names:
            return next(model for model in self.models if model.name.text == wanted)
        else:
            help = sentences(did_you_mean(wanted, names), listed)
            error = fail(codes.WHICH_MODEL, f"the program has no model {wanted}", help=help)
        self.problems.add(error)
        return None

    def no_model(self) -> DmlcError:
        """The error for a file without mistakes and without a model: what kind of file it is."""
        library = LibraryItems(
            tuple([data.line for data in self.names.own_defs]), tuple([data.line for data in self.names.own_consts])
        )
        lines: list[tree.Def | tree.Const] = [*library.defs, *library.consts]
        if not lines:
            return fail(codes.WHICH_MODEL, "the program has no model", help="write model m(x: f32[3]) -> (y) { ... }")
        message = "the program has no model: it is a library of defs and consts"
        help = f'use it in a program that has one: use {lines[0].name.text} from "{Path(self.name).name}"'
        return LibraryError(Diagnostic(codes.WHICH_MODEL, message, (), help), library)

    def look_at(self, definition: Definition, graph: Graph, limits: Limits) -> None:
        """Find the names in a def that nothing calls that do not exist. Its parameters are not known."""
        unit = Unit(graph, self.problems, self.names, Unfolding(self.names), limits=limits, names_only=True)
        sizes = [size for model in self.models for item in model.inputs for size in item.type.sizes]
        unit.declared = set(self.bounds)
        unit.dims = set(self.bounds) | {size.text for size in sizes if isinstance(size, tree.Name)}
        line, frame = definition.line, Frame()
        for name in (*line.parameters, *[k.name for k in line.keywords]):
            frame.names[name.text], frame.places[name.text] = POISON, name.span
        Block(unit.within(definition.home), frame).body(line.body, line.result)
