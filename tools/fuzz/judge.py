"""Judges that a program means the same on every way through the compiler."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import dmlc
from dmlc.diagnostics import DmlcError, Source
from dmlc.ir import Graph
from dmlc.passes.inventory import all_rules
from dmlc.verifying.check import verify_sides
from dmlc.verifying.comparison import DIFFERENT
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.inputs import Feeds, Interface
from dmlc.verifying.models import CodeSubject
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.sizes import Binding
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

    def is_like(self, other: Failure | None) -> bool:
        """Return whether another case fails in the same way."""
        return other is not None and other.kind == self.kind


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


@dataclass(frozen=True, slots=True)
class _Kept(Interface):
    """An interface that keeps the inputs that it makes."""

    made: dict[Any, Feeds] = field(default_factory=dict)

    def feeds(self, bindings: Sequence[Binding], number: int, seed: int, draw: int = 0) -> Feeds:
        key = (number, seed, draw, *[size for binding in bindings for size in binding.values()])
        if key not in self.made:
            self.made[key] = Interface.feeds(self, bindings, number, seed, draw)
        return self.made[key]


class _Source(GraphSubject):
    """A program's own graph, which every way starts from: its inputs, and what it gives for them, are kept."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._interfaces = [
            _Kept(*[getattr(found, each.name) for each in fields(Interface)]) for found in super().interfaces()
        ]
        self._given: dict[Any, dict[str, Any]] = {}

    def interfaces(self) -> list[Interface]:
        return list(self._interfaces)

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        key = (*(wanted or ()), *[(name, x.shape, x.tobytes()) for name, x in feeds.items()])
        if key not in self._given:
            self._given[key] = super().run(feeds, wanted)
        return self._given[key]


class Known:
    """Results for one program under one seed that all its ways ask for."""

    def __init__(self) -> None:
        self.sources: dict[str, _Source] = {}
        #: The problem of each graph or model that some way led to.
        self.problems: dict[Any, tuple[str, str] | None] = {}


def judge(text: str, options: Options, *, inputs: int = 3, seed: int = 0, known: Known | None = None) -> Failure | None:
    """The program's failure under the options; None where it does nothing wrong, or is refused with a reason."""
    try:
        program = dmlc.compile(Source("fuzz.dml", text), **options)
        verify = _Verify(program, inputs, seed, known or Known())
        problem = verify.passes() or (verify.numpy() if options["target"] == "numpy" else verify.onnx())
    except DmlcError as error:
        code, message = error.diagnostics[0].code.id, error.diagnostics[0].message
        return None if is_allowed(code, message, {"source": "program", **options}) else Failure(options, code, message)
    except Exception as error:  # a bug in the compiler, whatever it is
        return Failure(options, f"crash {type(error).__name__}", str(error))
    return None if problem is None else Failure(options, *problem)


class _Verify:
    """The comparisons of a program with its source. Each has a kind and the difference, None where there is none."""

    def __init__(self, program: dmlc.Program, inputs: int, seed: int, known: Known) -> None:
        self._program, self._inputs, self._seed, self._known = program, inputs, seed, known
        self._text = str(program.source_graph)

    def passes(self) -> tuple[str, str] | None:
        """The graph after the passes against the source, both by the references."""
        lowered = self._program.graph
        if any(node.op.reference is None for node in lowered):
            return None  # a rule put an ONNX operator in; ONNX Runtime judges it
        return self._wrong("passes", str(lowered), lambda: GraphSubject(lowered))

    def numpy(self) -> tuple[str, str] | None:
        program = self._program
        code = CodeSubject(program.source_graph, lambda feeds: program.run(feeds, "numpy"))
        return self._wrong("numpy", "", lambda: code)

    def onnx(self) -> tuple[str, str] | None:
        model = self._program.to_onnx()
        model.ClearField("metadata_props")  # the options
        return self._wrong("onnx", model.SerializeToString(), lambda: OnnxSubject(model))

    def _wrong(self, kind: str, text: str | bytes, other: Callable[[], Subject]) -> tuple[str, str] | None:
        """The difference, on inputs whose patterns follow the seed, so that many programs meet them all."""
        allowed = frozenset({*self._program.allowed, "reassociates"})  # kernels and references round in their own ways
        key = (kind, self._text, text, allowed)
        if key not in self._known.problems:
            verdict = verify_sides(
                self._source, other, inputs=self._inputs, seed=self._seed, allowed=allowed,
                first=self._inputs * self._seed,
            )  # fmt: skip
            self._known.problems[key] = (kind, _said(verdict)) if verdict.status == DIFFERENT else None
        return self._known.problems[key]

    def _source(self) -> _Source:
        if self._text not in self._known.sources:
            self._known.sources[self._text] = _Source(self._program.source_graph)
        return self._known.sources[self._text]


def _said(verdict: Verdict) -> str:
    return verdict.reason or next((str(o.found) for o in verdict.outputs if o.found is not None), str(verdict))


def failures(text: str, seed: int, *, inputs: int = 3) -> list[Failure]:
    """All that goes wrong with a program on the ways of that seed."""
    known = Known()
    found = [judge(text, way, inputs=inputs, seed=seed, known=known) for way in choices(seed)]
    return [failure for failure in found if failure is not None]
