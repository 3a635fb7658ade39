"""Functions of the debugging verbs refuse values of another type with a code, before they run anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser

import dmlc
from dmlc.api.arguments import KINDS, check_arguments
from dmlc.testing import assert_equivalent
from tests.rows import each_row

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { h = Exp(x)  y = Neg(h) }'
)
PROGRAM = dmlc.Source("model m(x: f32[4]) -> (y) {\n    y = exp(x)\n    return y\n}\n")

#: Values that no argument, or few of them, take.
JUNK: list[Any] = [
    3, -1, 2.5, True, float("nan"), "", "nosuch", b"bytes", [], ["a"], [None], {}, {"x": None}, {1: 2}, (), {3},
    np.zeros(3), np.int64(2), object(), Path("no/such"), 1j, "\ud800", "a\0b", None,
]  # fmt: skip

FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "locate": (dmlc.locate, (MODEL, MODEL)),
    "bisect": (dmlc.bisect, (MODEL,)),
    "repro": (dmlc.repro, (MODEL,)),
    "diff": (dmlc.diff, (MODEL, MODEL)),
    "decompose": (dmlc.decompose, (MODEL,)),
    "fix": (dmlc.fix, (PROGRAM,)),
    "assert_equivalent": (assert_equivalent, (MODEL, MODEL)),
}


def keywords(name: str) -> list[str]:
    """The keywords of a function, but for texts of reports and the ledger of ``replay``."""
    function, given = FUNCTIONS[name]
    parameters = list(inspect.signature(function).parameters)[len(given) :]
    unchecked = ("data", "expected") if name == "decompose" else ("data",)
    return [each for each in parameters if each not in unchecked]


CASES = [(name, keyword) for name in FUNCTIONS for keyword in keywords(name)]


@each_row(("name", "keyword"), CASES, ids=[f"{name}-{keyword}" for name, keyword in CASES])
def test_any_value_works_or_is_refused_with_a_code(
    name: str, keyword: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    function, given = FUNCTIONS[name]
    for value in JUNK:
        try:
            function(*given, **{"inputs": 1, keyword: value} if "inputs" in keywords(name) else {keyword: value})
        except (dmlc.DmlcError, AssertionError) as error:
            assert str(error)  # a test that fails says why


@each_row(
    ("given", "message"),
    [
        ({"backend": 3}, "backend is a text, not 3"),
        ({"seed": -1}, "seed is an integer of 0 or more, not -1"),
        ({"inputs": 0}, "inputs is a number of 1 or more, or a dict of arrays by name, not 0"),
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
            if name in KINDS and name != "expected":
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
