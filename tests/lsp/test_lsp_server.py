"""``dmlc lsp`` as an editor meets it: over stdio, with a client of the protocol."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from dmlc import text as language
from dmlc.diagnostics import Source
from dmlc.ops import OPERATIONS
from tests.lsp.editor import Editor

HEAD = """\
dml 1

dim batch in 1..64
const scale: f32[] = 0.125

# Subtracts the mean.
def centred(x, *, axes) {
    mean = reduce_mean(x, axes=axes)
    return x - mean
}

model head(
    logits: f32[batch, 80] in 0.0..1.0,  # 😀 scores
    image: f16[batch, 3, H, W],
) -> (
    cls: u32[batch, 1],
    spread,
) {
    p = logits * scale |> softmax(axes=[-1])
    cls = argmax(p, axes=[1], ties=first)
    top, `𝒊 of 𝒑` = top_k(p, k=5, axis=1)
    spread = centred(p, axes=[1]) + reduce_max(image, axes=[1, 2, 3]) as f32
    peak = squeeze(top, axes=[0]) + cast(`𝒊 of 𝒑`, to=f32)
    return cls, spread
}
"""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("editor"))
    yield editor
    editor.close()


def good(text: str = HEAD) -> str:
    """A program without mistakes."""
    return text.replace("    peak = squeeze(top, axes=[0]) + cast(`𝒊 of 𝒑`, to=f32)\n", "")


def covered(text: str, range: lsp.Range) -> str:
    """The text of a range in UTF-16 of one line."""
    line = text.split("\n")[range.start.line].encode("utf-16-le")
    return line[2 * range.start.character : 2 * range.end.character].decode("utf-16-le")


def test_mistakes_have_places_and_fixes(editor: Editor) -> None:
    text = good().replace("ties=first", "ties=fisrt").replace("    image: f16", "    image: `😀`, f16")
    assert [found.code for found in editor.open(text)] == ["E0101"]
    text = good().replace("ties=first", "ties=fisrt")
    wrong = min(editor.open(text), key=lambda found: found.severity)
    assert (wrong.code, wrong.source, covered(text, wrong.range)) == ("E0304", "dmlc", "fisrt")
    assert 'help: did you mean "first"?' in wrong.message
    context = lsp.CodeActionContext([wrong])
    params = lsp.CodeActionParams(editor.document, wrong.range, context)
    (action,) = editor.run(editor.client.text_document_code_action_async(params))
    assert (action.title, action.kind, action.is_preferred) == ("replace `fisrt` with `first`", "quickfix", True)
    mended = editor.edited(action.edit.changes[editor.uri])
    assert mended == good()
    assert [found.code for found in editor.open(mended)] == ["W0621", "W0621"]
    assert all(list(found.tags) == [lsp.DiagnosticTag.Unnecessary] for found in editor.diagnostics())


def test_places_behind_characters_of_two_units(editor: Editor) -> None:
    text = good().replace("top, `𝒊 of 𝒑` =", "`𝒕𝒐𝒑`, `𝒊 of 𝒑` =") + "# 😀😀\n"
    found = editor.open(text)
    assert sorted(covered(text, each.range) for each in found) == ["`𝒊 of 𝒑`", "`𝒕𝒐𝒑`"]
    assert "`𝒊 of 𝒑`: u32[batch, 5]" in editor.hover("`𝒊 of 𝒑`", behind=4)


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 16), ("utf-32", 10)])
def test_the_editor_chooses_the_units(tmp_path: Path, encoding: str, column: int) -> None:
    """The other tests are about utf-16, which an editor means that says nothing."""
    editor = Editor(tmp_path, [encoding])
    try:
        assert editor.server.position_encoding == encoding
        found = editor.open("model m(x: f32[3]) -> (y) {\n    `😀𝒆`, z = top_k(x, k=1)\n    return x\n}\n")
        starts = [each.range.start for each in found]
        assert starts == [lsp.Position(1, 4), lsp.Position(1, column)]
        place = lsp.TextDocumentPositionParams(editor.document, lsp.Position(1, column))
        hover = lsp.HoverParams(place.text_document, place.position)
        assert "z: u32[1]" in editor.run(editor.client.text_document_hover_async(hover)).contents.value
    finally:
        editor.close()


def test_hover_shows_type_and_page(editor: Editor) -> None:
    editor.open(good())
    assert "p: f32[batch, 80]" in editor.hover("p = logits")
    assert "every element in 0.0..1.0" in editor.hover("logits:")
    assert "input of head" in editor.hover("logits *")
    assert "dim batch: 1 to 64" in editor.hover("batch in")
    assert "const scale: f32[] = 0.125" in editor.hover("scale |>")
    assert "spread: f32[batch, 1, batch, 80]" in editor.hover("spread,")
    centred = editor.hover("centred(p")
    assert "def centred(x, *, axes)" in centred
    assert "Subtracts the mean." in centred
    page = editor.hover("argmax(p")
    assert page.startswith("```dmlc-dml\nu32[batch, 1]\n```")
    assert OPERATIONS["argmax"].summary in page
    assert "ties=first" in editor.hover("ties=")
    assert "float16" in editor.hover("f16")
    assert editor.hover("return") == ""


def test_hover_shows_the_page_of_a_mistake(editor: Editor) -> None:
    editor.open(good().replace("k=5", "k=500"))
    page = editor.hover("500")
    assert re.search(r"\*\*E03\d\d: ", page)
    assert "Fixed:" in page


def test_the_last_good_graph_answers_while_a_line_is_wrong(editor: Editor) -> None:
    editor.open(good())
    editor.change(good().replace("    cls = argmax(p", "    more = tanh(p) +\n    cls = argmax(p"))
    assert "p: f32[batch, 80]" in editor.hover("p) +")
    assert "p: f32[batch, 80]" in editor.hover("p, axes=[1], ties")
    assert editor.diagnostics()[0].code == "E0101"
    assert "p: f32[batch, 80]" in editor.hover("p) +")


COMPLETIONS = [
    ("cls = argmax(p", ["reduce_max", "scale", "p", "logits", "centred", "batch", "axes="], ["cls", "top"]),
    ("argmax(p, ", ["axes=", "ties=", "dtype=", "p"], ["cls", "top"]),
    ("ties=", ["first", "last"], ["p", "tanh"]),
    ("dtype=", ["u32", "i64"], ["f32", "p"]),
    ("p |> ", ["softmax", "centred"], ["p", "scale"]),
    ("p as ", ["f16", "u32"], ["p", "softmax"]),
    ("onnx.", ["Gelu", "Conv"], ["softmax", "p"]),
    ("image: ", ["f16", "bool"], ["batch", "softmax"]),
    ("f16[batch, 3, ", ["batch", "H", "W"], ["softmax", "f32"]),
    ("centred(p, ", ["axes="], []),
]


@pytest.mark.parametrize(("mark", "present", "absent"), COMPLETIONS, ids=[row[0] for row in COMPLETIONS])
def test_completion_knows_the_place(editor: Editor, mark: str, present: list[str], absent: list[str]) -> None:
    line = {"p |> ": "    q = p |> ", "p as ": "    q = p as ", "onnx.": "    q = onnx."}
    line |= {"dtype=": "    q = argmin(p, dtype="}
    editor.open(good())
    text = good()
    if mark in line:
        text = text.replace("    cls = argmax", f"{line[mark]}\n    cls = argmax")
    editor.change(text)
    labels = editor.labels(mark)
    assert set(present) <= set(labels)
    assert not set(absent) & set(labels)


def test_completion_of_items_and_pages(editor: Editor) -> None:
    editor.open(good())
    editor.change("\n" + good())
    items = editor.run(
        editor.client.text_document_completion_async(lsp.CompletionParams(editor.document, lsp.Position(0, 0)))
    )
    assert {"model", "def", "dim", "const", "use"} <= {item.label for item in items.items}
    item = lsp.CompletionItem("softmax", kind=lsp.CompletionItemKind.Function)
    resolved = editor.run(editor.client.completion_item_resolve_async(item))
    assert OPERATIONS["softmax"].summary in resolved.documentation.value


@pytest.mark.parametrize(
    ("mark", "label", "active"),
    [
        ("top_k(", "top_k(x, *, k", "x"),
        ("top_k(p, k=", "top_k(x, *, k", "k"),
        ("centred(p, axes=[", "centred(x, *, axes)", "axes"),
        ("reduce_max(image, axes=[1, ", "reduce_max(x, *, axes", "axes"),
    ],
)
def test_signature_help(editor: Editor, mark: str, label: str, active: str) -> None:
    editor.open(good())
    found = editor.ask("signature_help", mark, behind=len(mark))
    (signature,) = found.signatures
    assert signature.label.startswith(label)
    assert signature.parameters[found.active_parameter].label.partition("=")[0] == active


def test_definition_of_names_here_and_in_other_files(editor: Editor) -> None:
    (editor.folder / "blocks.dml").write_text(
        "# 😀\ndef `𝒂`(x) {\n    return x\n}\ndef half(x) {\n    return x * 0.5\n}\n"
    )
    text = 'use half as halved from "blocks.dml"\nuse l2_normalize from std\n' + good().removeprefix(
        "dml 1\n\n"
    ).replace("p = logits", "q = halved(logits)\n    r = l2_normalize(q)\n    p = r")
    editor.open(text)
    (here,) = editor.ask("definition", "centred(p")
    assert (here.uri, here.range.start) == (editor.uri, editor.at("centred(x"))
    (there,) = editor.ask("definition", "halved(logits")
    assert there.uri == (editor.folder / "blocks.dml").as_uri()
    assert there.range.start == lsp.Position(4, 4)
    assert editor.ask("definition", "half as") == [there]
    (block,) = editor.ask("definition", "l2_normalize(q")
    assert block.uri.endswith("/std/l2_normalize.dml")
    assert not editor.ask("definition", "softmax")


def test_references_and_rename(editor: Editor) -> None:
    editor.open(good())
    context = lsp.ReferenceContext(include_declaration=True)
    found = editor.ask("references", "p, axes=[1], ties", context=context)
    assert [covered(good(), each.range) for each in found] == ["p"] * 4
    less = editor.ask("references", "p = logits", context=lsp.ReferenceContext(include_declaration=False))
    assert less == found[1:]
    edit = editor.ask("rename", "axes) {", new_name="𝒂𝒙")
    renamed = editor.edited(edit.changes[editor.uri])
    assert "def centred(x, *, 𝒂𝒙) {\n    mean = reduce_mean(x, axes=𝒂𝒙)" in renamed
    assert "centred(p, 𝒂𝒙=[1])" in renamed
    assert [each.code for each in editor.open(renamed)] == ["W0621", "W0621"]
    edit = editor.ask("rename", "`𝒊 of 𝒑`", behind=3, new_name="a b")
    assert "top, `a b` = top_k" in editor.edited(edit.changes[editor.uri])
    assert covered(renamed, editor.ask("prepare_rename", "`𝒊 of 𝒑`", behind=3)) == "`𝒊 of 𝒑`"
    assert editor.ask("prepare_rename", "softmax") is None


@pytest.mark.parametrize(("name", "message"), [("cls", "cls names another thing"), ("a`b", "a`b is not a name")])
def test_a_rename_that_cannot_be(editor: Editor, name: str, message: str) -> None:
    editor.open(good())
    with pytest.raises(JsonRpcException, match=message):
        editor.ask("rename", "p = logits", new_name=name)


def test_the_whole_document(editor: Editor) -> None:
    editor.open(good())
    symbols = editor.run(editor.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(editor.document)))
    assert [each.name for each in symbols] == ["batch", "scale", "centred", "head", "H", "W"]
    head = next(each for each in symbols if each.name == "head")
    assert [(each.name, each.detail) for each in head.children][:4] == [
        ("logits", "f32[batch, 80]"),
        ("image", "f16[batch, 3, H, W]"),
        ("cls", "u32[batch, 1]"),
        ("spread", "f32[batch, 1, batch, 80]"),
    ]
    folds = editor.run(editor.client.text_document_folding_range_async(lsp.FoldingRangeParams(editor.document)))
    lines = good().split("\n")
    assert {lines[fold.start_line] for fold in folds} == {"def centred(x, *, axes) {", "model head(", ") -> ("}
    params = lsp.DocumentFormattingParams(editor.document, lsp.FormattingOptions(4, True))
    (edit,) = editor.run(editor.client.text_document_formatting_async(params))
    assert editor.edited([edit]) == language.format_source(Source("m.dml", good()))


def test_inlay_hints(editor: Editor) -> None:
    editor.open(good())
    whole = lsp.Range(lsp.Position(0, 0), lsp.Position(100, 0))
    hints = editor.run(editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(editor.document, whole)))
    hinted = editor.edited([lsp.TextEdit(lsp.Range(hint.position, hint.position), hint.label) for hint in hints])
    assert "    p: f32[batch, 80] = logits" in hinted
    assert "    top: f32[batch, 5], `𝒊 of 𝒑`: u32[batch, 5] = top_k" in hinted
    assert "    spread: f32[batch, 1, batch, 80],\n" in hinted
    assert "    cls: u32[batch, 1],\n" in hinted  # as it is written


def test_semantic_tokens_cover_the_names(editor: Editor) -> None:
    editor.open(good())
    found = editor.run(
        editor.client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(editor.document))
    )
    legend = editor.server.semantic_tokens_provider.legend
    line = start = 0
    colors: dict[str, set[str]] = {}
    for i in range(0, len(found.data), 5):
        down, right, length, kind, _ = found.data[i : i + 5]
        line, start = line + down, right if down else start + right
        where = lsp.Range(lsp.Position(line, start), lsp.Position(line, start + length))
        colors.setdefault(covered(good(), where), set()).add(legend.token_types[kind])
    assert colors["softmax"] == {"function"}
    assert colors["batch"] == {"typeParameter"}
    assert colors["axes"] == {"parameter", "property"}
    assert colors["first"] == {"enumMember"}
    assert colors["`𝒊 of 𝒑`"] == {"variable"}
    assert colors["# 😀 scores"] == {"comment"}
    assert colors["0.125"] == {"number"}
    assert colors["return"] == colors["model"] == colors["in"] == {"keyword"}


def test_a_lens_after_saving(editor: Editor) -> None:
    editor.open(good())
    editor.client.text_document_did_save(lsp.DidSaveTextDocumentParams(editor.document))
    deadline = time.monotonic() + 60
    lenses = None
    while not lenses and time.monotonic() < deadline:
        lenses = editor.run(editor.client.text_document_code_lens_async(lsp.CodeLensParams(editor.document)))
        time.sleep(0.1)
    (lens,) = lenses
    assert re.fullmatch(r"DirectML: \d+ dispatches, nothing on the CPU", lens.command.title)
    assert lens.range.start == editor.at("head(")


def test_a_mistake_in_a_used_file_stands_at_its_use(editor: Editor) -> None:
    (editor.folder / "bad.dml").write_text("def f(x) {\n    return y\n}\n")
    text = 'use f from "bad.dml"\n\nmodel m(x: f32[3]) -> (y) {\n    z = f(x)\n    return z\n}\n'
    (found,) = editor.open(text)
    assert (found.code, covered(text, found.range)) == ("E0202", "f(x)")
    assert found.related_information[0].location.uri == (editor.folder / "bad.dml").as_uri()
    assert found.related_information[0].location.range.start == lsp.Position(1, 11)


def test_a_library_and_several_models(editor: Editor) -> None:
    assert editor.open("def f(x) {\n    return x\n}\n") == []
    one = "model {}(x: f32[3]) -> (y) {{\n    return {}\n}}\n"
    (found,) = editor.open(one.format("a", "x") + one.format("b", "z"))
    assert (found.code, found.range.start.line) == ("E0202", 4)


def test_texts_that_are_no_programs(editor: Editor) -> None:
    assert [found.code for found in editor.open("")] == ["E0113"]
    for text in ("\r\r\u2028model", "(((((", "}\n}", "model m(", "use", "dim", "x = ", "\ufeff", "const c: f32[", "@"):
        assert editor.open(text)
        place = lsp.Position(0, 1)
        at = (editor.document, place)
        editor.run(editor.client.text_document_hover_async(lsp.HoverParams(*at)))
        editor.run(editor.client.text_document_completion_async(lsp.CompletionParams(*at)))
        editor.run(editor.client.text_document_signature_help_async(lsp.SignatureHelpParams(*at)))
        editor.run(editor.client.text_document_definition_async(lsp.DefinitionParams(*at)))
        editor.run(editor.client.text_document_folding_range_async(lsp.FoldingRangeParams(editor.document)))
        editor.run(editor.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(editor.document)))
    assert editor.messages == []


# --- time


def long_program(lines: int) -> str:
    """A model of so many lines, each with two nodes or so."""
    bodies = [
        "relu({} + 1)", "{} * x - 0.5", "softmax({}, axes=[-1])", "matmul({}, w)", "{} - reduce_mean(x, axes=[1])",
        "tanh({}) |> clip(min=-1, max=1)",
    ]  # fmt: skip
    out, last = ["dim batch in 1..64", "model m(x: f32[batch, 64], w: f32[64, 64]) -> (y) {"], "x"
    for i in range(lines - 4):
        out.append(f"    v{i} = {bodies[i % len(bodies)].format(last)}")
        last = f"v{i}"
    return "\n".join([*out, f"    return {last}", "}", ""])


def test_old_checks_are_cancelled(editor: Editor) -> None:
    text = long_program(1000)
    editor.open(text)
    count = len(editor.published)
    for i in range(8):
        editor.change(text.replace("+ 1)", f"+ {i})"))
        editor.hover("v9 =")
    editor.diagnostics()
    assert [found.version for found in editor.published[count:]][-1] == editor.version
    assert len(editor.published) - count < 8


def test_answers_take_no_longer_than_reading_does(editor: Editor) -> None:
    """Diagnostics come soon after the program can have been read, here and now; answers do not wait for them."""
    text = long_program(1000)
    editor.open(text)
    start = time.perf_counter()
    language.load(Source("m.dml", text))
    once = time.perf_counter() - start
    editor.change(text.replace("+ 1)", "+ 2)"))
    start = time.perf_counter()
    editor.hover("v500 =")
    hovered = time.perf_counter() - start
    editor.diagnostics()
    checked = time.perf_counter() - start
    assert hovered < max(0.05, once / 2)
    assert checked < 4 * once + 0.6


def test_a_request_about_the_whole_text_outlives_it(editor: Editor) -> None:
    """The text changes while the answer waits for its outline: the answer is about the new text."""
    editor.open(good())

    async def asked() -> list[lsp.DocumentSymbol]:
        editor.change("# old\n" + good())
        send = editor.client.text_document_document_symbol_async
        waiting = asyncio.ensure_future(send(lsp.DocumentSymbolParams(editor.document)))
        await asyncio.sleep(0.02)
        editor.change("# new\n\n" + good())
        return await waiting

    symbols = editor.run(asked())
    assert symbols[0].range.start == editor.at("batch in")
