"""Programs at the opset that suits them, where the user asks for none."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dmlc.api.opset_candidates import other_opsets
from dmlc.api.program import Program, emitted
from dmlc.api.sources import Choice, ProgramSource, load
from dmlc.diagnostics import DmlcError, fail, option
from dmlc.diagnostics.catalogue import runs
from dmlc.diagnostics.catalogue import targets as codes
from dmlc.diagnostics.catalogue.models import BROKEN_MODEL
from dmlc.diagnostics.catalogue.shapes import SHAPE_DOES_NOT_FIT
from dmlc.ir import DType, Graph
from dmlc.ir.fixed_shapes import shape_text
from dmlc.ir.removed import DEFINED, record_removed
from dmlc.ops.ranges import promise
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.options import Options
from dmlc.passes.quantized_advice import NOT_LOADED_SINCE, label, repeated
from dmlc.runtime.binding import bound
from dmlc.targets.capabilities import Capabilities

if TYPE_CHECKING:
    import onnx

    from dmlc.importers.opset import LostDefinition


def written(source: ProgramSource, choice: Choice, options: Options, *, asked: bool) -> Program:
    """The program of a text or a builder's graph at the opset that suits it."""
    lacking: list[str] = []

    def prepare(model: onnx.ModelProto) -> onnx.ModelProto:
        model, notes = _defined_at(model, options, asked=asked)
        lacking.extend(note for note in notes if note not in lacking)
        return model

    choice = replace(choice, models={}, prepare=prepare)

    def read(opset: int, meant: int | None = None) -> Graph:
        graph = load(source, choice, opset, options.limits)
        if any(hasattr(node.attributes, "at_opset") for node in graph):
            from dmlc.inference.carried import require_carried

            require_carried(graph, opset, meant)
        return graph

    lowest, graph, why = _lowest_opset(read, options.opset, asked=asked)
    loaded = {lowest: graph}

    def at(opset: int, *notes: str) -> Program:
        graph = loaded.pop(opset, None) or read(opset, lowest)
        if graph.joined is not None:
            _require_joined(graph, opset, options)
        graph = bound(graph, options.bind, options.shapes)
        graph.notes += (*notes, *lacking)
        promise(graph, options.ranges)
        return Program(graph, replace(options, opset=opset))

    opset, notes = _joined_opset(graph, lowest, options, asked=asked)
    program = at(opset, *why, *notes)
    return program if asked else _kept_loadable(_kept_on_provider(program, at), at)


def _lowest_opset(read: Callable[[int], Graph], wanted: int, *, asked: bool) -> tuple[int, Graph, list[str]]:
    """The opset for a program with ONNX operators, its graph there, and why it is not the one that is ``wanted``.

    The lowest one above is taken where an operator came later: a program must not be refused because a target is
    behind.
    """
    try:
        return wanted, read(wanted), []
    except DmlcError as error:
        if asked or any(d.code is not codes.NEEDS_OPSET for d in error.diagnostics):
            raise
        from onnx.defs import onnx_opset_version

        for opset in range(wanted + 1, onnx_opset_version() + 1):
            with suppress(DmlcError):
                return opset, read(opset), [f"opset {opset}, not {wanted}: {error.diagnostics[0].message}"]
        raise


def _joined_opset(graph: Graph, wanted: int, options: Options, *, asked: bool) -> tuple[int, list[str]]:
    """The opset for a program that calls models, and why it is not the one that is ``wanted``."""
    if graph.joined is None:
        return wanted, []
    from dmlc import importers

    opset = importers.join_opset(graph, wanted, options.target.min_opset, asked=asked)
    notes = [] if opset == wanted else [f"opset {opset}, not {wanted}: a called model needs it"]
    return opset, notes


def _require_joined(graph: Graph, opset: int, options: Options) -> None:
    """Raises ``DmlcError`` E0501 where a node of a called model has no equal at the opset."""
    from dmlc import importers

    importers.join_opset(graph, opset, options.target.min_opset, asked=True)


def imported(model: onnx.ModelProto, folder: Path | None, options: Options, *, asked: bool) -> Program:
    """The program of an ONNX model at the opset that suits it. The shapes that are fixed are declared in the model.

    A node of the model always has a form: its own. So every node is passed on as it stands where a rewrite or a
    lowering has no form at the opset.
    """
    from dmlc import importers

    declared = copy.deepcopy(model.graph.input)
    binding = importers.fix_shapes(model, options.shapes, options.bind)
    older, notes = _defined_at(model, options, asked=asked)
    notes = [*_unknown_opset(model), *notes]

    def graph_of(*, opaque: bool = False) -> Graph:
        source = model if opaque else older
        has_shapes = bool(options.shapes)

        def read(*, runs: bool) -> Graph:
            return importers.import_model(
                source,
                folder=folder,
                binding=binding,
                limits=options.limits,
                opaque=opaque,
                has_shapes=has_shapes,
                runs=runs,
            )

        try:
            graph = read(runs=bool(binding) or has_shapes)
        except DmlcError as error:
            due = _of_sizes(error, model, declared, folder, options)
            if due is not None:
                raise due from None
            graph = read(runs=False)  # raises what is wrong whatever the sizes are
        graph.reader = None if opaque else importers.read_again
        graph.notes += [] if opaque else notes
        if not opaque:
            for name in _defined_nodes(model, older):
                record_removed(graph, DEFINED, name)
        promise(graph, options.ranges)
        return graph

    program = _imported(model, graph_of, options, asked=asked)
    if asked:
        _require_kernels(program)
    return program


def _defined_nodes(model: onnx.ModelProto, older: onnx.ModelProto) -> list[str]:
    """The names of the nodes of a model that the model without their operators lacks."""
    if older is model:
        return []
    kept = {node.name for node in older.graph.node}
    return [node.name for node in model.graph.node if node.name not in kept]


def _of_sizes(
    error: DmlcError,
    model: onnx.ModelProto,
    declared: Iterable[onnx.ValueInfoProto],
    folder: Path | None,
    options: Options,
) -> DmlcError | None:
    """The error of the given sizes, which it names; None where the model has the same faults with its inputs as they
    are declared, and another error as it is."""
    from dmlc import importers

    given = [f"{name}={size}" for name, size in options.bind.items()]
    given += [shape_text(name, shape) for name, shape in options.shapes.items()]
    if not given or error.diagnostics[0].code is not BROKEN_MODEL:
        return error
    fixed = copy.deepcopy(model.graph.input)
    without: set[str] = set()
    help = "give it sizes that fit together"
    try:
        del model.graph.input[:]
        model.graph.input.extend(declared)
        free = importers.import_model(model, folder=folder, limits=options.limits, runs=True)
        help = _near_sizes(free, model, folder, options) or help
    except DmlcError as other:
        without = {d.message for d in other.diagnostics}
    finally:
        del model.graph.input[:]
        model.graph.input.extend(fixed)
    new = [d.message for d in error.diagnostics if d.message not in without]
    if not new:
        return None
    text = f"the model does not take {', '.join(given)}: {new[0]}"
    return fail(SHAPE_DOES_NOT_FIT if options.shapes else runs.BAD_BINDING, text, help=help)


def _near_sizes(free: Graph, model: onnx.ModelProto, folder: Path | None, options: Options) -> str:
    """The option that gives the next larger sizes that the model takes; empty where none are found."""
    from dmlc import importers

    for unit in () if options.shapes else (2, 4, 8, 16, 32, 64, 128):
        sizes = {name: max(1, -(-size // unit)) * unit for name, size in options.bind.items()}
        if free.takes(sizes):
            with suppress(DmlcError):
                importers.import_model(model, folder=folder, binding=sizes, limits=options.limits, runs=True)
                words = " ".join(f"--bind {name}={size}" for name, size in sizes.items())
                return f"give it sizes that fit together: {option(words, f'bind={sizes}')}"
    return ""


def _unknown_opset(model: onnx.ModelProto) -> list[str]:
    """The sentence on an opset that the installed onnx does not know."""
    from onnx import __version__ as release
    from onnx.defs import onnx_opset_version

    from dmlc.onnx_schema.domains import imported_versions

    own, newest = imported_versions(model.opset_import).get("", 0), onnx_opset_version()
    what = f"opset {own} is newer than the installed onnx, {release}"
    return [f"{what}: operators are read as in opset {newest}"] if own > newest else []


def _defined_at(model: onnx.ModelProto, options: Options, *, asked: bool) -> tuple[onnx.ModelProto, list[str]]:
    """The model without operators that the target's provider has no kernel for, where others define them; and
    sentences for the report.

    These are operators that came after the target's opset, if there is no kernel for most others at the model's own
    opset either, and those that never have a kernel.
    """
    from dmlc import importers
    from dmlc.onnx_schema.domains import imported_versions

    own = imported_versions(model.opset_import).get("", 0)
    capabilities = Capabilities(options.target, own)
    if own > options.opset and (asked or capabilities.has_provider):
        model = importers.with_definitions(model, options.opset, lambda op_type: capabilities.kernel(op_type) is None)
    if not capabilities.has_provider:
        return model, []
    exact = REASSOCIATES not in options.allowed
    model, names = importers.with_kernels(
        model,
        lambda domain, op_type: capabilities.kernel(op_type, domain) is not None,
        exact=exact,
        opset=options.opset,
    )
    family = options.target.family
    return model, [f"{name} is computed by its definition: {family} has no kernel for it" for name in names]


def _imported(model: onnx.ModelProto, graph_of: Callable[..., Graph], options: Options, *, asked: bool) -> Program:
    from dmlc import importers

    graph = graph_of()
    opset = importers.choose_opset(graph, options.opset, options.target.min_opset, asked=asked)
    reason = ""
    if opset >= options.target.min_opset:
        try:
            program = _rewritten(graph, opset, options, model, asked=asked)
            if asked:
                _require_kernels(program)
            if options.target.kernels is not None:  # for any other, ONNX is made only when it is asked for
                emitted(program, "onnx")
            return program
        except DmlcError as error:
            if not any(d.code in _UNSAYABLE for d in error.diagnostics):
                raise
            reason = error.diagnostics[0].message
    return _as_it_is(graph_of(opaque=True), options, model, reason, asked=asked)


#: Reasons not to emit a graph that say nothing about the model that it was imported from.
_UNSAYABLE = (codes.NEEDS_OPSET, codes.NO_EXACT_FORM, codes.TOO_MANY_AXES)


def _as_it_is(graph: Graph, options: Options, model: onnx.ModelProto, reason: str, *, asked: bool) -> Program:
    """The program of a graph of opaque nodes: at the model's own opset, unless another was asked for or the target
    takes it at none that high."""
    from dmlc import importers

    own: int = graph.origin.versions.get("", 1)
    stays = options.target.min_opset <= own <= options.target.max_opset and not asked
    opset = own if stays else importers.choose_opset(graph, options.opset, options.target.min_opset, asked=asked)
    if reason:
        graph.notes.append(f"opset {opset}, and nothing is rewritten: {reason}")
    return Program(graph, replace(options, opset=opset, only_rules=frozenset()), model)


def _rewritten(graph: Graph, opset: int, options: Options, model: onnx.ModelProto, *, asked: bool) -> Program:
    from dmlc import importers

    lowest = options.target.min_opset
    own = graph.origin.versions.get("", 1)
    if not asked and own >= lowest:
        stays = _kept_by_definitions(graph, opset, replace(options, opset=own), model)
        if stays is not None:
            return stays
    program = Program(graph, replace(options, opset=opset), model)
    if not asked and lowest <= own < opset and importers.says_flattened(graph, opset):
        try:
            older = Program(graph, replace(options, opset=own), model)
            saves = len(emitted(older, "onnx").payload.graph.node) < len(emitted(program, "onnx").payload.graph.node)
        except DmlcError:  # one of the two cannot be said: the newer opset says why
            saves = False
        if saves:
            graph.notes.append(f"opset {own}, not {opset}: it says a softmax or hardmax over several axes in one node")
            return Program(graph, replace(options, opset=own), model)
    if asked:
        return program

    def at(other: int, *notes: str) -> Program:
        importers.choose_opset(graph, other, lowest, asked=True)
        kept = list(graph.notes)
        # they are of this program alone: another opset may be tried after it
        graph.notes += notes
        try:
            made = Program(graph, replace(options, opset=other), model)
        finally:
            graph.notes[:] = kept
        _require_kernels(made)
        return made

    if own >= lowest and (lost := _lost(program)):
        label = f"{lost.label} has no kernel for {lost.dtype.name}, but ONNX's definition, which holds there"
        graph.notes.append(f"opset {own}, not {opset}: {label}")
        return Program(graph, replace(options, opset=own), model)
    kept = _kept_running(_kept_on_provider(program, at), at, own)
    return kept if own >= NOT_LOADED_SINCE and repeated(graph) else _kept_loadable(kept, at)


def _kept_by_definitions(graph: Graph, opset: int, options: Options, model: onnx.ModelProto) -> Program | None:
    """The program at the model's own opset, where ``opset`` takes away what a node without a kernel runs by; None where
    it does not, and where the target's provider fails at the own one."""
    from dmlc import importers

    table = Capabilities(options.target, opset).table
    reason = None if table is None else importers.why_to_stay(graph, opset, table)
    if reason is None:
        return None
    graph.notes.append(reason)
    program = Program(graph, options, model)
    if options.target.provider is None or not program.losses()[0]:
        return program
    graph.notes.remove(reason)
    return None


def _lost(program: Program) -> LostDefinition | None:
    """The node of the compiled model that no provider runs at its opset, but ONNX's definition at the model's own."""
    from dmlc import importers

    capabilities = Capabilities(program.target, program.opset)
    table = capabilities.table
    if table is None:
        return None

    def computes(kind: str, dtype: DType) -> bool:
        return not table.knows(kind) or dtype in table.dtypes(kind, program.opset) or capabilities.computes(kind, dtype)

    return importers.lost_definition(program.graph, program.opset, computes)


def _require_kernels(program: Program) -> None:
    """Raises ``DmlcError`` E0502 where no provider runs a node at the opset, but ONNX's definition of it at the model's
    own."""
    lost = _lost(program)
    if lost is None:
        return
    own = program.source_graph.origin.versions.get("", 1)
    capabilities = Capabilities(program.target, own)
    taken = not capabilities.leaves(lost.op_type, lost.dtype)
    elsewhere = ", for another target" if taken else ""
    help = f"ask for {option('--opset ', 'opset=')}{own}{elsewhere}, or cast the operand to f32"
    raise fail(
        codes.NO_EXACT_FORM,
        f"{lost.label} has no kernel for {lost.dtype.name} at opset {program.opset}; "
        f"ONNX's definition of it holds at opset {own}",
        help=f"{help}, if the precision suffices",
    )


def _kept_on_provider(program: Program, at: Callable[..., Program]) -> Program:
    """The program at the opset that keeps most nodes on the target's provider; the highest of those that do."""
    best, least = program, None
    for opset in other_opsets(program.graph, program.target, program.opset):
        if least == (0, 0):
            break
        try:
            least = best.losses() if least is None else least
            other = at(opset, f"opset {opset}, not {program.opset}: it keeps more nodes on {program.target.family}")
            lost = other.losses()
        except DmlcError:  # it cannot be said there
            continue
        if lost < least:
            best, least = other, lost
    return best


def _kept_running(program: Program, at: Callable[..., Program], own: int) -> Program:
    """The program at the newer opset of its model, where the provider fails on a node that it leaves to the CPU there;
    else as it is."""
    if own <= program.opset or program.target.provider is None or not program.losses()[0]:
        return program
    with suppress(DmlcError):  # it cannot be said there
        other = at(own, f"opset {own}, not {program.opset}: {program.target.family} fails on a node there")
        return program if other.losses()[0] else other
    return program


def _kept_loadable(program: Program, at: Callable[..., Program]) -> Program:
    """The program at an opset at which ONNX Runtime loads it with its default optimizations; as it is where no opset
    does."""
    guilty = repeated(program.graph) if program.opset >= NOT_LOADED_SINCE else None
    if guilty is None:
        return program
    reason = f"ONNX Runtime 1.28 and later do not load {label(guilty)} there"
    for opset in range(NOT_LOADED_SINCE - 1, program.target.min_opset - 1, -1):
        try:
            other = at(opset, f"opset {opset}, not {program.opset}: {reason}")
            if program.target.kernels is not None:
                emitted(other, "onnx")
        except DmlcError:  # it cannot be said there
            continue
        return other
    return program
