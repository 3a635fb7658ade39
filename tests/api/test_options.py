"""An option of a compilation is declared once: the command line, Python, the stub, the page and the ledger have it."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest

import dmlc
from dmlc.cli.compile_options import option_words
from dmlc.passes.options import NUMBERS, OPTIONS, REWRITES, Option
from dmlc.targets import TargetName, target_names
from dmlc.targets.directml import FeatureLevel, feature_levels
from tests.command_line import Run
from tests.rows import each_row
from tools.builder_stubs import COMPILE_STUB
from tools.site.command_pages import keyword_of, option_pages, words_of

TEXT = "model m(x: f32[batch, 4]) -> (y) {\n    y = softmax(x, axes=[1])\n    return y\n}\n"
#: Values that the small program takes, for options whose example names what it lacks.
VALUES: dict[str, Any] = {
    "target": "cpu",
    "feature_level": "6.2",
    "bind": {"batch": 3},
    "shapes": {"x": (3, None)},
    "model": "m",
    "include": ["."],
    "skip_rules": ["cse"],
    "only_rules": ["cse"],
    "progress": print,
}
#: Options that go with others.
BESIDE: Mapping[str, dict[str, Any]] = {"tune": {"target": "cpu"}, "tune_seconds": {"target": "cpu", "tune": True}}
#: The groups that a ledger records, apart from the options that its document has elsewhere.
RECORDED = [
    option.name
    for option in OPTIONS.values()
    if option.group in ("target", "sizes and ranges", REWRITES, NUMBERS)
    and option.name not in ("target", "opset", "profiles", "tuning", "probed")
]
FLAGS = [option for option in OPTIONS.values() if option.flag]


def value_of(option: Option) -> Any:
    """A value of the option with which the small program compiles."""
    return VALUES.get(option.name) or keyword_of(words_of(option))[option.name]


@each_row("option", FLAGS, ids=[option.name for option in FLAGS])
def test_help_all_shows_each_option_in_its_group(command_line: Run, option: Option) -> None:
    out = command_line("compile", "--help-all")[1]
    _, _, group = out.partition(f"\n{option.group}:\n")
    body = " ".join(group.partition("\n\n")[0].split())
    shown = option.example or (f"{{{','.join(option.words)}}}" if option.words else "")
    assert f"{option.flag} {shown}".strip() in body
    assert option.description in body
    plain = command_line("compile", "--help")[1]
    assert (f"\n  {option.flag}" in plain) is option.common


@each_row("name", OPTIONS)
def test_compile_its_stub_and_its_docstring_have_each_option(name: str) -> None:
    option = OPTIONS[name]
    parameter = inspect.signature(dmlc.compile).parameters[name]
    assert (parameter.kind, parameter.default) == (parameter.KEYWORD_ONLY, option.default)
    assert f"{name}: {option.description}" in " ".join((dmlc.compile.__doc__ or "").split())
    (stub,) = [one for one in ast.parse(COMPILE_STUB.read_text("utf-8")).body if isinstance(one, ast.FunctionDef)]
    keywords = dict(zip([one.arg for one in stub.args.kwonlyargs], stub.args.kw_defaults, strict=True))
    default = keywords[name]
    assert default is not None
    assert ast.literal_eval(default) == option.default
    assert keywords.keys() == OPTIONS.keys()


@each_row("name", OPTIONS)
def test_the_page_has_each_option(name: str) -> None:
    words, (text,) = words_of(OPTIONS[name]), option_pages().values()
    assert f"`{name}=" in text
    assert not words or f"| `{' '.join(words)}` |" in text


@each_row("option", FLAGS, ids=[option.name for option in FLAGS])
def test_the_command_line_and_python_say_the_same(option: Option) -> None:
    value = value_of(option)
    assert keyword_of(option_words(option.name, value))[option.name] == value
    assert option_words(option.name, option.default) == []


@each_row("name", OPTIONS)
def test_a_value_of_another_type_is_refused_by_name(name: str) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(dmlc.Source(TEXT), **{name: object()})
    assert caught.value.exit_code == 2 or caught.value.diagnostics[0].code.id in ("E0552", "E0551")


@each_row("name", RECORDED)
def test_the_ledger_records_each_option_as_plain_data(name: str, command_line: Run, tmp_path: Path) -> None:
    value, beside = value_of(OPTIONS[name]), BESIDE.get(name, {})
    program = dmlc.compile(dmlc.Source(TEXT), **{name: value}, **beside)
    recorded = program.ledger_document()["options"]
    assert set(recorded) == set(RECORDED)
    assert recorded[name] == json.loads(json.dumps(value))
    source, ledger = tmp_path / "m.dml", tmp_path / "ledger.json"
    source.write_text(TEXT)
    words = [
        *option_words(name, value),
        *[word for other, given in beside.items() for word in option_words(other, given)],
        "-o",
        str(tmp_path / "m.onnx"),
        "--ledger",
        str(ledger),
    ]
    assert command_line("compile", str(source), *words)[0] == 0
    assert json.loads(ledger.read_text("utf-8"))["options"] == recorded


def test_an_option_that_does_not_exist() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'bnid'; did you mean \"bind\"\?"):
        dmlc.compile(dmlc.Source(TEXT), bnid={"batch": 3})  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"check\(\) got an unexpected keyword argument 'opest'"):
        dmlc.check(dmlc.Source(TEXT), opest=17)  # type: ignore[call-arg]


def test_types_name_all_targets_and_levels() -> None:
    assert get_args(TargetName) == target_names()
    assert get_args(FeatureLevel) == feature_levels()
