"""The readers of programs and of ONNX models, and inputs for them: sound ones, most of them broken in a few places."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from onnx import ModelProto

from dmlc import importers, text
from dmlc.codegen.artifact import signature_of
from dmlc.diagnostics import CODES, DmlcError, Source, catalogue  # noqa: F401 (fills CODES)
from dmlc.diagnostics.render import render_all
from dmlc.ir.verifier import verify
from dmlc.ops import OPERATIONS
from tools import ROOT
from tools.fuzz.broken_models import base_models, broken_bytes, broken_fields
from tools.fuzz.onnx_models import generate

#: Seconds of the processor that no small input may take.
_MOST_SECONDS = 3.0
#: Larger inputs take longer and show no more.
_LONGEST = 400


def judge(read: Callable[[bytes], None], data: bytes) -> str:
    """The code of the first error, empty where there is none. Raises what no input may cause."""
    start = time.process_time()
    found = ""
    try:
        read(data)
    except DmlcError as error:
        found = error.diagnostics[0].code.id
        if error.exit_code == 3 or found.startswith("I"):
            raise
        assert render_all(error.diagnostics)
    seconds = time.process_time() - start
    assert seconds < _MOST_SECONDS, f"{seconds:.1f} s for {len(data)} bytes"
    return found


def read_text(data: bytes) -> None:
    """Read a program as ``dmlc compile`` does before the passes, and lay it out twice. Raises ``DmlcError``."""
    source = text.decode("fuzz.dml", data)
    verify(text.load(source))
    laid_out = text.format_source(source)
    assert text.format_source(Source("fuzz.dml", laid_out)) == laid_out, "laid out twice, it differs"


def read_model(data: bytes) -> None:
    """Read an ONNX model as ``dmlc compile`` does before the passes. Raises ``DmlcError``."""
    model = importers.read_model(Path("fuzz.onnx"), data)
    with importers.blaming(model):
        graph = importers.import_model(model)
        importers.choose_opset(graph, 21, 7, asked=False)
        importers.says_flattened(graph, 21)
        names = [name for name, _ in signature_of(graph).outputs]
        if len(set(names)) == len(names):  # ONNX allows an output that is said twice
            verify(graph)


# --- programs

_TOKEN = re.compile(r'[ \t]+|\n|\w+|"[^"\n]*"|`[^`\n]*`|\*\*|\|>|->|\.\.|[<>=!]=|//|.', re.DOTALL)
#: Words that programs of the pages do not have.
_ODD = (
    *("1e39", "1e999", "0x1f", "1_000", "65504", "2147483648", "9223372036854775807", "18446744073709551616", "1" * 60),
    *(
        "0" * 9,
        "1.",
        ".5",
        "07",
        "1__0",
        "2 ** 2 ** 9",
        "1 // 0",
        "onnx.Gelu(x)",
        "`a b`",
        '"w.npy"',
        "\ufeff",
        "\ud7ff",
    ),
    *(
        "\x00",
        "\t",
        "\r\n",
        "\x0b",
        "\u2028",
        "é",
        "٣",
        "\U0001f600",
        "’",
        "−",
        "\\",
        "$",
        "~",
        "@",
        "!",
        "...",
        "axes=",
    ),
)


@cache
def programs() -> list[str]:
    """Programs of the pages and examples, those that the page of each code shows, and one for each operation."""
    found = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.dml")]
    for page in (ROOT / "docs").glob("*.md"):
        found += [block for block in re.findall(r"```\w*\n(.*?)```", page.read_text("utf-8"), re.S) if "model" in block]
    found += [part for code in CODES.values() if code.program for part in (code.example, code.fixed)]
    values = {
        "axes": "[0]",
        "axis": "0",
        "k": "2",
        "to": "i32",
        "min": "0",
        "max": "1",
        "shape": "[4, 3]",
        "depth": "3",
    }
    values |= {
        "perm": "[1, 0]",
        "sizes": "[1, 2]",
        "starts": "[0]",
        "ends": "[2]",
        "pads": "[0, 0, 1, 1]",
        "length": "4",
    }
    for name, op in OPERATIONS.items():
        attributes = [f"{field}={values[field]}" for field in op.attributes.__struct_fields__ if field in values]
        call = f"{name}({', '.join([*['x', 'x', 'x'][: len(op.operands)], *attributes])})"
        found.append(f"model m(x: f32[3, 4]) -> (y) {{\n  y = {call}\n  return y\n}}\n")
    return sorted(text for text in set(found) if len(text) <= _LONGEST)


@cache
def vocabulary() -> list[str]:
    """The words of all programs, and odd ones."""
    return sorted({word for program in programs() for word in _TOKEN.findall(program)} | {*_ODD, *OPERATIONS})


def broken_text(program: str, rng: random.Random) -> bytes:
    """A program with a few words changed: others of their kind, any others, dropped, copied."""
    words = _TOKEN.findall(program)
    for _ in range(rng.choice((1, 1, 1, 2))):
        at, turn = rng.randrange(len(words)), rng.randrange(10)
        start, count = rng.randrange(len(words)), rng.choice((1, 1, 2, 5))
        if turn < 4:
            words[at] = rng.choice([word for word in (*words, *vocabulary()) if _kind(word) == _kind(words[at])])
        elif turn < 6:
            words[at] = rng.choice(vocabulary())
        elif turn < 8:
            words.insert(at, rng.choice(vocabulary()))
        elif turn == 8:
            words[at:at] = words[start : start + count]
        else:
            del words[at : at + count]
        words = words or [""]
    return "".join(words).encode("utf-8", "replace")


def _kind(word: str) -> str:
    """The kind of a word: a blank, a number, an operation, a name, a sign."""
    kinds = (("blank", not word.strip()), ("number", word[:1].isdigit()), ("operation", word in OPERATIONS))
    return next((kind for kind, holds in kinds if holds), "name" if word.isidentifier() else "sign")


# --- models


@cache
def models(grown: int = 120) -> list[ModelProto]:
    """Models of the suite, and as many of its generator, without the large ones."""
    found = [*base_models(), *(generate(seed) for seed in range(grown))]
    return [model for model in found if model.ByteSize() <= _LONGEST]


def broken_model(model: ModelProto, rng: random.Random) -> bytes:
    """A model with a few fields changed, or a few bytes."""
    model = broken_fields(model, rng) if rng.random() < 0.9 else model
    data = model.SerializeToString()
    return data if rng.random() < 0.9 else broken_bytes(data, rng)


#: By kind what reads the inputs, and inputs.
READERS: dict[str, tuple[Callable[[bytes], None], Callable[[], st.SearchStrategy[bytes]]]] = {
    "text": (read_text, lambda: st.builds(broken_text, st.sampled_from(programs()), st.randoms())),
    "model": (read_model, lambda: st.builds(broken_model, st.sampled_from(models()), st.randoms())),
}
