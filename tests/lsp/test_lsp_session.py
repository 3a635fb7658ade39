"""The session of docs/editors.md is a real one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from lsprotocol import types as lsp

from tests.lsp.editor import Editor
from tests.lsp.programs import ROOT

FOLDER = ROOT / "examples" / "more/detection_head"
PAGE = ROOT / "docs" / "editors.md"


def session() -> Iterator[tuple[str, lsp.Position | None, str]]:
    """The kind, place and text of each answer."""
    text = (FOLDER / "model.dml").read_text(encoding="utf-8")
    editor = Editor(FOLDER)
    try:
        assert editor.open(text) == []
        (found,) = editor.open(text.replace("ties=first", "ties=frist"))
        first, *rest = found.message.split("\n")
        yield "diagnostics", found.range.start, f"error {found.code}  {first}"
        for line in rest:
            yield "", None, f"{' ' * 13}{line}"
        params = lsp.CodeActionParams(editor.document, found.range, lsp.CodeActionContext([found]))
        (action,) = editor.run(editor.client.text_document_code_action_async(params))
        assert action.is_preferred
        yield "code action", found.range.start, f"{action.title.replace('`', '')} (preferred)"
        assert editor.open(text) == []
        yield "completion", editor.at("first)"), ", ".join(editor.labels("ties="))
        fence, *page = editor.hover("p = (logits").split("\n")
        assert fence.startswith("```")
        yield from zip(("hover", ""), (editor.at("p = (logits"), None), (page[0], page[-1]), strict=True)
        help = editor.ask("signature_help", "5, axis=1, order")
        (signature,) = help.signatures
        label = signature.parameters[help.active_parameter].label
        yield "call help", editor.at("5, axis=1, order"), f"{signature.label}, at {label}"
        (there,) = editor.ask("definition", "centred(p")
        line = text.split("\n")[there.range.start.line].partition(" {")[0]
        yield "definition", editor.at("centred(p"), f"{shown(there.range.start)}, {line}"
        lines = lsp.Range(editor.at("p = (logits"), editor.at("focus = "))
        hints = editor.run(editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(editor.document, lines)))
        for hint in hints:
            yield "hints" if hint is hints[0] else "", hint.position, hint.label
        editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(editor.document))
        (lens,) = lenses(editor)
        yield "lens, on save", lens.range.start, lens.command.title
    finally:
        editor.close()


def lenses(editor: Editor) -> list[lsp.CodeLens]:
    deadline = time.monotonic() + 60
    found: list[lsp.CodeLens] = []
    while not found and time.monotonic() < deadline:
        time.sleep(0.1)
        found = editor.run(editor.client.text_document_code_lens_async(lsp.CodeLensParams(editor.document))) or []
    return found


def shown(place: lsp.Position | None) -> str:
    """A place as messages have it."""
    return f"{place.line + 1}:{place.character + 1}" if place is not None else ""


def test_the_session_of_the_page() -> None:
    rows = [f"{kind:<15}{shown(place):<7}{text}" for kind, place, text in session()]
    made = "\n".join(rows) + "\n"
    assert without_figures(f"\n```\n{made}```\n") in without_figures(PAGE.read_text(encoding="utf-8")), made


def without_figures(text: str) -> str:
    """A text without the figures of the lens, which change as the compiler does."""
    return re.sub(r"(?m)^(lens.*DirectML: ).*$", r"\1", text)
