"""Makes a program or a model that fails smaller, as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from onnx import ModelProto

import dmlc
from dmlc.diagnostics import DmlcError
from tools.fuzz.programs import FuzzProgram, Line


def reduced_model(model: ModelProto, fails: Callable[[ModelProto], bool]) -> ModelProto:
    """The smallest model that ``dmlc.repro`` finds whose failure is the same; ``fails`` says whether it is."""
    try:
        return dmlc.repro(model, check=lambda part, inputs, expected: not fails(part)).model
    except DmlcError:  # the original does not run
        return model


def reduced(program: FuzzProgram, fails: Callable[[FuzzProgram], bool], *, tries: int = 400) -> FuzzProgram:
    """The smallest program found whose failure is the same; ``fails`` says whether it is. Greedy, so not the least."""
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in islice(_smaller(program), tries):
            tries -= 1
            if fails(candidate):
                program, progress = candidate, True
                break
    return program


def _smaller(program: FuzzProgram) -> Iterator[FuzzProgram]:
    """Programs with less in them, the boldest first."""
    for name in program.outputs:
        if len(program.outputs) > 1:
            yield replace(program, outputs=(name,)).cleaned()
    for line in reversed(program.lines):
        for name in line.results:
            if name not in program.outputs:
                yield replace(program, outputs=(name,)).cleaned()
    for line in program.lines:
        yield from _cut(program, line)
    for line in program.lines:
        yield from _short_cut(program, line)
    for number, line in enumerate(program.lines):
        for keyword in line.keywords:
            simpler = replace(line, keywords=tuple(k for k in line.keywords if k is not keyword))
            yield _with(program, number, simpler)
    for name, low, high in program.dims:
        if low < high:
            yield replace(program, dims=tuple((n, high if n == name else a, b) for n, a, b in program.dims))
            yield replace(program, dims=tuple((n, a, low if n == name else b) for n, a, b in program.dims))


def _cut(program: FuzzProgram, line: Line) -> Iterator[FuzzProgram]:
    """The line's results become inputs."""
    if not set(line.results).isdisjoint(program.outputs):
        return
    inputs = (*program.inputs, *((name, program.types[name]) for name in line.results))
    yield replace(program, inputs=inputs, lines=tuple(x for x in program.lines if x is not line)).cleaned()


def _short_cut(program: FuzzProgram, line: Line) -> Iterator[FuzzProgram]:
    """An operand of the line takes the place of its result, where it has the same type."""
    for operand in line.operands:
        if program.types.get(operand) == program.types[line.results[0]] and len(line.results) == 1:
            old = line.results[0]
            lines = tuple(_renamed(x, old, operand) for x in program.lines if x is not line)
            outputs = tuple(operand if name == old else name for name in program.outputs)
            yield replace(program, lines=lines, outputs=outputs).cleaned()


def _renamed(line: Line, old: str, new: str) -> Line:
    return replace(line, operands=tuple(new if name == old else name for name in line.operands))


def _with(program: FuzzProgram, number: int, line: Line) -> FuzzProgram:
    return replace(program, lines=(*program.lines[:number], line, *program.lines[number + 1 :]))
