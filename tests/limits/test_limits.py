"""Each limit: just within it is read, just beyond it is refused with its code, and the override that is told works."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from limit_sources import AT, FILES, at_limit

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import CODES, DmlcError
from dmlc.diagnostics.limits import DEFAULTS, LIMITS, Limits
from tools.site.command_pages import limit_pages

ROOT = Path(__file__).parents[2]
#: These refuse nothing.
FOLDS = ("folded_elements", "folded_bytes")
REFUSING = [name for name in LIMITS if name not in FOLDS]


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(DmlcError) as caught:
        call()
    return caught.value.diagnostics[0].code.id


# --- the declaration


def test_each_limit_has_a_code_of_its_own() -> None:
    ids = [limit.code.id for limit in LIMITS.values()]
    assert len(set(ids)) == len(ids)
    assert all(CODES[id].why for id in ids)


def test_defaults_are_those_that_are_declared() -> None:
    assert dataclasses.asdict(DEFAULTS) == {limit.name: limit.default for limit in LIMITS.values()}
    assert Limits.of(None) == Limits.of({}) == DEFAULTS
    assert Limits.of({"nodes": 5}).nodes == 5


def test_what_real_models_have_is_within_them() -> None:
    assert DEFAULTS.nodes >= 10**6
    assert DEFAULTS.file_bytes == 2**31 - 1  # protobuf's own limit


def test_the_page_has_every_limit() -> None:
    (page,) = limit_pages().values()
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) (\w+) \| `(\w+)` \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(x.name, f"{x.default:,}", x.unit, x.code.id, x.guards) for x in LIMITS.values()]


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"nods": 5}, 'did you mean "nodes"'),
        ({"zzz": 5}, "limits are file_bytes, "),
        ({"nodes": 0}, "1 or more, not 0"),
        ({"nodes": -1}, "1 or more, not -1"),
        ({"nodes": True}, "1 or more, not True"),
        ({"nodes": 1.5}, "1 or more, not 1.5"),
    ],
)
def test_limits_that_are_none(limits: Mapping[str, int], told: str) -> None:
    g = dmlc.Graph("g")
    g.output("y", dmlc.exp(g.input("x", "f32", (2,))))
    with pytest.raises(DmlcError, match=told) as caught:
        dmlc.compile(g, limits=limits)
    assert caught.value.diagnostics[0].code.id == "E0556"
    assert caught.value.exit_code == 2


# --- within, beyond, and the way out


@pytest.mark.parametrize("case", sorted(AT))
def test_a_limit_is_inclusive(case: str, tmp_path: Path) -> None:
    name, size, make = AT[case]
    source = make(tmp_path)
    assert dmlc.compile(source, limits={name: size}).graph is not None
    if size > 1:
        with pytest.raises(dmlc.DmlcError, match=rf"limits=\{{'{name}': \d+\}}") as caught:
            dmlc.compile(source, limits={name: size - 1})
        assert caught.value.diagnostics[0].code.id == LIMITS[name].code.id


def test_every_limit_that_refuses_has_a_case() -> None:
    assert {name for name, _, _ in AT.values()} == set(REFUSING)


@pytest.mark.parametrize("case", sorted(FILES))
def test_the_way_out_works_when_it_is_typed(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From a limit far too low, the command line that the message tells goes through.

    What is looked at one by one (inputs, then results; brackets, then calls) may be told one by one.
    """
    name, _, make = AT[case]
    source = make(tmp_path)
    command = ["compile", str(source), "-o", str(tmp_path / "out.onnx"), "--limit"]
    way_out, rounds = f"{name}={at_limit(case)}", 0
    while main([*command, way_out]) == 1:
        told, rounds = capsys.readouterr().err, rounds + 1
        assert f"error[{LIMITS[name].code.id}]" in told
        assert not (tmp_path / "out.onnx").exists()
        (way_out,) = set(re.findall(r"--limit (\w+=\d+)", told))
    assert (tmp_path / "out.onnx").exists()
    assert 1 <= rounds <= (2 if name in ("rank", "nesting") else 1)


def test_several_limits_and_several_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(AT["nodes"][2](tmp_path))
    out = str(tmp_path / "out.onnx")
    assert main(["compile", source, "-o", out, "--limit", "nodes=1,rank=9"]) == 1
    assert "E0441" in capsys.readouterr().err
    assert main(["compile", source, "-o", out, "--limit", "nodes=1", "--limit", "nodes=90,rank=9"]) == 0
    for wrong in ("nodes", "nodes=", "nodes=many", "=3", "nodes=3,"):
        assert main(["compile", source, "-o", out, "--limit", wrong]) == 2
        assert "is not NAME=INTEGER" in capsys.readouterr().err
    assert main(["compile", source, "-o", out, "--limit", "nods=3"]) == 2
    assert 'did you mean "nodes"' in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["compile", "check", "run", "inspect", "explain", "fmt", "verify"])
def test_every_verb_that_reads_has_limits(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = AT["text_bytes"][2](tmp_path)
    more = {"run": ["--random", "0"], "compile": ["-o", str(tmp_path / "out.onnx")], "verify": [str(source)]}
    command = [verb, str(source), *more.get(verb, [])]
    assert main([*command, "--limit", "text_bytes=20"]) == 1
    assert "error[E0114]" in capsys.readouterr().err
    assert main([*command, "--limit", "text_bytes=2000"]) == 0


def test_inputs_of_the_command_line_have_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = AT["text_bytes"][2](tmp_path)
    np.savez_compressed(tmp_path / "x.npz", x=np.zeros(4, np.float32))
    command = ["run", str(source), "--input", f"x={tmp_path / 'x.npz'}"]
    assert main(command) == 0
    assert main([*command, "--limit", "unpacked_bytes=100"]) == 1
    assert "error[E0443]" in capsys.readouterr().err


def test_files_are_judged_by_their_size_before_they_are_read(tmp_path: Path) -> None:
    for name, code in (("m.dml", "E0114"), ("m.onnx", "E0440")):
        with (tmp_path / name).open("wb") as file:
            file.truncate(1 << 40)  # with holes: it takes no room
        assert code_of(lambda name=name: dmlc.compile(tmp_path / name)) == code


# --- folding


FOLDED = (
    f"const a: f32[64] = {list(range(64))}\n"
    + """
model m(x: f32[64]) -> (y, z) {
    y = x + exp(a)
    z = x + exp(a * 2)
    return y, z
}
"""
)


def folded(tmp_path: Path, **limits: int) -> tuple[int, list[str]]:
    (tmp_path / "m.dml").write_text(FOLDED)
    program = dmlc.compile(tmp_path / "m.dml", limits=limits)
    return len(program.graph), [r.reason() for r in program.remarks if r.rule == "fold"]


def test_constants_are_folded_up_to_the_limits(tmp_path: Path) -> None:
    all_folded, none = folded(tmp_path)
    assert none == []
    assert folded(tmp_path, folded_elements=64, folded_bytes=3 * 64 * 4) == (all_folded, [])
    count, reasons = folded(tmp_path, folded_elements=63)
    assert count > all_folded
    assert "W0606: f32[64] has 64 elements, the limit is 63 (--limit folded_elements=64)" in reasons
    count, reasons = folded(tmp_path, folded_bytes=2 * 64 * 4)
    assert count > all_folded
    assert "W0607: the constants would take 768 bytes, the limit is 512 (--limit folded_bytes=768)" in reasons


def test_what_is_not_folded_gives_the_same_numbers(tmp_path: Path) -> None:
    (tmp_path / "m.dml").write_text(FOLDED)
    x = {"x": np.linspace(-1, 1, 64, dtype=np.float32)}
    want = dmlc.compile(tmp_path / "m.dml").run(x, "reference")
    for limits in ({}, {"folded_elements": 1}, {"folded_bytes": 1}):
        got = dmlc.compile(tmp_path / "m.dml", limits=limits).run(x, "cpu")
        for name in want:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-6)  # exp of f32 differs by an ulp
