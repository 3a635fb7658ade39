"""Explain a word (an error code, an operation, a rule, a target, a word of the output), or the rewrites of SRC.

A file of that name comes first. Rewrites are shown by rule, with what the rule promises and the nodes before and after.
Missed rewrites are shown with the node where the pattern begins, and the reason.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from dmlc.cli.console import Console, UsageError
from dmlc.cli.layout import table
from dmlc.cli.main import DOCUMENTED, VERBS
from dmlc.cli.options import add_report_options
from dmlc.diagnostics import CODES, Code, catalogue, did_you_mean

_CODE = re.compile(r"[A-Za-z]\d{4}")
_WIDTH = 100
_LISTS = ("codes", "rules", "operations", "targets", "words")


class CodeAnswer(TypedDict):
    """A code."""

    code: str
    title: str
    why: str
    example: str
    fixed: str


class WordList(TypedDict, total=False):
    """The words that have a page, with a line about each."""

    codes: dict[str, str]
    rules: dict[str, str]
    operations: dict[str, str]
    targets: dict[str, str]
    words: dict[str, str]


def answers() -> tuple[type, ...]:
    """Return the records of the documents. Their modules need libraries, which a code's page says how to install."""
    from dmlc.cli.glossary import GlossaryEntry
    from dmlc.cli.library_page import LibraryAnswer
    from dmlc.cli.node_page import NodeAnswer
    from dmlc.cli.ops import OpsAnswer
    from dmlc.cli.program_page import ExplainAnswer
    from dmlc.cli.rule_list import RuleList
    from dmlc.cli.rule_page import RulePage
    from dmlc.cli.targets import TargetsAnswer

    pages = (GlossaryEntry, CodeAnswer, RulePage, RuleList, OpsAnswer, TargetsAnswer, WordList)
    return ExplainAnswer, LibraryAnswer, NodeAnswer, *pages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "a program or a model, a code such as E0301, an operation, a rule, a target, a word of the output"
    parser.add_argument("asked", metavar="SRC|WORD", nargs="*", help=text)
    kinds = (*_LISTS, "all")
    parser.add_argument("--list", choices=kinds, nargs="?", const="all", help="list the words that have a page")
    help = "print the JSON Schema of what `dmlc COMMAND --format json` prints"
    parser.add_argument("--schema", choices=DOCUMENTED, metavar="COMMAND", help=help)
    parser.add_argument(
        "--missed", action="store_true", help="show only the missed rewrites, with the reasons, sorted by the saving"
    )
    parser.add_argument("--node", metavar="NAME", help="show one node: its origin and its rewrites")
    add_report_options(parser)


def add_rest(parser: argparse.ArgumentParser) -> None:
    """Add the options for SRC. They need the libraries that a code's page says how to install."""
    from dmlc.cli.compile_options import add_compile_options

    add_compile_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    args.source = _source(args.asked)
    if args.schema is not None:
        if args.source is not None or args.list is not None:
            raise UsageError("--schema takes no program and no other word")
        from dmlc.cli.schemas import schema_text

        sys.stdout.write(schema_text(args.schema))
        return 0
    if args.list is not None:
        if args.source is not None:
            raise UsageError("--list takes no program and no other word")
        return _list(_LISTS if args.list == "all" else (args.list,), console)
    if args.source is None:
        raise UsageError(
            "explain what? A program, a model, a code, an operation, a rule, a target or a word; or --list"
        )
    word: str = args.source
    is_file = Path(word).exists() and not Path(word).is_dir()  # / and // are operations
    page = None if is_file or args.node is not None or args.missed else _page(word)
    if page is not None:
        return page(console)
    # both need the libraries that a code's page says how to install
    rest = argparse.ArgumentParser(add_help=False)
    add_rest(rest)
    rest.parse_args([], args)  # the defaults of options that were not looked at
    if args.node is not None:
        from dmlc.cli.node_page import explain_node

        return explain_node(args, console)
    from dmlc.cli.program_page import explain_program

    return explain_program(args, console)


def _source(words: list[str]) -> str | None:
    """The one argument; words of the output may have blanks. Raises ``UsageError`` for several other arguments."""
    if len(words) < 2:
        return words[0] if words else None
    from dmlc.cli.glossary import find_word

    if find_word(" ".join(words)) is None:
        raise UsageError(f"unexpected argument {words[1]}; dmlc explain --help shows the expected ones")
    return " ".join(words)


def _page(word: str) -> Callable[[Console], int] | None:
    """The function that shows the page of a word; None for a file's name. Raises ``UsageError`` for other words."""
    if _CODE.fullmatch(word):
        return lambda console: _explain_code(word.upper(), console)
    from dmlc.cli import ops, targets
    from dmlc.passes.inventory import all_rules
    from dmlc.targets import target_names

    if word != "-" and ops.find(word) is not None:
        return lambda console: ops.show(word, console)
    rules = {rule.name: rule for rule in all_rules()}
    if word in rules:
        from dmlc.cli.rule_page import explain_rule

        return lambda console: explain_rule(rules[word], console)
    if any(word in rule.passes for rule in rules.values()):
        from dmlc.cli.rule_list import list_rules

        return lambda console: list_rules(console, word)
    if word in target_names():
        return lambda console: targets.show(word, console)
    from dmlc.cli.glossary import WORDS, explain_word, find_word

    meant = find_word(word)
    if meant is not None:
        return lambda console: explain_word(meant, console)
    if word.lower() != word and word.lower() in {*ops.names(), *rules, *target_names()}:
        return _page(word.lower())
    if word == "-" or Path(word).suffix or Path(word).is_dir() or len(Path(word).parts) > 1:
        return None
    if word in VERBS:
        raise UsageError(f"{word} is a command; dmlc {word} --help shows its options")
    near = did_you_mean(word, [*ops.names(), *rules, *target_names(), *WORDS])
    raise UsageError(f"{word} is not a file, and no page has that name; {near or 'dmlc explain --list lists them'}")


def _list(kinds: tuple[str, ...], console: Console) -> int:
    """List the words of these kinds, each with a line of what it is."""
    found = {kind: _words(kind) for kind in kinds}
    pages = [f"{kind}\n" + table([[word, what] for word, what in words.items()], "  ") for kind, words in found.items()]
    console.result("\n".join(pages))
    console.document(dict(found))
    return 0


def _words(kind: str) -> dict[str, str]:
    if kind == "codes":
        assert catalogue, "importing the catalogue declares the codes"
        return {name: CODES[name].title for name in sorted(CODES)}
    if kind == "rules":
        from dmlc.passes.inventory import all_rules

        return {rule.name: rule.summary for rule in all_rules()}
    if kind == "operations":
        from dmlc.cli import ops

        return ops.names()
    if kind == "words":
        from dmlc.cli.glossary import summaries

        return summaries()
    from dmlc.targets import load_target, target_names

    return {name: load_target(name).summary for name in target_names()}


def _explain_code(name: str, console: Console) -> int:
    assert catalogue, "importing the catalogue declares the codes"
    code = CODES.get(name)
    if code is None:
        family = [code for code in CODES if code[:3] == name[:3]]
        known = (
            f"codes of this family: {', '.join(sorted(family))}" if family else "dmlc explain --list codes lists them"
        )
        raise UsageError(f"there is no code {name}; {known}")
    console.result(code_page(code))
    answer: CodeAnswer = {
        "code": code.id,
        "title": code.title,
        "why": code.why,
        "example": code.example,
        "fixed": code.fixed,
    }
    console.document(answer)
    return 0


def code_page(code: Code) -> str:
    """The page of a code."""
    why = textwrap.fill(code.why, _WIDTH)
    wrong, right = (textwrap.indent(part, "    ") for part in (code.example, code.fixed))
    return f"{code.id}: {code.title}\n\n{why}\n\nwrong:\n\n{wrong}\nright:\n\n{right}"
