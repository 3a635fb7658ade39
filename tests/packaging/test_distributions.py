"""The distributions of ONNX Runtime in made-up site-packages folders: which are there, and whose files are in place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from installed_packages import CPU, DML, install, runtime_files

from dmlc.runtime.distributions import RuntimeDistribution, runtime_distributions

NAMES = (
    "onnxruntime", "onnxruntime-directml", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-windowsml",
    "onnxruntime-qnn", "onnxruntime-training", "ort-nightly", "ort-nightly-gpu", "acme-inference",
)  # fmt: skip


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    return folder


def found() -> dict[str, RuntimeDistribution]:
    return {each.name: each for each in runtime_distributions()}


@pytest.mark.parametrize("name", NAMES)
def test_every_distribution_with_files_of_the_package_is_found(site: Path, name: str) -> None:
    install(site, name, "1.30.0", runtime_files(name, "1.30.0"))
    install(site, "onnxruntime-extensions", "0.14", {"__init__.py": ""}, package="onnxruntime_extensions")
    install(site, "numpy", "2.4", {"__init__.py": ""}, package="numpy")
    (one,) = runtime_distributions()
    assert (one.name, one.version, one.imported, one.whole) == (name, "1.30.0", True, True)
    assert (one.files, one.intact, one.missing, one.changed, one.overwritten) == (4, 4, 0, 0, {})


@pytest.mark.parametrize("first", NAMES)
def test_the_one_installed_last_has_overwritten_the_other(site: Path, first: str) -> None:
    last = "onnxruntime" if first != "onnxruntime" else "onnxruntime-directml"
    install(site, first, "1.24.4", runtime_files(first, "1.24.4"))
    install(site, last, "1.32.0", runtime_files(last, "1.32.0"))
    both = found()
    assert both[last].whole and not both[first].whole
    # the empty file is the same in both
    assert (both[first].intact, both[first].overwritten) == (1, {f"{last} 1.32.0": 3})


def test_builds_of_one_version_share_files(site: Path) -> None:
    for name in ("onnxruntime", "onnxruntime-gpu"):
        install(site, name, "1.30.0", runtime_files(name, "1.30.0"))
    both = found()
    assert both["onnxruntime-gpu"].whole
    assert both["onnxruntime"].overwritten == {"onnxruntime-gpu 1.30.0": 1}


def test_an_uninstall_takes_files_of_the_other_away(site: Path) -> None:
    install(site, "onnxruntime-openvino", "1.24.1", runtime_files("onnxruntime-openvino", "1.24.1"))
    for path in ("__init__.py", "capi/common.py"):
        (site / "onnxruntime" / path).unlink()
    (one,) = runtime_distributions()
    assert (one.missing, one.intact, one.changed, one.whole) == (2, 2, 0, False)


def test_a_changed_file_of_the_same_size_is_seen(site: Path) -> None:
    install(site, "onnxruntime", "1.32.0", runtime_files("onnxruntime", "1.32.0"))
    native = site / "onnxruntime" / "capi" / "native.so"
    native.write_bytes(b"x" * native.stat().st_size)
    (one,) = runtime_distributions()
    assert (one.changed, one.intact, one.overwritten) == (1, 3, {})


def test_builds_with_directml_are_marked(site: Path) -> None:
    install(site, "onnxruntime-windowsml", "1.30.0", runtime_files("w", "1.30.0", DML, CPU))
    install(site, "onnxruntime-openvino", "1.30.0", runtime_files("o", "1.30.0"))
    both = found()
    assert both["onnxruntime-windowsml"].directml and not both["onnxruntime-openvino"].directml


def test_the_folder_that_comes_first_is_imported(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = tmp_path / "user"
    install(user, "onnxruntime-gpu", "1.30.0", runtime_files("onnxruntime-gpu", "1.30.0"))
    install(site, "onnxruntime", "1.32.0", runtime_files("onnxruntime", "1.32.0"))
    monkeypatch.setattr(sys, "path", [str(user), str(site), str(user)])
    assert [(each.name, each.imported, each.whole) for each in runtime_distributions()] == [
        ("onnxruntime-gpu", True, True),
        ("onnxruntime", False, True),
    ]


def test_lists_that_cannot_be_read_count_as_empty(site: Path) -> None:
    install(site, "onnxruntime-a", "1.0", runtime_files("a", "1.0"), record=False)
    install(site, "onnxruntime-b", "1.0", runtime_files("b", "1.0"))
    (site / "onnxruntime_b-1.0.dist-info" / "RECORD").write_bytes(b"\xff\xfe onnxruntime/\x00")
    install(site, "onnxruntime-c", "1.0", runtime_files("c", "1.0"))
    (site / "onnxruntime_c-1.0.dist-info" / "RECORD").write_text("onnxruntime/capi/native.so,sha999=x,abc\n,,\n\n")
    install(site, "onnxruntime-d", "1.0", runtime_files("d", "1.0"))
    (site / "onnxruntime_d-1.0.dist-info").rename(site / "~nxruntime_d-1.0.dist-info")  # an interrupted uninstall
    assert {name: each.files for name, each in found().items()} == {
        "onnxruntime-a": 0, "onnxruntime-b": 0, "onnxruntime-c": 1,
    }  # fmt: skip
    assert not found()["onnxruntime-c"].whole


def test_nothing_installed(site: Path) -> None:
    assert runtime_distributions() == []
