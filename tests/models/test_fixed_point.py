"""Compiling the output again changes nothing: the rewrites have ended, and the output reads as it was meant."""

from __future__ import annotations

import zlib
from pathlib import Path

import onnx
import pytest
from models.compiled_fixture import TARGETS, CompiledFixture
from onnx.external_data_helper import uses_external_data

import dmlc
from tools.canonical_form import canonical_form, operators
from tools.model_checks import without_metadata

pytestmark = pytest.mark.every_emitted


def test_compiling_the_output_again_changes_nothing(compiled: CompiledFixture, tmp_path: Path) -> None:
    """The other targets take turns, DirectML is always tried: the rewrites for them are fewer."""
    other = TARGETS[1 + zlib.crc32(compiled.path.stem.encode()) % 2]
    for target in (TARGETS[0], other):
        first = _with_weights(compiled, target, tmp_path)
        program = dmlc.compile(first, target=target)
        second = program.to_onnx()
        if without_metadata(first) == without_metadata(second):
            continue
        fired = [f"{entry.rule}: {entry.text}" for entry in program.ledger]
        assert operators(second) == operators(first), (target, fired)
        assert canonical_form(second) == canonical_form(first), (target, fired)


def _with_weights(compiled: CompiledFixture, target: str, folder: Path) -> onnx.ModelProto:
    """The model with the weights that a fixture has in a file of their own."""
    model = compiled.model(target)
    if not any(map(uses_external_data, model.graph.initializer)):
        return model
    compiled.program(target).save(folder / "m.onnx", weights="inline")
    return onnx.load(folder / "m.onnx")
