"""The commands that come next, each with what it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dmlc import api
from dmlc.api.fixed_sizes import FixedSizes, fixed_sizes, with_ranges
from dmlc.cli.compile_options import option_words
from dmlc.cli.layout import wrapped
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.paste import pasteable
from dmlc.ir import Array
from dmlc.ir.answers import Answer
from dmlc.ir.dtype import i64
from dmlc.ir.fixed_shapes import FixedShape
from dmlc.placement.node import CPU, PROVIDER, UNKNOWN
from dmlc.placement.report import Placement
from dmlc.placement.requirements import Requirements
from dmlc.targets.provider import provider


class NextStep(Answer, frozen=True):
    """A command to paste, and what it brings."""

    command: str
    effect: str


#: Ranges of integers in which a provider computes i64 by its low 32 bits: of the numbers, or of their products too.
_NARROW = ((-(2**31), 2**31 - 1), (-(2**15), 2**15 - 1))


def later_steps(
    words: Sequence[str], program: api.Program, inputs: Mapping[str, Array]
) -> tuple[list[NextStep], FixedSizes | None]:
    """Return the steps that fix the dynamic sizes and that promise ranges, and the sizes.

    ``words`` are the command line that is repeated with their options, ``inputs`` arrays whose sizes and ranges are
    taken.
    """
    step, sizes = _sizes_step(words, program, inputs)
    if step is not None and sizes is not None:
        words, program = [*words, *size_words(sizes.binding, sizes.shapes)], sizes.program
    return [each for each in (step, _ranges_step(words, program, inputs)) if each is not None], sizes


def _sizes_step(
    words: Sequence[str], program: api.Program, inputs: Mapping[str, Array]
) -> tuple[NextStep | None, FixedSizes | None]:
    """Return the step that fixes the dynamic sizes, and the sizes; None where that makes no fused graph. On a provider
    that fuses nothing: where that takes no node off the CPU."""
    now = program.placement()
    if not (now.dims or now.shapes) or not _is_divided(now):
        return None, None
    sizes = fixed_sizes(program, inputs)
    if sizes is None:
        return None, None
    then = sizes.program.placement()
    name = program.target.provider
    has_fewer = name is not None and not provider(name).fuses and then.count(CPU) < now.count(CPU)
    if then.count(CPU) > now.count(CPU) or not (then.partitions or has_fewer):
        return None, sizes
    return NextStep(pasteable([*words, *size_words(sizes.binding, sizes.shapes)]), fused_text(then)), sizes


def _ranges_step(words: Sequence[str], program: api.Program, inputs: Mapping[str, Array]) -> NextStep | None:
    """Return the step that promises the ranges of inputs of i64, where that takes nodes off the CPU."""
    name, now = program.target.provider, program.placement().count(CPU)
    if name is None or not provider(name).session.int64_options or not now:
        return None
    graph = program.source_graph
    names = [v.name for v in graph.inputs if v.type.dtype is i64 and v.name and v.name not in graph.ranges]
    for narrow in _NARROW if names else ():
        ranges = {each: _range_of(inputs.get(each), narrow) for each in names}
        then = with_ranges(program, ranges).placement()
        if then.count(CPU) < now:
            for each in names:  # an index needs no promise
                fewer = {key: ends for key, ends in ranges.items() if key != each}
                if fewer and with_ranges(program, fewer).placement().count(CPU) == then.count(CPU):
                    ranges = fewer
            return NextStep(pasteable([*words, *option_words("ranges", ranges)]), fused_text(then))
    return None


def _range_of(array: Array | None, otherwise: tuple[int, int]) -> tuple[int, int]:
    return otherwise if array is None or not array.size else (int(array.min()), int(array.max()))


def _is_divided(placed: Placement) -> bool:
    """Return whether a node runs on the CPU, or on the provider outside of a fused graph."""
    return any(node.where == CPU or (node.where == PROVIDER and node.alone) for node in placed.nodes)


def size_words(binding: Mapping[str, int], shapes: Mapping[str, FixedShape]) -> list[str]:
    """The words of a command line that fix these sizes."""
    return [*option_words("bind", binding), *option_words("shapes", shapes)]


def fused_text(placed: Placement) -> str:
    """The fused graphs, and what remains outside of them: ``1 fused graph of 79 nodes, nothing on the CPU``."""
    fused = sum(node.partition is not None for node in placed.nodes)
    alone = sum(node.where == PROVIDER and bool(node.alone) for node in placed.nodes)
    on_cpu, unknown = placed.count(CPU), placed.count(UNKNOWN)
    rest = f"{counted(unknown, 'node')} where nobody knows" if unknown else "nothing on the CPU"
    parts = [
        f"{counted(placed.partitions, 'fused graph')} of {counted(fused, 'node')}" if placed.partitions else "",
        f"{counted(alone, 'node')} not fused" if alone else "",
        f"{counted(on_cpu, 'node')} on the CPU" if on_cpu else rest,
    ]
    return ", ".join(filter(None, parts))


def steps_text(steps: Iterable[NextStep]) -> str:
    """The lines of ``next:``; what a command brings stands below it."""
    out = ""
    for step in steps:
        out += f"{'        ' if out else '  next: '}{step.command}\n            {step.effect}\n"
    return out


def requires_line(required: Requirements) -> str:
    """The line of what a model requires; empty where nothing exceeds the ordinary."""
    text = required.text()
    return wrapped(f"requires {text}", "  ", "         ") if text else ""
