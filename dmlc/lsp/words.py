"""Words and patterns of the language, from its own tables, for what colors text without reading it."""

from __future__ import annotations

import re

from dmlc.ir import DTYPE_BY_NAME
from dmlc.lsp.outline import OTHER_CALLS
from dmlc.ops import OPERATIONS
from dmlc.text.elaborate.scope import LITERALS, WORDS
from dmlc.text.syntax.grammar import grammar

#: Keywords that stand for themselves everywhere, and those of a use line or of the header alone.
_IN_ONE_PLACE = ("dml", "use", "from", "std")
KEYWORDS = tuple(
    [word for word in re.findall(r'^[A-Z]+: "([a-z]+)"$', grammar(), re.MULTILINE) if word not in _IN_ONE_PLACE]
)
DTYPES = tuple(DTYPE_BY_NAME)
NUMBERS = tuple(LITERALS)
CALLS = (*OPERATIONS, *OTHER_CALLS)
#: Words of attributes, without those that are numbers.
CHOICES = tuple(sorted(WORDS - set(LITERALS)))
#: Signs, the longest first.
SIGNS = tuple(
    sorted(
        {
            text
            for line in re.findall(r'^_?[A-Z.0-9]+: (".*)$', grammar(), re.MULTILINE)
            for text in re.findall(r'"([^"a-z]+)"', line)
        },
        key=lambda text: (-len(text), text),
    )
)


def pattern_of(terminal: str) -> str:
    """The regular expression of a terminal of the grammar, such as ``NAME``."""
    found = re.search(rf"^{terminal}: /(.*)/$", grammar(), re.MULTILINE)
    assert found is not None, terminal
    return found[1]
