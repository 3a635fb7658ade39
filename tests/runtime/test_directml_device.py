"""The questions that ``dmlc doctor`` asks of Windows, answered here by objects that stand for its libraries."""

from __future__ import annotations

import ctypes
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dmlc.runtime.directml_device import DirectMLDevice, directml_device
from dmlc.targets.directml import feature_levels
from tests.rows import each_row

UNSUPPORTED = 0x887A0004 - 2**32
E_FAIL = 0x80004005 - 2**32
DLL = "DirectML.dll"


class ComObject:
    """An object in memory as COM lays it out: a pointer to a table of functions."""

    def __init__(self, methods: dict[int, tuple[Callable[..., int], tuple[Any, ...]]] | None = None) -> None:
        self.released = 0
        self.kept: list[Any] = []
        table = (ctypes.c_void_p * 16)()
        for place, (body, types) in {2: (self._release, ()), **(methods or {})}.items():
            callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, *types)(body)
            self.kept.append(callback)
            table[place] = ctypes.cast(callback, ctypes.c_void_p).value
        self.table = table
        self.memory = ctypes.c_void_p(ctypes.addressof(table))
        self.address = ctypes.addressof(self.memory)

    def _release(self, this: int) -> int:
        assert this == self.address
        self.released += 1
        return 0


class Machine:
    """A machine with an adapter; ``levels`` are what its DirectML takes."""

    def __init__(
        self, highest: str | None = "6.4", *, missing: tuple[str, ...] = (), refuse: dict[str, int] | None = None
    ):
        self.highest, self.missing, self.refuse = highest, missing, refuse or {}
        self.asked: list[int] = []
        self.loaded: list[str] = []
        self.d3d12, self.dml = ComObject(), ComObject()
        self.adapter = ComObject({8: (self._describe, (ctypes.c_void_p,))})
        self.factory = ComObject({12: (self._enumerate, (ctypes.c_uint32, ctypes.c_void_p))})

    def __call__(self, name: str) -> Any:
        self.loaded.append(name)
        if name in self.missing:
            raise OSError(f"[WinError 126] {name}: The specified module could not be found")
        return self

    _handle = 77

    def _describe(self, this: int, place: int) -> int:
        data = "A card with a name".encode("utf-16-le")
        ctypes.memmove(place, data, len(data))
        return 0

    def _enumerate(self, this: int, number: int, out: int) -> int:
        assert number == 0
        ctypes.c_void_p.from_address(out).value = self.adapter.address
        return 0

    def _answer(self, function: str, iid: Any, wanted: str, out: Any, made: ComObject) -> int:
        assert uuid.UUID(bytes_le=bytes(iid._obj)) == uuid.UUID(wanted)
        if function in self.refuse:
            return self.refuse[function]
        out._obj.value = made.address
        return 0

    @property
    def CreateDXGIFactory1(self) -> Any:
        iid = "770aae78-f26f-4dba-a829-253c83d1b387"
        return function(lambda given, out: self._answer("CreateDXGIFactory1", given, iid, out, self.factory))

    @property
    def D3D12CreateDevice(self) -> Any:
        def create(adapter: Any, level: int, iid: Any, out: Any) -> int:
            assert level == 0xB000
            assert adapter is None or adapter.value == self.adapter.address
            return self._answer("D3D12CreateDevice", iid, "189819f1-1db6-4b57-be54-1821339b85f7", out, self.d3d12)

        return function(create)

    @property
    def DMLCreateDevice1(self) -> Any:
        def create(device: Any, flags: int, level: int, iid: Any, out: Any) -> int:
            assert (device.value, flags) == (self.d3d12.address, 0)
            self.asked.append(level)
            if self.highest is None or level > value(self.highest):
                return UNSUPPORTED
            return self._answer("DMLCreateDevice1", iid, "6dbd6437-96fd-423f-a98c-ae5e7c2a573f", out, self.dml)

        if "no DMLCreateDevice1" in self.refuse:
            raise AttributeError("function 'DMLCreateDevice1' not found")
        return function(create)

    @property
    def GetModuleFileNameW(self) -> Any:
        def name(handle: int, buffer: Any, size: int) -> int:
            assert handle == 77
            buffer.value = "C:\\Windows\\System32\\DirectML.dll"
            return len(buffer.value)

        return function(name)

    @property
    def GetFileVersionInfoSizeW(self) -> Any:
        return function(lambda path, _: 16)

    @property
    def GetFileVersionInfoW(self) -> Any:
        def read(path: str, _: int, size: int, data: Any) -> int:
            words = (ctypes.c_uint32 * 4)(0xFEEF04BD, 0x10000, 1 << 16 | 15, 4 << 16 | 0)
            ctypes.memmove(data, words, size)
            return 1

        return function(read)

    @property
    def VerQueryValueW(self) -> Any:
        def query(data: Any, block: str, place: Any, length: Any) -> int:
            assert block == "\\"
            place._obj.value = ctypes.addressof(data)
            return 1

        return function(query)


def function(body: Callable[..., int]) -> Callable[..., int]:
    """A function that takes ``argtypes`` as those of ctypes do."""

    def call(*arguments: Any) -> int:
        assert len(call.argtypes) == len(arguments)  # type: ignore[attr-defined]
        return body(*arguments)

    return call


def value(level: str) -> int:
    """DML_FEATURE_LEVEL, as DirectML.h writes it: 0x6400 for 6.4."""
    return int(level.replace(".", "") + "00", 16)


def test_all_of_it() -> None:
    machine = Machine()
    found = directml_device(machine)
    assert found == DirectMLDevice(
        path="C:\\Windows\\System32\\DirectML.dll",
        version="1.15.4.0",
        bundled=False,
        adapter="A card with a name",
        feature_level="6.4",
    )


def test_levels_are_tried_from_the_highest_down() -> None:
    machine = Machine("5.1")
    assert directml_device(machine).feature_level == "5.1"
    tried = [level for level in feature_levels() if value(level) >= value("5.1")]
    assert machine.asked == [value(level) for level in reversed(tried)]


def test_everything_is_released_once() -> None:
    machine = Machine("6.2")
    directml_device(machine)
    made = (machine.factory, machine.adapter, machine.d3d12, machine.dml)
    assert [one.released for one in made] == [1, 1, 1, 1]


def test_no_level_is_taken() -> None:
    found = directml_device(Machine(None))
    assert found.feature_level is None
    assert found.problems == ["DMLCreateDevice1 at feature level 1.0 failed: 0x887A0004"]


def test_another_failure_is_not_the_level() -> None:
    machine = Machine(refuse={"DMLCreateDevice1": E_FAIL})
    assert directml_device(machine).problems == ["DMLCreateDevice1 at feature level 6.4 failed: 0x80004005"]
    assert len(machine.asked) == 1


def test_the_bundled_library_is_taken(tmp_path: Path) -> None:
    bundled = tmp_path / DLL
    bundled.write_bytes(b"")
    machine = Machine()
    found = directml_device(machine, bundled)
    assert (found.bundled, found.path) == (True, str(bundled))
    assert str(bundled) in machine.loaded
    assert DLL not in machine.loaded
    assert directml_device(Machine(), tmp_path / "missing" / DLL).bundled is False


def test_a_missing_library() -> None:
    found = directml_device(Machine(missing=(DLL,)))
    assert (found.feature_level, found.bundled, found.adapter) == (None, None, "A card with a name")
    (problem,) = found.problems
    assert problem.startswith("DirectML.dll cannot be loaded: [WinError 126]")


@each_row(
    ("machine", "said", "level"),
    [
        (Machine(missing=("d3d12",)), "d3d12.dll cannot be used: [WinError 126]", None),
        (Machine(missing=("dxgi",)), "asking for the adapter failed: [WinError 126]", "6.4"),
        (Machine(missing=("version",)), "asking for the version of DirectML.dll failed", "6.4"),
        (Machine(missing=("kernel32",)), "asking for the path of DirectML.dll failed", "6.4"),
        (Machine(refuse={"CreateDXGIFactory1": E_FAIL}), "CreateDXGIFactory1 failed: 0x80004005", "6.4"),
        (Machine(refuse={"D3D12CreateDevice": E_FAIL}), "D3D12CreateDevice failed: 0x80004005", None),
        (Machine(refuse={"no DMLCreateDevice1": 0}), "it has no DMLCreateDevice1", None),
    ],
)
def test_what_fails_is_said_and_the_rest_is_found(machine: Machine, said: str, level: str | None) -> None:
    found = directml_device(machine)
    (problem,) = found.problems
    assert said in problem
    assert found.feature_level == level


@pytest.mark.skipif(hasattr(ctypes, "WinDLL"), reason="this is Windows")
def test_elsewhere() -> None:
    assert directml_device() == DirectMLDevice(problems=["DirectML exists on Windows only"])


def test_doctor_tells_it_on_windows(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from dmlc.cli import doctor
    from dmlc.cli.main import main

    def found(bundled: Path) -> DirectMLDevice:
        assert bundled.parts[-3:] == ("onnxruntime", "capi", DLL)
        return directml_device(Machine("6.2", missing=("version",)), bundled)

    monkeypatch.setattr(doctor.sys, "platform", "win32")
    monkeypatch.setattr(doctor, "directml_device", found)
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    lines = {line[:13].strip(): line[13:].strip() for line in out.splitlines()}
    assert lines["DirectML"] == "of the system, C:\\Windows\\System32\\DirectML.dll"
    assert lines["adapter"] == "A card with a name"
    assert lines["feature level"] == "6.2"
    assert "asking for the version of DirectML.dll failed" in out


def test_doctor_says_that_directml_is_of_windows(capsys: pytest.CaptureFixture[str]) -> None:
    from dmlc.cli.main import main

    assert main(["doctor", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    if sys.platform != "win32":
        assert found["directml"] is None
        assert any("exists on Windows only" in sentence for sentence in found["advice"])
