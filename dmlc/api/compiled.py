"""Programs that are compiled with checked options, and the same as they are written."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from dmlc.api import opsets
from dmlc.api.load_result import blaming
from dmlc.api.program import Profile, Program
from dmlc.api.sources import Choice, ProgramSource, check_model_name, choice_of, load, name_of, onnx_model
from dmlc.api.untouched import untouched
from dmlc.diagnostics import DmlcError, Source, naming, refuses
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.passes.options import Options
from dmlc.runtime.profiles import dim_places


def compiled(source: ProgramSource, options: Options, *, asked: bool) -> Program:
    """Compile a source; ``asked`` says that the opset is the one that the user asks for. Raises ``DmlcError``."""
    choice = choice_of(options.model, options.include)
    tuner = None
    if options.tune or options.tuning is not None:
        from dmlc.api.tuning import TimedLowerings

        tuner = TimedLowerings(options)
        options = replace(options, tuner=tuner)
    with naming(name_of(source)):
        program = _program(source, choice, options, asked=asked)
        program.profiles = _profiles(source, choice, program, options, asked=asked)
        for one in program.profiles.values() if options.profiles else [program]:
            if options.strict and refuses(found := one.problems(strict=True)):
                raise DmlcError(found)
    if tuner is not None:
        tuner.save()
    return program


def written_graph(
    source: Source, model: str | None, include: Sequence[str | os.PathLike[str]], limits: Limits
) -> Graph:
    """The graph of a program's text as it is written, before all passes. Raises ``DmlcError``."""
    return load(source, choice_of(model, include), 21, limits)


def with_models_untouched(
    program: Program, source: ProgramSource, model: str | None, include: Sequence[str | os.PathLike[str]]
) -> Program:
    """The program of ``source``, of which ``program`` was compiled, as an ONNX model that no rewrite touched: the ONNX
    models that it uses are as they are. Raises ``DmlcError`` where only a rewrite makes a model of it."""
    return untouched(source, choice_of(model, include), program)


def _profiles(
    source: ProgramSource,
    choice: Choice,
    program: Program,
    options: Options,
    *,
    asked: bool,
) -> dict[Profile, Program]:
    """The program for each combination of sizes. Raises ``DmlcError`` E0555 for a dim that ``program`` does not
    have.
    """
    out = {}
    for sizes in options.profiles:
        dim_places(program.signature, sizes)
        given = replace(options, bind={**options.bind, **sizes}, profile=sizes)
        out[tuple(sizes.items())] = _program(source, choice, given, asked=asked)
    return out


def _program(source: ProgramSource, choice: Choice, options: Options, *, asked: bool) -> Program:
    proto = onnx_model(source, options.limits)
    check_model_name(source if proto is None else proto[0], choice)
    if proto is None:
        program = opsets.written(source, choice, options, asked=asked)
    else:
        with blaming(proto[0]):
            program = opsets.imported(*proto, options, asked=asked)
    program.source_name = name_of(source)
    return program
