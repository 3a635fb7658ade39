"""Judges that a program means the same on every way through the compiler."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dmlc
from dmlc.diagnostics import DmlcError, Source
from dmlc.passes.inventory import all_rules
from dmlc.verifying.check import verify_sides
from dmlc.verifying.comparison import DIFFERENT
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.models import CodeSubject
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import Subject
from dmlc.verifying.verdict import Verdict
from tools.fuzz.refusals import is_allowed

Options = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """A failure and its options. ``kind`` is what must stay the same while the program is made smaller."""

    options: Options
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.options}: {self.kind}: {self.text}"


def choices(seed: int) -> list[Options]:
    """The ways that a program of that seed goes: NumPy, and two that end in ONNX."""
    rng = random.Random(seed)
    targets = rng.sample(("directml", "cpu", "onnx"), 2)
    return [{"target": "numpy"}, *({"target": target, **drawn(rng, rng.randrange(7))} for target in targets)]


def drawn(rng: random.Random, turn: int) -> Options:
    """The options of a turn; turns from 6 on have none."""
    rules = [rule.name for rule in all_rules() if rule.optional]
    draws: dict[int, Callable[[], Options]] = {
        0: lambda: {"exact": True},
        1: lambda: {"allow": ("range",)},
        2: lambda: {"lower_hardmax": True},
        3: lambda: {"skip_rules": tuple(rng.sample(rules, 4))},
        4: lambda: {"only_rules": tuple(rng.sample(rules, rng.choice((0, 4, 12))))},
        5: lambda: {"opset": rng.choice((11, 12, 13, 14, 16, 17, 18, 19, 20, 21))},
    }
    return draws[turn]() if turn in draws else {}


def judge(text: str, options: Options, *, inputs: int = 3, seed: int = 0) -> Failure | None:
    """The program's failure under the options; None where it does nothing wrong, or is refused with a reason."""
    try:
        program = dmlc.compile(Source("fuzz.dml", text), **options)
        problem = _passes(program, inputs, seed)
        if problem is None:
            problem = _numpy(program, inputs, seed) if options["target"] == "numpy" else _onnx(program, inputs, seed)
    except DmlcError as error:
        code, message = error.diagnostics[0].code.id, error.diagnostics[0].message
        return None if is_allowed(code, message, {"source": "program", **options}) else Failure(options, code, message)
    except Exception as error:  # a bug in the compiler, whatever it is
        return Failure(options, f"crash {type(error).__name__}", str(error))
    return None if problem is None else Failure(options, *problem)


def _passes(program: dmlc.Program, inputs: int, seed: int) -> tuple[str, str] | None:
    """The graph after the passes against the source, both by the references."""
    lowered = program.graph
    if any(node.op.reference is None for node in lowered):
        return None  # a rule put an ONNX operator in; ONNX Runtime judges it
    return _wrong("passes", program, lambda: GraphSubject(lowered), inputs, seed)


def _numpy(program: dmlc.Program, inputs: int, seed: int) -> tuple[str, str] | None:
    def code() -> Subject:
        return CodeSubject(program.source_graph, lambda feeds: program.run(feeds, "numpy"))

    return _wrong("numpy", program, code, inputs, seed)


def _onnx(program: dmlc.Program, inputs: int, seed: int) -> tuple[str, str] | None:
    return _wrong("onnx", program, lambda: OnnxSubject(program.to_onnx()), inputs, seed)


def _wrong(
    kind: str, program: dmlc.Program, other: Callable[[], Subject], inputs: int, seed: int
) -> tuple[str, str] | None:
    """The difference, on inputs whose patterns follow the seed, so that many programs meet them all."""
    allowed = {*program.allowed, "reassociates"}  # kernels and references round in their own ways
    verdict = verify_sides(
        lambda: GraphSubject(program.source_graph), other, inputs=inputs, seed=seed, allowed=allowed,
        first=inputs * seed,
    )  # fmt: skip
    return (kind, _said(verdict)) if verdict.status == DIFFERENT else None


def _said(verdict: Verdict) -> str:
    return verdict.reason or next((str(o.found) for o in verdict.outputs if o.found is not None), str(verdict))


def failures(text: str, seed: int, *, inputs: int = 3) -> list[Failure]:
    """All that goes wrong with a program on the ways of that seed."""
    found = [judge(text, way, inputs=inputs, seed=seed) for way in choices(seed)]
    return [failure for failure in found if failure is not None]
