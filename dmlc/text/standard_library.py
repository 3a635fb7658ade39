"""The standard library: one ``.dml`` file of the package for each block, named as the block."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from dmlc.diagnostics import Change, Proposal, Source, Span, text_of
from dmlc.diagnostics.fix import enclosed
from dmlc.ops.pages import StandardBlock

_FOLDER = Path(__file__).parents[1] / "std"


@cache
def std_blocks() -> tuple[str, ...]:
    """The names of the blocks."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.dml")))


def std_path(name: str) -> Path:
    """The file of a block."""
    return _FOLDER / f"{name}.dml"


def std_page(name: str) -> StandardBlock:
    """The page of a block, read from its file."""
    lines = std_path(name).read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    head = next(line for line in lines if line.startswith(f"def {name}("))
    return StandardBlock(name, head.removeprefix("def ").removesuffix(" {"), " ".join(comment))


def using(name: str, source: Source) -> Change:
    """The change that adds the ``use`` line of a block to a file, behind its header if it has one."""
    line = 2 if source.line(1).startswith("dml ") else 1
    return Change(f"use {name} from std\n", Span(source, line, 1, line, 1))


def writing_call(text: str, span: Span, *, safe: bool) -> Proposal:
    """The proposal to write a call for a span, with the ``use`` lines of the blocks in it."""
    names = [name for name in std_blocks() if re.search(rf"\b{name}\(", text) and name not in text_of(span)]
    uses = "".join([f", and use {name} from std at the top of the file" for name in names])
    changes = (Change(enclosed(text, span), span), *[using(name, span.source) for name in names])
    return Proposal(f"write {text}{uses}", changes, safe)
