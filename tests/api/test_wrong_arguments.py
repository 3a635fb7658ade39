"""Public functions and methods refuse values of another type with a code, before they run anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from dmlc.api.arguments import KINDS, check_arguments
from dmlc.builder import operations
from dmlc.codegen.numpy import Style
from dmlc.runtime.weights import Placement
from dmlc.testing import assert_equivalent, breaking_inputs
from tests.rows import each_row

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { h = Exp(x)  y = Neg(h) }'
)
PROGRAM = dmlc.Source("model m(x: f32[4]) -> (y) {\n    y = exp(x)\n    return y\n}\n")
#: The same with a dim, for options that map names to values.
OPEN = dmlc.Source("model m(x: f32[N, 4]) -> (y) {\n    y = exp(x)\n    return y\n}\n")
FEEDS = {"x": np.zeros(4, np.float32)}

#: Values that no argument, or few of them, take.
PLAIN: list[Any] = [
    3, -1, 2.5, True, float("nan"), "", "nosuch", b"bytes", [], (), {}, np.zeros(3), np.int64(2), np.array(["a"]),
    np.array(2), object(), Path("no/such"), 1j, "\ud800", "a\0b", None, int, 10**30, -(10**30), ..., range(2), {3}, "N",
]  # fmt: skip
#: The same inside lists and dicts, in turn.
JUNK: list[Any] = [
    *PLAIN, *[[value] for value in PLAIN[::3]], *[{"x": value} for value in PLAIN[1::3]],
    *[{"N": value} for value in PLAIN[2::3]],
    {1: 2}, {"x": [1, "a"]}, {"x": (0, object())}, [{"x": 3}], ["a", None], [[1], 2],
]  # fmt: skip


def called_anew(method: Callable[..., Any], made: Callable[[], Any]) -> Callable[..., Any]:
    """A method as a function that calls it on an object of its own each time."""

    def call(*operands: Any, **keywords: Any) -> Any:
        return method(made(), *operands, **keywords)

    parameters = list(inspect.signature(method).parameters.values())[1:]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


@cache
def compiled(target: str = "cpu") -> dmlc.Program:
    return dmlc.compile(PROGRAM, target=target)


@cache
def repro() -> dmlc.Repro:
    def is_wrong(model: ModelProto, inputs: Any, expected: Any) -> bool:
        return not any(node.op_type == "Exp" for node in model.graph.node)

    return dmlc.repro(MODEL, check=is_wrong)


def a_tensor() -> dmlc.Tensor:
    return dmlc.Graph("g").input("x", "f32", (4, 4))


#: Functions and methods by name, with the operands that they need. Each has every parameter tested.
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "compile": (dmlc.compile, (OPEN,)),
    "function": (dmlc.function, ("defs.dml",)),
    "model_facts": (dmlc.model_facts, (MODEL,)),
    "check": (dmlc.check, (OPEN,)),
    "verify": (dmlc.verify, (MODEL, MODEL)),
    "locate": (dmlc.locate, (MODEL, MODEL)),
    "bisect": (dmlc.bisect, (MODEL,)),
    "repro": (dmlc.repro, (MODEL,)),
    "diff": (dmlc.diff, (MODEL, MODEL)),
    "decompose": (dmlc.decompose, (MODEL,)),
    "fix": (dmlc.fix, (PROGRAM,)),
    "constant": (dmlc.constant, ([1.0],)),
    "size": (dmlc.size, (a_tensor(),)),
    "assert_equivalent": (assert_equivalent, (MODEL, MODEL)),
    "breaking_inputs": (breaking_inputs, (MODEL,)),
    "Source": (dmlc.Source, ("text",)),
    "Graph": (dmlc.Graph, ("g",)),
    "Graph.input": (called_anew(dmlc.Graph.input, lambda: dmlc.Graph("g")), ("x", "f32", (2,))),
    "Graph.dim": (called_anew(dmlc.Graph.dim, lambda: dmlc.Graph("g")), ("N",)),
    "Graph.output": (called_anew(dmlc.Graph.output, lambda: dmlc.Graph("g")), ("y", dmlc.constant([1.0]))),
    "Tensor.astype": (called_anew(dmlc.Tensor.astype, a_tensor), ("i32",)),
    "Program.artifact": (compiled().artifact, ("onnx",)),
    "Program.placement": (compiled("directml").placement, ()),
    "Program.problems": (compiled().problems, ()),
    "Program.random_feeds": (compiled().random_feeds, (1,)),
    "Program.run": (compiled().run, (FEEDS,)),
    "Program.runner": (compiled().runner, ()),
    "Program.save": (compiled().save, ("out.onnx",)),
    "Program.to_bytes": (compiled().to_bytes, ("onnx",)),
    "Program.to_numpy": (compiled().to_numpy, ()),
    "Program.verify": (compiled().verify, (1,)),
    "Runner.run": (compiled().runner().run, (FEEDS,)),
    "Repro.save": (called_anew(dmlc.Repro.save, repro), ("bug.zip",)),
}
#: Public names that users call on what dmlc gave them, with no value of their own, or that dmlc itself calls.
NOT_TESTED = {
    "BisectResult.of", "BisectResult.to_text", "DType.holds", "Diagnostic.in_file", "Diagnostic.labelled",
    "Diagnostic.of", "LocatedVerdict.to_text", "Placement.count", "Repro.last_line", "Repro.to_text", "Source.line",
    "Source.python", "Verdict.to_text",
}  # fmt: skip

RESULTS = {
    "BisectResult", "CheckResult", "DType", "Diagnostic", "DmlcError", "Edit", "Fix", "FixedText", "LocatedVerdict",
    "MadeFix", "ModelDiff", "Placement", "Program", "Repro", "Tensor", "Verdict",
}  # fmt: skip


def public_callables() -> Iterator[str]:
    """Names of all public functions and methods that have parameters, but for operations."""
    for name in dir(dmlc):
        value = getattr(dmlc, name)
        if inspect.isfunction(value) and name not in operations.__all__:
            yield name
        if inspect.isclass(value):
            yield name
            for method, of_class in inspect.getmembers(value, callable):
                if not method.startswith("_") and value is not dmlc.DmlcError:
                    parameters = [each for each in inspect.signature(of_class).parameters if each != "self"]
                    yield from [f"{name}.{method}"] * bool(parameters)


def test_every_public_function_and_method_is_in_the_table() -> None:
    assert set(public_callables()) - NOT_TESTED - RESULTS - FUNCTIONS.keys() == set()


CASES = [
    (name, index, parameter)
    for name, (function, _) in FUNCTIONS.items()
    for index, parameter in enumerate(inspect.signature(function).parameters.values())
]
#: The first function with a parameter of a name takes all values, the others take turns.
FIRST = {case[2].name: case for case in reversed(CASES)}


@each_row(("name", "index", "parameter"), CASES, ids=[f"{name}-{parameter.name}" for name, _, parameter in CASES])
def test_any_value_works_or_is_refused_with_a_code(
    name: str, index: int, parameter: inspect.Parameter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    keyword = parameter.name
    Path("defs.dml").write_text("def f(x) {\n    return exp(x)\n}\n")
    function, given = FUNCTIONS[name]
    few = {"inputs": 1} if "inputs" in inspect.signature(function).parameters and name[0].islower() else {}
    values = JUNK if "[" in str(parameter.annotation) else PLAIN  # only some arguments hold others
    if (name, index, parameter) not in FIRST.values():
        values = values[index % 4 :: 4]
    for value in values:
        if value is int and keyword in ("check", "progress"):
            continue  # a function, which fails itself
        operands = [*given[:index], value, *given[index + 1 :]] if index < len(given) else given
        keywords = few if index < len(given) else {**few, keyword: value}
        try:
            function(*operands, **keywords)
        except (dmlc.DmlcError, AssertionError) as error:
            assert str(error)  # a test that fails says why
            assert isinstance(error, dmlc.DmlcError) or name == "assert_equivalent", (value, error)
            assert not str(error).startswith("error[I"), (value, error)
        except Exception as error:
            raise AssertionError(f"{value!r}: {type(error).__name__}: {error}") from error


@each_row(
    ("call", "wrong"),
    [
        *[(call, wrong) for call in ("artifact", "to_bytes") for wrong in ({"kind": 3}, {"kind": ["onnx"]})],
        *[(call, {"style": wrong}) for call in ("to_numpy", "save") for wrong in ("x", "Fast", None, 3)],
        *[("save", {"weights": wrong}) for wrong in ("zz", "", 3, ["copy"])],
        *[("save", {"kind": wrong}) for wrong in (3, b"onnx")],
        *[("run", {"outputs": wrong}) for wrong in (3, [3], b"y")],
        ("problems", {"strict": "yes"}),
        ("runner", {"threads": 0}),
    ],
)
def test_words_that_a_method_does_not_know(
    call: str, wrong: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first: dict[str, tuple[Any, ...]] = {"save": ("o.py",), "run": (FEEDS,)}
    with pytest.raises(dmlc.DmlcError) as caught:
        getattr(compiled(), call)(*first.get(call, ()), **wrong)
    assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == ("E0556", 2)
    assert not list(tmp_path.iterdir())


def test_words_of_arguments_are_those_of_the_code() -> None:
    assert set(KINDS["style"].words) == set(get_args(Style))
    assert set(KINDS["weights"].words) == set(get_args(Placement))


@each_row(
    ("given", "message"),
    [
        ({"backend": 3}, "backend is a text, not 3"),
        ({"seed": -1}, "seed is an integer of 0 or more, not -1"),
        ({"inputs": 0}, "inputs is a number from 1 to 2^31 - 1, or a dict of arrays by name, not 0"),
        ({"allowed": "reassociate"}, "allowed is one or more of exact, reassociates, range, not 'reassociate'"),
        ({"rtol": float("nan")}, "rtol is a number of 0 or more, not nan"),
        ({"expected": {1: np.zeros(40)}}, "expected is a dict of arrays by name, not a dict"),
    ],
)
def test_message_names_the_argument_and_what_it_takes(given: dict[str, Any], message: str) -> None:
    with pytest.raises(dmlc.DmlcError) as raised:
        check_arguments(**given)
    (diagnostic,) = raised.value.diagnostics
    assert (diagnostic.code.id, raised.value.exit_code) == ("E0556", 2)
    assert diagnostic.message.startswith(message)


def test_defaults_of_all_functions_are_of_their_kind() -> None:
    for function, _ in FUNCTIONS.values():
        for name, parameter in inspect.signature(function).parameters.items():
            if name in KINDS and name != "expected" and parameter.default is not parameter.empty:
                check_arguments(**{name: parameter.default})


@each_row("answer", [0, 1, "bad", (), np.zeros(100)])
def test_answer_of_a_check_is_a_bool(answer: Any) -> None:
    with pytest.raises(dmlc.DmlcError, match="the check returned"):
        dmlc.bisect(MODEL, check=lambda model, inputs, expected: answer)


def test_skipped_whole_model_has_a_reason() -> None:
    for check in (lambda model, inputs, expected: None, "exit 125 # {model}"):
        with pytest.raises(dmlc.DmlcError) as raised:
            dmlc.bisect(MODEL, check=check)
        assert not raised.value.diagnostics[0].message.endswith(": ")
