"""Pages of commands, options, limits and JSON documents, written from their declarations."""

from __future__ import annotations

import argparse

from dmlc.cli.compile_options import add_compile_options, keywords_of
from dmlc.cli.main import DOCUMENTED, GROUPS, VERBS
from dmlc.diagnostics.limits import LIMITS
from dmlc.passes.options import OPTIONS, Option
from tools.builder_stubs import type_text
from tools.site.writing import Pages, code, console, fence, output_of, table


def command_pages() -> Pages:
    """Return a page for each command with all its options, and their list by group."""
    text = "# Commands\n\n`dmlc COMMAND --help-all` prints the options of one.\n"
    for title, commands in GROUPS.items():
        rows = [[f"[{name}]({name}.md)", summary] for name, summary in commands.items()]
        text += f"\n## {title.capitalize()}\n\n{table(('command', 'use'), rows)}"
    pages = {f"reference/commands/{name}.md": _command_page(name) for name in VERBS}
    return {"reference/commands/index.md": text, **pages}


def _command_page(name: str) -> str:
    schema = ""
    if name in DOCUMENTED:
        schema = f"\n[The JSON document](../schemas/{name}.md) of `dmlc {name} --format json` has a schema.\n"
    summary = VERBS[name]
    return f"# dmlc {name}\n\n{summary[0].upper()}{summary[1:]}.\n\n{console(name, '--help-all')}{schema}"


def schema_pages() -> Pages:
    """Return a page with the JSON Schema of each command, and their list."""
    text = "# JSON documents\n\n`--format json` prints one document. `dmlc explain --schema check` prints a schema.\n\n"
    text += "".join(f"- [dmlc {name}]({name}.md)\n" for name in DOCUMENTED)
    schemas = {name: fence(output_of("explain", "--schema", name), "json") for name in DOCUMENTED}
    pages = {f"reference/schemas/{name}.md": f"# JSON of dmlc {name}\n\n{schema}" for name, schema in schemas.items()}
    return {"reference/schemas/index.md": text, **pages}


def limit_pages() -> Pages:
    """Return the table of the limits."""
    rows = [
        (code(limit.name), f"{limit.default:,} {limit.unit}", code(limit.code.id), limit.guards)
        for limit in LIMITS.values()
    ]
    text = "# Table of limits\n\n`--limit nodes=3000000` raises one. [Limits](../limits.md) explains them.\n\n"
    return {"reference/limits.md": text + table(("limit", "default", "code", "applies to"), rows)}


def option_pages() -> Pages:
    """Return the options of a compilation: on the command line, and as keywords."""
    text = (
        "# Options of a compilation\n\nEvery command that compiles takes the options of the first column, and "
        "`dmlc.compile` the keywords of the second. An option that may be repeated takes all values at once in Python. "
        "The ledger keeps the options that rewrites depend on under the names of the keywords.\n"
    )
    for group in dict.fromkeys(option.group for option in OPTIONS.values()):
        rows = [_option(option) for option in OPTIONS.values() if option.group == group]
        title = group.capitalize() if group else "In Python alone"
        text += f"\n## {title}\n\n{table(('option', 'keyword', 'takes', 'meaning'), rows)}"
    return {"reference/options.md": text}


def _option(option: Option) -> tuple[str, ...]:
    words = words_of(option)
    flag, value = (code(" ".join(words)), keyword_of(words)[option.name]) if words else ("", option.default)
    also = "; may be repeated" if words and option.repeats else ""
    only = f" (`{option.only}` alone)" if option.only else ""
    keyword = code(f"{option.name}={value!r}".replace("'", '"'))
    return flag, keyword, code(type_text(option.takes)), f"{option.description}{also}{only}"


def words_of(option: Option) -> list[str]:
    """Return an example of the option on the command line; empty for one of Python alone."""
    values = [option.example or option.words[-1]] if option.example or option.words else []
    return [option.flag, *values] if option.flag else []


def keyword_of(words: list[str]) -> dict[str, object]:
    """Return the keywords of ``dmlc.compile`` that words of the command line mean."""
    parser = argparse.ArgumentParser()
    add_compile_options(parser, "compile")
    return keywords_of(parser.parse_args(words))
