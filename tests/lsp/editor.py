"""An editor for tests: a client of ``dmlc lsp`` over stdio, with a document at a time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

T = TypeVar("T")
#: Seconds until a test gives up; the machine may be busy.
_PATIENCE = 60.0


class Editor:
    """A client, and the server that it started. ``at("|")`` positions are those of a mark in the text."""

    def __init__(self, folder: Path, encodings: Sequence[str] | None = None, options: Any = None) -> None:
        self.folder = folder
        self.loop = asyncio.new_event_loop()
        self.published: list[lsp.PublishDiagnosticsParams] = []
        self.messages: list[str] = []
        command = [sys.executable, "-m", "dmlc", "lsp"]
        self.client: Any = self.run(ClientServerConfig(command, client_factory=self._client).start())
        capabilities = client_capabilities("visual-studio-code")
        kinds = [lsp.PositionEncodingKind(each) for each in encodings] if encodings else None
        capabilities.general = lsp.GeneralClientCapabilities(position_encodings=kinds)
        params = lsp.InitializeParams(capabilities, initialization_options=options)
        self.server = self.run(self.client.initialize_session(params)).capabilities
        self.version = 0
        self.text = ""

    def _client(self) -> LanguageClient:
        client = LanguageClient()
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self.published.append(params))
        for method in (lsp.WORKSPACE_CODE_LENS_REFRESH, lsp.WORKSPACE_INLAY_HINT_REFRESH):
            client.feature(method)(lambda *_: None)
        for method in (lsp.WINDOW_LOG_MESSAGE, lsp.WINDOW_SHOW_MESSAGE):
            client.feature(method)(lambda params: self.messages.append(params.message))
        return client

    def run(self, work: Awaitable[T]) -> T:
        return self.loop.run_until_complete(asyncio.wait_for(work, _PATIENCE))

    def close(self) -> None:
        self.run(self.client.shutdown_session())
        self.loop.close()

    # --- the document

    @property
    def uri(self) -> str:
        return (self.folder / "m.dml").as_uri()

    @property
    def document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)

    def open(self, text: str) -> list[lsp.Diagnostic]:
        """Open the document with a text, or give it that text; the diagnostics."""
        self.change(text)
        return self.diagnostics()

    def change(self, text: str) -> None:
        """Give the document a text, and do not wait."""
        self.version += 1
        self.text = text
        if self.version == 1:
            item = lsp.TextDocumentItem(self.uri, "dmlc-dml", self.version, text)
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        else:
            identifier = lsp.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri)
            changes = [lsp.TextDocumentContentChangeWholeDocument(text)]
            self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, changes))

    def diagnostics(self) -> list[lsp.Diagnostic]:
        """The diagnostics of the text as it is now, when they come."""
        return self.run(self._diagnostics())

    async def _diagnostics(self) -> list[lsp.Diagnostic]:
        while True:
            for found in self.published:
                if (found.uri, found.version) == (self.uri, self.version):
                    return list(found.diagnostics)
            assert not self.messages, self.messages
            await asyncio.sleep(0.01)

    # --- requests

    def at(self, mark: str, *, behind: int = 0) -> lsp.Position:
        """The position of the first place of ``mark`` in the text, in UTF-16, or ``behind`` characters after it."""
        before = self.text[: self.text.index(mark) + behind]
        line = before.rpartition("\n")[2]
        return lsp.Position(before.count("\n"), len(line.encode("utf-16-le")) // 2)

    def ask(self, method: str, mark: str, *, behind: int = 0, **more: Any) -> Any:
        """The answer to a request about a place."""
        send = getattr(self.client, f"text_document_{method}_async")
        kind = {"hover": lsp.HoverParams, "completion": lsp.CompletionParams, "definition": lsp.DefinitionParams}
        kind |= {"references": lsp.ReferenceParams, "rename": lsp.RenameParams}
        kind |= {"signature_help": lsp.SignatureHelpParams, "prepare_rename": lsp.PrepareRenameParams}
        place = self.at(mark, behind=behind)
        return self.run(send(kind[method](text_document=self.document, position=place, **more)))

    def hover(self, mark: str, *, behind: int = 0) -> str:
        found = self.ask("hover", mark, behind=behind)
        return "" if found is None else found.contents.value

    def labels(self, mark: str) -> list[str]:
        """The labels of the completions behind a mark."""
        return [item.label for item in self.ask("completion", mark, behind=len(mark)).items]

    def edited(self, edits: Sequence[lsp.TextEdit]) -> str:
        """The text with edits made whose positions are UTF-16."""
        end = "\n".encode("utf-16-le")
        units = [line.encode("utf-16-le") for line in self.text.split("\n")]
        for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
            first, last = edit.range.start, edit.range.end
            head, tail = units[first.line][: 2 * first.character], units[last.line][2 * last.character :]
            units[first.line : last.line + 1] = (head + edit.new_text.encode("utf-16-le") + tail).split(end)
        return "\n".join(line.decode("utf-16-le") for line in units)
