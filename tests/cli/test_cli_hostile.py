"""The command line and files made to hurt: an exit code, a coded message, nothing else written, no waiting."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import dmlc
from dmlc.cli.main import main
from tests.command_line import Refused

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and pipes of POSIX")

GOOD = "model m(x: f32[4]) -> (y) {\n    y = exp(x)\n    return y\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(GOOD)
    np.save("x.npy", np.zeros(4, np.float32))
    return tmp_path


def weighted() -> None:
    """``big.onnx``, whose weights lie in ``w.py``."""
    tensor = TensorProto(name="w", dims=[4], data_type=1, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.py")
    Path("w.py").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    infos = [helper.make_tensor_value_info(name, 1, [4]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "m", infos[:1], infos[1:], [tensor])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    Path("big.onnx").write_bytes(model.SerializeToString())


# --- sources and inputs


@pytest.mark.parametrize("suffix", [".dml", ".onnx"])
def test_sources_that_are_no_plain_file(suffix: str, refused: Refused) -> None:
    os.mkfifo(f"pipe{suffix}")
    Path(f"zero{suffix}").symlink_to("/dev/zero")
    Path(f"folder{suffix}").mkdir()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"socket{suffix}")
    for name in ("pipe", "zero", "folder", "socket"):
        for verb in ("check", "inspect", "explain"):
            refused(2, "E0420", verb, f"{name}{suffix}")
        refused(2, "E0420", "compile", f"{name}{suffix}", "-o", "out.onnx")
        refused(2, "E0420", "verify", f"{name}{suffix}", "m.dml")
    assert "not a plain file" in refused(2, "E0420", "check", f"pipe{suffix}")


def test_inputs_that_are_no_plain_file(refused: Refused) -> None:
    os.mkfifo("pipe.npy")
    os.mkfifo("pipe.npz")
    Path("zero.npy").symlink_to("/dev/zero")
    Path("loop.npy").symlink_to("loop.npy")
    for place in ("pipe.npy", "pipe.npz:x", "zero.npy", "loop.npy", "x.npy/y", "n" * 300, "a\0b.npy"):
        refused(2, "E0420", "run", "m.dml", "--input", f"x={place}")
    Path("link.npy").symlink_to("x.npy")  # a link that the user names is followed
    assert main(["run", "m.dml", "--input", "x=link.npy"]) == 0


def test_inputs_that_hold_something_else(refused: Refused) -> None:
    np.save("objects.npy", np.array([{}] * 4, dtype=object), allow_pickle=True)
    np.savez("objects.npz", x=np.array([{}] * 4, dtype=object))
    np.savez("two.npz", a=np.zeros(4), b=np.zeros(4))
    np.savez("none.npz")
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:-1])
    Path("text.npy").write_text("hello")
    huge = Path("x.npy").read_bytes().replace(b"(4,), }        ", b"(1099511627776,), }")[:128]
    Path("huge.npy").write_bytes(huge)
    for place in ("objects.npy", "objects.npz", "objects.npz:x", "two.npz", "two.npz:c", "none.npz", "none.npz:x",
                  "cut.npy", "text.npy", "huge.npy", "m.dml"):  # fmt: skip
        refused(1, "E0422", "run", "m.dml", "--input", f"x={place}")


@pytest.mark.parametrize(
    ("array", "code"),
    [
        (np.zeros(4, np.float64), "E0424"),
        (np.zeros(4, "S3"), "E0424"),
        (np.zeros(4, [("a", "<f4")]), "E0424"),
        (np.zeros(4, "M8[s]"), "E0424"),
        (np.zeros((2, 2), np.float32), "E0425"),
        (np.zeros(0, np.float32), "E0425"),
        (np.zeros((1,) * 30, np.float32), "E0425"),
    ],
)
def test_inputs_of_another_kind(array: np.ndarray, code: str, refused: Refused) -> None:
    np.save("y.npy", array)
    refused(1, code, "run", "m.dml", "--input", "x=y.npy")
    refused(1, code, "run", "m.dml", "--input", "x=y.npy", "-o", "out.npz")


def test_inputs_in_another_byte_order_or_in_fortran_order() -> None:
    Path("t.dml").write_text("model t(x: f32[2, 3]) -> (y) {\n    y = neg(x)\n    return y\n}\n")
    array = np.arange(6, dtype=">f4").reshape(2, 3)
    np.save("f.npy", np.asfortranarray(array))
    assert main(["run", "-q", "t.dml", "--input", "x=f.npy", "-o", "out.npz"]) == 0
    np.testing.assert_array_equal(np.load("out.npz")["y"], -array)


# --- outputs


def test_outputs_that_are_links_pipes_or_folders(refused: Refused, folder: Path) -> None:
    Path("precious").write_text("precious")
    for suffix in (".onnx", ".py", ".dxdispatch.json", ".npz"):
        Path(f"link{suffix}").symlink_to("precious")
        Path(f"nothing{suffix}").symlink_to("nowhere")
        os.mkfifo(f"pipe{suffix}")
        Path(f"folder{suffix}").mkdir()
        command = ["run", "m.dml", "--random", "0"] if suffix == ".npz" else ["compile", "m.dml"]
        for name in ("link", "nothing", "pipe", "folder"):
            if suffix != ".dxdispatch.json":
                refused(2, "E0421", *command, "-o", f"{name}{suffix}")
    refused(2, "E0421", "compile", "m.dml", "-o", "out.py", "--ledger", "link.onnx")
    told = refused(2, "E0421", "compile", "m.dml", "-o", "link.onnx")
    assert f"symbolic link to {folder.resolve() / 'precious'}: name that file itself" in told


def test_the_default_output_is_no_link_either(refused: Refused) -> None:
    Path("precious").write_text("precious")
    Path("m.onnx").symlink_to("precious")  # as a folder of someone else may hold
    refused(2, "E0421", "compile", "m.dml")


def test_a_program_that_is_a_link_is_laid_out_where_it_is() -> None:
    Path("real.dml").write_text(GOOD.replace("    y = exp(x)", "  y=exp(x)"))
    Path("link.dml").symlink_to("real.dml")
    assert main(["fmt", "link.dml"]) == 0
    assert Path("link.dml").is_symlink()
    assert Path("real.dml").read_text() == GOOD


def test_weights_of_the_source_are_never_written(refused: Refused) -> None:
    weighted()
    assert "weights of the source" in refused(2, "E0421", "compile", "big.onnx", "-o", "w.py")
    refused(2, "E0421", "compile", "big.onnx", "-o", "out.onnx", "--ledger", "w.py")
    refused(2, "E0421", "compile", "big.onnx", "--emit", "onnx", "-o", "w.py")
    Path("alias.py").hardlink_to("m.dml")
    assert main(["compile", "-q", "big.onnx", "-o", "out.py"]) == 0
    assert main(["compile", "-q", "big.onnx", "-o", "out.onnx"]) == 0
    onnx.checker.check_model("out.onnx")


def test_what_is_written_is_out_and_its_data() -> None:
    weighted()
    Path("to").mkdir()
    before = set(Path().rglob("*"))
    assert main(["compile", "-q", "big.onnx", "-o", "to/out.onnx"]) == 0
    (data,) = Path("to").glob("out.onnx.*.data")
    assert set(Path().rglob("*")) - before == {Path("to/out.onnx"), data}
    assert main(["compile", "-q", "big.onnx", "-o", "to/in.onnx", "--weights", "inline"]) == 0
    assert main(["compile", "-q", "m.dml", "-o", "to/m.py"]) == 0
    assert {p.name for p in Path("to").iterdir()} == {"out.onnx", data.name, "in.onnx", "m.py"}


def test_a_full_stdout(folder: Path) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        argv = [sys.executable, "-m", "dmlc", "compile", str(folder / "m.dml"), "--target", "numpy", "-o", "-"]
        root = Path(dmlc.__file__).parents[1]
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, cwd=root)
    assert done.returncode == 2
    assert "cannot write to stdout: No space left on device" in done.stderr


@pytest.mark.skipif(sys.platform == "darwin", reason="names there are UTF-8")
def test_names_that_are_no_utf8(refused: Refused, folder: Path) -> None:
    odd = os.fsdecode(b"b\xff")
    Path(f"{odd}.dml").write_text(GOOD)
    for argv in (["compile", "-q"], ["compile", "-q", "--ledger", "l.json"], ["run", "-q", "--random", "1"]):
        assert main([*argv, f"{odd}.dml"]) == 0  # an internal error: the place in the program goes into the model
    assert onnx.load(f"{odd}.onnx").graph.node[0].doc_string == "b\\udcff.dml:2:9"
    assert main(["compile", "-q", f"{odd}.dml", "-o", "o.dxdispatch.json"]) == 0
    weighted()
    folder.joinpath("sub").mkdir()
    for argv in (["big.onnx", "-o", f"sub/{odd}.onnx"], ["m.dml", "-o", f"{odd}.dxdispatch.json"]):
        with pytest.raises(dmlc.DmlcError, match="what refers to it is UTF-8") as caught:
            dmlc.compile(argv[0]).save(argv[2])
        assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == ("E0421", 2)


def test_names_of_files_that_are_too_long(refused: Refused) -> None:
    for name in ("n" * 260 + ".dxdispatch.json", "n" * 260 + ".onnx", "n" * 260 + ".py"):
        assert "file name too long" in refused(2, "E0421", "compile", "m.dml", "-o", name, "-q")
    long = "x" * 300
    Path("long.dml").write_text(f"model m({long}: f32[4]) -> (y) {{\n    return exp({long})\n}}\n")
    assert main(["compile", "long.dml", "-o", "long.dxdispatch.json", "-q"]) == 0
    assert main(["compile", "long.dml", "-o", "long.dxdispatch.json", "-q"]) == 0  # the data is there now
    with pytest.raises(dmlc.DmlcError, match=r"null (byte|character)") as caught:
        dmlc.compile("m.dml").save("a\0b.dxdispatch.json")
    assert caught.value.diagnostics[0].code.id == "E0421"
