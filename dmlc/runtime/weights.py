"""ONNX models are written with their weights: inside, in a file of their own beside the model, or where they are."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Literal

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from dmlc.diagnostics import fail, option
from dmlc.diagnostics.catalogue import files as codes
from dmlc.diagnostics.catalogue.runs import CANNOT_WRITE
from dmlc.importers.weights import External, blocks, byte_size, external, read_external
from dmlc.onnx_schema.nested import graphs_in
from dmlc.runtime import files

Placement = Literal["inline", "copy", "reference"]

#: A message of protobuf has less than 2 GiB; some of it is for the nodes.
_MOST_INLINE = 2**31 - 2**26
#: Data of this size starts at a multiple of a page, so that runtimes can map it; smaller data at one of 64 bytes.
_LARGE, _PAGE, _SMALL_ALIGNMENT = 1 << 16, 4096, 64
#: Weights of fewer bytes stay in a model that is too large for one file.
_WORTH_MOVING = 1024


def write_model(
    model: ModelProto,
    path: Path,
    *,
    source: Path | None,
    weights: Placement | None = None,
    final: Path | None = None,
    shared: str = "",
) -> None:
    """Write a model, whole or not at all; nothing but ``path`` and ``path`` with ``.HASH.data`` appended is written.

    If ``shared`` is set, the weights are in ``shared.HASH.data``, which other models may use too: no such file is
    removed. ``final`` is the path that the caller renames the model to, in the same folder.

    ``source`` is the folder that locations of external data are relative to. ``weights`` is ``reference`` (they stay
    where they are), ``copy`` (into the file beside the model) or ``inline`` (into the model). None is ``reference`` if
    the model lies in the folder of the source, else ``copy``. Data is copied in constant memory. Data inside a model
    that is too large for one file goes to the file beside it. The model given is not changed. Raises ``DmlcError``:
    E0421 (exit code 2), E0435, E0436, and E0432 to E0434 of ``importers.weights``.
    """
    outside = [external(t, source) for t in tensors_of(model) if t.data_location == TensorProto.EXTERNAL]
    try:
        is_plain = files.is_plain_output(path)
        placement = _placement(is_plain, path, source, weights) if outside else "inline"
        _spare(outside, final or path)
    except (OSError, ValueError) as error:
        raise files.cannot("write", final or path, error) from None
    size = sum([byte_size(t) or 0 for t in tensors_of(model) if t.data_location != TensorProto.EXTERNAL])
    if placement == "inline" and outside:
        size += sum([data.length for data in outside])
        _check_inline(path, size)
    spills = size > _MOST_INLINE
    if not spills and (placement == "reference" or not outside):
        files.write_bytes(path, model.SerializeToString(), final)
        return
    beside = _Beside()

    def place(tensor: TensorProto) -> None:
        if tensor.data_location == TensorProto.EXTERNAL and placement != "reference":
            data = external(tensor, source)
            if placement == "copy":
                beside.refer(tensor, data, data.length)
            else:
                _take_in(tensor, read_external(data))

    placed = _placed(model, place, beside if spills else None)
    if beside.parts:
        _write_both(placed, path, beside, {data.path for data in outside}, shared)
    else:
        files.write_bytes(path, placed.SerializeToString(), final)


def is_one_file(model: ModelProto, path: Path, source: Path | None, weights: Placement | None) -> bool:
    """Return whether ``write_model`` writes one plain file: no weights go to a file beside it.

    Raises ``OSError`` for a path that cannot be written, ``DmlcError`` as ``write_model``.
    """
    if not files.is_plain_output(path):
        return False
    outside = [external(t, source) for t in tensors_of(model) if t.data_location == TensorProto.EXTERNAL]
    size = sum([byte_size(t) or 0 for t in tensors_of(model) if t.data_location != TensorProto.EXTERNAL])
    placement = _placement(True, path, source, weights) if outside else "inline"
    return size <= _MOST_INLINE and placement != "copy"


def _check_inline(path: Path, size: int) -> None:
    if size > _MOST_INLINE:
        gib = f"{size / 2**30:.1f} GiB"
        message = f"{path} would take {gib} with its weights inside: a model file holds less than 2 GiB"
        raise fail(codes.INLINE_TOO_LARGE, message, help=f"use {_copied()}")


def _copied() -> str:
    return option("--weights copy", "weights='copy'")


def _placement(plain: bool, path: Path, source: Path | None, weights: Placement | None) -> Placement:
    same = source is not None and path.parent.is_dir() and source.is_dir() and path.parent.samefile(source)
    if weights is None:
        return "inline" if not plain else "reference" if same else "copy"
    if weights == "reference" and not (same and plain):
        where = f"in {source}" if source is not None else "of a model that comes from memory"
        help = f"use {_copied()}, or write it to the folder of the source"
        raise fail(codes.REFERENCE_ELSEWHERE, f"{path} cannot refer to weights {where}", help=help)
    if weights == "copy" and not plain:
        raise fail(CANNOT_WRITE, f"cannot write weights next to {path}: it is not a plain file", exit_code=2)
    return weights


def _spare(found: Iterable[External], path: Path) -> None:
    """Raise ``DmlcError`` if the output path holds weights of the source: files that are read are never written."""
    for data in found:
        if path.exists() and path.samefile(data.path):
            message = f"cannot write {path}: weight {data.name} of the source is in it"
            raise fail(CANNOT_WRITE, message, help="give the output another name", exit_code=2)


# --- the model with its weights elsewhere


def _placed(model: ModelProto, place: Callable[[TensorProto], None], spilled: _Beside | None) -> ModelProto:
    """A copy of the model, each of its weights changed by ``place``. Where ``spilled`` is given, the data of weights in
    the model goes there, and is not copied first."""
    out = ModelProto()
    _copy_fields(model, out, but="graph")
    _copy_fields(model.graph, out.graph, but="initializer")
    for tensor in _inner_tensors(out):
        place(tensor)
    for tensor in model.graph.initializer:
        new = out.graph.initializer.add()
        size = byte_size(tensor) or 0
        if spilled is not None and tensor.HasField("raw_data") and size >= _WORTH_MOVING:
            _copy_fields(tensor, new, but="raw_data")
            spilled.refer(new, tensor, size)
        else:
            new.CopyFrom(tensor)
            place(new)
    return out


def _copy_fields(old: Any, new: Any, but: str) -> None:
    for descriptor, value in old.ListFields():
        name = descriptor.name
        if name == but:
            continue
        if hasattr(value, "MergeFrom"):  # a message or a list
            getattr(new, name).MergeFrom(value)
        else:
            setattr(new, name, value)


def _take_in(tensor: TensorProto, data: bytes) -> None:
    tensor.ClearField("data_location")
    tensor.ClearField("external_data")
    tensor.raw_data = data


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """Every tensor of a model."""
    yield from model.graph.initializer
    yield from _inner_tensors(model)


def locate_weights(model: ModelProto, folder: Path, root: Path) -> None:
    """Let the external data of a model in ``folder`` be referred to from ``root``, a folder around it, in place."""
    below = PurePath(os.path.relpath(folder, root)).as_posix()
    if below == ".":
        return
    for tensor in tensors_of(model):
        for entry in tensor.external_data:
            if entry.key == "location" and not PurePosixPath(entry.value).is_absolute():
                entry.value = f"{below}/{entry.value}"


def _inner_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """All but the initializers of the main graph: in nodes, in graphs inside nodes, in functions, in sparse weights."""
    yield from _sparse(model.graph.sparse_initializer)
    yield from _of_nodes(model.graph.node)
    for function in model.functions:
        yield from _of_nodes(function.node)
    for training in model.training_info:
        yield from _of_graph(training.initialization)
        yield from _of_graph(training.algorithm)


def _of_graph(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    yield from _sparse(graph.sparse_initializer)
    yield from _of_nodes(graph.node)


def _sparse(tensors: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for sparse in tensors:
        yield sparse.values
        yield sparse.indices


def _of_nodes(nodes: Iterable[NodeProto]) -> Iterator[TensorProto]:
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type in _HOLDERS:
                yield from _of_attribute(attribute)


_HOLDERS = frozenset(
    (
        AttributeProto.TENSOR, AttributeProto.TENSORS, AttributeProto.SPARSE_TENSOR, AttributeProto.SPARSE_TENSORS,
        AttributeProto.GRAPH, AttributeProto.GRAPHS,
    )
)  # fmt: skip


def _of_attribute(attribute: AttributeProto) -> Iterator[TensorProto]:
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    if attribute.HasField("sparse_tensor"):
        yield from _sparse([attribute.sparse_tensor])
    yield from _sparse(attribute.sparse_tensors)
    for graph in graphs_in(attribute):
        yield from _of_graph(graph)


# --- the file beside the model


class _Beside:
    """The file beside the model: its data with offsets, and the tensors that refer to it. Shared data is there once."""

    def __init__(self) -> None:
        self.locations: list[Any] = []  # entries of tensors; the name of the file is known when it is written
        self.parts: list[tuple[int, External | TensorProto]] = []
        self.end = 0
        self._places: dict[tuple[Path, int, int], int] = {}

    def refer(self, tensor: TensorProto, data: External | TensorProto, length: int) -> None:
        """Make ``tensor`` refer to its data, ``length`` bytes, in this file."""
        if isinstance(data, External):
            key = (data.path, data.offset, data.length)
            offset = self._places.get(key)
            if offset is None:
                offset = self._places[key] = self._add(data, length)
        else:
            offset = self._add(data, length)
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.EXTERNAL
        self.locations.append(tensor.external_data.add(key="location"))
        for name, value in (("offset", offset), ("length", length)):
            tensor.external_data.add(key=name, value=str(value))

    def _add(self, data: External | TensorProto, length: int) -> int:
        step = _PAGE if length >= _LARGE else _SMALL_ALIGNMENT
        offset = -(-self.end // step) * step
        self.parts.append((offset, data))
        self.end = offset + length
        return offset

    def write(self, path: Path) -> str:
        """Write the file and return the SHA-256 of its content."""
        digest = hashlib.sha256()
        with path.open("xb") as file:
            for offset, data in self.parts:
                content = blocks(data) if isinstance(data, External) else (data.raw_data,)
                for block in chain((bytes(offset - file.tell()),), content):
                    file.write(block)
                    digest.update(block)
        return digest.hexdigest()


def _write_both(model: ModelProto, path: Path, beside: _Beside, spared: set[Path], shared: str) -> None:
    """Write both files. Raises ``DmlcError`` E0421; then the model that was there is whole."""

    def model_with(name: str) -> bytes:
        for entry in beside.locations:
            entry.value = name
        data: bytes = model.SerializeToString()
        return data

    from dmlc.runtime.pair import write_pair

    files.referred(path)
    try:
        write_pair(path, beside.write, model_with, spared, shared)
    except (OSError, ValueError) as error:
        raise files.cannot("write", path, error) from None
