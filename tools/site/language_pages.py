"""Pages of codes, rules, operations and words of the output, written from their declarations."""

from __future__ import annotations

import re

from dmlc.cli.glossary import summaries
from dmlc.cli.rule_list import class_text
from dmlc.diagnostics import CODES, Code, catalogue
from dmlc.ops import FAMILIES
from dmlc.ops.pages import AttributeLine, OperationPage, describe
from dmlc.passes.inventory import RuleFacts, all_rules
from tools.site.operation_examples import example_program
from tools.site.writing import Pages, code, console, document, empty_folder, facts, fence, plain, table

assert catalogue, "importing the catalogue declares the codes"
_FAMILIES = {
    "E01": "Syntax",
    "E02": "Names",
    "E03": "Types, shapes and attributes",
    "E04": "Files",
    "E05": "Targets and runs",
    "W06": "Warnings and hints",
    "I09": "Bugs in dmlc",
}


# --- codes


def code_pages() -> Pages:
    """Return a page for each code, and their list."""
    text = "# Diagnostic codes\n\nEach message has a code. `dmlc explain E0301` prints the page of one.\n"
    for family, title in _FAMILIES.items():
        rows = [[f"[{name}]({name}.md)", found.title] for name, found in sorted(CODES.items()) if name[:3] == family]
        text += f"\n## {family}: {title}\n\n{table(('code', 'meaning'), rows)}"
    pages = {f"reference/codes/{name}.md": _code_page(found) for name, found in CODES.items()}
    return {"reference/codes/index.md": text, **pages}


def _code_page(found: Code) -> str:
    head = f"# {found.id}: {found.title}\n\n{found.why} See [all codes](index.md).\n\n## Example\n\n"
    if not found.program:
        return f"{head}{fence(found.example, 'console')}\n## Mended\n\n{fence(found.fixed, 'console')}"
    with empty_folder() as folder:
        folder.joinpath("example.dml").write_text(found.example, encoding="utf-8")
        shown = console("check", "example.dml")
    return f"{head}{fence(found.example, 'dml')}\n{shown}\n## Mended\n\n{fence(found.fixed, 'dml')}"


# --- rules


def rule_pages() -> Pages:
    """Return a page for each rule, and their list by pass."""
    rules = all_rules()
    passes = dict.fromkeys(name for rule in rules for name in rule.passes)
    text = (
        "# Rules\n\nA rule is one rewrite of a graph. Each promises what it keeps: the same bits (exact), the same up "
        "to rounding (reassociates), or the same for values in a range (range). `dmlc explain RULE` prints the page of "
        "one. `dmlc explain SRC` prints the rules that changed your model.\n"
    )
    for name in passes:
        rows = [[f"[{r.name}]({r.name}.md)", str(r.rewrite_class), plain(r.summary)] for r in rules if name in r.passes]
        text += f"\n## Pass {name}\n\n{table(('rule', 'class', 'rewrite'), rows)}"
    return {"reference/rules/index.md": text, **{f"reference/rules/{r.name}.md": _rule_page(r) for r in rules}}


def _rule_page(rule: RuleFacts) -> str:
    found = document("explain", rule.name)
    ways = "none: the target needs it" if not rule.optional else code(f"--skip-rule {rule.name}")
    rows = [["class", class_text(rule)], ["passes", ", ".join(rule.passes)], ["to leave it out", ways]]
    rows.append(["all rules", "[the list](index.md)"])
    text = f"# Rule {rule.name}\n\n{found['summary']}\n\n{facts(rows)}"
    if found["conditions"]:
        text += f"\n{found['conditions']}\n"
    if found["example"] is None:
        return text
    lines = [f"{kind}: {line}" for kind in ("applies", "stays") for line in found[kind]]
    model = fence(found["example"], "dml" if "model applies" in found["example"] else "")
    return f"{text}\n## Example\n\n{model}\nThe nodes before and after, or the reason to keep them:\n\n" + fence(
        "\n".join(lines)
    )


# --- operations

_MEANING = """# Operations

`dmlc ops` lists the operations of the language, and `dmlc ops argmax` prints the page of one. Each page has the
dtypes that the operation takes, its results in the corners (NaN, overflow, empty axes, ties), and the source of the
rule. The NumPy reference decides: generated code agrees with it exactly for integers, indices and bools, and within
rounding for floats.

- **One dtype.** The operands of an operation have one dtype, a condition or an index apart. Numbers in the program
  take it and must fit it. Nothing is promoted.
- **f16** is computed in f32 and rounded once at the end of an operation. A square that you write before a mean is an
  operation of its own, and may overflow. `--accumulate f32` computes such parts in f32 throughout.
- **f64** is f64 wherever it runs; DirectML has none. `--f64 f32` computes it in f32 and keeps the types of the
  interface.
- **Integers** wrap modulo 2^n in `+ - *`, sums and products.
- **NaN** propagates through arithmetic. If the language does not fix which value wins among NaN, the reference does
  as NumPy. The rows "on DirectML" and "on ONNX Runtime CPU" give the observations there (DirectML 1.15.4; ONNX
  Runtime 1.24 and 1.31). `is_nan` with `where` gives one meaning everywhere.
- **-0** equals +0. The sign of a zero that is a maximum or minimum is unspecified.
- **Target `cpu`** computes in the types for which the installed ONNX Runtime has kernels. Its nodes depend on what is
  installed; its results do not.
- **Sizes** that are not proved to fit become shape checks at run time.
"""


def operation_pages() -> Pages:
    """Return a page for each operation, and their list by family."""
    text = _MEANING
    pages: dict[str, str] = {}
    for title, members in FAMILIES.items():
        found = [describe(op) for op in members]
        rows = [[f"[{page.name}]({_file(page.name)}.md)", code(page.signature), page.summary] for page in found]
        text += f"\n## {title}\n\n{table(('operation', 'call', 'result'), rows)}"
        pages |= {f"reference/operations/{_file(page.name)}.md": _operation_page(page) for page in found}
    return {"reference/operations/index.md": text, **pages}


def _file(name: str) -> str:
    return name.replace(".", "_")


def _operation_page(page: OperationPage) -> str:
    text = f"# {page.name}\n\n{page.summary}\n\n{fence(page.signature, 'dml')}\n"
    rows = [[code(o.name), f"{o.dtypes}; {o.kind}" if o.kind else o.dtypes] for o in page.operands]
    rows += [[code(a.name), _attribute_text(a)] for a in page.attributes]
    if page.results != ("result",):
        rows.append(["results", ", ".join(page.results)])
    rows += [[key, note] for key, note in page.notes.items()]
    rows.append(["all operations", "[the list](index.md)"])
    text += table(("part", "meaning"), [*rows, ["source", page.source]] if page.source else rows)
    program = example_program(page.name)
    with empty_folder() as folder:
        folder.joinpath("example.dml").write_text(program, encoding="utf-8")
        shown = console("run", "example.dml", "--backend", "reference")
    return f"{text}\n## Example\n\n{fence(program, 'dml')}\n{shown}"


def _attribute_text(line: AttributeLine) -> str:
    return f"{line.doc} ({line.values}; {f'default {line.default}' if line.default else 'required'})"


# --- words


def word_pages() -> Pages:
    """Return the glossary."""
    head = "# Glossary\n\nWords of the output. `dmlc explain WORD` prints one.\n"
    return {"reference/glossary.md": head + "".join(map(_word, summaries()))}


def _word(name: str) -> str:
    found = document("explain", name)
    forms = f"\n\nAlso: {', '.join(found['forms'])}." if found["forms"] else ""
    see = f" See {_linked(found['see'])}." if found["see"] else ""
    return f"\n## {name}\n\n{found['text']}{see}{forms}\n"


def _linked(see: str) -> str:
    """Return what to read next, with links to pages."""
    return re.sub(r"docs/([\w/]+\.md)", r"[\1](../\1)", see)
