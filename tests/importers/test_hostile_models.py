"""Models made to hurt, and models that are broken: a code each, in little time and memory; never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile_models import BOMBS, BROKEN, constant_of_shape, functions, good_bytes, nested, nested_bytes
from onnx import ModelProto

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import DmlcError
from tests.rows import each_row

#: The code for each bomb; None where it compiles, because nothing is made of it.
SAID: dict[str, str | None] = {
    **dict.fromkeys(BOMBS),
    "axes doubled 30 times by Gather": "E0336",
    "axes doubled 30 times by GatherND": "E0336",
    "axes doubled 30 times in branches": "E0336",
    "10,000 times Unsqueeze": "E0336",
    "functions that double 30 times": "E0441",
    "functions that double, with a default": "E0441",
    "20,000 functions inside one another": "E0105",
    "Split into 2^40": "E0431",
    "functions that call each other": "E0431",
    "functions that call each other, with a default": "E0431",
    "1,000 Ifs inside one another": "E0431",
    "1,000 Ifs inside one another in a file": "E0430",
    "3,000 Ifs inside one another in a file": "E0430",
    "input of 2^80 numbers": "E0431",
    "input of 100,000 axes": "E0336",
    "weight of 100,000 axes": "E0336",
    "name of 10 MB": "E0442",
}
#: Codes for broken models other than E0431; None where it compiles.
OTHER: dict[str, str | None] = {
    "text": "E0111",  # it is read as a program
    **dict.fromkeys(("nothing", "zeros", "a huge length", "no graph", "no opset"), "E0430"),
    **dict.fromkeys(
        ("a weight of a negative size", "a weight of 2^40 numbers", "a weight of 2^80 numbers", "a weight cut short"),
        "E0434",
    ),
    **dict.fromkeys(
        (
            *("an axis out of range", "two opsets"),  # ONNX Runtime loads them
            "a kernel of 2^40",  # ONNX Runtime loads it, and cannot run it
            "two outputs of one name",  # ONNX Runtime takes it
        )
    ),
}


def code_of(source: ModelProto | Path) -> str | None:
    """The code that compiling ends with; None where it compiles."""
    try:
        program = dmlc.compile(source)
        program.to_onnx().SerializeToString()
        program.placement()
        program.require_sound()
    except DmlcError as error:
        str(error)
        return error.diagnostics[0].code.id
    return None


def in_file(made: ModelProto | bytes, folder: Path) -> Path:
    (folder / "m.onnx").write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
    return folder / "m.onnx"


@each_row("name", sorted(BROKEN))
def test_broken_models(name: str, tmp_path: Path) -> None:
    made = BROKEN[name]()
    want = OTHER.get(name, "E0431")
    assert code_of(in_file(made, tmp_path)) == want
    if not isinstance(made, bytes):
        assert code_of(made) == want


def test_every_prefix_of_a_model(tmp_path: Path) -> None:
    data = good_bytes()
    assert code_of(in_file(data, tmp_path)) is None
    found = {code_of(in_file(data[:size], tmp_path)) for size in range(len(data))}
    assert found <= {"E0430", "E0431", "E0434", None}
    assert sum(code_of(in_file(data[:size], tmp_path)) is None for size in range(len(data))) < 4


@each_row("name", [b"first", b"second", b"x", b"w", b"h", b"y", b"Softmax", b"axis"])
def test_names_that_are_no_utf_8(name: bytes, tmp_path: Path) -> None:
    data = good_bytes()
    tag = bytes([len(name)]) + name
    assert tag in data
    assert code_of(in_file(data.replace(tag, bytes([len(name)]) + b"\xff" * len(name)), tmp_path)) == "E0431"


def test_any_byte_may_be_another(tmp_path: Path) -> None:
    data = good_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        assert code_of(in_file(bytes(changed), tmp_path)) in (
            None,
            "E0105",
            "E0430",
            "E0431",
            "E0432",
            "E0434",
            "E0501",
        )


def test_functions_that_are_fine() -> None:
    assert code_of(functions([[], [0, 0], [1, 1], [2]])) is None


@pytest.mark.emits_invalid("ONNX Runtime before 1.30 takes twice as long to load it for each level")
def test_branches_that_are_fine() -> None:
    assert code_of(nested(30)) is None


def test_the_bomb_has_129_bytes() -> None:
    assert len(constant_of_shape()) == 129
    assert len(nested_bytes(1_000)) > 10_000


# --- time and memory

MEASURED = """
import json, resource, sys, time
from pathlib import Path
sys.path[:0] = [{here!r}, {root!r}]
from hostile_models import BOMBS, good_bytes
from test_hostile_models import code_of, in_file

resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
folder = Path(sys.argv[1])
code_of(in_file(good_bytes(), folder))  # what is loaded once
out = {{}}
for name, make in BOMBS.items():
    made = make()
    source = in_file(made, folder) if isinstance(made, bytes) else made
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    code = code_of(source)
    seconds = time.process_time() - start
    out[name] = code, seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps(out))
"""


@pytest.mark.skipif(os.name == "nt", reason="memory is limited as POSIX does")
def test_bombs_take_neither_time_nor_memory(tmp_path: Path) -> None:
    """Each stays under 200 MB and a second, more than what a good model takes."""
    script = MEASURED.format(here=str(Path(__file__).parent), root=str(Path(dmlc.__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: code for name, (code, _, _) in found.items()} == SAID
    for name, (_, seconds, megabytes) in found.items():
        assert seconds < 1 or "functions inside" in name, name
        assert megabytes < 200, name


# --- running


@pytest.mark.skipif(sys.platform != "linux", reason="other systems promise memory that they do not have")
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_what_memory_does_not_hold_is_told_when_it_runs(backend: str, tmp_path: Path) -> None:
    """2^40 numbers are not an error of the model; they do not fit into memory."""
    command = ["run", str(in_file(BOMBS["input of 2^40 numbers"](), tmp_path)), "--random", "0", "--backend", backend]
    assert main(command) == 1
    assert code_of(in_file(BOMBS["input of 2^40 numbers"](), tmp_path)) is None
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(in_file(BOMBS["Expand to 2^40"](), tmp_path)).run({"x": np.zeros(4, np.float32)}, "reference")
    assert caught.value.diagnostics[0].code.id == "E0558"
