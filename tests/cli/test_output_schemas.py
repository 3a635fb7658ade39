"""The JSON Schemas of what ``--format json`` prints: each document of each verb keeps to its own, and to no more."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from onnx import parser

from dmlc.cli.main import DOCUMENTED, main
from dmlc.cli.schemas import schema_of
from tests.rows import each_row

PROGRAM = """\
dim B in 1..64

model head(x: f32[B, 8, 16] in 0.0..1.0, w: f32[16]) -> (y, i) {
    y = softmax(layer_norm(x, w), axes=[1])
    i = argmax(x, axes=[1, 2])
    return y, i
}
"""
TEXTS = {
    "head.dml": PROGRAM,
    "layout.dml": PROGRAM.replace("    y", " y"),
    "half.dml": "model half(x: f16[N, 8]) -> (y) {\n    u = x + 1\n    return reduce_sum(x * x, axes=[1])\n}\n",
    "names.dml": "model m(x: f32[3]) -> (y) {\n    y = softmx(x)\n    return z\n}\n",
    "library.dml": "const k: f32[] = 1.0\n\ndef f(x, *, axes=[1]) {\n    return reduce_sum(x, axes=axes)\n}\n",
}
OPSET = '<ir_version: 8, opset_import: ["": 17]>'
FACTOR = f"""{OPSET} g (float[N, 3] x) => (float[N, 3] y) {{
    c = Constant<value = float {{2.0}}>()
    t = Mul(x, c)
    [last] y = Softmax(t)
}}"""
MODELS = {
    "a.onnx": FACTOR,
    "b.onnx": FACTOR.replace("2.0", "2.5"),
    "ints.onnx": f"{OPSET} g (int32[2, 3] x) => (int32[1, 1] y) {{ y = ReduceMean(x) }}",
    "open.onnx": f"{OPSET} g (float[A, B] x, int64[n] s) => (float y) {{ y = Reshape(x, s) }}",
    "diagonal.onnx": f'{OPSET} g (float[3, 3] a) => (float[3] y) {{ y = Einsum<equation = "ii->i">(a) }}',
}
#: Broken ones are among the inputs of ``test_cli_documents``, which looks at their documents.
SOURCES = ["head.dml", "half.dml", "library.dml", "a.onnx", "open.onnx", "diagonal.onnx"]
#: Commands; SRC is replaced by each other source, which the commands take by turns.
COMMANDS = [
    *(f"{verb} SRC" for verb in ("check", "explain", "inspect", "check --target numpy", "check --strict")),
    *("compile SRC -o o.onnx --verify 1", "compile SRC -o o.py", "compile SRC -o o.dml", "compile SRC --dry-run"),
    *("compile SRC -o o.onnx --diff", "compile head.dml --profile B=1,8 -o p.onnx --verify 2", "compile --list-rules"),
    *("compile head.dml --profile B=1,8 -o p.onnx", "explain a.onnx --node last", "explain SRC --missed"),
    *("run SRC --random 1 --backend cpu", "run SRC --random 1 --backend reference", "run head.dml"),
    *("bench a.onnx --random 1 --provider cpu --rounds 1", "bench SRC --random 1 --provider dml"),
    *("graph SRC -o g.dot", "graph SRC -o g.svg --stage source"),
    *("report SRC -o r.html", "report a.onnx -o r.html --verify 0"),
    *("fmt SRC --check", "fmt SRC --diff", "fmt head.dml layout.dml names.dml --check", "fmt layout.dml"),
    *(
        "verify SRC --inputs 2",
        "verify a.onnx b.onnx --inputs 2",
        "verify a.onnx b.onnx --locate --inputs 2",
        "verify a.onnx a.onnx --locate --inputs 2",
    ),
    *("diff SRC a.onnx", "diff a.onnx b.onnx", "diff head.dml half.dml"),
    *("bisect a.onnx --backend cpu --inputs 2", "bisect a.onnx --against b.onnx --inputs 2", "bisect SRC --inputs 2"),
    *(
        "repro a.onnx --against b.onnx --inputs 2 -o bug.zip",
        "repro a.onnx --inputs 2 -o bug.zip",
        "repro SRC --inputs 2 -o r.zip",
    ),
    *("decompose SRC -o d.onnx", "decompose a.onnx --ops Softmax", "decompose a.onnx --ops Conv", "decompose --list"),
    *("decompose diagonal.onnx --ops Einsum", "check head.dml a.onnx names.dml missing.dml x.npy"),
    *("inspect head.dml a.onnx", "explain --list", "explain --list codes", "explain E0301", "explain softmax"),
    *("explain f16", "explain +", "explain directml", "explain cpu", "explain fold", "explain written-out-softmax"),
    *("ops", "ops softmax", "ops top_k", "ops --std", "ops --std cross_entropy", "targets", "targets numpy"),
    *("targets directml", "targets directml --op softmax", "targets cpu --op Softmax", "targets onnx", "doctor"),
    "doctor --probe a.onnx --backend cpu -o rows.json",
]
CALLS = [
    command.replace("SRC", source)
    for number, command in enumerate(COMMANDS)
    for source in (SOURCES[number % 2 :: 2] if "SRC" in command else [""])
]
Call = Callable[[str], dict[str, Any]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command in a folder with the sources; gives its document."""
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    for name, text in MODELS.items():
        onnx.save(parser.parse_model(text), name)
    Path("noise.onnx").write_bytes(b"\x08\x07noise")
    np.save("x.npy", np.zeros(3, np.float32))

    def run(command: str) -> dict[str, Any]:
        capsys.readouterr()
        main([*command.split(), "--format", "json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return document

    return run


def documents(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The document, or those of the files."""
    return [found] if "command" in found else found["files"]


def complaints(found: dict[str, Any]) -> list[str]:
    schema = schema_of(documents(found)[0]["command"])
    return [str(error) for error in Draft202012Validator(schema).iter_errors(found)]


def forms_of(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The forms of a verb's documents."""
    forms = schema["$defs"]
    return [forms[form["$ref"].rpartition("/")[2]] for form in forms["Document"]["anyOf"]]


def title_of(document: dict[str, Any]) -> str:
    """The title of the form that a document has."""
    schema = schema_of(document["command"])
    forms = [(form["title"], Draft202012Validator({**schema, **form, "anyOf": [{}]})) for form in forms_of(schema)]
    fits = [title for title, validator in forms if validator.is_valid(document)]
    assert len(fits) == 1, f"one form is meant: {fits}"
    return str(fits[0])


# --- the schemas


@pytest.mark.parametrize("verb", DOCUMENTED)
def test_explain_prints_the_schema(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--schema", verb]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert schema == schema_of(verb)
    Draft202012Validator.check_schema(schema)


def test_a_verb_that_does_not_exist_has_no_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--schema", "chek"]) == 2
    assert "did you mean check?" in capsys.readouterr().err
    assert main(["explain", "--schema", "check", "E0301"]) == 2


# --- what is printed


@pytest.mark.parametrize("verb", DOCUMENTED)
def test_what_is_printed_keeps_to_the_schema(verb: str, call: Call) -> None:
    @each_row("command", [command for command in CALLS if command.split()[0] == verb])
    def keeps_to_it(command: str) -> None:
        assert complaints(call(command)) == []

    keeps_to_it()


def test_every_declared_field_is_printed(call: Call) -> None:
    """A field that no command prints would be a guess."""
    others = {
        "check": [
            "head.dml",
            "head.dml --target numpy",
            "library.dml",
            "open.onnx",
            "--fix names.dml",
            "--fix names.dml",
        ],
        "compile": ["head.dml -o o.onnx --verify 1 --diff", "head.dml --profile B=1,8 -o p.onnx", "--list-rules"],
        "doctor": ["", "--probe a.onnx --backend cpu -o rows.json"],
        "explain": [
            "head.dml",
            "library.dml",
            "a.onnx --node last",
            "E0301",
            "f16",
            "fold",
            "softmax",
            "cpu",
            "--list",
        ],
        "graph": ["head.dml -o g.svg"],
        "report": ["head.dml -o r.html"],
        "verify": ["a.onnx b.onnx --locate --inputs 2"],
        "repro": ["a.onnx --against b.onnx --inputs 2 -o bug.zip"],
    }
    unseen = set()
    for verb in DOCUMENTED:
        commands = [f"{verb} {rest}" for rest in others.get(verb, ())]
        commands += [command for command in CALLS if command.split()[0] == verb] if verb not in others else []
        printed = {key for command in commands for one in documents(call(command)) for key in one}
        declared = {key for form in forms_of(schema_of(verb)) for key in form["properties"]}
        unseen |= {f"{verb} {key}" for key in declared - printed - {"exit_code", "source", "message"}}
    of_other_pages = {"explain block", "explain blocks", "inspect fixed", "inspect text"}
    of_stdin = {"check text", "fmt text"}
    of_other_models = {"check output", "check unchecked", "check unknown_ranks", "explain from", "explain places"}
    assert unseen == of_other_pages | of_stdin | of_other_models


def records(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects of a document whose fields are fixed."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    for form in schema.get("anyOf", ()):
        if Draft202012Validator({**form, "$defs": root["$defs"]}).is_valid(value):
            yield from records(value, form, root)
            return
    if isinstance(value, dict):
        if schema.get("additionalProperties") is False:
            yield value
        for key, inner in value.items():
            form = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if isinstance(form, dict):
                yield from records(inner, form, root)
    elif isinstance(value, list) and "items" in schema:
        for item in value:
            yield from records(item, schema["items"], root)


@pytest.mark.parametrize(
    "command",
    ["check head.dml", "verify a.onnx b.onnx --locate --inputs 2", "diff a.onnx b.onnx", "check names.dml", "doctor"],
)
def test_a_field_that_is_not_declared_fails(command: str, call: Call) -> None:
    found = call(command)
    schema = schema_of(found["command"])
    validator = Draft202012Validator(schema)
    there = list(records(found, schema, schema))
    assert len(there) > 1
    for place in there:
        place["unheard_of"] = 1
        assert not validator.is_valid(found)
        del place["unheard_of"]
    assert validator.is_valid(found)


@pytest.mark.parametrize(
    "command", ["check head.dml", "verify a.onnx b.onnx --inputs 2", "diff a.onnx b.onnx", "run names.dml"]
)
def test_a_field_that_is_missing_fails(command: str, call: Call) -> None:
    found = call(command)
    validator = Draft202012Validator(schema_of(found["command"]))
    for key in ("schema", "command", "ok", "diagnostics"):
        less = copy.deepcopy(found)
        del less[key]
        assert not validator.is_valid(less), key


def test_a_fix_of_a_diagnostic_is_allowed() -> None:
    span = {"file": "m.dml", "line": 1, "column": 1, "end_line": 1, "end_column": 2, "text": "softmax"}
    diagnostic: dict[str, Any] = {"code": "E0203", "severity": "error", "message": "m", "file": "m.dml", "labels": []}
    diagnostic |= {"help": "", "notes": [], "fix": {"title": "t", "safe": True, "edits": [span]}}
    document = {"schema": 1, "command": "check", "ok": False, "exit_code": 1, "diagnostics": [diagnostic]}
    document["warnings"] = []
    assert complaints(document) == []


def test_a_bug_keeps_to_the_schema(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def falls(*_: object) -> int:
        raise RuntimeError("the sky fell")

    from dmlc.cli import doctor

    monkeypatch.setattr(doctor, "run", falls)
    found = call("doctor")
    assert found["exit_code"] == 3
    assert complaints(found) == []
