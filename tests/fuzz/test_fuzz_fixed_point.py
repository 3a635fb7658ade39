"""Random models, the same ones every time: compiling what was compiled changes nothing."""

import pytest
from onnx import ModelProto

import dmlc
from dmlc.diagnostics import DmlcError
from tests.rows import each_row
from tools.canonical_form import canonical_form, operators
from tools.fuzz.onnx_models import generate as generate_plain
from tools.fuzz.structure_models import generate as generate_structured

TARGETS = ("onnx", "cpu", "directml")

#: Models that once changed when they were compiled again: fills of few elements as nodes, softmax lowered while ONNX
#: was written, equal nodes with dims of their own, a division by a constant whose sign was computed, tensors that a
#: repair made empty, axes of size 1.
PLAIN = (176, 186, 269, 276, 341, 379, 389, 390, 439, 456, 486, 607, 732, 785)
STRUCTURED = (227, 294)


@each_row("seed", PLAIN)
def test_plain_models_that_changed(seed: int) -> None:
    _check(generate_plain(seed), seed)


@pytest.mark.parametrize("seed", STRUCTURED)
def test_structured_models_that_changed(seed: int) -> None:
    _check(generate_structured(seed).model, seed)


@pytest.mark.parametrize("start", range(0, 20, 10))
def test_plain_models(start: int) -> None:
    for seed in range(start, start + 10):
        _check(generate_plain(seed), seed)


@pytest.mark.parametrize("start", range(0, 10, 5))
def test_structured_models(start: int) -> None:
    for seed in range(start, start + 5):
        _check(generate_structured(seed).model, seed)


def _check(model: ModelProto, seed: int) -> None:
    for target in TARGETS:
        try:
            once = dmlc.compile(model, target=target).to_onnx()
        except DmlcError:
            continue  # the model is not one that is compiled for this target
        program = dmlc.compile(once, target=target)
        again = program.to_onnx()
        fired = [f"{entry.rule}: {entry.text}" for entry in program.ledger]
        assert operators(again) == operators(once), (seed, target, fired)
        assert canonical_form(again) == canonical_form(once), (seed, target, fired)
