"""Compares a compiled ONNX model with the original."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from onnx import ModelProto, load, printer

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.verifying.check import verify_sides
from dmlc.verifying.comparison import DIFFERENT
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.verdict import Verdict
from tools.fuzz.judge import Failure, Options, drawn
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


def failures(model: ModelProto, seed: int, *, inputs: int = 3, ways: int = 1) -> list[Failure]:
    """All that goes wrong with a model on the ways of that seed."""
    found = [judge(model, way, inputs=inputs, seed=seed) for way in choices(seed, model, ways=ways)]
    return [failure for failure in found if failure is not None]


def _runs(model: ModelProto) -> bool:
    """True if the original runs on some inputs: one that never does may be refused as early as it is."""
    sides = (lambda: OnnxSubject(model), lambda: OnnxSubject(model))
    return verify_sides(*sides, inputs=1, seed=0, allowed=frozenset()).ok


def failures_of_files(paths: Sequence[Path], start: int, inputs: int) -> Iterator[tuple[int, Failure, str]]:
    """The seed, the failure and the text of models that something else made, for all that goes wrong with them."""
    for seed, path in enumerate(paths, start):
        model = load(path)
        for failure in failures(model, seed, inputs=inputs, ways=2):
            yield seed, failure, printer.to_text(model)
