"""Names of a file: its own defs and consts, and those that its ``use`` lines bring from other files."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, DmlcError, Help, Label, fail, naming, suggestion
from dmlc.diagnostics.catalogue import names as codes
from dmlc.diagnostics.catalogue.advice import HIDES_OPERATION
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph, Tensor
from dmlc.ir.plain_file import holds_model
from dmlc.ops import OPERATIONS
from dmlc.ops.model_call import CallableModel
from dmlc.text.elaborate.cycles import find_cycles
from dmlc.text.elaborate.declarations import read_const
from dmlc.text.elaborate.files import Folders, LoadError, read_file
from dmlc.text.elaborate.scope import (
    HIDEABLE,
    LITERALS,
    RESERVED,
    ConstData,
    Definition,
    FileNames,
    Problems,
    Unfolding,
    Unit,
    quoted,
)
from dmlc.text.standard_library import std_blocks, std_path
from dmlc.text.syntax import tree
from dmlc.text.syntax.parser import decode, parse

T = TypeVar("T")


class UsedFile(Struct, frozen=True, eq=False):
    """A file that was read for a ``use`` line: what it has, before anybody renames it."""

    names: FileNames
    program: tree.Program


#: Reads an ONNX model that a ``use`` line names: its path, and what messages call it.
ModelReading: TypeAlias = "Callable[[Path, str], CallableModel]"


class NameReader:
    """Reads the names of a file and of all files that it uses, each file once. Mistakes are noted in ``problems``."""

    def __init__(
        self, problems: Problems, limits: Limits, include: tuple[Path, ...], models: ModelReading | None
    ) -> None:
        self.problems = problems
        self.models = models
        self.limits = limits
        self.include = include
        self._read: dict[str, UsedFile | CallableModel | None] = {}
        self._open: dict[str, str] = {}  # the files that are being read, by their real paths; what messages call them

    def compiled(self, program: tree.Program, folder: Path | None, name: str) -> FileNames:
        """The names of the file that is compiled. All its consts are read."""
        names = FileNames("")
        self._enter(names, program, folder, name)
        for data in names.consts.values():
            _ = data.home is names and data.tensor()  # reading it notes a mistake in it
        return names

    def used(self, program: tree.Program, folder: Path | None, name: str) -> FileNames:
        """The names of a file for a caller outside: its dims stay hidden, and its consts are read when they are
        needed."""
        names = FileNames(Path(name).name, hidden_dims=_dims(program))
        self._enter(names, program, folder, name)
        return names

    # --- one file

    def _enter(self, names: FileNames, program: tree.Program, folder: Path | None, name: str) -> None:
        """Read the names of a file from outside; while they are read, a file that uses it makes a circle."""
        where = os.path.realpath(folder / Path(name).name) if folder is not None else name
        self._open[where] = Path(name).name
        self._fill(names, program, folder)
        del self._open[where]

    def _fill(self, names: FileNames, program: tree.Program, folder: Path | None) -> None:
        folders = Folders(folder, self.include)
        items = program.items
        defs = [item for item in items if isinstance(item, tree.Def)]
        consts = [item for item in items if isinstance(item, tree.Const)]
        self._once("dim or const", [item.name for item in items if isinstance(item, (tree.Dim, tree.Const))])
        self._once("def", [item.name for item in defs])
        self._once("model", [item.name for item in items if isinstance(item, tree.Model)])
        for definition in defs:
            self._check_parameters(definition)
        lines: dict[str, tree.Def] = {}
        for definition in defs:
            lines.setdefault(definition.name.text, definition)
        names.cyclic, circles = find_cycles(lines)
        self.problems.found += circles
        names.defs |= {text: Definition(line, names) for text, line in lines.items()}
        unit = Unit(Graph("constants"), self.problems, names, Unfolding(names), limits=self.limits)
        for const in consts:
            read = _reader(unit, const, folders)
            names.consts.setdefault(const.name.text, ConstData(const, names, read))
        dims = {item.name.text for item in items if isinstance(item, tree.Dim)}
        for item in items:
            if isinstance(item, tree.Use):
                for used in item.used:
                    self._use(names, item, used, folders, dims)

    def _once(self, what: str, names: Sequence[tree.Name]) -> None:
        """Each name stands for one thing of its kind. Notes E0204, and E0205 for what is not a name."""
        for name in names:
            self._check_name(what, name)
        self.problems.check_once(names, f"{{}} names more than one {what}")

    def _check_name(self, what: str, name: tree.Name) -> bool:
        """Check that a name is free for such a thing; E0205 is noted where it is not."""
        reserved = RESERVED if what == "def" else {*LITERALS, "_"}
        if what == "def":
            self._look_for_hidden(name, what)
        if name.text not in reserved or (what != "def" and name.quoted):
            return True
        self._reserved(name, what)
        return False

    def _look_for_hidden(self, name: tree.Name, what: str) -> None:
        if name.text in HIDEABLE:
            message = f"{what} {name.text} has the name of an operation, and hides it"
            advice = Diagnostic(HIDES_OPERATION, message, (Label(name.span),), "choose another name")
            self.problems.advice.append(advice)

    def _reserved(self, name: tree.Name, what: str) -> None:
        message = f"{name.text} cannot name a {what}: it means something already"
        self.problems.add(fail(codes.RESERVED_NAME, message, Label(name.span), help="choose another name"))

    def _check_parameters(self, definition: tree.Def) -> None:
        names = [*definition.parameters, *[k.name for k in definition.keywords]]
        for name in names:
            if name.text in RESERVED:
                self._reserved(name, "parameter")
            self._look_for_hidden(name, "parameter")
        self.problems.check_once(names, f"two parameters of {definition.name.text} are named {{}}")

    # --- use lines

    def _use(self, names: FileNames, line: tree.Use, used: tree.Used, folders: Folders, dims: set[str]) -> None:
        """Bring one name. A mistake is noted, and the name is silent from then on."""
        try:
            found = self._std(used.name) if line.file is None else self._file(line.file, folders)
            if found is not None and not isinstance(found, UsedFile):
                self._put(names.models, "def", used, found, names.defs)
            elif found is None or not self._bring(names, used, found, dims):
                names.missing.add(used.here.text)
        except DmlcError as error:
            self.problems.add(error)
            names.missing.add(used.here.text)

    def _bring(self, names: FileNames, used: tree.Used, found: UsedFile, dims: set[str]) -> bool:
        """Give the name its def, its const, or both; False where the used file has it wrong. Raises ``DmlcError``."""
        theirs, text = found.names, used.name.text
        definition, const = theirs.defs.get(text), theirs.consts.get(text)
        is_def, is_const = definition in theirs.own_defs, const in theirs.own_consts
        if definition is not None and is_def:
            self._put(names.defs, "def", used, definition, names.models)
        if const is not None and is_const:
            self._put(names.consts, "dim or const", used, const, dims)
        if not is_def and not is_const and text not in theirs.missing:
            raise _not_in_file(used.name, found)
        return is_def or is_const

    def _put(self, known: dict[str, T], what: str, used: tree.Used, thing: T, others: Container[str] = ()) -> None:
        name = used.here
        if not self._check_name(what, name):
            return
        if name.text in known or name.text in others:
            message = f"{name.text} names more than one {what}"
            help = f"give it another name: use {used.name.text} as {name.text}_2 from ..."
            raise fail(codes.NAME_TWICE, message, Label(name.span, "brought here"), help=help)
        known[name.text] = thing

    def _file(self, file: tree.String, folders: Folders) -> UsedFile | CallableModel | None:
        """The file or model of a ``use`` line; None where it was read before and is wrong. Raises ``DmlcError``."""
        name, label = file.text, Label(file.span)
        try:
            path = folders.find(name, f'use ... from "{name}"')
            where = os.path.realpath(path)
            if where in self._open:
                raise self._circle(where, label)
            if where in self._read:
                return self._read[where]
            self._read[where] = None
            data = read_file(path, name, self.limits.text_bytes + 1)
            if self.models is not None and holds_model(data, name):
                return self._model(path, where, self.models, label)
        except LoadError as error:
            raise fail(error.code, error.message, label, help=error.help) from None
        self._read[where] = read = self._parsed(path, str(path), data, label)
        return read

    def _model(self, path: Path, where: str, models: ModelReading, label: Label) -> CallableModel:
        try:
            found = self._read[where] = models(path, path.name)
        except DmlcError as error:
            error.diagnostics = tuple([d.labelled([label]) for d in error.diagnostics])
            raise
        return found

    def _std(self, name: tree.Name) -> UsedFile:
        """The file of a block of the standard library. Raises ``DmlcError`` E0212."""
        where, blocks = f"std/{name.text}.dml", std_blocks()
        if name.text not in blocks:
            message = f"the standard library has no block {name.text}"
            help = suggestion(name.text, blocks) or "dmlc ops --std lists its blocks"
            if name.text in OPERATIONS:
                help = f"{name.text} is an operation, which needs no use line"
            raise fail(codes.NOT_IN_FILE, message, Label(name.span), help=help)
        if where not in self._read:
            path = std_path(name.text)
            self._read[where] = self._parsed(path, where, path.read_bytes(), Label(name.span))
        found = self._read[where]
        assert isinstance(found, UsedFile)
        return found

    def _parsed(self, path: Path, shown: str, data: bytes, label: Label) -> UsedFile:
        if len(self._open) >= self.limits.nesting:
            raise self.limits.passed("nesting", "use lines nest", len(self._open) + 1, label)
        with naming(shown):
            source = decode(shown, data, self.limits)
            program = parse(source, self.limits)
        return UsedFile(self.used(program, path.parent, str(path)), program)

    def _circle(self, where: str, label: Label) -> DmlcError:
        paths = list(self._open)
        circle = [self._open[path] for path in paths[paths.index(where) :]]
        message = f"{circle[0]} uses itself: {' -> '.join([*circle, circle[0]])}"
        return fail(codes.USE_CIRCLE, message, label, help="put what both need into another file")


def _reader(unit: Unit, const: tree.Const, folders: Folders) -> Callable[[], Tensor | None]:
    return lambda: read_const(unit, const, folders)


def _dims(program: tree.Program) -> frozenset[str]:
    """The dims of a file: those that it declares, and the dims of its models' inputs."""
    names = {item.name.text for item in program.items if isinstance(item, tree.Dim)}
    for model in program.items:
        if isinstance(model, tree.Model):
            names |= {size.text for item in model.inputs for size in item.type.sizes if isinstance(size, tree.Name)}
    return frozenset(names)


def _not_in_file(name: tree.Name, found: UsedFile) -> DmlcError:
    names, text = found.names, name.text
    own = [data.line.name.text for data in names.own_defs] + [data.line.name.text for data in names.own_consts]
    help: Help
    kinds = {item.name.text: item for item in found.program.items if isinstance(item, (tree.Dim, tree.Model))}
    if text in kinds:
        kind = "dim" if isinstance(kinds[text], tree.Dim) else "model"
        message = f"{text} is a {kind} of {names.label}, and use brings defs and consts"
        help = f"it has {', '.join(own) or 'none'}"
    elif text in names.defs or text in names.consts:
        message, help = f"{names.label} has {text} from another file", "use it from there"
    else:
        message = f"{names.label} has no def or const {text}"
        help = suggestion(text, own, spelled=quoted) or (f"it has {', '.join(own)}" if own else "it has none")
    return fail(codes.NOT_IN_FILE, message, Label(name.span), help=help)
