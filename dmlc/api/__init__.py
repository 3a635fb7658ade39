"""The straight line: ``compile(source)`` loads, binds and lowers; a ``Program`` emits, saves and runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from dmlc.api import opsets
from dmlc.api.arguments import check_arguments
from dmlc.api.chosen_target import chosen_target
from dmlc.api.kinds import SUFFIXES, kind_of
from dmlc.api.load_result import LoadCheck, blaming
from dmlc.api.program import BACKENDS, Profile, Program, emitted, emitted_to, with_results
from dmlc.api.sources import (
    Choice,
    ProgramSource,
    TextSource,
    check_model_name,
    choice_of,
    load,
    name_of,
    onnx_model,
)
from dmlc.api.untouched import untouched
from dmlc.diagnostics import DmlcError, Source, naming, refuses
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.ir.collector import collector_paused
from dmlc.ir.fixed_shapes import checked_shapes
from dmlc.ops.ranges import checked_ranges
from dmlc.passes.inventory import chosen_rules
from dmlc.passes.options import Options, chosen_classes, chosen_fusions, chosen_numbers, chosen_opset
from dmlc.runtime.binding import checked_binding
from dmlc.runtime.profiles import checked_profiles, dim_places
from dmlc.targets import Target


@collector_paused(begins=True)
def compile(
    source: ProgramSource,
    *,
    target: str | Target = "directml",
    opset: int | None = None,
    bind: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    profiles: Mapping[str, int | Sequence[int]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    exact: bool = False,
    allow: Sequence[str] = (),
    strict: bool = False,
    lower_hardmax: bool = False,
    feature_level: str | None = None,
    skip_rules: Iterable[str] = (),
    only_rules: Iterable[str] | None = None,
    progress: Callable[[str], None] | None = None,
    f64: str | None = None,
    accumulate: str | None = None,
    fuse: Sequence[str] = (),
    limits: Mapping[str, int] | None = None,
) -> Program:
    """Compile a ``.dml`` or ``.onnx`` file, a builder's graph or an ONNX model for a target.

    ``bind`` fixes dims by name; a dim has one size everywhere. ``shapes={"x": (1, 3, None)}`` fixes sizes of inputs,
    named or not, and open ranks; None leaves a size as it is. ``ranges={"x": (0, 1)}`` promises that every element fed
    to x lies within these bounds and is not NaN. ``profiles={"batch": (1, 8), "seq": 128}`` also compiles a program for
    each combination of these sizes; see ``docs/profiles.md``. ``model`` picks one of several in a file; a graph and an
    ONNX model have one, of their own name. ``include`` are folders in which ``use`` and ``load`` look after the
    program's own. ``limits={"nodes": 3_000_000}`` changes how much is read before it is refused; see
    ``docs/limits.md``.

    ``exact`` allows only rewrites that keep every bit; ``allow=("range",)`` adds those with a precondition on values.
    Rules named in ``skip_rules`` do not fire. With ``only_rules`` only those fire, and the mandatory ones.
    ``lower_hardmax`` lowers hardmax over one axis too. ``f64="f32"`` computes f64 in f32; inputs and outputs keep their
    types. ``accumulate="f32"`` computes in f32 the squares and products of f16 before a sum or a mean.
    ``fuse=("attention",)`` makes attention one operator where that saves operators (``directml``).
    ``progress`` is called with each pass's name before it runs.
    ``strict`` makes warnings, but not advice, errors; it raises these and those of ``require_sound``. The source is not
    changed. Raises ``DmlcError``.
    """
    check_arguments(exact=exact, strict=strict, lower_hardmax=lower_hardmax, progress=progress)
    goal = chosen_target(target, feature_level)
    chosen, classes = chosen_opset(goal, opset), chosen_classes(exact, allow)
    numbers, (skipped, only) = chosen_numbers(f64, accumulate, classes), chosen_rules(skip_rules, only_rules)
    options = Options(goal, chosen, classes, lower_hardmax, skipped, only, progress, *numbers, limits=Limits.of(limits))
    options = replace(options, fuse_attention=chosen_fusions(fuse, goal), ranges=checked_ranges(ranges))
    options = replace(options, binding=checked_binding(bind), shapes=checked_shapes(shapes))
    choice, sets = choice_of(model, include), checked_profiles(profiles, options.binding)
    with naming(name_of(source)):
        program = _program(source, choice, options, asked=opset is not None)
        program.profiles = _profiles(source, choice, program, sets, options, asked=opset is not None)
        for one in program.profiles.values() if sets else [program]:
            if strict and refuses(found := one.problems(strict=True)):
                raise DmlcError(found)
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
    sets: Sequence[Mapping[str, int]],
    options: Options,
    *,
    asked: bool,
) -> dict[Profile, Program]:
    """The program for each combination of sizes. Raises ``DmlcError`` E0555 for a dim that ``program`` does not
    have.
    """
    out = {}
    for sizes in sets:
        dim_places(program.signature, sizes)
        given = replace(options, binding={**options.binding, **sizes}, profile=sizes)
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


__all__ = [
    "BACKENDS",
    "SUFFIXES",
    "LoadCheck",
    "Profile",
    "Program",
    "ProgramSource",
    "TextSource",
    "compile",
    "emitted",
    "emitted_to",
    "kind_of",
    "with_models_untouched",
    "with_results",
    "written_graph",
]
