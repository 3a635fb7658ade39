"""Sources of a compilation, and the graph or model that each holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import Struct

from dmlc import ir
from dmlc.api.arguments import check_arguments
from dmlc.diagnostics import Source, fail, option
from dmlc.diagnostics.catalogue import builder as builder_codes
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.diagnostics.limits import Limits
from dmlc.ir.providers import record_providers
from dmlc.ops.model_call import CallableModel
from dmlc.runtime import files

if TYPE_CHECKING:
    import onnx

    from dmlc import builder


class HoldsModel(Protocol):
    """An object that holds an ONNX model, such as ``ONNXProgram`` of PyTorch."""

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model."""


#: Sources that compile takes: a path, a text with its name, a graph of the builder, an ONNX model, its bytes, an object
#: that holds it. A model of ``onnx_ir`` too, which has no type here.
ProgramSource: TypeAlias = "str | os.PathLike[str] | Source | builder.Graph | onnx.ModelProto | bytes | HoldsModel"


def onnx_model(source: ProgramSource, limits: Limits) -> tuple[onnx.ModelProto, Path | None] | None:
    """The model where the source is one, or the path of one, and the folder of its external data.

    A caller's model is copied: code is emitted when it is asked for, and the caller may change the model before.
    """
    if isinstance(source, Source):
        return None
    if not isinstance(source, (str, os.PathLike)):
        from dmlc import builder

        if isinstance(source, builder.Graph):
            return None
        from dmlc.api.foreign_models import foreign_model

        return foreign_model(source)
    path = _path(source)
    if not files.is_model_file(path):
        return None
    from dmlc import importers

    return importers.read_model(path, files.read_bytes(path, limits, is_model=True), limits), path.parent


def _path(source: str | os.PathLike[str]) -> Path:
    """The path. Raises ``DmlcError`` E0556 (exit code 2) for the text of a program."""
    text = os.fspath(source)
    if isinstance(text, str) and ("\n" in text or "{" in text) and not os.path.lexists(text):
        way = "source = dmlc.Source(text, name='m.dml'); dmlc.compile(source)"
        raise fail(UNKNOWN_CHOICE, "a string is the path of a file, not a program", help=f"write: {way}", exit_code=2)
    return Path(text)


class TextSource(Source):
    """The text of a program, for ``compile``.

    ``name`` is what messages call it by, a path: ``use`` and ``load`` look in its folder.
    """

    __slots__ = ()

    def __init__(self, text: str, name: str | os.PathLike[str] = "<text>") -> None:
        """Raises ``DmlcError`` E0556 (exit code 2) for a text or name of another type."""
        shown = name if isinstance(name, (str, os.PathLike)) else None
        if not isinstance(text, str) or shown is None:
            kind = type(name if isinstance(text, str) else text).__name__
            help = "write: source = dmlc.Source(text, name='m.dml'); dmlc.compile(source)"
            raise fail(UNKNOWN_CHOICE, f"dmlc.Source takes a text and a name, not {kind}", help=help, exit_code=2)
        super().__init__(os.fspath(shown), text)


def name_of(source: ProgramSource) -> str:
    """The name that diagnostics call the source by: its path or given name, empty for what is not a file."""
    if isinstance(source, Source):
        return source.name
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""


#: Makes the model that is called of the one that was read.
Prepare: TypeAlias = "Callable[[onnx.ModelProto], onnx.ModelProto]"


class Choice(Struct, frozen=True):
    """The model of a program's text that is compiled, and the folders in which its ``use`` and ``load`` look too.

    ``models`` are the ONNX models that it uses, by their paths: they are read once, however often the text is. Each is
    what ``prepare`` makes of the file. With ``opaque`` their nodes are passed on as they are.
    """

    model: str | None = None
    include: tuple[Path, ...] = ()
    models: dict[str, CallableModel] = {}
    prepare: Prepare | None = None
    opaque: bool = False


def choice_of(model: str | None, include: Sequence[str | os.PathLike[str]]) -> Choice:
    """Raises ``DmlcError`` E0556 (exit code 2) for arguments of another type, and for a folder that does not exist."""
    check_arguments(model=model, include=include)
    folders = tuple(map(Path, include))
    for folder in folders:
        if not folder.is_dir():
            raise fail(UNKNOWN_CHOICE, f"the included folder {folder} does not exist", exit_code=2)
    return Choice(model, folders)


def check_model_name(source: ProgramSource, choice: Choice) -> None:
    """Raises ``DmlcError`` E0209 where the chosen model is not a builder's graph or an ONNX model's."""
    graph = getattr(source, "graph", None)
    if choice.model is not None and graph is not None and graph.name != choice.model:
        message = f"the source is one model, {graph.name or 'without a name'}, not {choice.model}"
        help = f"leave out {option('--model', 'model=')}: it picks one of several models in a file"
        raise fail(name_codes.WHICH_MODEL, message, help=help)


def load(source: ProgramSource, choice: Choice, opset: int, limits: Limits) -> ir.Graph:
    """The graph that the source says; a builder's graph is copied."""
    from dmlc import builder

    if isinstance(source, builder.Graph):
        return _built(source, limits)
    from dmlc import text

    if not isinstance(source, Source):
        assert isinstance(source, (str, os.PathLike)), "models are imported"
        path = _path(source)
        source = text.decode(str(path), files.read_bytes(path, limits), limits)
    folder = Path(source.name).parent
    models = model_reader(folder, choice, limits)
    return text.load(
        source, folder=folder, model=choice.model, opset=opset, limits=limits, include=choice.include, models=models
    )


class _UsedModels:
    """Reads the ONNX models that a program uses, each once, with its weights left where they are."""

    def __init__(self, folder: Path, choice: Choice, limits: Limits) -> None:
        self.root = Path(os.path.realpath(folder))
        for other in choice.include:
            self.root = Path(os.path.commonpath((self.root, os.path.realpath(other))))
        self.choice = choice
        self.limits = limits

    def read(self, path: Path, title: str) -> CallableModel:
        """The model of a file. Raises ``DmlcError``: E0430 if it is none, and what the file cannot be read for."""
        where = os.path.realpath(path)
        if where not in self.choice.models:
            self.choice.models[where] = used_model(
                Path(where), self.root, title, self.limits, self.choice.prepare, opaque=self.choice.opaque
            )
        return self.choice.models[where]


def model_reader(folder: Path, choice: Choice, limits: Limits) -> Callable[[Path, str], CallableModel]:
    """The reading of ONNX models that a program in ``folder`` uses."""
    return _UsedModels(folder, choice, limits).read


def used_model(
    path: Path, root: Path, title: str, limits: Limits, prepare: Prepare | None = None, *, opaque: bool = False
) -> CallableModel:
    """The ONNX model of a file as a function; what it refers to is found below the folder ``root``.

    With ``opaque`` its nodes are passed on as they are.
    """
    from dmlc import importers
    from dmlc.runtime.weights import locate_weights

    model = importers.read_model(path, files.read_bytes(path, limits, is_model=True), limits)
    locate_weights(model, path.parent, root)
    return importers.ModelFunction(model if prepare is None else prepare(model), root, title, limits, opaque=opaque)


def _built(source: builder.Graph, limits: Limits) -> ir.Graph:
    graph = source.graph
    if len(graph) > limits.nodes:
        raise limits.passed("nodes", f"graph {graph.name} has", len(graph))
    if not graph.outputs:
        raise fail(builder_codes.NO_OUTPUTS, f"graph {graph.name} has no outputs", help="name one: g.output('y', y)")
    from dmlc import builder

    open_dims = sorted(builder.unsolved_dims(graph))
    if open_dims:
        message = f"no input gives the size of {', '.join(open_dims)}"
        raise fail(name_codes.UNSOLVED_DIM, message, help=f"give an input an axis of size {open_dims[0]} alone")
    copy = graph.clone()
    if copy.joined is not None or copy.dims.provided:
        record_providers(copy)
    return copy
