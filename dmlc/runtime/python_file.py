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

from dmlc.codegen.numpy.names import identifier as _identifier
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import NOT_CODE
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.runtime import files
from dmlc.runtime.runnable import RunFailed


class PythonFile:
    """The first function of a file, called by position: its parameters are the inputs, its local variables are values
    that can be asked for.

    ``outputs`` names its results, by default ``result 0`` and so on. The file runs with all rights of the user. Raises
    ``DmlcError`` E0420 (exit code 2), E0448.
    """

    def __init__(self, path: Path, outputs: Sequence[str] = (), limits: Limits = DEFAULTS) -> None:
        self._function = _function_of(path, files.read_bytes(path, limits))
        self.name: str = self._function.__name__
        self.inputs: tuple[str, ...] = tuple(inspect.signature(self._function).parameters)
        self.outputs: tuple[str, ...] = tuple(outputs)

    def run(self, inputs: Mapping[str, Any], wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """The results by name, or the local variables of the ``wanted`` names, or of names that are written alike in
        Python. Raises ``RunFailed`` for whatever the function raises."""
        results, local = self._call(inputs)
        if wanted is None:
            return results
        found = {name: x for name, x in local.items() if isinstance(x, np.ndarray | np.generic)}
        return {name: np.asarray(found[key]) for name in wanted if (key := _identifier(name)) in found}

    def _call(self, feeds: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outputs and the local variables at the end. Raises ``RunFailed``."""
        seen: dict[str, Any] = {}
        code = self._function.__code__

        def watch(frame: FrameType, event: str, _: object) -> None:
            if event == "return" and frame.f_code is code:
                seen.update(frame.f_locals)

        missing = [name for name in self.inputs if name not in feeds]
        if missing:
            raise RunFailed(f"input {missing[0]} is not given")
        before = sys.getprofile()
        sys.setprofile(watch)
        try:
            results = self._function(*[feeds[name] for name in self.inputs])
        except Exception as error:  # whatever the code raises, it did not run
            raise RunFailed(f"{type(error).__name__}: {error}") from None
        finally:
            sys.setprofile(before)
        found = results if isinstance(results, tuple) else (results,)
        names = self.outputs or tuple([f"result {number}" for number in range(len(found))])
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
