"""Generated NumPy code, loaded once and called often."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.codegen.artifact import Artifact
from dmlc.ir import Array
from dmlc.runtime.feeds import FeedChecker


class NumpyCode:
    """The function of a ``numpy`` artifact. It takes every input; one that is not fed has its default."""

    def __init__(self, artifact: Artifact, defaults: Mapping[str, Array] | None = None) -> None:
        self.checker: FeedChecker = FeedChecker(artifact.signature)
        self.inputs: tuple[str, ...] = tuple(name for name, _ in artifact.signature.inputs)
        self.outputs: tuple[str, ...] = tuple(name for name, _ in artifact.signature.outputs)
        self._defaults = dict(defaults or {})
        filename = f"<numpy code of {artifact.signature.name}>"
        # a failing line can be shown: tracebacks read the source from here
        linecache.cache[filename] = (len(artifact.payload), None, artifact.payload.splitlines(True), filename)
        namespace: dict[str, Any] = {"__name__": "generated"}
        tree = ast.parse(artifact.payload)
        exec(compile(tree, filename, "exec"), namespace)
        # the model's function stands first; what it needs follows
        name = next(item.name for item in tree.body if isinstance(item, ast.FunctionDef))
        self._function = namespace[name]

    def run(self, feeds: Mapping[str, Any], wanted: Sequence[str] | None = None) -> dict[str, Array]:
        """The outputs by name, or the ``wanted`` ones. Raises what ``FeedChecker.check`` raises."""
        given = {**self._defaults, **self.checker.check(feeds)}
        results = self._function(*[given[name] for name in self.inputs])
        found = dict(zip(self.outputs, results if isinstance(results, tuple) else (results,), strict=True))
        return found if wanted is None else {name: found[name] for name in wanted}
