"""Texts about a name: its type, and its page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.diagnostics import Span
from dmlc.diagnostics.fix import text_of
from dmlc.ir import DTYPE_BY_NAME, Node, Value
from dmlc.lsp.check import KnownModel
from dmlc.lsp.documents import Document
from dmlc.lsp.outline import OTHER_CALLS, NamedBlock, Occurrence, Outline, Role, Symbol, specs_of
from dmlc.ops import OPERATIONS
from dmlc.ops.pages import AttributeLine, OperationPage, describe
from dmlc.runtime.feeds import bounds_text
from dmlc.text.standard_library import std_blocks, std_page
from dmlc.text.syntax.tokens import CLOSERS, OPENERS, Token

FENCE = "dmlc-dml"


def hover_text(document: Document, found: Occurrence, block: NamedBlock | None, outline: Outline) -> str:
    """The type of a name and its page, as Markdown; empty for a name that nothing is known of."""
    symbol, name = found.symbol, found.token.text
    if symbol is not None and symbol.role is Role.DIM:
        return _fenced(_dim_text(document, symbol))
    if symbol is not None and symbol.role is Role.DEF:
        return _def_text(document, symbol)
    if symbol is not None:
        return _symbol_text(document, symbol)
    if found.role is Role.OPERATION:
        return _operation_text(document, found, block, outline)
    if found.role is Role.ATTRIBUTE:
        line = attribute_line(found.callee, name)
        return f"{_fenced(_attribute_head(line))}\n\n{line.doc}" if line is not None else ""
    if found.role is Role.DTYPE and name in DTYPE_BY_NAME:
        return f"{_fenced(name)}\n\n{DTYPE_BY_NAME[name].long_name}"
    return _onnx_text(name) if found.role is Role.ONNX else ""


def type_of(document: Document, symbol: Symbol) -> str:
    """The type of a value, from the last good graph; empty where it is not known."""
    model = symbol.block.symbol.name if symbol.block is not None else None
    for facts in document.facts.values():
        if model is None or facts.graph.name == model:
            known = facts.results if symbol.role is Role.RESULT else facts.names
            if symbol.name in known and (symbol.block is None or symbol.block.is_model):
                return str(known[symbol.name].type)
    return ""


def def_head(block: NamedBlock) -> str:
    """The head of a def without its brace, on one line."""
    head = [token for token in block.head if token.type not in ("LBRACE", "NL", "BAD")]
    return " ".join(text_of(head[0].to(head[-1])).split()) if head else block.symbol.name


def attribute_line(operation: str, name: str) -> AttributeLine | None:
    """The line about an attribute, or about the one that it is a synonym of, on the page of its operation."""
    for spec in specs_of(operation).values():
        if name == spec.name or (spec.synonym is not None and spec.synonym.name == name):
            return next(line for line in describe(OPERATIONS[operation]).attributes if line.name == spec.name)
    return None


def call_span(outline: Outline, callee: Token) -> Span | None:
    """The text of a call from its name to its closing bracket."""
    tokens = outline.tokens
    start = next(i for i, token in enumerate(tokens) if token is callee)
    depth = 0
    for token in tokens[start + 1 :]:
        depth += (token.type in OPENERS) - (token.type in CLOSERS)
        if depth == 0:
            return callee.to(token)
    return None


# --- pages


def _symbol_text(document: Document, symbol: Symbol) -> str:
    type = type_of(document, symbol)
    name = symbol.token.text
    role = symbol.role.value
    if symbol.role is Role.CONST:
        line = document.text.source.line(symbol.token.line)
        return _fenced(line if len(line) < 200 else f"const {name}: {type}")
    if symbol.role is Role.USED and symbol.name in std_blocks():
        page = std_page(symbol.name)
        return f"{_fenced(page.signature)}\n\n{page.summary}"
    promised = _range_text(document, symbol)
    where = f" of {symbol.block.symbol.name}" if symbol.block is not None else ""
    text = f"{role}{where}{promised}"
    return f"{_fenced(f'{name}: {type}' if type else name)}\n\n{text}"


def _range_text(document: Document, symbol: Symbol) -> str:
    facts = document.facts.get(symbol.block.symbol.name) if symbol.block is not None else None
    if symbol.role is not Role.INPUT or facts is None or symbol.name not in facts.graph.ranges:
        return ""
    low, high = facts.graph.ranges[symbol.name]
    return f", every element in {low}..{high}"


def _dim_text(document: Document, symbol: Symbol) -> str:
    for facts in document.facts.values():
        bounds = facts.graph.dims.bounds.get(symbol.name)
        if bounds is not None:
            return f"dim {symbol.token.text}: {bounds_text(bounds)}"
    return f"dim {symbol.token.text}"


def _def_text(document: Document, symbol: Symbol) -> str:
    block = document.outline.tables.blocks.get(symbol.name)
    if block is None:
        return _fenced(f"def {symbol.token.text}")
    source = symbol.token.source
    above = symbol.token.line - 1
    while source.line(above).startswith("#"):
        above -= 1
    comment = [source.line(number).lstrip("# ") for number in range(above + 1, symbol.token.line)]
    return "\n\n".join([_fenced(def_head(block)), *([" ".join(comment)] if comment else [])])


def _operation_text(document: Document, found: Occurrence, block: NamedBlock | None, outline: Outline) -> str:
    name = found.token.text
    if name not in OPERATIONS:
        return _fenced(OTHER_CALLS[name])
    parts = [operation_page(describe(OPERATIONS[name]))]
    facts = document.facts.get(block.symbol.name) if block is not None else None
    span = call_span(outline, found.token) if facts is not None and document.is_fresh else None
    node = facts.node_at(span) if facts is not None and span is not None else None
    if node is not None:
        parts.insert(0, _fenced(", ".join(_results_of(node, facts))))
    return "\n\n".join(parts)


def _results_of(node: Node, facts: KnownModel | None) -> Sequence[str]:
    values: Sequence[Value] = node.results
    return [str(value.type) for value in values]


def operation_page(page: OperationPage) -> str:
    """The page of an operation, as ``dmlc ops`` has it."""
    out = f"{_fenced(page.signature)}\n\n{page.summary}"
    if page.operands:
        out += "\n\n" + "\n".join(f"- `{o.name}`: {', '.join(filter(None, (o.dtypes, o.kind)))}" for o in page.operands)
    if page.attributes:
        out += "\n" + "\n".join(f"- `{_attribute_head(a)}`: {a.doc}" for a in page.attributes)
    if page.notes:
        out += "\n\n" + "\n".join(f"- {key}: {text}" for key, text in page.notes.items())
    return out


def _attribute_head(line: AttributeLine) -> str:
    return f"{line.name}={line.default}" if line.default else f"{line.name} ({line.values})"


def _onnx_text(name: str) -> str:
    schema = onnx_operators().get(name)
    return f"{_fenced(f'onnx.{name}')}\n\n{schema}" if schema else ""


def onnx_operators() -> dict[str, str]:
    """The first sentences about the operators of ONNX's own domain."""
    from onnx import defs  # loaded for programs that have one

    found = {schema.name: schema.doc or "" for schema in defs.get_all_schemas() if not schema.domain}
    return {name: " ".join(doc.strip().split("\n\n")[0].split()) for name, doc in sorted(found.items())}


def _fenced(text: str) -> str:
    return f"```{FENCE}\n{text}\n```"
