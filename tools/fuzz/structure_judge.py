"""Judge what the compiler makes of a model: valid, sound for DirectML, and the same numbers on inputs drawn here.

What differs is judged as ``dmlc verify`` does. A refusal is accepted only for a reason that ``fuzz_refusals`` lists.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper
from onnx.external_data_helper import set_external_data

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.verifying.comparison import DIFFERENT, classes, compare
from dmlc.verifying.judge import Judge, Terms
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.tolerance import REASSOCIATES
from tools.fuzz.judge import Failure, Options
from tools.fuzz.onnx_judge import bound
from tools.fuzz.onnx_models import BOOL, FLOATS
from tools.fuzz.refusals import is_allowed
from tools.fuzz.structure_grower import StructureModel
from tools.fuzz.structure_inputs import Feeds, draw, told
from tools.model_checks import checker_complaint, ranked, run, session
from tools.result_comparison import MODEL_TOLERANCES, difference

#: So many inputs are drawn, and so many are run of those that the original takes.
_DRAWS, _RUNS = 10, 5
RELEASES = ("directml:ort-1.17", "directml:ort-1.18", "directml:ort-1.20")


@dataclass
class Original:
    """A model that runs, and its results on some inputs."""

    model: ModelProto
    plain: Any
    fast: Any  # None if ONNX Runtime's optimizations break it
    feeds: list[Feeds] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)


def choices(seed: int, model: ModelProto) -> Options:
    """The options that the model of that seed is compiled with."""
    rng = random.Random(f"options {seed}")
    options: Options = {"target": rng.choice(("directml", "directml", "cpu", "onnx"))}
    turn = rng.randrange(24)
    dims = sorted({d.dim_param for i in model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param})
    if turn == 0:
        options["exact"] = True
    elif turn == 1:
        options["allow"] = ("range",)
    elif turn == 2:
        options["opset"] = rng.choice((13, 16, 17, 18, 20, 21))
    elif turn == 3 and dims:
        options["bind"] = {name: rng.randint(1, 4) for name in dims}
    elif turn == 4:
        options["target"] = rng.choice(RELEASES)
    return options


def original(model: ModelProto, seed: int) -> Original | None:
    """The model's results on drawn inputs; None if it runs on none of them."""
    try:
        found = session(model)
    except Exception:  # with the sizes that were bound it is not a model
        return None
    out = Original(model, found, None)
    with contextlib.suppress(Exception):
        out.fast = session(model, optimized=True)
    for turn in range(_DRAWS):
        feeds = draw(model, np.random.default_rng([seed, turn]), turn, found)
        try:
            results = run(found, feeds)
        except Exception:  # the original does not take these
            continue
        out.feeds.append(feeds)
        out.results.append(results)
        if len(out.feeds) == _RUNS:
            break
    return out if out.feeds else None


def judge(
    case: StructureModel,
    options: Options,
    seed: int,
    counts: Counter[str] | None = None,
    phase: Callable[[str], None] = lambda _: None,
) -> Failure | None:
    """Return what goes wrong with the model under the options; None if nothing does.

    ``counts`` records what became of it. ``phase`` is called before what may end the process: ``original`` and then
    ``emitted``, as ONNX Runtime crashes on some models.
    """
    tally: Counter[str] = Counter() if counts is None else counts
    phase("original")
    source = original(bound(case.model, options), seed)
    phase("emitted")
    if source is None:
        tally["dropped: the original does not run"] += 1
        return None
    with tempfile.TemporaryDirectory() as folder:
        given: Any = case.model
        if case.external:
            given = Path(folder) / "model.onnx"
            onnx.save(with_external_weights(case.model), given)
        return _compiled(case, source, given, options, Path(folder) if case.external else None, tally)


def with_external_weights(model: ModelProto) -> ModelProto:
    """The model with its floats in a file of their own; ONNX Runtime's inference reads no shapes from there."""
    out = ModelProto.FromString(model.SerializeToString())
    for tensor in out.graph.initializer:
        if tensor.data_type in FLOATS:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
            set_external_data(tensor, "model.data")
    return out


def _compiled(
    case: StructureModel, source: Original, given: Any, options: Options, folder: Path | None, tally: Counter[str]
) -> Failure | None:
    try:
        program = dmlc.compile(given, **options)
        program.require_sound()
        model = program.to_onnx()
        tally["rewritten"] += bool(program.ledger)
    except DmlcError as error:
        found = error.diagnostics[0]
        if is_allowed(found.code.id, found.message, options):
            tally[f"refused: {found.code.id}"] += 1
            return None
        return Failure(options, found.code.id, found.message)
    except Exception as error:  # a bug in the compiler, whatever it is
        return Failure(options, f"crash {type(error).__name__}", str(error))
    wrong = "wrong_declaration" in case.traits  # the inference of an older opset may not see that
    return _valid(source, model, options, folder, tally, wrong=wrong)


def _valid(
    source: Original, model: ModelProto, options: Options, folder: Path | None, tally: Counter[str], *, wrong: bool
) -> Failure | None:
    """The emitted model passes what the original passes, keeps its interface, and computes the same."""
    text = checker_complaint(ranked(model), folder)
    if text is not None and not wrong and checker_complaint(ranked(source.model)) is None:
        return Failure(options, "checker", text)
    sessions = []
    for name, other in (("loading", source.plain), ("loading optimized", source.fast)):
        try:
            sessions.append(session(model, folder, optimized=name != "loading"))
        except Exception as error:  # ONNX Runtime's exceptions have no common base
            if _is_known_fault(str(error), source.model, options):
                tally["dropped: ONNX Runtime fails on int8 at opset 21"] += 1
                return None
            if other is not None:
                return Failure(options, name, " ".join(str(error).split())[:300])
    emitted = partial(OnnxSubject, model, folder)
    return _interface(source.plain, sessions[0], options) or _numbers(source, emitted, sessions, options, tally)


def verified(case: StructureModel, options: Options, seed: int) -> Failure | None:
    """``verify`` calls no model different that the judge found to be equal.

    Models with integer inputs are left out: where those are shapes, ``verify`` tries ever larger sizes that fit them.
    """
    held = {tensor.name for tensor in case.model.graph.initializer}
    inputs = [info.type.tensor_type.elem_type for info in case.model.graph.input if info.name not in held]
    if not set(inputs) <= {*FLOATS, BOOL}:
        return None
    verdict = dmlc.compile(case.model, **options).verify(3, seed=seed)
    empty = any(np.size(array) == 0 for array in (verdict.case or {}).values())  # kernels do not agree on nothing
    return Failure(options, "verify", str(verdict)) if verdict.status == "different" and not empty else None


def _is_known_fault(message: str, model: ModelProto, options: Options) -> bool:
    """True where ONNX Runtime moves int8 nodes at an opset that the model has, or that the user asks for.

    From opset 21 on, its QDQ propagation makes a QuantizeLinear that contradicts itself. A model below stays below.
    """
    newer = "opset" in options or any(e.domain == "" and e.version >= 21 for e in model.opset_import)
    return newer and "output_dtype INT8 does not match y_zero_point type UINT8" in message


def _interface(before: Any, after: Any, options: Options) -> Failure | None:
    """Inputs and outputs keep their names, order and types; overridable initializers stay so."""
    for part in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        old, new = ([(i.name, i.type) for i in getattr(s, part)()] for s in (before, after))
        if part == "get_overridable_initializers":
            old, new = sorted(old), sorted(new)
        if old != new:
            return Failure(options, "interface", f"{part}: {old} became {new}")
    return None


def _numbers(
    source: Original, emitted: Callable[[], OnnxSubject], sessions: list[Any], options: Options, tally: Counter[str]
) -> Failure | None:
    excuses: set[str] = set()
    for feeds, expected in zip(source.feeds, source.results, strict=True):
        for name, found in zip(("", " optimized"), sessions, strict=False):
            text = _difference(source.model, emitted, feeds, expected, found, excuses)
            if text is not None:
                return Failure(options, f"{text[0]}{name}", f"{told(feeds)}: {text[1]}")
    tally["compared" if not excuses else f"compared, but for {sorted(excuses)[0]}"] += 1
    return None


def _difference(
    model: ModelProto,
    emitted: Callable[[], OnnxSubject],
    feeds: Feeds,
    expected: dict[str, Any],
    found: Any,
    excuses: set[str],
) -> tuple[str, str] | None:
    try:
        results = run(found, feeds)
    except Exception as error:  # ONNX Runtime's exceptions have no common base
        return "fails", str(error)[:300]
    texts = {name: difference(expected[name], results[name], MODEL_TOLERANCES) for name in expected}
    texts = {name: text for name, text in texts.items() if text is not None}
    if not texts:
        return None
    terms = Terms(classes(REASSOCIATES), {}, None, frozenset())
    judged = Judge(OnnxSubject(model), emitted(), feeds, expected, terms)
    for found in compare(expected, results, REASSOCIATES).values():
        status, reason = (
            judged.judge(found, results.get(found.name)) if found.status == DIFFERENT else (found.status, "")
        )
        if status == DIFFERENT:
            return "different", "; ".join(f"{name}: {text}" for name, text in texts.items())
        excuses |= {reason} - {""}
    return None
