"""Fuzzed: bytes as a program of the language, read and checked as ``dmlc compile`` does before the passes."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable

from dmlc import text
from dmlc.diagnostics import CODES, Source, catalogue  # noqa: F401 (fills CODES)
from dmlc.ir.verifier import verify
from dmlc.ops import INFIX, OPERATIONS, PREFIX
from tools import ROOT

MAX_LEN = 280
_TOKEN = re.compile(r'[ \t]+|\n|\w+|"[^"\n]*"|`[^`\n]*`|\*\*|\|>|->|\.\.|[<>=!]=|//|.', re.DOTALL)
_WORDS = (
    *("dml", "dim", "in", "const", "def", "model", "return", "as", "true", "false", "inf", "nan", "none", "_", "load"),
    *("first", "last", "largest", "smallest", "increasing", "decreasing", "onnx", "com.microsoft", "onnx.Gelu(x)"),
    *("f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"),
)
_SIGNS = (
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "=",
        "->",
        "..",
        "...",
        "::",
        ".",
        "\n",
        "# ",
        '"',
        "`",
        " ",
        "|>",
        "*",
        "!",
    ),
    *("[-1]", "[0]", "[]", "[0, 1]", "`a b`", '"w.npy"', "(x)", "x: f32[3]", "-> (y)"),
)
_NUMBERS = (
    *("0", "1", "2", "3", "-1", "4", "8", "200", "0.5", "1e-6", "1e39", "1e308", "1e999", "0x1f", "1_000", "65504"),
    *("255", "256", "127", "-128", "65536", "2147483648", "4294967296", "9223372036854775807", "18446744073709551616"),
    *("9223372036854775808", "1" * 60, "0" * 9, "1.", ".5", "07", "0b1", "1__0", "2 ** 63", "2 ** 2 ** 9", "1 // 0"),
)
_ODD = (
    *("\x00", "\t", "\r\n", "\x0b", "\u2028", "\ufeff", "é", "\ud7ff", "٣", "\U0001f600", "’", "−"),
    *("\\", "$", "~", "@"),
)


def _parameters() -> list[str]:
    found = set()
    for op in OPERATIONS.values():
        found |= set(getattr(op.attributes, "__dataclass_fields__", ()))
    return sorted(f"{name}=" for name in found)


VOCABULARY: tuple[str, ...] = (
    *_WORDS, *_SIGNS, *_NUMBERS, *_ODD, *OPERATIONS, *INFIX, *PREFIX, *_parameters(),
)  # fmt: skip
DICTIONARY = (*_WORDS, *_SIGNS, *OPERATIONS, *INFIX, *_parameters())


def seeds() -> list[bytes]:
    """Programs of the language's pages and examples, what each code's page shows, and one for each operation."""
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "examples").rglob("*.dml"))]
    for page in sorted((ROOT / "docs").glob("*.md")):
        texts += [block for block in re.findall(r"```\w*\n(.*?)```", page.read_text("utf-8"), re.S) if "model" in block]
    texts += [part for code in CODES.values() if code.program for part in (code.example, code.fixed)]
    texts += [_call(name) for name in OPERATIONS]
    out = {text.encode() for text in texts}
    return sorted(data for data in out if len(data) <= MAX_LEN)


def _call(name: str) -> str:
    """A call of the operation with the attributes that it may need; not all of them are right."""
    op = OPERATIONS[name]
    wants = {
        "axes": "[0]", "axis": "0", "k": "2", "to": "i32", "min": "0", "max": "1", "shape": "[4, 3]", "perm": "[1, 0]",
        "sizes": "[1, 2]", "starts": "[0]", "ends": "[2]", "steps": "[1]", "pads": "[0, 0, 1, 1]", "depth": "3",
        "length": "4", "value": "1", "dtype": "i32",
    }  # fmt: skip
    fields = getattr(op.attributes, "__dataclass_fields__", ())
    given = [f"{field}={wants[field]}" for field in fields if field in wants and field != "dtype"]
    operands = ["x", "i", "x"][: max(1, len(op.operands))] if name.startswith(("gather", "scatter")) else ["x", "x"]
    operands = operands[: len(op.operands)] or operands[:0]
    call = f"{name}({', '.join([*operands, *given])})"
    return f"model m(x: f32[3, 4], i: i32[3, 4]) -> (y) {{\n  y = {call}\n  return y\n}}\n"


def read(data: bytes) -> str:
    """Raises ``DmlcError``. One in four valid programs is also laid out, twice, and its graph checked."""
    source = text.decode("fuzz.dml", data)
    graph = text.load(source)
    if zlib.crc32(data) % 4 == 0:
        verify(graph)
        laid_out = text.format_source(source)
        assert text.format_source(Source("fuzz.dml", laid_out)) == laid_out, "laid out twice, it differs"
    return ""


def mutate(data: bytes, most: int, rng: random.Random, default: Callable[[bytes], bytes]) -> bytes:
    """Another program: some bytes changed, or some words."""
    if rng.random() < 0.12:
        return default(data)
    words = _TOKEN.findall(data.decode("utf-8", "replace"))
    if not words:
        return default(data)
    for _ in range(rng.choice((1, 1, 1, 2))):
        rng.choice(_CHANGES)(words, rng)
    return "".join(words).encode("utf-8", "replace")[:most]


def _place(words: list[str], rng: random.Random) -> int:
    """A word that is not a blank, where there is one."""
    for _ in range(4):
        at = rng.randrange(len(words)) if words else 0
        if words and words[at].strip():
            return at
    return at


def _replace(words: list[str], rng: random.Random) -> None:
    if words:
        words[_place(words, rng)] = rng.choice(VOCABULARY)


def _insert(words: list[str], rng: random.Random) -> None:
    words.insert(_place(words, rng), rng.choice(VOCABULARY))


def _drop(words: list[str], rng: random.Random) -> None:
    at = _place(words, rng)
    del words[at : at + rng.choice((1, 1, 2, 5))]


def _copy(words: list[str], rng: random.Random) -> None:
    at, to, count = _place(words, rng), _place(words, rng), rng.choice((1, 1, 3, 8))
    words[to:to] = words[at : at + count]


def _same_kind(words: list[str], rng: random.Random) -> None:
    """A name for a name, a number for a number, an operation for an operation: often still a valid program."""
    at = _place(words, rng)
    word = words[at] if words else ""
    if word.isdigit():
        new = rng.choice(_NUMBERS)
    elif word in OPERATIONS:
        new = rng.choice(list(OPERATIONS))
    elif word in INFIX:
        new = rng.choice(list(INFIX))
    elif word in _WORDS[-12:]:
        new = rng.choice(_WORDS[-12:])
    elif word.isidentifier():
        new = rng.choice([w for w in words if w.isidentifier()])
    else:
        return
    words[at] = new


def _swap(words: list[str], rng: random.Random) -> None:
    a, b = _place(words, rng), _place(words, rng)
    if words:
        words[a], words[b] = words[b], words[a]


def _other_line(words: list[str], rng: random.Random) -> None:
    """A line of a seed."""
    words.insert(_place(words, rng), "\n" + rng.choice(_LINES) + "\n")


_LINES = sorted({line for data in seeds() for line in data.decode().split("\n") if line.strip()})
_CHANGES = (_replace, _insert, _drop, _copy, *[_same_kind] * 6, _swap, _other_line)
