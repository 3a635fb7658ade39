"""``docs/semantics.md``, written from the declarations of the operations: ``python -m tools.semantics_page --write``
writes it anew."""

from __future__ import annotations

from pathlib import Path

from dmlc.ops import FAMILIES
from dmlc.ops.pages import AttributeLine, OperationPage, describe
from tools.generated_files import write_or_compare

PAGE = Path(__file__).parents[1] / "docs" / "semantics.md"

_INTRODUCTION = """# Meaning of the operations

This page is written from the declarations in `dmlc/ops` by `python -m tools.semantics_page --write`; a test compares
the two. Each operation has the dtypes it takes, the results of its NumPy reference in the corners (NaN, overflow,
nothing to work on, ties), the targets that differ, and the page that the rule comes from. The reference is
the measure: generated code agrees with it exactly for integers, indices and bools, and within rounding for floats.

- **One dtype.** The operands of an operation have one dtype (a condition or an index apart); numbers in the program
  take it and must fit it. Nothing is promoted.
- **f16** is computed in f32 and rounded once at the end of an operation. A square that is written out before a mean is
  an operation, and may overflow though the mean does not: `--accumulate f32` computes such parts in f32 throughout.
- **f64** is f64, wherever it runs (DirectML has none). `--f64 f32` computes it in f32; the interface keeps its types.
- **Integers** wrap modulo 2^n in `+ - *`, sums and products.
- **NaN** propagates through arithmetic. Where the language leaves open which value wins among NaN, the reference
  does as NumPy and the rows "on DirectML" and "on ONNX Runtime CPU" give the observations there (DirectML 1.15.4;
  ONNX Runtime 1.24 and 1.31). An explicit `is_nan` with `where` gives one meaning everywhere.
- **-0** equals +0; the sign of a zero that is a maximum or minimum is unspecified.
- **Target `cpu`** computes in the types that the installed ONNX Runtime has kernels for, so its nodes depend on what is
  installed; their results do not. Other targets' nodes depend on the program alone.
- **Sizes** that are not proved to fit become conditions that run time checks before it computes.
"""


def page() -> str:
    """Return the whole page."""
    parts = [_INTRODUCTION]
    for title, members in FAMILIES.items():
        parts.append(f"## {title}\n")
        parts += [_section(describe(op)) for op in members]
    return "\n".join(parts)


def _section(page: OperationPage) -> str:
    lines = [f"### {page.name}\n", f"`{page.signature}`\n", f"{page.summary}\n", "| | |", "| --- | --- |"]
    lines += [_row(f"`{o.name}`", f"{o.dtypes}; {o.kind}" if o.kind else o.dtypes) for o in page.operands]
    lines += [_row(f"`{a.name}`", _attribute_text(a)) for a in page.attributes]
    if page.results != ("result",):
        lines.append(_row("results", ", ".join(page.results)))
    lines += [_row(key, text) for key, text in page.notes.items()]
    lines.append(_row("source", page.source))
    return "\n".join(lines) + "\n"


def _attribute_text(line: AttributeLine) -> str:
    default = f"default {line.default}" if line.default else "must be written"
    return f"{line.doc} ({line.values}; {default})"


def _row(key: str, text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"| {key} | {escaped} |"


if __name__ == "__main__":
    raise SystemExit(write_or_compare("semantics_page", __doc__, {PAGE: page()}))
