"""``dmlc.function``: an ONNX model, or a def of a file, as an operation of the builder."""

from __future__ import annotations

import ast
import inspect
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dmlc.api.arguments import check_arguments
from dmlc.api.foreign_models import foreign_model
from dmlc.api.sources import Choice, choice_of, model_reader, used_model
from dmlc.codegen.numpy.names import PythonNames, identifier
from dmlc.diagnostics import Source, Span
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.ir.plain_file import holds_model
from dmlc.ops.call import CallSite
from dmlc.ops.model_call import CallableModel, call_model
from dmlc.runtime import files

if TYPE_CHECKING:
    import onnx

    from dmlc.builder import TensorLike
    from dmlc.text.elaborate.function import DefFunction


#: A parameter: its name in the model or the def, true if it is given by name alone, and its default.
_Parameter: TypeAlias = "tuple[str, bool, Any]"
_REQUIRED = inspect.Parameter.empty


class Function:
    """An ONNX model, or a def, that is called on tensors of the builder: one result, or a tuple of them.

    Names that Python cannot write are near ones in its signature, and may be given by those: ``in_`` for ``in``.
    """

    def __init__(self, name: str, parameters: Sequence[_Parameter], doc: str, *, loose: bool) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = doc
        self._loose = loose
        names = PythonNames(own for own, _, _ in parameters if identifier(own) == own)
        written = [own if identifier(own) == own else names.add(identifier(own)) for own, _, _ in parameters]
        self._own_names = {name: own for name, (own, _, _) in zip(written, parameters, strict=True)}
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        self.__signature__: inspect.Signature = inspect.Signature(
            [
                inspect.Parameter(name, kinds[by_name], default=default)
                for name, (_, by_name, default) in zip(written, parameters, strict=True)
            ]
        )

    def __call__(self, *operands: TensorLike | None, **keywords: Any) -> Any:
        """Add the nodes to the graph of the operands. Raises ``DmlcError`` that names the caller's Python line."""
        from dmlc.builder.called import call_nodes

        return call_nodes(self.__name__, self.add, operands, self._named(keywords), loose=self._loose)

    def _named(self, keywords: Mapping[str, Any]) -> dict[str, Any]:
        """The keywords under the names of the model or the def; one that is given twice keeps both."""
        own = {name: self._own_names.get(name, name) for name in keywords}
        return {name if own[name] in keywords else own[name]: value for name, value in keywords.items()}

    def add(
        self, graph: Graph, operands: Sequence[Any], keywords: Mapping[str, Any], span: Span | None = None
    ) -> Sequence[Any]:
        """Add the nodes to a graph of the compiler; the results. Raises ``DmlcError``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<Function {self.__name__}{self.__signature__}>"


class _ModelCall(Function):
    def __init__(self, model: CallableModel, name: str) -> None:
        self._model = model
        parameters: list[_Parameter] = [(info.name, False, _REQUIRED) for info in model.inputs if not info.has_default]
        parameters += [(info.name, True, None) for info in model.inputs if info.has_default]
        doc = f"The ONNX model {model.title}; its results are {', '.join(model.outputs)}."
        super().__init__(name, parameters, doc, loose=False)

    def add(
        self, graph: Graph, operands: Sequence[Any], keywords: Mapping[str, Any], span: Span | None = None
    ) -> Sequence[Any]:
        return call_model(graph, self._model, self.__name__, operands, keywords, CallSite(span))


class _DefCall(Function):
    def __init__(self, function: DefFunction) -> None:
        self._function = function
        line = function.definition.line
        parameters: list[_Parameter] = [(name.text, False, _REQUIRED) for name in line.parameters]
        for keyword in line.keywords:
            default = _REQUIRED if keyword.default is None else _default(keyword.default.span)
            parameters.append((keyword.name.text, True, default))
        super().__init__(function.name, parameters, function.comment, loose=True)

    def __call__(self, *operands: TensorLike | None, **keywords: Any) -> Any:
        names = [name.text for name in self._function.definition.line.parameters]
        found, keywords = list(operands), self._named(keywords)
        for name in names[len(found) :]:
            if name not in keywords:
                break
            found.append(keywords.pop(name))
        return super().__call__(*found, **keywords)

    def add(
        self, graph: Graph, operands: Sequence[Any], keywords: Mapping[str, Any], span: Span | None = None
    ) -> Sequence[Any]:
        return self._function.call(graph, operands, keywords, span)


def function(
    source: str | os.PathLike[str] | onnx.ModelProto,
    name: str | None = None,
    *,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
) -> Function:
    """An ONNX model or a def of a ``.dml`` file as an operation: ``feat = dmlc.function("backbone.onnx")(image)``.

    The content of a file decides whether it is a model or a program. For a program ``name`` is the def's; it may be
    left out where the file has one. For a model the names of its nodes begin with ``name``, by default with the file's.
    Operands of a model stand in the order of its inputs that have no default, or are given by input name. ``include``
    are folders in which ``use`` and ``load`` look after the file's own. Raises ``DmlcError``: E0420 where the file
    cannot be read, E0212 where it has no such def, and the errors of the file itself.
    """
    check_arguments(name=name)
    within = Limits.of(limits)
    if not isinstance(source, (str, os.PathLike)):
        from dmlc import importers

        model, _ = foreign_model(source)
        label = name or model.graph.name or "model"
        return _ModelCall(importers.ModelFunction(model, None, label, within), label)
    from dmlc import text

    path = Path(source)
    data = files.read_bytes(path, within)
    if holds_model(data, path.name):
        folder = Path(os.path.realpath(path)).parent
        return _ModelCall(used_model(path, folder, path.name, within), name or path.stem)
    choice = choice_of(None, include)
    reader = model_reader(path.parent, choice, within)
    program = text.decode(str(path), data, within)
    return _DefCall(_def(program, name, path.parent, choice, reader, within))


def _def(program: Source, name: str | None, folder: Path, choice: Choice, reader: Any, within: Limits) -> DefFunction:
    from dmlc.text.elaborate.function import DefFunction

    return DefFunction(program, name, folder=folder, include=choice.include, models=reader, limits=within)


def _default(span: Span) -> Any:
    """The value of a default as it is written, for the signature; ``...`` where it is not a number or a list."""
    text = span.source.line(span.line)[span.column - 1 : span.end_column - 1]
    words = {"true": True, "false": False, "none": None}
    try:
        return words[text] if text in words else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return ...


@cache
def std_block(name: str) -> Function:
    """A block of the standard library. Raises ``AttributeError`` where there is none of that name."""
    from dmlc.text.elaborate.function import std_function
    from dmlc.text.standard_library import std_blocks

    if name not in std_blocks():
        raise AttributeError(f"module 'dmlc.std' has no attribute {name!r}")
    return _DefCall(std_function(name))
