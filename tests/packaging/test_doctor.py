"""``dmlc doctor`` in made-up environments, with nothing but the standard library beside them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from installed_packages import CPU, DML, install, runtime_files

import dmlc

#: The text and the document of this dmlc's doctor, in one process. Packages beside dmlc are not found.
DRIVER = f"""
import importlib.util, sys
package = {str(Path(dmlc.__file__).parent)!r}
spec = importlib.util.spec_from_file_location("dmlc", package + "/__init__.py", submodule_search_locations=[package])
sys.modules["dmlc"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from dmlc.cli import main
code = main.main(["doctor"])
print(end="\\f")
sys.exit(main.main(["doctor", "--format", "json"]) if code in (0, 1) else code)
"""
LIBRARIES = {"msgspec": "Struct", "numpy": "ndarray", "lark": "Lark", "onnx": "ModelProto"}


def doctor(site: Path) -> tuple[int, str, dict[str, Any]]:
    """The exit code, the text and the document in an environment with these site-packages alone."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", DRIVER],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert set(done.stderr.split()) <= {"noise"}  # printed by a broken library
    text, printed = done.stdout.split("\f")
    document: dict[str, Any] = json.loads(printed)
    assert document["ok"] is (done.returncode == 0)
    return done.returncode, text, document


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Site-packages with stand-ins for every library but ONNX Runtime."""
    for name, attribute in LIBRARIES.items():
        install(tmp_path, name, "1.0", {"__init__.py": f"__version__ = '1.0'\n{attribute} = object\n"}, package=name)
    return tmp_path


def test_it_needs_the_standard_library_alone(tmp_path: Path) -> None:
    code, out, found = doctor(tmp_path)
    assert code == 1
    assert found["missing"] == [*LIBRARIES, "onnxruntime"]
    assert found["libraries"] == dict.fromkeys([*LIBRARIES, "onnxruntime"])
    assert (found["broken"], found["runtimes"], found["providers"]) == ({}, [], [])
    for name in LIBRARIES:
        assert f"pip install --force-reinstall {name}\n" in out
    assert "pip install --force-reinstall onnxruntime" in out


@pytest.mark.parametrize("name", ["onnxruntime-openvino", "onnxruntime-gpu", "onnxruntime-windowsml", "ort-nightly"])
def test_it_names_what_overwrote_what_and_how_to_keep_either(tmp_path: Path, name: str) -> None:
    install(tmp_path, name, "1.30.0", runtime_files(name, "1.30.0"))
    install(tmp_path, "onnxruntime", "1.32.0", runtime_files("onnxruntime", "1.32.0"))
    _, out, found = doctor(tmp_path)
    assert f"{name} 1.30.0: of 4 files 3 overwritten by onnxruntime 1.32.0\n" in out
    assert "onnxruntime 1.32.0: all 4 files in place\n" in out
    assert "the files there belong to onnxruntime 1.32.0" in out
    for keep in (f"{name}==1.30.0", "onnxruntime==1.32.0"):
        (line,) = [line for line in out.splitlines() if line.endswith(f"pip install --no-deps {keep}")]
        assert line.strip().startswith("pip uninstall -y ")
        assert set(line.split(" && ")[0].split()[3:]) == {name, "onnxruntime"}
    runtimes = {each["name"]: each for each in found["runtimes"]}
    assert runtimes[name]["overwritten"] == {"onnxruntime 1.32.0": 3}
    assert runtimes["onnxruntime"]["intact"] == runtimes["onnxruntime"]["files"] == 4


def test_a_mix_of_two_builds_is_an_error_though_its_import_works(site: Path) -> None:
    install(site, "onnxruntime", "1.32.0", runtime_files("onnxruntime", "1.32.0"))
    assert doctor(site)[2]["broken"] == {}
    install(site, "onnxruntime-gpu", "1.30.0", runtime_files("onnxruntime-gpu", "1.30.0"))
    (site / "onnxruntime" / "capi" / "native.so").write_text(runtime_files("onnxruntime", "1.32.0")["capi/native.so"])
    code, out, _ = doctor(site)
    assert code == 1
    assert "the files there are a mix of them" in out
    assert "onnxruntime-gpu 1.30.0: of 4 files 1 overwritten by onnxruntime 1.32.0\n" in out


def test_what_an_uninstall_left_is_repaired_with_one_command(site: Path) -> None:
    install(site, "onnxruntime-directml", "1.24.4", runtime_files("d", "1.24.4", DML, CPU))
    (site / "onnxruntime" / "capi" / "native.so").unlink()
    code, out, _ = doctor(site)
    assert code == 1 and "of 5 files 1 missing" in out
    assert "pip install --force-reinstall --no-deps onnxruntime-directml==1.24.4" in out


def test_windowsml_is_a_directml_provider(site: Path) -> None:
    install(site, "onnxruntime-windowsml", "1.30.0.202609102321", runtime_files("w", "1.30.0", DML, CPU))
    code, out, found = doctor(site)
    assert code == 0 and "DirectML is missing" not in out
    assert "onnxruntime-windowsml 1.30.0.202609102321: all 5 files in place" in out
    assert "on dml by default" in out
    assert found["providers"] == [DML, CPU]
    assert [each["directml"] for each in found["runtimes"]] == [True]


@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        ("raise ImportError('DLL load failed while importing native')", "DLL load failed while importing native"),
        ("raise OSError('libcuda.so.1: cannot open shared object file')", "libcuda.so.1"),
        ("import sys\nsys.exit(7)", "SystemExit"),
        ("import another_package_that_nobody_has", "another_package_that_nobody_has"),
        ("InferenceSession = 1", "no attribute 'get_available_providers'"),
        ("print('noise')\nraise RuntimeError('first line\\nsecond line')", "RuntimeError: first line second line"),
    ],
)
def test_a_broken_import_is_quoted(site: Path, body: str, quoted: str) -> None:
    install(site, "onnxruntime", "1.32.0", {"__init__.py": body})
    code, out, found = doctor(site)
    assert code == 1
    assert quoted in out and "pip install --force-reinstall onnxruntime" in out
    assert list(found["broken"]) == ["onnxruntime"] and quoted in found["broken"]["onnxruntime"]
    assert found["missing"] == [] and found["providers"] == []


def test_a_build_that_crashes_when_its_kernels_are_read_compiles_and_is_reported(tmp_path: Path) -> None:
    """OpenVINO's build 1.24.1 does so."""
    files = runtime_files("onnxruntime-openvino", "1.24.1", "OpenVINOExecutionProvider", CPU)
    crash = "import os\ndef get_all_opkernel_def():\n    os.abort()\n"
    install(tmp_path, "onnxruntime-openvino", "1.24.1", {**files, "capi/onnxruntime_pybind11_state.py": crash})
    (tmp_path / "m.dml").write_text("model m(x: f32[3]) -> (y) {\n    y = x + 1\n    return y\n}\n")
    path = os.pathsep.join([str(tmp_path), str(Path(dmlc.__file__).parents[1])])
    both = "from dmlc.cli.main import main; exit(main('compile m.dml --target cpu'.split()) or main(['doctor']))"
    done = subprocess.run(
        [sys.executable, "-c", both],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "onnxruntime 1.24.1 does not list its kernels: ONNX Runtime ended its process" in done.stdout


def test_an_empty_folder_is_not_onnx_runtime(site: Path) -> None:
    (site / "onnxruntime" / "capi").mkdir(parents=True)
    code, out, _ = doctor(site)
    assert code == 1
    assert "no attribute 'get_available_providers'" in out and "No installed package lists the files of" in out


def test_a_broken_build_is_repaired_as_the_package_that_it_is(site: Path) -> None:
    install(site, "onnxruntime-openvino", "1.24.1", {"__init__.py": "raise OSError('libopenvino.so')"})
    code, out, _ = doctor(site)
    assert code == 1
    assert "pip install --force-reinstall onnxruntime-openvino\n" in out
