"""Public functions: verify two ONNX models, or a graph and its compiled result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.catalogue.runs import NO_RUNTIME
from dmlc.diagnostics.catalogue.targets import NO_NUMPY_CODE
from dmlc.ir import Array, Graph
from dmlc.runtime.opaque_nodes import OpaqueNodes
from dmlc.runtime.runnable import NoEvidence, RunFailed, Runnable
from dmlc.verifying.check import verify_given, verify_sides
from dmlc.verifying.graph_subject import GraphSubject, graph_interface
from dmlc.verifying.inputs import Feeds, Interface
from dmlc.verifying.patterns import PATTERNS
from dmlc.verifying.subject import Subject
from dmlc.verifying.tolerance import EXACT, REASSOCIATES
from dmlc.verifying.verdict import Verdict

if TYPE_CHECKING:
    from dmlc.verifying.onnx_subject import ModelSource

#: Code that runs on arrays by name, such as a program's NumPy code.
Function: TypeAlias = "Callable[[Feeds], dict[str, Any]]"

#: Codes of code that does not exist on this machine, or at all: they say nothing about its results.
_NOT_AVAILABLE = (NO_RUNTIME, NO_NUMPY_CODE)

#: Every pattern once.
DEFAULT_INPUTS = len(PATTERNS)
#: Rewrite classes that a compilation may use by default.
DEFAULT_CLASSES = (EXACT, REASSOCIATES)


def verify_models(
    original: ModelSource,
    result: ModelSource | Graph,
    *,
    inputs: int = DEFAULT_INPUTS,
    seed: int = 0,
    allowed: str | Iterable[str] = DEFAULT_CLASSES,
    folder: Path | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Verdict:
    """Verify that ``result`` computes the same as ``original``, on ONNX Runtime's CPU provider without optimizations.

    Each is a model or its path. A ``result`` that is a graph is computed by the references of its operations; a node
    without a reference runs alone on that provider. ``folder`` holds the external data of a source that is given as a
    model. ``allowed`` are the classes of rewrites that may have been applied. ``kinds`` names the compute dtype of
    outputs if it is narrower than their own. Raises ``ValueError`` for an unknown class.
    """
    from dmlc.verifying.onnx_subject import OnnxSubject

    def left() -> Subject:
        return _computed_in(kinds, OnnxSubject(original, folder))

    return verify_sides(left, lambda: _result_side(result, folder), inputs=inputs, seed=seed, allowed=allowed)


def verify_graph(
    graph: Graph,
    result: ModelSource | Graph | Function,
    *,
    inputs: int = DEFAULT_INPUTS,
    seed: int = 0,
    allowed: str | Iterable[str] = DEFAULT_CLASSES,
    folder: Path | None = None,
    kinds: Mapping[str, str] | None = None,
) -> Verdict:
    """Verify that ``result`` computes the same as ``graph`` does by the references of its operations.

    ``result`` is an ONNX model, its path, a graph as for ``verify_models``, or a function of arrays by name. Kernels
    and references round differently, so floats are compared within the tolerance for any ``allowed``. ``kinds`` as for
    ``verify_models``.
    """

    def right() -> Subject:
        return CodeSubject(graph, result) if callable(result) else _result_side(result, folder)

    chosen = {REASSOCIATES} | set([allowed] if isinstance(allowed, str) else allowed)
    return verify_sides(
        lambda: _computed_in(kinds, GraphSubject(graph)), right, inputs=inputs, seed=seed, allowed=chosen
    )


def verify_results(
    original: Graph | ModelSource,
    feeds: Feeds,
    results: Mapping[str, Array],
    *,
    data: str,
    allowed: str | Iterable[str] = DEFAULT_CLASSES,
    folder: Path | None = None,
) -> Verdict:
    """Verify results by output name that something else computed from ``feeds``; ``data`` names them in the verdict.

    ``original`` is a graph, an ONNX model or its path. ``folder`` holds the external data of a model. A bool may be
    given as a byte of 0 or 1, and a scalar as one axis of size 1, which is how DirectML holds them. Floats are compared
    within the tolerance for any ``allowed``.
    Raises ``ValueError`` for an unknown class.
    """
    from dmlc.verifying.onnx_subject import OnnxSubject

    def sides() -> tuple[Subject, Subject]:
        left: Subject = GraphSubject(original) if isinstance(original, Graph) else OnnxSubject(original, folder)
        return left, RecordedSubject(left, results)

    chosen = {REASSOCIATES} | set([allowed] if isinstance(allowed, str) else allowed)
    return verify_given(sides, feeds, data=data, allowed=chosen)


def _result_side(result: ModelSource | Graph, folder: Path | None) -> Subject:
    from dmlc.verifying.onnx_subject import OnnxSubject

    return (
        GraphSubject(result, OpaqueNodes(result, folder)) if isinstance(result, Graph) else OnnxSubject(result, folder)
    )


def _computed_in(kinds: Mapping[str, str] | None, subject: Subject) -> Subject:
    subject.kinds.update(kinds or {})
    return subject


class CodeSubject(Subject):
    """Code with the inputs and outputs of a graph."""

    def __init__(self, graph: Graph, function: Function) -> None:
        fed = [v.name or "" for v in graph.inputs if v not in graph.defaults]
        super().__init__(fed, [name for name, _ in graph.outputs], len(graph))
        self._graph, self._function = graph, function

    def interfaces(self) -> list[Interface]:
        return [graph_interface(self._graph)]

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        try:
            return self._function(feeds)
        except Exception as error:  # whatever the code raises, it did not run
            if isinstance(error, DmlcError) and error.diagnostics[0].code in _NOT_AVAILABLE:
                raise NoEvidence(str(error.diagnostics[0].message), error.diagnostics[0]) from None
            raise RunFailed(f"{type(error).__name__}: {error}") from None


class RunnableSubject(Subject):
    """A runnable with inputs that go by the names of another subject's inputs, or by their own."""

    def __init__(
        self, code: Runnable, like: Subject | None = None, made_up: Callable[[], list[Interface]] | None = None
    ) -> None:
        super().__init__(code.inputs if like is None else like.inputs, code.outputs, is_program=made_up is None)
        self._code, self._like, self._made_up = code, like, made_up

    def interfaces(self) -> list[Interface]:
        if self._made_up is not None:
            return self._made_up()
        return super().interfaces() if self._like is None else self._like.interfaces()

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        missing = [name for name in self.inputs if name not in feeds]
        if missing:
            raise RunFailed(f"input {missing[0]} is not given")
        given = zip(self._code.inputs, [feeds[name] for name in self.inputs], strict=True)
        return self._code.run(dict(given), wanted)


class RecordedSubject(Subject):
    """Results of one input, in the dtypes and shapes of the subject that they are compared with."""

    def __init__(self, like: Subject, results: Mapping[str, Array]) -> None:
        super().__init__(like.inputs, like.outputs, like.size)
        self._like, self._results = like, results

    def interfaces(self) -> list[Interface]:
        return self._like.interfaces()

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        expected = self._like.run(feeds)
        found = {name: _alike(array, expected.get(name)) for name, array in self._results.items()}
        return found if wanted is None else {name: found[name] for name in wanted if name in found}


def _alike(array: Array, wanted: Any) -> Array:
    """The array as a bool or a scalar where ``wanted`` is one and the array may stand for it."""
    if not isinstance(wanted, np.ndarray | np.generic):
        return array
    if wanted.dtype.kind == "b" and array.dtype == np.uint8 and np.isin(array, (0, 1)).all():
        array = array.astype(bool)
    return array.reshape(()) if wanted.shape == () and array.shape == (1,) else array
