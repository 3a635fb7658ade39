"""Made-up site-packages folders, as pip writes them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

#: A stand-in for ONNX Runtime, by its execution providers.
STUB = "__version__ = '{version}'\nInferenceSession = SessionOptions = object\n" + (
    "def get_available_providers():\n    return {providers}\n"
)
CPU, DML = "CPUExecutionProvider", "DmlExecutionProvider"


def install(
    site: Path, name: str, version: str, files: Mapping[str, str], *, package: str = "onnxruntime", record: bool = True
) -> None:
    """Install a distribution whose files lie below ``package``: what is there is overwritten, as pip does it."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    every = {f"{package}/{path}": text for path, text in files.items()}
    every[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    every[f"{info}/top_level.txt"] = f"{package}\n"
    for path, text in every.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_bytes(text.encode())
    if record:
        lines = [f"{path},{_hash(text)},{len(text.encode())}" for path, text in every.items()]
        (site / info / "RECORD").write_text("\n".join([*lines, f"{info}/RECORD,,"]) + "\n")


def runtime_files(name: str, version: str, *providers: str) -> dict[str, str]:
    """The files of a build of ONNX Runtime: some are the same in every build of a version."""
    build = f"{name} {version}"
    files = {
        "__init__.py": STUB.format(version=version, providers=list(providers or [CPU])),
        "capi/__init__.py": "",
        "capi/native.so": f"the code of {build}",
        "capi/common.py": f"# of {version}\n",
    }
    return {**files, "capi/DirectML.dll": "DirectML"} if DML in providers else files


def _hash(text: str) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
