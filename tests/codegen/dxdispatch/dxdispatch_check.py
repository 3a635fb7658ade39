"""Compiles a program, runs its DxDispatch file in the machine, and holds the numbers against the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from dxdispatch_machine import Machine

import dmlc
from dmlc.diagnostics import Source

#: A few roundings of the dtype's own precision; f16 is computed in f32 in both and rounded once or twice.
TOLERANCE = {"float16": 4e-3, "float32": 2e-5}


def program_of(text: str, **options: Any) -> dmlc.Program:
    return dmlc.compile(Source("m.dml", text), target="numpy", **options)


def feeds_of(program: dmlc.Program, seed: int = 0) -> dict[str, np.ndarray]:
    """Small numbers with many ties."""
    rng = np.random.default_rng(seed)
    out = {}
    for name, type_ in program.signature.inputs:
        dtype = type_.dtype.numpy
        if dtype.kind == "f":
            array = rng.integers(-6, 7, type_.shape) / 4
        elif dtype.kind == "b":
            array = rng.integers(0, 2, type_.shape)
        else:
            array = rng.integers(-5 if dtype.kind == "i" else 0, 6, type_.shape)
        out[name] = np.asarray(array).astype(dtype)
    return out


def machine_of(program: dmlc.Program, feeds: Mapping[str, np.ndarray]) -> Machine:
    artifact = program.artifact("dxdispatch")

    def load(path: str) -> np.ndarray:
        return artifact.arrays[path] if path in artifact.arrays else feeds[PurePosixPath(path).stem]

    return Machine(artifact.payload, load)


def outputs_of(program: dmlc.Program, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {PurePosixPath(path).stem: array for path, array in machine_of(program, feeds).run().items()}


def check(text: str, feeds: Mapping[str, np.ndarray] | None = None, *, scale: float = 1, **options: Any) -> list[str]:
    """The operators that are dispatched, in order, once their numbers are found right.

    ``feeds`` stand for those of ``feeds_of``, which inputs without one keep.
    """
    program = program_of(text, **options)
    feeds = {**feeds_of(program), **(feeds or {})}
    wanted = program.run(feeds, backend="reference")
    machine = machine_of(program, feeds)
    found = {PurePosixPath(path).stem: array for path, array in machine.run().items()}
    assert found.keys() == wanted.keys()
    for name, want in wanted.items():
        want = np.atleast_1d(want)
        want = want.view(np.uint8) if want.dtype == bool else want
        have = found[name]
        assert (have.dtype, have.shape) == (want.dtype, want.shape), name
        if want.dtype.kind == "f" and want.dtype != np.float64:
            tolerance = TOLERANCE[want.dtype.name] * scale
            np.testing.assert_allclose(have, want, rtol=tolerance, atol=tolerance, err_msg=text)
        else:
            np.testing.assert_array_equal(have, want, err_msg=text)
    return dispatched(machine)


def operators(program: dmlc.Program) -> list[str]:
    """The operators that are dispatched, in order."""
    return dispatched(machine_of(program, feeds_of(program)))


def dispatched(machine: Machine) -> list[str]:
    rows = [machine.dispatchables[c["dispatchable"]] for c in machine.commands if c["type"] == "dispatch"]
    return [row["type"].removeprefix("DML_OPERATOR_") for row in rows]
