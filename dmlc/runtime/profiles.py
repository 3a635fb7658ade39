"""Profiles: one program for each combination of sizes of a few dims, their files, and the index of these."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlc.codegen.artifact import Artifact, Signature
from dmlc.diagnostics import DmlcError, did_you_mean, fail, sentences
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import integer_of
from dmlc.ir.fixed_shapes import LARGEST_SIZE
from dmlc.runtime import files

if TYPE_CHECKING:
    from dmlc.runtime.weights import Placement

#: The version of the index.
SCHEMA = 1
_ODD = re.compile(r"[^\w.-]", re.ASCII)


def checked_profiles(profiles: Mapping[str, Any] | None, binding: Mapping[str, int]) -> list[dict[str, int]]:
    """The combinations of sizes, the last dim changing fastest; none without ``profiles``.

    ``profiles`` has the sizes of each dim, or one size. Raises ``DmlcError`` E0555 (exit code 2) for other types, for a
    size that is given twice and for a dim that ``binding`` fixes.
    """
    if profiles is None:
        return []
    if not isinstance(profiles, Mapping):
        raise _misuse(f"profiles is a dict of sizes by the names of dims, not {type(profiles).__name__}")
    rows = []
    for name, given in profiles.items():
        if name in binding:
            raise _misuse(f"{name} is bound to {binding[name]}, and has sizes in profiles", "give one of them")
        rows.append([(name, size) for size in _sizes(name, given)])
    return [dict(sizes) for sizes in product(*rows)] if rows else []


def _sizes(name: object, given: Any) -> list[int]:
    found = given if integer_of(given) is None else [given]
    if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
        raise _misuse(f"the profiles of {name} are {given!r}")
    sizes = []
    for each in found:
        size = integer_of(each)
        if size is None or not 0 <= size <= LARGEST_SIZE:
            raise _misuse(f"a profile of {name} is {each!r}")
        sizes.append(size)
    if not isinstance(name, str) or not sizes:
        raise _misuse(f"the profiles of {name} are {given!r}")
    for size in sizes:
        if sizes.count(size) > 1:
            raise _misuse(f"the profiles of {name} have {size} twice", "give each size once")
    return sizes


def _misuse(message: str, help: str = "the profiles of a dim are its sizes: batch=1,8") -> DmlcError:
    return fail(codes.BAD_BINDING, message, help=help, exit_code=2)


def dim_places(signature: Signature, dims: Iterable[str]) -> dict[str, tuple[str, int]]:
    """An input and an axis of it that give the size of each dim. Raises ``DmlcError`` E0555 for a dim that no input
    has alone."""
    found: dict[str, tuple[str, int]] = {}
    for name, type_ in sorted(signature.inputs, key=lambda item: item[0] in signature.optional):
        for axis, size in enumerate(type_.shape):
            dim = getattr(size, "name", None)
            if dim is not None:
                found.setdefault(dim, (name, axis))
    for dim in dims:
        if dim not in found:
            has = f"its dims are {', '.join(sorted(found))}" if found else "none of its sizes has a name"
            help = sentences(did_you_mean(dim, found), has)
            raise fail(codes.BAD_BINDING, f"the model has no dim {dim}", help=help)
    return {dim: found[dim] for dim in dims}


def profile_path(path: Path, sizes: Mapping[str, int]) -> Path:
    """The file of a profile: ``head.batch1_seq128.onnx`` for ``head.onnx``. Characters of a dim's name that file names
    do not take are ``_``."""
    words = "_".join(f"{_ODD.sub('_', name)}{size}" for name, size in sizes.items())
    return path.with_name(f"{path.stem}.{words}{path.suffix}")


def index_path(path: Path) -> Path:
    """The index beside the files: ``head.profiles.json`` for ``head.onnx``."""
    return path.with_name(f"{path.stem}.profiles.json")


def index_document(path: Path, model: str, places: Mapping[str, tuple[str, int]], all_sizes: Any) -> dict[str, Any]:
    """The index as plain data: where the size of each dim is found, and the file for each combination of sizes."""
    return {
        "schema": SCHEMA,
        "model": model,
        "dims": {dim: {"input": name, "axis": axis} for dim, (name, axis) in places.items()},
        "profiles": [{"sizes": dict(sizes), "file": profile_path(path, sizes).name} for sizes in all_sizes],
    }


def write_profiles(
    path: Path,
    artifacts: Sequence[tuple[Mapping[str, int], Artifact]],
    index: Mapping[str, Any],
    weights: Placement | None,
) -> None:
    """Write a model for each combination of sizes, and the index; all of them or, where one fails, none.

    Models are written under other names first, and renamed when all are there; the index comes last. Weights that are
    copied lie once in ``head.profiles.HASH.data``, for all models whose weights are equal.
    Raises ``DmlcError`` E0421 (exit code 2), and what ``write_model`` raises.
    """
    from dmlc.runtime.weights import write_model  # loads onnx

    finals = [profile_path(path, sizes) for sizes, _ in artifacts]
    for final in (*finals, index_path(path)):
        files.referred(final)
        _check_plain(final)
    stem = f"{path.stem}.profiles"
    before = set(_data_files(path, stem))
    beside: list[Path] = []
    try:
        for final, (_, artifact) in zip(finals, artifacts, strict=True):
            beside.append(files.beside_of(final))
            write_model(
                artifact.payload,
                beside[-1],
                source=artifact.folder,
                weights=weights,
                final=final,
                shared=stem,
            )
            files.keep_mode(final, beside[-1])
    except BaseException:
        files.remove([*beside, *(set(_data_files(path, stem)) - before)])
        raise
    for final, new in zip(finals, beside, strict=True):
        try:
            new.replace(final)
        except OSError as error:
            files.remove(beside)
            raise files.cannot("write", final, error) from None
    text = json.dumps(index, indent=2, ensure_ascii=False)
    files.write_bytes(index_path(path), f"{text}\n".encode("utf-8", "backslashreplace"))


def _check_plain(path: Path) -> None:
    try:
        if not files.is_plain_output(path):
            raise OSError("it is a device or a pipe, and profiles are several files")
        if not path.parent.is_dir():
            raise FileNotFoundError(2, "no such file or directory")
    except (OSError, ValueError) as error:
        raise files.cannot("write", path, error) from None


def _data_files(path: Path, stem: str) -> list[Path]:
    return [file for file in path.parent.iterdir() if file.name.startswith(f"{stem}.") and file.suffix == ".data"]
