"""Compares a compiled ONNX model with the original; and makes what fails smaller."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, helper, load, numpy_helper, printer

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.verifying.check import verify_sides
from dmlc.verifying.comparison import DIFFERENT
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.verdict import Verdict
from tools.fuzz.judge import Failure, Options, drawn
from tools.fuzz.onnx_models import FLOATS, FuzzModel, cleaned, generate, is_valid
from tools.fuzz.reduce import smallest_case
from tools.fuzz.refusals import is_allowed
from tools.model_checks import new_defects

#: The refusal of sizes with which a model cannot run.
_NOT_TAKEN = ("E0554", "E0555")


def choices(seed: int, model: ModelProto, *, ways: int = 1) -> list[Options]:
    """The ways that the model of that seed goes."""
    rng = random.Random(f"ways {seed}")
    dims = {d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    out: list[Options] = []
    for target in rng.sample(("directml", "directml", "cpu", "onnx"), ways):
        turn = rng.randrange(10)
        options: Options = {"target": target, **drawn(rng, turn)}
        if turn == 6 and dims:
            options["bind"] = {name: rng.randint(1, 4) for name in sorted(dims)}
        elif turn == 7:
            options["f64"] = "f32"
        out.append(options)
    return out


def judge(model: ModelProto, options: Options, *, inputs: int = 3, seed: int = 0) -> Failure | None:
    """The failure of the model under the options."""
    try:
        program = dmlc.compile(model, **options)
        program.require_sound()
        bad = new_defects(program.to_onnx(), bound(model, options))
        if bad:
            return Failure(options, *sorted(bad.items())[0])
        verdict = _verdict(model, program, inputs, seed, narrowed="f64" in options)
        if verdict.status != DIFFERENT:
            return None
    except DmlcError as error:
        code, message = error.diagnostics[0].code.id, error.diagnostics[0].message
        is_right = is_allowed(code, message, options) or (code in _NOT_TAKEN and not _runs(bound(model, options)))
        return None if is_right else Failure(options, code, message)
    except Exception as error:  # a bug in the compiler, whatever it is
        return Failure(options, f"crash {type(error).__name__}", str(error))
    fed = {name: list(np.shape(array)) for name, array in (verdict.case or {}).items()}
    if verdict.reason and not _runs(model):
        return None
    if verdict.reason:
        return Failure(options, "fails", f"{fed}: {verdict.reason}")
    found = [f"{o.name}: {o.found}" for o in verdict.outputs if o.found is not None]
    return Failure(options, "different", f"{fed}: {'; '.join(found)}")


def bound(model: ModelProto, options: Options) -> ModelProto:
    """The model with the sizes of its inputs that the options bind."""
    out = ModelProto.FromString(model.SerializeToString())
    for info in out.graph.input:
        for size in info.type.tensor_type.shape.dim:
            if size.dim_param in options.get("bind", {}):
                size.dim_value = options["bind"][size.dim_param]
    return out


def _verdict(model: ModelProto, program: dmlc.Program, inputs: int, seed: int, *, narrowed: bool) -> Verdict:
    """On inputs whose patterns follow the seed, so that many models meet them all."""
    if narrowed:
        return program.verify(inputs, seed=seed)  # f64 computed in f32: so is what it is compared with
    sides = (lambda: OnnxSubject(model), lambda: OnnxSubject(program.to_onnx()))
    allowed = {*program.allowed, "reassociates"}  # kernels keep f16 in f32 or do not, and sum in orders of their own
    return verify_sides(*sides, inputs=inputs, seed=seed, allowed=allowed, first=inputs * seed)


def failures(program: FuzzModel, seed: int, *, inputs: int = 3) -> list[Failure]:
    """All that goes wrong with a model on the ways of that seed."""
    ways = choices(seed, program.model)
    found = [judge(program.model, way, inputs=inputs, seed=seed) for way in ways]
    return [failure for failure in found if failure is not None]


def _runs(model: ModelProto) -> bool:
    """True if the original runs on some inputs: one that never does may be refused as early as it is."""
    sides = (lambda: OnnxSubject(model), lambda: OnnxSubject(model))
    return verify_sides(*sides, inputs=1, seed=0, allowed=frozenset()).ok


# --- smaller


def reduced(program: FuzzModel, fails: Callable[[ModelProto], bool], *, tries: int = 300) -> FuzzModel:
    """The smallest model found that fails in the same way."""
    return smallest_case(program, _smaller, lambda candidate: fails(candidate.model), tries)


def _smaller(program: FuzzModel) -> Iterator[FuzzModel]:
    for candidate in _parts(program):
        if candidate.model != program.model and candidate.model.graph.output and is_valid(candidate.model):
            yield candidate


def _parts(program: FuzzModel) -> Iterator[FuzzModel]:
    graph = program.model.graph
    outputs = [info.name for info in graph.output]
    if len(outputs) > 1:
        for name in outputs:
            yield _with_outputs(program, [name])
        for name in outputs:
            yield _with_outputs(program, [other for other in outputs if other != name])
    for node in reversed(graph.node):
        if node.op_type != "Constant" and not set(node.output) & set(outputs):
            yield _with_outputs(program, [name for name in node.output if name][:1])
    for number, node in enumerate(graph.node):
        if node.op_type != "Constant" and not set(node.output) & set(outputs):
            yield _cut(program, number)
    for number, node in enumerate(graph.node):
        for name in node.input:
            if name and len(node.output) == 1 and program.kinds.get(name) == program.kinds.get(node.output[0]):
                yield _short_cut(program, number, name)
    for number, node in enumerate(graph.node):
        for attribute in node.attribute:
            if not attribute.HasField("g") and node.op_type != "Constant":
                copy = _copy(program)
                kept = [a for a in copy.model.graph.node[number].attribute if a.name != attribute.name]
                del copy.model.graph.node[number].attribute[:]
                copy.model.graph.node[number].attribute.extend(kept)
                yield copy
    yield from _plainer(program)


def _plainer(program: FuzzModel) -> Iterator[FuzzModel]:
    """Without initializers that are inputs, notes of types and named sizes; with weights of ones."""
    graph = program.model.graph
    held = {tensor.name for tensor in graph.initializer}
    copy = _copy(program)
    copy.model.graph.ClearField("value_info")
    yield copy
    for name in held & {info.name for info in graph.input}:
        copy = _copy(program)
        kept = [info for info in copy.model.graph.input if info.name != name]
        del copy.model.graph.input[:]
        copy.model.graph.input.extend(kept)
        yield copy
    for number, tensor in enumerate(graph.initializer):
        array = numpy_helper.to_array(tensor)
        if tensor.data_type in FLOATS and array.size > 1 and not (array == 1).all():
            copy = _copy(program)
            ones = numpy_helper.from_array(np.ones_like(array), tensor.name)
            copy.model.graph.initializer[number].CopyFrom(ones)
            yield copy


def _copy(program: FuzzModel) -> FuzzModel:
    model = ModelProto()
    model.CopyFrom(program.model)
    return FuzzModel(model, program.kinds)


def _info(program: FuzzModel, name: str):  # type: ignore[no-untyped-def]
    dtype, shape = program.kinds[name]
    return helper.make_tensor_value_info(name, dtype, list(shape))


def _with_outputs(program: FuzzModel, names: list[str]) -> FuzzModel:
    copy = _copy(program)
    del copy.model.graph.output[:]
    copy.model.graph.output.extend(_info(program, name) for name in names)
    return cleaned(copy)


def _cut(program: FuzzModel, number: int) -> FuzzModel:
    """The node's results become inputs."""
    copy = _copy(program)
    node = program.model.graph.node[number]
    del copy.model.graph.node[number]
    copy.model.graph.input.extend(_info(program, name) for name in node.output if name)
    return cleaned(copy)


def _short_cut(program: FuzzModel, number: int, operand: str) -> FuzzModel:
    """An operand takes the place of the node's result."""
    copy = _copy(program)
    old = program.model.graph.node[number].output[0]
    del copy.model.graph.node[number]
    for node in copy.model.graph.node:
        for place, name in enumerate(node.input):
            if name == old:
                node.input[place] = operand
    made = {name for node in copy.model.graph.node for name in node.output}
    names = [operand if info.name == old else info.name for info in program.model.graph.output]
    return _with_outputs(copy, [name for name in names if name in made])


# --- runs of models


def batch(start: int, inputs: int, end: float, count: int = 50) -> tuple[int, list[tuple[int, Failure, str]]]:
    """Number of models run from that seed on, and the seed, the failure and the smaller text of each that failed."""
    out, ran = [], 0
    for seed in range(start, start + count):
        if time.monotonic() > end:
            break
        program = generate(seed)
        ran += 1
        found = failures(program, seed, inputs=inputs)
        out += [(seed, failure, smallest(program, failure, seed, inputs=inputs).text()) for failure in found]
    return ran, out


def batch_of_files(paths: Sequence[Path], start: int, inputs: int) -> tuple[int, list[tuple[int, Failure, str]]]:
    """As ``batch``, for models that something else made; they are not made smaller."""
    out = []
    for seed, path in enumerate(paths, start):
        model = load(path)
        found = [judge(model, way, inputs=inputs, seed=seed) for way in choices(seed, model, ways=2)]
        out += [(seed, failure, printer.to_text(model)) for failure in found if failure is not None]
    return len(paths), out


def smallest(program: FuzzModel, failure: Failure, seed: int, *, inputs: int = 3) -> FuzzModel:
    """A small model that fails in the same way."""

    def fails(candidate: ModelProto) -> bool:
        found = judge(candidate, failure.options, inputs=inputs, seed=seed)
        return found is not None and found.kind == failure.kind

    return reduced(program, fails)
