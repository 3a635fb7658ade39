"""The installed distributions of ONNX Runtime, and which of their files are in place. Standard library only.

onnxruntime, onnxruntime-directml, onnxruntime-gpu, onnxruntime-openvino, onnxruntime-windowsml and others install into
one folder, and pip lets the last one overwrite the files of the others. Each lists its files with sizes and hashes in
RECORD (https://packaging.python.org/en/latest/specifications/recording-installed-packages/).
"""

from __future__ import annotations

import base64
import csv
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "onnxruntime"
_DIRECTML_LIBRARY = "onnxruntime/capi/DirectML.dll"
#: Distributions whose builds have the DirectML execution provider.
_WITH_DIRECTML = frozenset({"onnxruntime-directml", "onnxruntime-windowsml", "ort-nightly-directml"})
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class RuntimeDistribution:
    """A distribution with files of the package ``onnxruntime``.

    ``folder`` is the site-packages folder; ``imported`` is True if Python imports ``onnxruntime`` from there. Of
    ``files`` listed files ``intact`` are on disk as listed, ``missing`` are not there, and ``overwritten`` counts those
    that are another distribution's, by its name and version. All others are
    ``changed``: they differ from every list.
    """

    name: str
    version: str
    folder: str
    imported: bool
    directml: bool
    files: int
    intact: int
    missing: int
    overwritten: dict[str, int]
    changed: int

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.name} {self.version}"

    @property
    def whole(self) -> bool:
        """True if every listed file is on disk as listed."""
        return self.intact == self.files


@dataclass(frozen=True, slots=True)
class _RecordRow:
    """A file of RECORD; "" for a size or hash that is not listed."""

    hash: str
    size: str


@dataclass(frozen=True, slots=True)
class _ListedDistribution:
    """A distribution with its list of files below ``onnxruntime/``."""

    name: str
    version: str
    folder: Path
    rows: dict[str, _RecordRow]


def runtime_distributions() -> list[RuntimeDistribution]:
    """Return the distributions of ONNX Runtime on ``sys.path``, the distributions of the imported folder first.

    Unreadable lists count as empty; nothing is raised.
    """
    found = list(_listed())
    home = package_folder()
    out = []
    for folder in dict.fromkeys(each.folder for each in found):
        here = [each for each in found if each.folder == folder]
        out += [_compared(each, here, home is not None and _same(home.parent, folder)) for each in here]
    return sorted(out, key=lambda each: not each.imported)


def package_folder() -> Path | None:
    """Return the folder of the package ``onnxruntime`` that Python would import, without importing it."""
    try:
        spec = find_spec(_PACKAGE)
    except (ImportError, ValueError, AttributeError):  # a finder that refuses, or a stand-in without a spec
        return None
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(folders[0]) if folders else None


def _listed() -> Iterator[_ListedDistribution]:
    """Find the distributions that list files below ``onnxruntime/``, or whose top-level package it is."""
    seen = set()
    for each in metadata.distributions():
        directory = getattr(each, "_path", None)
        if directory is not None and Path(str(directory)).name.startswith("~"):
            continue  # pip renamed it while it uninstalled, and was interrupted
        rows = _rows(_text(each, "RECORD"))
        if not rows and _PACKAGE not in _text(each, "top_level.txt").split():
            continue
        folder = Path(str(each.locate_file(""))).resolve()
        name, version = _name_and_version(each)
        if (folder, name, version) not in seen:  # a folder may be on the path twice
            seen.add((folder, name, version))
            yield _ListedDistribution(name, version, folder, rows)


def _name_and_version(each: metadata.Distribution) -> tuple[str, str]:
    try:
        name, version = str(each.metadata["Name"] or "unnamed"), str(each.metadata["Version"] or "of unknown version")
    except Exception:  # metadata that is cut or not text
        name, version = "unnamed", "of unknown version"
    return re.sub(r"[-_.]+", "-", name).lower(), version


def _text(each: metadata.Distribution, file: str) -> str:
    try:
        return each.read_text(file) or ""
    except (OSError, ValueError):
        return ""


def _rows(record: str) -> dict[str, _RecordRow]:
    """Read the files below ``onnxruntime/`` from RECORD; bytecode is not listed with hashes and does not count."""
    out: dict[str, _RecordRow] = {}
    if f"{_PACKAGE}/" not in record.replace("\\", "/"):
        return out
    for row in csv.reader(record.splitlines()):
        name = row[0].replace("\\", "/") if row else ""
        if name.startswith(f"{_PACKAGE}/") and not name.endswith(".pyc"):
            out[name] = _RecordRow(*[*row[1:3], "", ""][:2])
    return out


def _compared(each: _ListedDistribution, here: Iterable[_ListedDistribution], imported: bool) -> RuntimeDistribution:
    """Compare a distribution's list with the disk, and what differs with the lists of the others ``here``."""
    intact = missing = 0
    overwritten: Counter[str] = Counter()
    others = [other for other in here if other is not each]
    for name, row in each.rows.items():
        file = each.folder / name
        if not file.is_file():
            missing += 1
        elif _matches(file, row):
            intact += 1
        else:
            owners = (other for other in others if name in other.rows and _matches(file, other.rows[name]))
            owner = next(owners, None)
            if owner is not None:
                overwritten[f"{owner.name} {owner.version}"] += 1
    directml = each.name in _WITH_DIRECTML or _DIRECTML_LIBRARY in each.rows
    changed = len(each.rows) - intact - missing - overwritten.total()
    counts = (len(each.rows), intact, missing, dict(overwritten), changed)
    return RuntimeDistribution(each.name, each.version, str(each.folder), imported, directml, *counts)


def _matches(file: Path, row: _RecordRow) -> bool:
    """Return True if a file has the listed size and hash; the size is compared first, for it is read at once."""
    try:
        if row.size and file.stat().st_size != int(row.size):
            return False
        kind, _, expected = row.hash.partition("=")
        if not expected:
            return True
        digest = hashlib.new(kind)
        with file.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
    except (OSError, ValueError):  # unreadable, or a list that is not one
        return False
    return base64.urlsafe_b64encode(digest.digest()).rstrip(b"=") == expected.rstrip("=").encode()


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def plugin_version() -> str:
    """The version of the package with ONNX Runtime's WebGPU provider; empty where it is not installed."""
    try:
        return metadata.version("onnxruntime-ep-webgpu")
    except metadata.PackageNotFoundError:
        return ""
