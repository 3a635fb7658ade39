"""The language server: handlers of the protocol, and the checks that run while a text changes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer

from dmlc import __version__
from dmlc.diagnostics import DmlcError, Source
from dmlc.lsp import completion, findings, navigation, pages, painting
from dmlc.lsp.check import ProgramReader, Report
from dmlc.lsp.documents import Document
from dmlc.lsp.lenses import placed
from dmlc.lsp.outline import Outline
from dmlc.text import format_source
from dmlc.text.stopping import StoppedError

#: Seconds without a change before a text is read.
_PAUSE = 0.1
#: Seconds that a thread keeps Python to itself: a check must not delay an answer.
_SWITCH = 0.0005
_WARM_UP = "model m(x: f32[1]) -> (y) {\n    return x\n}\n"


class DmlServer(LanguageServer):
    """The open documents, and the threads that read and compile them."""

    def __init__(self) -> None:
        super().__init__("dmlc", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.documents: dict[str, Document] = {}
        self.reading = ProgramReader()
        self.target = "directml"
        self.readers = ThreadPoolExecutor(1)
        self.compilers = ThreadPoolExecutor(1)
        self.tasks: set[asyncio.Task[None]] = set()

    def configure(self, options: Any) -> None:
        """Take ``include`` and ``target`` of the editor's settings."""
        given = options if isinstance(options, dict) else getattr(options, "_asdict", dict)()
        self.target = str(given.get("target") or self.target)
        self.reading = ProgramReader([Path(folder) for folder in given.get("include") or () if Path(folder).is_dir()])

    def start(self, work: Any) -> None:
        """Run a coroutine beside the answers."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def stop(self) -> None:
        """End all checks, so that the process can end."""
        for document in self.documents.values():
            document.stopped.set()
        self.readers.shutdown(cancel_futures=True)
        self.compilers.shutdown(cancel_futures=True)

    async def check(self, document: Document, pause: float = _PAUSE) -> None:
        """Read the text of a document after a pause, and publish what is wrong with it."""
        text, stopped = document.text, document.stopped
        await asyncio.sleep(pause)
        loop = asyncio.get_running_loop()

        def outlined(outline: Outline) -> None:
            loop.call_soon_threadsafe(document.take_outline, text, outline)

        with self.logged():
            if not stopped.is_set():
                work = partial(self.reading.check, text.source, stopped.is_set, outlined)
                report = await loop.run_in_executor(self.readers, work)
                if document.take_report(text, report):
                    self.publish(document)
                    self.refresh()
        if text is document.text:
            document.outlined.set()  # after a bug too: nobody waits for ever

    async def place(self, document: Document) -> None:
        """Compile the models of a saved document: a lens for each, and the warnings of the target."""
        outline = await document.fresh_outline()
        text, stopped = document.text, document.stopped
        models = tuple(outline.tables.models)
        work = partial(placed, text.source, models, self.target, self.reading.include, stopped.is_set)
        with self.logged():
            found = await asyncio.get_running_loop().run_in_executor(self.compilers, work)
            document.lenses = found.lenses
            if text is document.text:
                own = document.report.diagnostics
                known = {(d.code.id, d.place, d.message) for d in own}
                more = [d for d in found.diagnostics if (d.code.id, d.place, d.message) not in known]
                document.report = Report((*own, *more), document.report.facts)
                self.publish(document)
            self.refresh()

    def publish(self, document: Document) -> None:
        """Send the diagnostics of a document."""
        found = findings.published(document, document.report.diagnostics)
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(document.uri, found, document.version))

    def refresh(self) -> None:
        """Have the editor ask again for what hangs on types and places, if it can."""
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    @contextmanager
    def logged(self) -> Iterator[None]:
        """Drop work that was stopped, and report a bug to the editor's log."""
        try:
            yield
        except StoppedError:
            pass
        except Exception as error:
            message = f"bug in dmlc: {type(error).__name__}: {error}"
            self.window_log_message(lsp.LogMessageParams(lsp.MessageType.Error, message))


# --- the life of a document


def initialize(ls: DmlServer, params: lsp.InitializeParams) -> None:
    ls.configure(params.initialization_options)
    ls.readers.submit(ls.reading.check, Source("", _WARM_UP), lambda: False, lambda _: None)
    ls.readers.submit(completion.operations)


def did_open(ls: DmlServer, params: lsp.DidOpenTextDocumentParams) -> None:
    opened = params.text_document
    encoding = lsp.PositionEncodingKind(ls.workspace.position_encoding)
    document = Document(opened.uri, opened.text, opened.version, encoding)
    ls.documents[opened.uri] = document
    ls.start(ls.check(document, 0))
    ls.start(ls.place(document))


def did_change(ls: DmlServer, params: lsp.DidChangeTextDocumentParams) -> None:
    document = ls.documents[params.text_document.uri]
    document.stopped.set()
    document.change(ls.workspace.get_text_document(document.uri).source, params.text_document.version)
    ls.start(ls.check(document))


def did_save(ls: DmlServer, params: lsp.DidSaveTextDocumentParams) -> None:
    ls.start(ls.place(ls.documents[params.text_document.uri]))


def did_close(ls: DmlServer, params: lsp.DidCloseTextDocumentParams) -> None:
    document = ls.documents.pop(params.text_document.uri)
    document.stopped.set()
    document.outlined.set()
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(document.uri, []))


def shutdown(ls: DmlServer, _: None) -> None:
    ls.stop()


# --- answers at once, from the last good graph


def hover(ls: DmlServer, params: lsp.HoverParams) -> lsp.Hover | None:
    document, line, column = _place(ls, params)
    name = document.name_at(line, column)
    parts, range = [], None
    for diagnostic in document.report.diagnostics:
        where = findings.range_of(document.text, diagnostic)
        if where.start <= params.position <= where.end:
            parts.append(findings.code_page(diagnostic.code.id))
    if name is not None:
        found, block = name
        range = document.text.range(found.token)
        parts.insert(0, pages.hover_text(document, found, block, document.outline))
    text = "\n\n---\n\n".join(filter(None, parts))
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), range) if text else None


def complete(ls: DmlServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    return completion.completions(*_place(ls, params))


def resolve(item: lsp.CompletionItem) -> lsp.CompletionItem:
    return completion.with_page(item)


def signature_help(ls: DmlServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    return completion.signature_help(*_place(ls, params))


def code_actions(ls: DmlServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    return list(findings.quick_fixes(ls.documents[params.text_document.uri], params.range))


def code_lenses(ls: DmlServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    document = ls.documents[params.text_document.uri]
    models = document.outline.tables.models if document.is_fresh else {}
    places = [
        (document.text.range(models[name].token), text) for name, text in document.lenses.items() if name in models
    ]
    return [lsp.CodeLens(range, lsp.Command(text, "")) for range, text in places]


def formatting(ls: DmlServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
    text = ls.documents[params.text_document.uri].text
    try:
        laid_out = format_source(text.source)
    except DmlcError:  # it is published
        return []
    return [lsp.TextEdit(text.whole, laid_out)]


# --- answers from the outline of the text as it is now


async def definition(ls: DmlServer, params: lsp.DefinitionParams) -> list[lsp.Location]:
    document, line, column = _place(ls, params)
    return navigation.definition(document, await document.fresh_outline(), line, column, ls.reading.include)


async def references(ls: DmlServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    document, line, column = _place(ls, params)
    outline, declared = await document.fresh_outline(), params.context.include_declaration
    found = navigation.references(document, outline, line, column, declared=declared)
    return [lsp.Location(document.uri, range) for range in found]


async def highlights(ls: DmlServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
    document, line, column = _place(ls, params)
    found = navigation.references(document, await document.fresh_outline(), line, column, declared=True)
    return [lsp.DocumentHighlight(range) for range in found]


async def prepare_rename(ls: DmlServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    document, line, column = _place(ls, params)
    found = (await document.fresh_outline()).at(line, column)
    return None if found is None or found.symbol is None else document.text.range(found.token)


async def rename(ls: DmlServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    document, line, column = _place(ls, params)
    outline = await document.fresh_outline()
    try:
        edits = navigation.renamed(document, outline, line, column, params.new_name)
    except ValueError as error:
        raise JsonRpcInvalidParams(str(error)) from None
    return lsp.WorkspaceEdit(changes={document.uri: edits})


async def document_symbols(ls: DmlServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    document = ls.documents[params.text_document.uri]
    return navigation.symbols(document, await document.fresh_outline())


async def folding(ls: DmlServer, params: lsp.FoldingRangeParams) -> list[lsp.FoldingRange]:
    return list(navigation.folds(await ls.documents[params.text_document.uri].fresh_outline()))


async def semantic_tokens(ls: DmlServer, params: lsp.SemanticTokensParams) -> lsp.SemanticTokens:
    document = ls.documents[params.text_document.uri]
    return lsp.SemanticTokens(painting.semantic_tokens(document, await document.fresh_outline()))


async def inlay_hints(ls: DmlServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    document = ls.documents[params.text_document.uri]
    outline = await document.fresh_outline()
    first, last = (document.text.place(place)[0] for place in (params.range.start, params.range.end))
    return list(painting.inlay_hints(document, outline, first, last))


def _place(ls: DmlServer, params: Any) -> tuple[Document, int, int]:
    """The document of a request, and the line and column of its position."""
    document = ls.documents[params.text_document.uri]
    return document, *document.text.place(params.position)


_COMPLETION = lsp.CompletionOptions(trigger_characters=[".", "(", ",", "=", "[", ">"], resolve_provider=True)
#: The handler of each method, and its options.
_HANDLERS: dict[str, tuple[Callable[..., Any], Any]] = {
    lsp.INITIALIZE: (initialize, None),
    lsp.TEXT_DOCUMENT_DID_OPEN: (did_open, None),
    lsp.TEXT_DOCUMENT_DID_CHANGE: (did_change, None),
    lsp.TEXT_DOCUMENT_DID_SAVE: (did_save, None),
    lsp.TEXT_DOCUMENT_DID_CLOSE: (did_close, None),
    lsp.SHUTDOWN: (shutdown, None),
    lsp.TEXT_DOCUMENT_HOVER: (hover, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (complete, _COMPLETION),
    lsp.COMPLETION_ITEM_RESOLVE: (resolve, None),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: (signature_help, lsp.SignatureHelpOptions(trigger_characters=["(", ",", "="])),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (code_actions, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix])),
    lsp.TEXT_DOCUMENT_CODE_LENS: (code_lenses, None),
    lsp.TEXT_DOCUMENT_FORMATTING: (formatting, None),
    lsp.TEXT_DOCUMENT_DEFINITION: (definition, None),
    lsp.TEXT_DOCUMENT_REFERENCES: (references, None),
    lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT: (highlights, None),
    lsp.TEXT_DOCUMENT_PREPARE_RENAME: (prepare_rename, None),
    lsp.TEXT_DOCUMENT_RENAME: (rename, lsp.RenameOptions(prepare_provider=True)),
    lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (document_symbols, None),
    lsp.TEXT_DOCUMENT_FOLDING_RANGE: (folding, None),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: (semantic_tokens, painting.LEGEND),
    lsp.TEXT_DOCUMENT_INLAY_HINT: (inlay_hints, None),
}


def serve() -> None:
    """Serve an editor on stdin and stdout until it ends the server."""
    sys.setswitchinterval(_SWITCH)
    server = DmlServer()
    for method, (handler, options) in _HANDLERS.items():
        server.feature(method, options)(handler)
    try:
        with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as stdout:  # pygls closes it
            server.start_io(stdout=stdout)
    finally:
        server.stop()
