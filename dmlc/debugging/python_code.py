"""Python files with a function of arrays, such as the NumPy code that dmlc writes."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from dmlc.codegen.numpy.names import identifier
from dmlc.debugging.constants import Constant
from dmlc.debugging.value_sides import NodeRecord
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import NOT_CODE
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.runtime import files
from dmlc.verify.closed_side import ClosedSide
from dmlc.verify.inputs import Feeds, Interface, NoInputs
from dmlc.verify.trace import RunFailed, Side


class PythonCode(ClosedSide):
    """The first function of a file, called by position. Its local variables are the values that can be read.

    ``like`` is the side whose inputs and outputs it has; without it inputs have the names of the parameters. The file
    runs with all rights of the user. Raises ``DmlcError`` E0420 (exit code 2), E0448.
    """

    constants: Mapping[str, Constant] = {}
    nodes: Sequence[NodeRecord] = ()
    names: frozenset[str] | None = None

    def __init__(self, path: Path, like: Side | None = None, limits: Limits = DEFAULTS) -> None:
        self._function = _function_of(path, files.read_bytes(path, limits))
        parameters = tuple(inspect.signature(self._function).parameters)
        if like is not None and len(like.input_names) != len(parameters):
            wanted = f"{len(parameters)} parameters, not {len(like.input_names)}"
            raise fail(NOT_CODE, f"the function {self._function.__name__} of {path} has {wanted}")
        super().__init__(parameters if like is None else like.input_names, () if like is None else like.output_names, 0)
        self.side: Side = self
        self._like = like

    def interfaces(self) -> list[Interface]:
        if self._like is None:
            raise NoInputs("a function does not declare its inputs: give them")
        return self._like.interfaces()

    def run(self, feeds: Feeds) -> dict[str, Any]:
        return self._call(feeds)[0]

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        """The local variables of these names, or of names that are written alike in Python."""
        found = {name: x for name, x in self._call(feeds)[1].items() if isinstance(x, np.ndarray | np.generic)}
        return {name: np.asarray(found[local]) for name in names if (local := identifier(name)) in found}

    def _call(self, feeds: Feeds) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outputs and the local variables at the end. Raises ``RunFailed``."""
        seen: dict[str, Any] = {}
        code = self._function.__code__

        def watch(frame: FrameType, event: str, _: object) -> None:
            if event == "return" and frame.f_code is code:
                seen.update(frame.f_locals)

        missing = [name for name in self.input_names if name not in feeds]
        if missing:
            raise RunFailed(f"input {missing[0]} is not given")
        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            results = self._function(*[feeds[name] for name in self.input_names])
        except Exception as error:  # whatever the code raises, it did not run
            raise RunFailed(f"{type(error).__name__}: {error}") from None
        finally:
            sys.setprofile(before)
        found = results if isinstance(results, tuple) else (results,)
        names = self.output_names or tuple([f"result {number}" for number in range(len(found))])
        if len(found) != len(names):
            raise RunFailed(f"it returns {len(found)} results, not {len(names)}")
        return {name: np.asarray(array) for name, array in zip(names, found, strict=True)}, seen


def _function_of(path: Path, data: bytes) -> Callable[..., Any]:
    try:
        tree = ast.parse(data, str(path))
        namespace: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
        exec(compile(tree, str(path), "exec"), namespace)
    except Exception as error:  # the file's own
        raise fail(NOT_CODE, f"{path} cannot be run: {type(error).__name__}: {error}") from None
    names = [item.name for item in tree.body if isinstance(item, ast.FunctionDef)]
    names = [name for name in names if not name.startswith("_")] or names
    if not names:
        raise fail(NOT_CODE, f"{path} has no function")
    found: Callable[..., Any] = namespace[names[0]]
    return found
