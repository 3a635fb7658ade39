"""Facts that a compiled ONNX model carries in its metadata, under keys that do not clash when models are joined.

A key is ``dmlc.FACT.HASH``. The hash is over all facts of the model together, so that two models share a key only
where they agree in everything, and what belongs together is found after ``onnx.compose.merge_models``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from onnx import ModelProto, ValueInfoProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE

#: Keys that begin so are dmlc's own. They describe one emitted graph and are dropped when it is compiled again.
PREFIX = "dmlc."
_KEY = re.compile(r"dmlc\.([a-z_]+)\.([0-9a-f]{8})")


def keyed(facts: Mapping[str, str]) -> dict[str, str]:
    """The metadata entries of a model that has these facts, in their order; facts without text are left out."""
    said = {name: text for name, text in facts.items() if text}
    data = json.dumps(sorted(said.items()), ensure_ascii=True).encode()
    digest = hashlib.blake2b(data, digest_size=4).hexdigest()
    return {f"{PREFIX}{name}.{digest}": text for name, text in said.items()}


def add_fact(model: ModelProto, name: str, text: str) -> None:
    """Add a fact to a model that dmlc emitted; all its keys change, for they depend on all facts."""
    (facts,), others = model_facts(model), other_entries(model)
    del model.metadata_props[:]
    for key, value in {**others, **keyed({**facts, name: text})}.items():
        model.metadata_props.add(key=key, value=value)


def model_facts(model: ModelProto | Mapping[str, str]) -> list[dict[str, str]]:
    """The facts of each compiled model that is part of ``model``: a ``dict`` by name for each of them.

    A merged model has several, a model that dmlc did not emit has none. ``model`` is a model, or its metadata as
    ``session.get_modelmeta().custom_metadata_map`` of ONNX Runtime gives it.

    Facts are texts. Each model has ``version``, ``target``, ``ledger`` (the rewrites) and ``requires`` (the lowest ONNX
    Runtime, opset and feature level, and the types of the device). Some have more: ``session``
    (targets with a provider), ``runs_on`` (the only provider that need run the model), ``profile`` (the sizes of a
    profile), ``dims`` (the bounds of dims), ``conditions`` (relations to check) and ``ranges`` (the promised bounds of
    inputs). All but ``version``, ``target`` and ``runs_on`` are JSON. Raises ``DmlcError`` E0556 (exit code 2) for
    another type.
    """
    if not isinstance(model, (ModelProto, Mapping)):
        message = f"model_facts takes an onnx.ModelProto or its metadata, not {type(model).__name__}"
        raise fail(UNKNOWN_CHOICE, message, help="write: dmlc.model_facts(onnx.load(path))", exit_code=2)
    entries = model if isinstance(model, Mapping) else {entry.key: entry.value for entry in model.metadata_props}
    found: dict[str, dict[str, str]] = {}
    for key, text in entries.items():
        match = _KEY.fullmatch(str(key))
        if match:
            found.setdefault(match[2], {})[match[1]] = text
    return list(found.values())


def other_entries(model: ModelProto) -> dict[str, str]:
    """The metadata of a model that is not dmlc's."""
    return {entry.key: entry.value for entry in model.metadata_props if not entry.key.startswith(PREFIX)}


def named_axes(input: ValueInfoProto) -> list[str]:
    """The name of each axis of an input, empty for a size that is fixed or has no name.

    ONNX Runtime fixes an open size by the name that an input declares; one without a name cannot be fixed so.
    """
    return [size.dim_param for size in input.type.tensor_type.shape.dim]


def open_dims(inputs: Iterable[ValueInfoProto]) -> set[str]:
    """The open dims that the inputs of an emitted model declare by name."""
    return {name for input in inputs for name in named_axes(input) if name}
