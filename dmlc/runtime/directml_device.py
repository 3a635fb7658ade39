"""DirectML of this machine, as Windows reports it: the library, the adapter and the highest feature level.

Uses ctypes and the documented functions ``CreateDXGIFactory1``, ``D3D12CreateDevice`` and ``DMLCreateDevice1``. The
adapter is number 0, the default of ONNX Runtime.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

#: Loads a library of Windows by its name or path, as ``ctypes.WinDLL`` does. Raises ``OSError`` where it is missing.
Loader: TypeAlias = Callable[[str], Any]

_IID_FACTORY = "770aae78-f26f-4dba-a829-253c83d1b387"  # IDXGIFactory1
_IID_D3D12_DEVICE = "189819f1-1db6-4b57-be54-1821339b85f7"  # ID3D12Device
_IID_DML_DEVICE = "6dbd6437-96fd-423f-a98c-ae5e7c2a573f"  # IDMLDevice
_D3D_FEATURE_LEVEL_11_0 = 0xB000
#: Places in the tables of methods: IUnknown::Release, IDXGIFactory1::EnumAdapters1, IDXGIAdapter::GetDesc.
_RELEASE, _ENUM_ADAPTERS, _GET_DESC = 2, 12, 8
_UNSUPPORTED = 0x887A0004  # DXGI_ERROR_UNSUPPORTED: this DirectML does not have the feature level
_LONGEST_PATH = 32768
_DLL = "DirectML.dll"


class _Guid(ctypes.Structure):
    _fields_ = [
        ("data1", ctypes.c_uint32),
        ("data2", ctypes.c_uint16),
        ("data3", ctypes.c_uint16),
        ("data4", ctypes.c_ubyte * 8),
    ]


class _AdapterDesc(ctypes.Structure):
    """DXGI_ADAPTER_DESC."""

    _fields_ = [
        ("description", ctypes.c_uint16 * 128),  # UTF-16, whatever wchar_t is where this runs
        ("ids", ctypes.c_uint32 * 4),
        ("memory", ctypes.c_size_t * 3),
        ("luid", ctypes.c_uint32 * 2),
    ]


@dataclass(slots=True)
class DirectMLDevice:
    """Properties of the device; None for those that could not be read. ``problems`` has the reasons, in words.

    ``bundled`` is true if the library came with onnxruntime-directml.
    """

    path: str | None = None
    version: str | None = None
    bundled: bool | None = None
    adapter: str | None = None
    feature_level: str | None = None
    problems: list[str] = field(default_factory=list)


def directml_device(load: Loader | None = None, bundled: Path | None = None) -> DirectMLDevice:
    """Ask this machine. Never raises: failures are part of the answer.

    ``bundled`` is the path of the library beside ONNX Runtime, which is taken where it exists.
    """
    load = load or getattr(ctypes, "WinDLL", None)
    out = DirectMLDevice()
    if load is None:
        out.problems.append("DirectML exists on Windows only")
        return out
    with ExitStack() as kept, _saying(out, "asking for the DirectML device"):
        library = _library(load, bundled, out)
        adapter = _adapter(load, kept, out)
        if library is not None:
            device = _d3d12_device(load, adapter, kept, out)
            if device is not None:
                from dmlc.targets.directml import feature_levels  # needs numpy, which may be what is missing

                out.feature_level = _highest(library, device, feature_levels(), out)
    return out


@contextmanager
def _saying(out: DirectMLDevice, step: str) -> Iterator[None]:
    """Record an error of one step as a problem, so that the next step still runs."""
    try:
        yield
    except Exception as error:  # ctypes raises OSError, ValueError, AttributeError and ArgumentError
        out.problems.append(f"{step} failed: {error}")


# --- the library


def _library(load: Loader, bundled: Path | None, out: DirectMLDevice) -> Any:
    """DirectML.dll, with its path and version."""
    out.bundled = bundled is not None and bundled.is_file()
    try:
        library = load(str(bundled) if out.bundled else _DLL)
    except OSError as error:
        out.bundled = None
        out.problems.append(f"{_DLL} cannot be loaded: {error}")
        return None
    with _saying(out, f"asking for the path of {_DLL}"):
        out.path = str(bundled) if out.bundled else _path(load, library)
    with _saying(out, f"asking for the version of {_DLL}"):
        out.version = _version(load, out.path or _DLL)
    return library


def _path(load: Loader, library: Any) -> str | None:
    name = load("kernel32").GetModuleFileNameW
    name.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32)
    buffer = ctypes.create_unicode_buffer(_LONGEST_PATH)
    return buffer.value if name(library._handle, buffer, _LONGEST_PATH) else None


def _version(load: Loader, path: str) -> str | None:
    """The version that the file itself says (VS_FIXEDFILEINFO)."""
    library = load("version")
    sizes, read, query = library.GetFileVersionInfoSizeW, library.GetFileVersionInfoW, library.VerQueryValueW
    sizes.argtypes = (ctypes.c_wchar_p, ctypes.c_void_p)
    read.argtypes = (ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
    query.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_void_p, ctypes.c_void_p)
    size = sizes(path, None)
    data = ctypes.create_string_buffer(max(size, 1))
    place, length = ctypes.c_void_p(), ctypes.c_uint32()
    if not size or not read(path, 0, size, data) or not query(data, "\\", ctypes.byref(place), ctypes.byref(length)):
        return None
    if not place.value:
        return None
    facts = ctypes.cast(place.value, ctypes.POINTER(ctypes.c_uint32 * 4)).contents  # signature, structure, file version
    return f"{facts[2] >> 16}.{facts[2] & 0xFFFF}.{facts[3] >> 16}.{facts[3] & 0xFFFF}"


# --- the adapter and the devices


def _adapter(load: Loader, kept: ExitStack, out: DirectMLDevice) -> Any:
    """The first adapter, with its name; None stands for Windows' own choice."""
    with _saying(out, "asking for the adapter"):
        create = load("dxgi").CreateDXGIFactory1
        create.argtypes, create.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int32
        factory = ctypes.c_void_p()
        if _failed(create(_guid(_IID_FACTORY), ctypes.byref(factory)), "CreateDXGIFactory1", out):
            return None
        kept.callback(_release, factory)
        adapter = ctypes.c_void_p()
        found = _method(factory, _ENUM_ADAPTERS, ctypes.c_uint32, ctypes.c_void_p)(0, ctypes.addressof(adapter))
        if _failed(found, "IDXGIFactory1::EnumAdapters1", out):
            return None
        kept.callback(_release, adapter)
        desc = _AdapterDesc()
        if not _failed(_method(adapter, _GET_DESC, ctypes.c_void_p)(ctypes.addressof(desc)), "GetDesc", out):
            out.adapter = bytes(desc.description).decode("utf-16-le", "replace").split("\0")[0]
        return adapter
    return None


def _d3d12_device(load: Loader, adapter: Any, kept: ExitStack, out: DirectMLDevice) -> Any:
    try:
        create = load("d3d12").D3D12CreateDevice
    except (OSError, AttributeError) as error:
        out.problems.append(f"d3d12.dll cannot be used: {error}")
        return None
    create.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    create.restype = ctypes.c_int32
    device = ctypes.c_void_p()
    result = create(adapter, _D3D_FEATURE_LEVEL_11_0, _guid(_IID_D3D12_DEVICE), ctypes.byref(device))
    if _failed(result, "D3D12CreateDevice", out):
        return None
    kept.callback(_release, device)
    return device


def _highest(library: Any, device: Any, levels: Sequence[str], out: DirectMLDevice) -> str | None:
    """The highest feature level at which a DirectML device can be made; the device is released again."""
    create = getattr(library, "DMLCreateDevice1", None)
    if create is None:
        out.problems.append("this DirectML.dll is older than 1.4: it has no DMLCreateDevice1")
        return None
    create.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
    create.restype = ctypes.c_int32
    result = 0
    for level in reversed(levels):
        made = ctypes.c_void_p()
        major, minor = map(int, level.split("."))
        result = create(device, 0, major << 12 | minor << 8, _guid(_IID_DML_DEVICE), ctypes.byref(made))
        if result >= 0:
            _release(made)
            return level
        if result & 0xFFFFFFFF != _UNSUPPORTED:
            break  # not the level's fault
    _failed(result, f"DMLCreateDevice1 at feature level {level}", out)
    return None


def _failed(result: int, what: str, out: DirectMLDevice) -> bool:
    if result >= 0:
        return False
    out.problems.append(f"{what} failed: 0x{result & 0xFFFFFFFF:08X}")
    return True


# --- COM


def _guid(text: str) -> Any:
    return ctypes.byref(_Guid.from_buffer_copy(uuid.UUID(text).bytes_le))


def _method(object: Any, place: int, *types: Any) -> Callable[..., int]:
    """A method of a COM object, which lies at that place in the table that the object points to."""
    table = ctypes.cast(object, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
    prototype = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)(ctypes.c_int32, ctypes.c_void_p, *types)
    function = prototype(table[place])
    return lambda *arguments: int(function(object, *arguments))


def _release(object: Any) -> None:
    if object.value:
        _method(object, _RELEASE)()
