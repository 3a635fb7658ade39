"""``dmlc doctor`` in made-up environments, with nothing but the standard library beside them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from installed_packages import CPU, DML, install, runtime_files

import dmlc

DRIVER = "import sys; from dmlc.cli.main import main; sys.exit(main(sys.argv[1:]))"
LIBRARIES = {"numpy": "ndarray", "lark": "Lark", "onnx": "ModelProto", "networkx": "DiGraph"}


@cache
def code() -> tempfile.TemporaryDirectory[str]:
    """A folder of the package alone: beside an installed one lie the libraries of this environment."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(Path(dmlc.__file__).parent, Path(folder.name) / "dmlc")
    return folder


def doctor(site: Path, *words: str) -> tuple[int, str]:
    """The exit code and the output in an environment with these site-packages alone."""
    path = os.pathsep.join([code().name, str(site)])
    done = subprocess.run(
        [sys.executable, "-S", "-c", DRIVER, "doctor", *words],
        capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout


def document(site: Path) -> tuple[int, dict[str, Any]]:
    code, out = doctor(site, "--format", "json")
    found: dict[str, Any] = json.loads(out)
    assert found["ok"] is (code == 0)
    return code, found


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Site-packages with stand-ins for every library but ONNX Runtime."""
    for name, attribute in LIBRARIES.items():
        install(tmp_path, name, "1.0", {"__init__.py": f"__version__ = '1.0'\n{attribute} = object\n"}, package=name)
    return tmp_path


def test_it_needs_the_standard_library_alone(tmp_path: Path) -> None:
    code, found = document(tmp_path)
    assert code == 1
    assert found["missing"] == [*LIBRARIES, "onnxruntime"]
    assert found["libraries"] == dict.fromkeys([*LIBRARIES, "onnxruntime"])
    assert (found["broken"], found["runtimes"], found["providers"]) == ({}, [], [])
    code, out = doctor(tmp_path)
    assert code == 1
    for name in LIBRARIES:
        assert f"pip install {name}\n" in out
    assert "pip install onnxruntime" in out


@pytest.mark.parametrize("name", ["onnxruntime-openvino", "onnxruntime-gpu", "onnxruntime-windowsml", "ort-nightly"])
def test_it_names_what_overwrote_what_and_how_to_keep_either(tmp_path: Path, name: str) -> None:
    install(tmp_path, name, "1.30.0", runtime_files(name, "1.30.0"))
    install(tmp_path, "onnxruntime", "1.32.0", runtime_files("onnxruntime", "1.32.0"))
    _, out = doctor(tmp_path)
    assert f"{name} 1.30.0: of 4 files 3 overwritten by onnxruntime 1.32.0\n" in out
    assert "onnxruntime 1.32.0: all 4 files in place\n" in out
    assert "the files there are those of onnxruntime 1.32.0" in out
    for keep in (f"{name}==1.30.0", "onnxruntime==1.32.0"):
        (line,) = [line for line in out.splitlines() if line.endswith(f"pip install --no-deps {keep}")]
        assert line.strip().startswith("pip uninstall -y ")
        assert set(line.split(" && ")[0].split()[3:]) == {name, "onnxruntime"}
    runtimes = {each["name"]: each for each in document(tmp_path)[1]["runtimes"]}
    assert runtimes[name]["overwritten"] == {"onnxruntime 1.32.0": 3}
    assert runtimes["onnxruntime"]["intact"] == runtimes["onnxruntime"]["files"] == 4


def test_a_mix_of_two_builds_is_an_error_though_its_import_works(site: Path) -> None:
    install(site, "onnxruntime", "1.32.0", runtime_files("onnxruntime", "1.32.0"))
    assert document(site)[1]["broken"] == {}
    install(site, "onnxruntime-gpu", "1.30.0", runtime_files("onnxruntime-gpu", "1.30.0"))
    (site / "onnxruntime" / "capi" / "native.so").write_text(runtime_files("onnxruntime", "1.32.0")["capi/native.so"])
    code, out = doctor(site)
    assert code == 1
    assert "the files there are a mix of them" in out
    assert "onnxruntime-gpu 1.30.0: of 4 files 1 overwritten by onnxruntime 1.32.0\n" in out


def test_what_an_uninstall_left_is_repaired_with_one_command(site: Path) -> None:
    install(site, "onnxruntime-directml", "1.24.4", runtime_files("d", "1.24.4", DML, CPU))
    (site / "onnxruntime" / "capi" / "native.so").unlink()
    code, out = doctor(site)
    assert code == 1 and "of 5 files 1 missing" in out
    assert "pip install --force-reinstall --no-deps onnxruntime-directml==1.24.4" in out


def test_windowsml_is_a_directml_provider(site: Path) -> None:
    install(site, "onnxruntime-windowsml", "1.30.0.202609102321", runtime_files("w", "1.30.0", DML, CPU))
    code, out = doctor(site)
    assert code == 0 and "DirectML is missing" not in out
    assert "onnxruntime-windowsml 1.30.0.202609102321: all 5 files in place" in out
    assert "on dml by default" in out
    found = document(site)[1]
    assert found["providers"] == [DML, CPU]
    assert [each["directml"] for each in found["runtimes"]] == [True]


@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        ("raise ImportError('DLL load failed while importing native')", "DLL load failed while importing native"),
        ("raise OSError('libcuda.so.1: cannot open shared object file')", "libcuda.so.1"),
        ("import os\nos.abort()", "SIGABRT" if os.name == "posix" else "process ended"),
        ("import sys\nsys.exit(7)", "SystemExit"),
        ("import another_package_that_nobody_has", "another_package_that_nobody_has"),
        ("InferenceSession = 1", "has no SessionOptions"),
        ("print('noise')\nraise RuntimeError('first line\\nsecond line')", "RuntimeError: first line second line"),
    ],
)
def test_a_broken_import_is_quoted(site: Path, body: str, quoted: str) -> None:
    install(site, "onnxruntime", "1.32.0", {"__init__.py": body})
    code, out = doctor(site)
    assert code == 1
    assert quoted in out and "pip install --force-reinstall onnxruntime" in out
    found = document(site)[1]
    assert list(found["broken"]) == ["onnxruntime"] and quoted in found["broken"]["onnxruntime"]
    assert found["missing"] == [] and found["providers"] == []


def test_a_build_that_crashes_when_its_kernels_are_read_compiles_and_is_reported(tmp_path: Path) -> None:
    """OpenVINO's build 1.24.1 does so."""
    files = runtime_files("onnxruntime-openvino", "1.24.1", "OpenVINOExecutionProvider", CPU)
    crash = "import os\ndef get_all_opkernel_def():\n    os.abort()\n"
    install(tmp_path, "onnxruntime-openvino", "1.24.1", {**files, "capi/onnxruntime_pybind11_state.py": crash})
    (tmp_path / "m.dml").write_text("model m(x: f32[3]) -> (y) {\n    y = x + 1\n    return y\n}\n")
    path = os.pathsep.join([str(tmp_path), str(Path(dmlc.__file__).parents[1])])
    for words in (["doctor"], ["compile", "m.dml", "--target", "cpu"]):
        done = subprocess.run(
            [sys.executable, "-c", DRIVER, *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        if words == ["doctor"]:
            assert "onnxruntime 1.24.1 does not list its kernels: the process ended with" in done.stdout


def test_an_empty_folder_is_not_onnx_runtime(site: Path) -> None:
    (site / "onnxruntime" / "capi").mkdir(parents=True)
    code, out = doctor(site)
    assert code == 1
    assert "has no InferenceSession" in out and "No installed package lists the files of" in out


def test_a_broken_build_is_repaired_as_the_package_that_it_is(site: Path) -> None:
    install(site, "onnxruntime-openvino", "1.24.1", {"__init__.py": "raise OSError('libopenvino.so')"})
    code, out = doctor(site)
    assert code == 1
    assert "pip install --force-reinstall onnxruntime-openvino\n" in out
