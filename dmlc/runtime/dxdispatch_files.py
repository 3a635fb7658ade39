"""Data files of a DxDispatch file: constants, which dmlc writes, and inputs, which the user provides."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dmlc.codegen.artifact import Artifact, Signature
from dmlc.codegen.dxdispatch.file_names import folder_name
from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import dxdispatch as codes_of_json
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.ir import Array
from dmlc.runtime import files
from dmlc.runtime.feeds import FeedChecker, truth_values

SUFFIX = ".dxdispatch"


def folder_of(path: Path) -> str:
    """The folder beside a file that holds its data: ``head.dxdispatch`` for ``head.dxdispatch.json``, of ASCII.

    Raises ``DmlcError`` E0421 for a name that the file cannot hold.
    """
    stem = path.name.removesuffix(".json").removesuffix(SUFFIX)
    files.referred(path.with_name(stem + SUFFIX))
    return folder_name(stem) + SUFFIX


def write(
    artifact: Artifact, path: Path, inputs: Mapping[str, str], make_up: Callable[[], Mapping[str, Array]]
) -> None:
    """Write the file, its constants, and every input that has no file yet, with what ``make_up`` gives.

    ``inputs`` are the files of the inputs by name. An input that has a file is held against the model and stays.
    Raises ``DmlcError``: E0421 (exit code 2), E0422, E0424, E0425.
    """
    # Path.exists raises for a name that is too long; the write reports that it cannot be written
    there = {name: path.parent / file for name, file in inputs.items() if os.path.exists(path.parent / file)}  # noqa: PTH110
    types = dict(artifact.signature.inputs)
    found = {name: _read(file, name, types[name].dtype.numpy) for name, file in there.items()}
    missing = [name for name in inputs if name not in there]
    made = make_up() if missing else {}
    try:
        FeedChecker(artifact.signature).check({**{name: made[name] for name in missing}, **found})
    except DmlcError as error:  # data that is made up always fits
        old = ", ".join(map(str, there.values()))
        help = f"the data is from {old}, which was there: remove files of other models, and data is made up"
        raise DmlcError([replace(d, help=help) for d in error.diagnostics]) from None
    for name in missing:
        _save(path.parent, inputs[name], made[name])
    for relative, array in artifact.arrays.items():
        _save(path.parent, relative, array)
    files.write_bytes(path, artifact.payload.encode("utf-8"))


@dataclass(frozen=True, slots=True)
class DispatchRun:
    """A run of DxDispatch: the inputs, the results that it wrote, both by name, and the files that are missing."""

    inputs: dict[str, Array]
    results: dict[str, Array]
    missing: tuple[Path, ...]


def read_run(path: Path, signature: Signature, results: Path | None = None) -> DispatchRun:
    """Read what a file of ``write`` fed to DxDispatch and what DxDispatch wrote.

    ``results`` is the folder that DxDispatch wrote below; by default, the folder of the file. Nothing is read where a
    file is missing. Raises ``DmlcError``: E0420 (exit code 2), E0422 to E0426, E0584.
    """
    try:
        document = json.loads(files.read_bytes(path))
        sources = {
            name: row["initialValues"]["sourcePath"] for name, row in document["resources"].items() if _is_read(row)
        }
        targets = {row["resource"]: row["targetPath"] for row in document["commands"] if row["type"] == "writeFile"}
        texts = [*sources.values(), *targets.values()]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError("a path is not a text")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise fail(codes_of_json.NO_RESULTS, f"{path} is not a file that dmlc wrote for DxDispatch: {reason}") from None
    if not targets:
        raise fail(codes_of_json.NO_RESULTS, f"{path} has no writeFile commands")
    types = dict(signature.inputs)
    read = {name: path.parent / sources[name] for name in types if name in sources}
    written = {name: (results or path.parent) / target for name, target in targets.items()}
    missing = tuple([file for file in (*read.values(), *written.values()) if not os.path.exists(file)])  # noqa: PTH110
    if missing:
        return DispatchRun({}, {}, missing)
    inputs = FeedChecker(signature).check({n: _read(file, n, types[n].dtype.numpy) for n, file in read.items()})
    return DispatchRun(inputs, {n: files.load_array(file, None, n) for n, file in written.items()}, ())


def _is_read(row: Any) -> bool:
    return isinstance(row["initialValues"], dict) and "sourcePath" in row["initialValues"]


def _read(file: Path, name: str, wanted: np.dtype[np.generic]) -> Array:
    """An input that is there; bools may be bytes. Raises ``DmlcError`` E0422 for what DxDispatch cannot read."""
    array = files.load_array(file, None, name)
    if array.dtype.byteorder == ">":
        message = f"{file} holds big-endian numbers, which DxDispatch reads as others"
        raise fail(codes.BAD_ARRAY_FILE, message, help="save array.astype(array.dtype.newbyteorder('<')) of it")
    if not array.flags.c_contiguous:
        message = f"{file} is in Fortran order, which DxDispatch does not read"
        raise fail(codes.BAD_ARRAY_FILE, message, help="save np.ascontiguousarray(...) of it")
    return truth_values(array) if wanted.kind == "b" else array


def _save(root: Path, relative: str, array: Array) -> None:
    """Write one ``.npy`` file below ``root``; bools as bytes, which is what DxDispatch's reader takes them for."""
    file = root / relative
    folders = [root.joinpath(*Path(relative).parts[:end]) for end in range(1, len(Path(relative).parts))]
    try:
        for folder in folders:
            if folder.is_symlink():
                raise files.link_error(folder)
            folder.mkdir(parents=False, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
        raise files.cannot("write", file.parent, error) from None
    buffer = io.BytesIO()
    plain = np.ascontiguousarray(array.view(np.uint8) if array.dtype.kind == "b" else array).reshape(array.shape)
    np.lib.format.write_array(buffer, plain, allow_pickle=False)
    files.write_bytes(file, buffer.getvalue())
