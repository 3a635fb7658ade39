"""Sources of a compilation, and the graph or model that each holds."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dmlc import ir
from dmlc.diagnostics import Source, fail
from dmlc.diagnostics.catalogue import builder as builder_codes
from dmlc.diagnostics.catalogue import names as name_codes
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.diagnostics.limits import Limits
from dmlc.ir.providers import record_providers
from dmlc.ops.model_call import CallableModel
from dmlc.records import dataclass
from dmlc.runtime import files

if TYPE_CHECKING:
    import onnx

    from dmlc import builder

#: What can be compiled: a path, a text with its name, a graph of the builder, an ONNX model.
ProgramSource: TypeAlias = "str | os.PathLike[str] | Source | builder.Graph | onnx.ModelProto"


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
        import onnx

        if not isinstance(source, onnx.ModelProto):
            message = f"a path, a dmlc.Graph or an onnx.ModelProto is compiled, not {type(source).__name__}"
            raise fail(UNKNOWN_CHOICE, message, exit_code=2)
        copy = onnx.ModelProto()
        copy.CopyFrom(source)
        return copy, None
    path = Path(source)
    if path.suffix.lower() != ".onnx":
        return None
    from dmlc import importers

    return importers.read_model(path, files.read_bytes(path, limits), limits), path.parent


def name_of(source: ProgramSource) -> str:
    """The name that diagnostics call the source by: its path or given name, empty for what is not a file."""
    if isinstance(source, Source):
        return source.name
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The model of a program's text that is compiled, and the folders in which its ``use`` and ``load`` look too.

    ``models`` are the ONNX models that it uses, by their paths: they are read once, however often the text is.
    """

    model: str | None = None
    include: tuple[Path, ...] = ()
    models: dict[str, CallableModel] = field(default_factory=dict, compare=False)


def choice_of(model: str | None, include: Sequence[str | os.PathLike[str]]) -> Choice:
    """Raises ``DmlcError`` E0556 (exit code 2) for an included folder that is none."""
    if isinstance(include, (str, os.PathLike)):
        raise fail(UNKNOWN_CHOICE, f"include is a list of folders, not {include!r}", exit_code=2)
    folders = tuple(map(Path, include))
    for folder in folders:
        if not folder.is_dir():
            raise fail(UNKNOWN_CHOICE, f"the included folder {folder} does not exist", exit_code=2)
    return Choice(model, folders)


def load(source: ProgramSource, choice: Choice, opset: int, limits: Limits) -> ir.Graph:
    """The graph that the source says; a builder's graph is copied."""
    if not isinstance(source, (Source, str, os.PathLike)):
        return _built(source, limits)
    from dmlc import text

    if not isinstance(source, Source):
        path = Path(source)
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
            self.choice.models[where] = used_model(Path(where), self.root, title, self.limits)
        return self.choice.models[where]


def model_reader(folder: Path, choice: Choice, limits: Limits) -> Callable[[Path, str], CallableModel]:
    """The reading of ONNX models that a program in ``folder`` uses."""
    return _UsedModels(folder, choice, limits).read


def used_model(path: Path, root: Path, title: str, limits: Limits) -> CallableModel:
    """The ONNX model of a file as a function; what it refers to is found below the folder ``root``."""
    from dmlc import importers
    from dmlc.runtime.weights import locate_weights

    model = importers.read_model(path, files.read_bytes(path, limits), limits)
    locate_weights(model, path.parent, root)
    return importers.ModelFunction(model, root, title, limits)


def _built(source: builder.Graph, limits: Limits) -> ir.Graph:
    graph = source.graph
    if len(graph) > limits.nodes:
        raise limits.passed("nodes", f"graph {graph.name} has", len(graph))
    if not graph.outputs:
        raise fail(builder_codes.NO_OUTPUTS, f"graph {graph.name} has no outputs", help="name one: g.output('y', y)")
    from dmlc import builder

    open_dims = sorted(builder.unsolved_dims(graph))
    if open_dims:
        message = f"no input tells the size of {', '.join(open_dims)}"
        raise fail(name_codes.UNSOLVED_DIM, message, help=f"give an input an axis of size {open_dims[0]} alone")
    copy = graph.clone()
    if copy.joined is not None:
        record_providers(copy)
    return copy
