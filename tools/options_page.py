"""The page ``docs/reference/options.md``, written from the declared options of a compilation.

``python -m tools.options_page --write`` writes it anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dmlc.cli.compile_options import add_compile_options, keywords_of
from dmlc.passes.options import OPTIONS, Option
from tools.builder_stubs import type_text
from tools.generated_files import write_or_compare

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "options.md"
COMMAND = "python -m tools.options_page --write"
_HEAD = """\
# Options of a compilation

Every command that compiles takes the options of the first column, and `dmlc.compile` the keywords of the second. An
option that says so may be repeated; in Python it takes all values at once. The ledger keeps the options that rewrites
depend on under the names of the keywords. `dmlc compile --help-all` prints the same list.

Written from the declarations by `python -m tools.options_page --write`.
"""


def page() -> str:
    """Return the text of the page: a table for each group of options."""
    groups = dict.fromkeys(option.group for option in OPTIONS.values())
    return _HEAD + "".join(_table(group) for group in groups)


def _table(group: str) -> str:
    rows = [_row(option) for option in OPTIONS.values() if option.group == group]
    title = group.capitalize() if group else "In Python alone"
    head = f"\n## {title}\n\n"
    return head + "".join(f"{row}\n" for row in ("| option | keyword | takes | meaning |", "|---|---|---|---|", *rows))


def _row(option: Option) -> str:
    words = words_of(option)
    flag, value = (f"`{' '.join(words)}`", keyword_of(words)[option.name]) if words else ("", option.default)
    keyword = f"{option.name}={value!r}".replace("'", '"')
    kind = type_text(option.takes).replace("|", "\\|")
    also = "; may be repeated" if words and option.repeats else ""
    only = f" (`{option.only}` alone)" if option.only else ""
    return f"| {flag} | `{keyword}` | `{kind}` | {option.description}{also}{only} |"


def words_of(option: Option) -> list[str]:
    """Return an example of the option on the command line; empty for one of Python alone."""
    values = [option.example or option.words[-1]] if option.example or option.words else []
    return [option.flag, *values] if option.flag else []


def keyword_of(words: list[str]) -> dict[str, object]:
    """Return the keywords of ``dmlc.compile`` that words of the command line mean."""
    parser = argparse.ArgumentParser()
    add_compile_options(parser, "compile")
    return keywords_of(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(write_or_compare("options_page", __doc__, {PAGE: page()}))
