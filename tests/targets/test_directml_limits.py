"""The limits of DirectML's operators beside the kernels that the provider registers."""

from __future__ import annotations

import re

from onnx import parser

from dmlc.placement.report import placement
from dmlc.targets import load_target
from dmlc.targets.directml import first_level, operator_rows, refusal
from dmlc.targets.provider import provider
from dmlc.targets.target import load_data
from tests.rows import each_row

#: Operators of DirectML that a row of the provider names and whose page states no limits.
_UNSTATED = {"FOLD"}


def test_operators_without_limits_are_listed() -> None:
    named = {row.directml[0] for row in provider("dml_ep").rows.values() if row.directml}
    assert named - set(operator_rows()) == _UNSTATED == set(load_data("directml_operators")["without_limits"])


def test_rows_name_tensors_of_their_operators() -> None:
    """Else a limit would never be asked for."""
    for (_, op), row in provider("dml_ep").rows.items():
        limits = operator_rows().get(row.directml[0]) if row.directml else None
        if limits is not None and row.tensors is not None:
            assert set(row.tensors) <= set(limits.levels[0][1]), op


def test_what_the_provider_registers_directml_takes_but_for_known_faults() -> None:
    """Element types of the newest level, by the tensors of each row."""
    table, refused = provider("dml_ep"), set()
    for (domain, op), row in table.rows.items():
        limits = operator_rows().get(row.directml[0]) if row.directml else None
        if limits is None or row.tensors is None:
            continue
        _, tensors = limits.levels[0]
        for kernel in row.kernels:
            for tensor, slot in row.tensors.items():
                names = row.inputs if slot[0] == "i" else row.outputs
                if tensor not in tensors or re.fullmatch("[io][0-7]", slot) is None or not names:
                    continue
                types = kernel.types.get(names[min(int(slot[1:]), len(names) - 1)], frozenset())
                if {"u8" if name == "bool" else name for name in types} - tensors[tensor].types:
                    refused.add((op, kernel.since))
        assert domain in ("", "com.microsoft")
    faults = {(op, since) for f in table.failures if f.effect == "fails" for op in f.operators for since in f.since}
    repaired = {("Tile", 6), ("Tile", 13)}  # f64: tile-by-expand
    assert refused == {each for each in refused if each in faults} | repaired


@each_row(
    ("body", "operator"),
    [
        ("(float[1,1,2,2,2,2] x, float[1,1,2,2,2,2] w) => (float[1,1,1,1,1,1] y) { y = Conv(x, w) }", "CONVOLUTION"),
        ("(float[1,1,2,2,2,2] x) => (float[1,1,1,1,1,1] y) { y = GlobalAveragePool(x) }", "AVERAGE_POOLING"),
        ("(float[1,1,2,2,2,2] x) => (float[1,1,1,1,1,1] y) { y = GlobalMaxPool(x) }", "MAX_POOLING"),
        (
            "(float[1,1,2,2,2,2] x) => (float[1,1,1,1,1,1] y) { y = MaxPool<kernel_shape = [2,2,2,2]>(x) }",
            "MAX_POOLING2",
        ),
    ],
)
def test_axes_that_directml_does_not_take(body: str, operator: str) -> None:
    """Six axes are refused, five are not."""
    for text, fails in (
        (body, True),
        (body.replace("2,2,2,2]", "2,2,2]").replace("1,1,1,1,1,1]", "1,1,1,1,1]"), False),
    ):
        model = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
        report = placement(model, load_target("directml"))
        assert report.fails == fails
        assert all(finding.operator == operator for _, finding in report.findings)


@each_row(
    "op",
    [
        *("Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Floor", "Reciprocal", "Round"),
        *("Sin", "Sinh", "Tan", "ParametricSoftplus", "ScaledTanh", "Softsign"),
    ],
)
def test_elementwise_functions_take_any_rank_from_level_3_on(op: str) -> None:
    """Floats; below that level of up to 4 or 5 axes, as axes of size 1 may be put in front of fewer."""
    row = provider("dml_ep").rows["", op]
    limits = operator_rows()[row.directml[0]]
    for axes, level, fits in (
        (3, "3.0", True),
        (8, "3.0", True),
        (6, "2.1", False),
        (3, "2.1", True),
        (9, "6.4", False),
    ):
        tensors = dict.fromkeys(row.tensors or (), ("f16", axes))
        assert tensors
        assert (refusal(limits, tensors, level) is None) is fits
    assert refusal(limits, dict.fromkeys(row.tensors or (), ("i32", 4)), "6.4") is not None


@each_row(
    ("op", "types"),
    [("Xor", "bool"), ("BitwiseXor", "i64 u8"), ("BitwiseOr", "i64 u8"), ("BitwiseNot", "i64 u8")],
)
def test_bitwise_functions(op: str, types: str) -> None:
    row = provider("dml_ep").rows["", op]
    limits = operator_rows()[row.directml[0]]
    for dtype in types.split():
        assert refusal(limits, dict.fromkeys(row.tensors or (), (dtype, 8)), "5.0") is None
        assert refusal(limits, dict.fromkeys(row.tensors or (), (dtype, 9)), "5.0") is not None


@each_row(
    ("operator", "tensor", "dtype", "axes", "level"),
    [
        ("ELEMENT_WISE_BIT_NOT", "InputTensor", "u8", 8, "3.0"),
        ("ELEMENT_WISE_BIT_OR", "BTensor", "i64", 1, "4.1"),
        ("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "ATensor", "i8", 8, "3.0"),
        ("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "ATensor", "u64", 8, "4.1"),
        ("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "ATensor", "f64", 4, None),
        ("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "OutputTensor", "bool", 4, "3.0"),
        ("MAX_POOLING", "InputTensor", "f16", 5, "1.0"),
        ("MAX_POOLING", "InputTensor", "u8", 4, "3.0"),
        ("MAX_POOLING", "OutputTensor", "i64", 4, "5.0"),
        ("MAX_POOLING", "InputTensor", "f32", 6, None),
        ("ROI_POOLING", "ROITensor", "f16", 2, "1.0"),
        ("ROI_POOLING", "InputTensor", "f16", 5, None),
        ("SLICE", "InputTensor", "u16", 5, "1.0"),
        ("SLICE", "InputTensor", "u8", 5, "2.1"),
        ("SLICE", "InputTensor", "u8", 8, "3.0"),
        ("SLICE", "OutputTensor", "f64", 4, "4.1"),
        ("VALUE_SCALE_2D", "InputTensor", "f32", 4, "1.0"),
        ("VALUE_SCALE_2D", "InputTensor", "f32", 5, None),
        ("NONZERO_COORDINATES", "InputTensor", "bool", 5, "3.0"),
        ("NONZERO_COORDINATES", "InputTensor", "f16", 6, "4.0"),
        ("NONZERO_COORDINATES", "InputTensor", "i64", 4, None),
        ("REVERSE_SUBSEQUENCES", "InputTensor", "i8", 4, "2.1"),
        ("REVERSE_SUBSEQUENCES", "InputTensor", "i8", 5, "3.0"),
        ("REVERSE_SUBSEQUENCES", "InputTensor", "i8", 6, "4.0"),
        ("REVERSE_SUBSEQUENCES", "OutputTensor", "f64", 4, "5.0"),
        ("REVERSE_SUBSEQUENCES", "SequenceLengthsTensor", "u64", 4, "5.0"),
        *((op, "HiddenInitTensor", "f16", 3, "1.0") for op in ("RNN", "GRU", "LSTM")),
        *((op, "SequenceLengthsTensor", "u32", 1, "1.0") for op in ("RNN", "GRU", "LSTM")),
        *((op, "OutputSequenceTensor", "f32", 5, None) for op in ("RNN", "GRU", "LSTM")),
        *((op, "InputTensor", "f64", 3, None) for op in ("RNN", "GRU", "LSTM")),
    ],
)
def test_the_first_level_that_takes_a_tensor(
    operator: str, tensor: str, dtype: str, axes: int, level: str | None
) -> None:
    assert first_level(operator_rows()[operator], {tensor: (dtype, axes)}) == level
