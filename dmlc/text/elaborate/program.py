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
    return _File(program, folder, opset, limits, name, include, models).graph(model)


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


class _File:
    def __init__(
        self,
        program: tree.Program,
        folder: Path | None,
        opset: int,
        limits: Limits,
        name: str,
        include: tuple[Path, ...],
        models: ModelReading | None,
    ) -> None:
        self.name = name
        self.opset = opset
        self.limits = limits
        self.problems = Problems()
        self.models = [item for item in program.items if isinstance(item, tree.Model)]
        self.names = NameReader(self.problems, limits, include, models).compiled(program, folder, name)
        self.bounds: dict[str, tuple[int, int]] = {}
        plain = Unit(Graph("constants"), self.problems, FileNames(""), Unfolding(FileNames("")), limits=limits)
        for dim in program.items:
            if not isinstance(dim, tree.Dim):
                continue
            try:
                self.bounds.setdefault(dim.name.text, read_bounds(plain, dim))
            except DmlcError as error:
                self.problems.add(error)
                self.bounds.setdefault(dim.name.text, (0, 2**63 - 1))

    def graph(self, wanted: str | None) -> Graph:
        if not self.models:
            raise self.no_model()
        called: set[Definition] = set()
        chosen = self.choose(wanted)
        graph = Graph(chosen.name.text if chosen else "none", opset=self.opset)
        for model in self.models:
            unit = self.unit(graph if model is chosen else Graph(model.name.text, opset=self.opset))
            unit.model, unit.names_only = model, model is not chosen
            ModelReader(unit, model, self.bounds).read()
            called |= unit.unfolding.called
        for definition in self.names.defs.values():
            if definition not in called:
                self.look_at(definition)
        if self.problems.found:
            raise together(self.problems.found)
        graph.advice += self.problems.advice
        if len(graph) > self.limits.nodes:
            raise self.limits.passed("nodes", f"model {graph.name} has", len(graph))
        if graph.joined is not None or graph.dims.provided:
            record_providers(graph)
        return graph

    def unit(self, graph: Graph) -> Unit:
        unit = Unit(graph, self.problems, self.names, Unfolding(self.names), limits=self.limits)
        unit.declared = set(self.bounds)
        return unit

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
        """The error for a file without a model: its mistakes, or what kind of file it is."""
        for definition in self.names.defs.values():
            self.look_at(definition)
        if self.problems.found:
            return together(self.problems.found)
        library = LibraryItems(
            tuple([data.line for data in self.names.own_defs]), tuple([data.line for data in self.names.own_consts])
        )
        if not library.defs and not library.consts:
            return fail(codes.WHICH_MODEL, "the program has no model", help="write model m(x: f32[3]) -> (y) { ... }")
        message = "the program has no model: it is a library of defs and consts"
        first = (library.defs or library.consts)[0].name.text
        help = f'use it in a program that has one: use {first} from "{Path(self.name).name}"'
        return LibraryError(Diagnostic(codes.WHICH_MODEL, message, (), help), library)

    # --- names

    def look_at(self, definition: Definition) -> None:
        """Find the names in a def that nothing calls that do not exist. Its parameters are not known."""
        unit, line = self.unit(Graph("names", opset=self.opset)), definition.line
        unit.names_only = True
        unit.dims |= set(self.bounds)
        for model in self.models:
            for item in model.inputs:
                unit.dims |= {size.text for size in item.type.sizes if isinstance(size, tree.Name)}
        frame = Frame()
        for name in (*line.parameters, *(k.name for k in line.keywords)):
            frame.names[name.text], frame.places[name.text] = POISON, name.span
        Block(unit.within(definition.home), frame).body(line.body, line.result)
