"""Random models, the same ones every time: compiling what was compiled changes nothing."""

import pytest
from onnx import ModelProto

import dmlc
from dmlc.diagnostics import DmlcError
from tools.canonical_form import canonical_form, operators
from tools.fuzz.onnx_models import generate as generate_plain
from tools.fuzz.structure_models import generate as generate_structured

TARGETS = ("onnx", "cpu", "directml")


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_plain_models(start: int) -> None:
    for seed in range(start, start + 10):
        _check(generate_plain(seed).model, seed)


@pytest.mark.parametrize("start", range(0, 40, 10))
def test_structured_models(start: int) -> None:
    for seed in range(start, start + 10):
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
