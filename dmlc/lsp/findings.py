"""Diagnostics and their fixes, as an editor takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lsprotocol import types as lsp
from pygls.uris import from_fs_path

from dmlc.diagnostics import CODES, Diagnostic, Label
from dmlc.diagnostics.catalogue.source_advice import UNUSED
from dmlc.lsp.documents import Document
from dmlc.lsp.positions import Text

_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "advice": lsp.DiagnosticSeverity.Information,
}
_SOURCE = "dmlc"


def published(document: Document, diagnostics: Sequence[Diagnostic]) -> list[lsp.Diagnostic]:
    """The diagnostics of a document. One in another file stands at the place here that leads to it."""
    return [_published(document, each) for each in diagnostics]


def range_of(text: Text, diagnostic: Diagnostic) -> lsp.Range:
    """The first place of a diagnostic that lies in the text; the beginning of the text if none does."""
    here = next((label.span for label in diagnostic.labels if label.span.source.name == text.source.name), None)
    return lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0)) if here is None else text.range(here)


def _published(document: Document, diagnostic: Diagnostic) -> lsp.Diagnostic:
    labels = diagnostic.labels
    is_here = bool(labels) and labels[0].span.source.name == document.name
    others = labels[1:] if is_here else labels
    parts = [diagnostic.message, f"help: {diagnostic.help}" if diagnostic.help else "", *diagnostic.notes]
    return lsp.Diagnostic(
        range=range_of(document.text, diagnostic),
        message="\n".join(filter(None, parts)),
        severity=_SEVERITIES[diagnostic.severity],
        code=diagnostic.code.id,
        source=_SOURCE,
        tags=[lsp.DiagnosticTag.Unnecessary] if diagnostic.code is UNUSED else None,
        related_information=[_related(document, label) for label in others if not label.span.source.is_python],
    )


def _related(document: Document, label: Label) -> lsp.DiagnosticRelatedInformation:
    source = label.span.source
    is_here = source.name == document.name
    text = document.text if is_here else Text(source.name, "\n".join(source.lines), document.text.encoding)
    uri = document.uri if is_here else from_fs_path(source.name) or source.name
    return lsp.DiagnosticRelatedInformation(lsp.Location(uri, text.range(label.span)), label.text or "here")


def quick_fixes(document: Document, chosen: lsp.Range) -> Iterator[lsp.CodeAction]:
    """The fixes of the diagnostics that touch a range."""
    text = document.text
    for diagnostic in document.report.diagnostics:
        place, fix = range_of(text, diagnostic), diagnostic.fix
        touches = place.start <= chosen.end and chosen.start <= place.end
        if fix is None or not touches or any(edit.span.source.name != document.name for edit in fix.edits):
            continue
        edits = [lsp.TextEdit(text.range(edit.span), edit.text) for edit in fix.edits]
        yield lsp.CodeAction(
            title=fix.title,
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[_published(document, diagnostic)],
            is_preferred=fix.safe,
            edit=lsp.WorkspaceEdit(changes={document.uri: edits}),
        )


def code_page(code: str) -> str:
    """The page of a code as Markdown, as ``dmlc explain`` has it."""
    page = CODES[code]
    fence = "dmlc-dml" if page.program else "console"
    blocks = [f"```{fence}\n{text}```" for text in (page.example, page.fixed)]
    return f"**{page.id}: {page.title}**\n\n{page.why}\n\n{blocks[0]}\n\nFixed:\n\n{blocks[1]}"
