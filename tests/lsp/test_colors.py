"""Colors: the Pygments lexer and the TextMate grammar say of each word what the language itself says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pygments import lex as colored
from pygments.lexers import get_lexer_by_name, get_lexer_for_filename
from pygments.token import Error

from dmlc.diagnostics import CODES, Source
from dmlc.lsp.highlighting import DmlLexer
from dmlc.lsp.outline import Outline, Role
from dmlc.text.syntax.parser import lex
from tests.lsp.programs import PROGRAMS, ROOT
from tests.rows import each_row
from tools import textmate_grammar

EXTENSION = ROOT / "editors" / "vscode"
MODULES = EXTENSION / "node_modules" / "vscode-textmate"
#: Kinds of words: the token of Pygments and the scope of the grammar. A role that is not here has the plain one.
KINDS = {
    Role.OPERATION: ("Name.Builtin", "support.function.builtin"),
    Role.DTYPE: ("Keyword.Type", "storage.type"),
    Role.ATTRIBUTE: ("Name.Attribute", "variable.parameter"),
    Role.LITERAL: ("Keyword.Constant", "constant.language"),
    Role.WORD: ("Name.Constant", "constant.other"),
    Role.MODEL: ("Name.Class", "entity.name.class"),
    Role.ONNX: ("Name.Namespace", "support.function.onnx"),
}
SIGNS = {
    "COMMENT": ("Comment.Single", "comment.line"),
    "STRING": ("Literal.String.Double", "string.quoted"),
    "NUMBER": ("Literal.Number", "constant.numeric"),
}
PLAIN = ("Name", "variable.other")
CALLED = ("Name.Function", "entity.name.function")
KEYWORD = ("Keyword", "keyword.")


def expected(path: Path) -> Iterator[tuple[int, int, str, tuple[str, str]]]:
    """Line and column from 0, text and kind of each word of a program, by its outline."""
    lexed = lex(Source(path.name, path.read_text(encoding="utf-8")))
    outline = Outline(lexed.tokens, lexed.comments)
    roles = {id(found.token): found for found in outline.occurrences}
    for token in (*lexed.tokens, *lexed.comments):
        found, kind = roles.get(id(token)), SIGNS.get(token.type)
        if found is not None:
            behind = token.source.line(token.line)[token.end_column - 1 :].lstrip()
            before = token.source.line(token.line)[: token.column - 1].split()[-1:]
            declared = ("Name.Constant", "variable.other.constant") if before in (["dim"], ["const"]) else PLAIN
            is_default = found.role is Role.PARAMETER and re.match(r"=(?!=)", behind)
            kind = KINDS.get(Role.ATTRIBUTE if is_default else found.role) or (
                CALLED if behind[:1] == "(" else declared
            )
        elif token.text.isalpha() and token.type == token.text.upper():
            kind = ("Name.Namespace", "support.module") if token.type == "STD" else KEYWORD
        if kind is not None:
            yield token.line - 1, token.column - 1, token.text, kind


@each_row("path", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pygments_says_what_the_language_does(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found: dict[tuple[int, int], tuple[str, str]] = {}
    line = column = 0
    for kind, value in colored(text, DmlLexer(stripnl=False, ensurenl=False)):
        assert kind is not Error, value
        found[line, column] = (value, str(kind).removeprefix("Token."))
        line += value.count("\n")
        column = len(value) - value.rindex("\n") - 1 if "\n" in value else column + len(value)
    assert "".join(value for value, _ in found.values()) == text
    for row, start, word, (kind, _) in expected(path):
        if kind != "Name.Namespace":  # onnx.Name is one token
            assert found[row, start][0] == word
            assert found[row, start][1].startswith(kind), (row + 1, word)


def test_pygments_finds_the_lexer() -> None:
    assert get_lexer_by_name("dmlc-dml").name == get_lexer_for_filename("m.dml").name == DmlLexer.name


def test_examples_of_codes_have_colors() -> None:
    """Programs with mistakes too: no more than the signs that the language does not have are errors."""
    wrong = {
        value
        for code in CODES.values()
        if code.program
        for kind, value in colored(code.example, DmlLexer())
        if kind is Error
    }
    assert wrong <= set("'~;?@\\$\"`“”")


needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
needs_modules = pytest.mark.skipif(not MODULES.exists(), reason="run: npm ci --ignore-scripts in editors/vscode")


def scopes() -> Iterator[tuple[Path, dict[int, list[tuple[int, int, list[str]]]]]]:
    """The start, end and scopes of each token of each line of each program, by the grammar."""
    script = Path(__file__).with_name("textmate_tokens.cjs")
    command = ["node", str(script), str(EXTENSION), *map(str, PROGRAMS)]
    done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    for path, text in zip(PROGRAMS, done.stdout.splitlines(), strict=True):
        lines: dict[int, list[tuple[int, int, list[str]]]] = {}
        for line, start, end, found in json.loads(text):
            lines.setdefault(line, []).append((start, end, found))
        yield path, lines


@needs_node
@needs_modules
def test_the_grammar_says_what_the_language_does() -> None:
    wrong = []
    for path, lines in scopes():
        text = path.read_text(encoding="utf-8").split("\n")
        for row, start, word, (_, scope) in expected(path):
            place = len(text[row][:start].encode("utf-16-le")) // 2
            found = next(scopes for first, end, scopes in lines[row] if first <= place < end)
            if not any(each.startswith(scope) for each in found):
                wrong.append((path.name, row + 1, word, found))
    assert wrong == []


@needs_node
@needs_modules
def test_the_extension_is_small(tmp_path: Path) -> None:
    """It is packed without the network: one file of code, and nothing of ``node_modules``."""
    command = ["npm", "run", "package", "--offline", "--", "-o", str(tmp_path / "dmlc.vsix")]
    subprocess.run(command, check=True, capture_output=True, cwd=EXTENSION)
    assert (tmp_path / "dmlc.vsix").stat().st_size < 150_000
    names = zipfile.ZipFile(tmp_path / "dmlc.vsix").namelist()
    assert {name for name in names if name.endswith(".js")} == {"extension/dist/extension.js"}
    assert {"extension/syntaxes/dml.tmLanguage.json", "extension/snippets/dml.json"} <= set(names)


def test_the_grammar_is_the_generated_one() -> None:
    for path, text in textmate_grammar.files().items():
        assert path.read_text(encoding="utf-8") == text, "python -m tools.textmate_grammar --write"
