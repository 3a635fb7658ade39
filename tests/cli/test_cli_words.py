"""Output of commands: no banned word, right plurals, and lines of at most 100 columns, names and source apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import onnx
import pytest
from onnx import parser

import dmlc.diagnostics.catalogue  # noqa: F401  fills CODES
from dmlc.cli.glossary import WORDS
from dmlc.cli.main import VERBS
from dmlc.diagnostics import CODES, Code
from dmlc.ops import FAMILIES
from dmlc.targets import target_names
from tests.cli.plain_words import assert_plain, long_lines, wrong_plurals, wrong_words
from tests.cli.test_cli_documents import BYTES, TEXTS
from tests.cli.test_cli_documents import VERBS as CALLS
from tests.command_line import Run
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

EXAMPLES = Path(__file__).parents[2] / "examples"
#: Sources: models and programs of the examples, and wrong ones.
SOURCES = [
    *("02_head_on_a_model/ppocr_cls_mobile.onnx", "02_head_on_a_model/model.dml", "more/detection_head/model.dml"),
    *("06_ci/nms.dml", "06_ci/metrics.dml", "good.onnx", "ints.onnx", "broken.onnx", "sizes.onnx", "custom.onnx"),
    *("types.dml", "syntax.dml", "cpu.dml", "nine.dml", "missing.onnx", "noise.onnx", "latin.dml"),
]
#: Commands that need no source.
PAGES = [
    *("--help", "ops", "ops --std", "targets", "doctor", "explain --list", "compile --list-rules"),
    *(f"ops {name}" for family in FAMILIES.values() for name in (op.name for op in family)),
    *(f"targets {name}" for name in target_names()),
    *(f"explain {word}" for word in WORDS),
    *(f"{verb} --help" for verb in VERBS),
    *("compile --help-all", "decompose --list"),
    *(f"explain {code}" for code in CODES),
    *("bisect good.onnx --against other.onnx --inputs 2 -v", "verify good.onnx other.onnx --locate"),
    "repro good.onnx --against other.onnx --inputs 2 -o bug.zip",
]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    """Run a command in a folder with the sources and check all that it prints."""
    monkeypatch.chdir(tmp_path)
    for folder in {source.partition("/")[0] for source in SOURCES if "/" in source}:
        shutil.copytree(EXAMPLES / folder, folder)
    for name, text in TEXTS.items():
        if name.endswith(".dml"):
            Path(name).write_text(text)
        else:
            onnx.save(parser.parse_model(text), name)
    for name, data in BYTES.items():
        Path(name).write_bytes(data)

    def run(*words: str) -> tuple[int, str, str]:
        code, out, err = command_line(*words)
        assert_plain(out + err, " ".join(words))
        return code, out, err

    return run


@each_row("command", PAGES)
def test_pages_are_in_plain_words(said: Run, command: str) -> None:
    said(*command.split())


@pytest.mark.parametrize("verb", ["compile", "check", "explain"])
def test_what_v_adds_is_in_plain_words(said: Run, verb: str) -> None:
    """``test_cli_documents`` looks at output without it. The verbs take turns at the sources."""
    for source in SOURCES[("compile", "check", "explain").index(verb) :: 3]:
        said(verb, source, *CALLS[verb], "-v")


@each_row("verb", ["compile -o", "compile .dml", "check", "inspect", "report", "graph", "fmt", "diff"])
def test_output_about_examples_is_in_plain_words(said: Run, verb: str) -> None:
    said(verb.split()[0], "06_ci/nms.dml", *CALLS[verb])


@each_row("code", [code for code in CODES.values() if code.program], ids=str)
def test_messages_are_in_plain_words(said: Run, code: Code) -> None:
    Path("p.dml").write_text(code.example)
    said("check", "p.dml", "-v")


@each_row(
    "text", ["2 open sizes", "It runs alone: N", "x is not fed", "lands on the CPU", "the first value that parts"]
)
def test_a_banned_word_is_found(text: str) -> None:
    assert len(wrong_words(text)) == 1


@each_row("text", ["1 nodes", "the 2 node", "12 runs, 1 dispatches", "1,024 element of it", "0 axis"])
def test_a_wrong_plural_is_found(text: str) -> None:
    assert wrong_plurals(text) == [text]


def test_right_words_plurals_and_names_are_allowed() -> None:
    text = "not fused: dynamic sizes: N; 1 node, 2 nodes, 2^63 - 1 elements, opset 1 values.x"
    assert (wrong_words(text), wrong_plurals("1 node of 12 nodes; N - 1 runs")) == ([], [])
    assert long_lines(" ".join(["word"] * 25)) != []
    assert long_lines("name " + "/encoder/layer.0/attention_1/MatMul_output_0 " * 3) == []
