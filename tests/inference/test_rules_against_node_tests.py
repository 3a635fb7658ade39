"""The rules against the results of ONNX's own node tests: shapes, element types and elements of every operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from dmlc.inference import Fact, has_rule
from dmlc.ir import Dim, DimTable, substitute, symbol
from tests.inference.infer_helpers import of_data, walk
from tools.node_tests import onnx_node_tests

#: Operators that are typed by the graphs inside them, which the importer joins.
WITHOUT = frozenset(("If", "Loop", "Scan", "SequenceMap"))


def cases() -> Iterator[tuple[str, ModelProto, list[Any], list[Any]]]:
    """Each node test of dense tensors with its first data set."""
    for name, case in onnx_node_tests().items():
        for inputs, outputs in case.data_sets[:1]:
            if all(isinstance(x, (np.ndarray, np.generic)) for x in (*inputs, *outputs)):
                yield name, case.model, inputs, outputs


CASES = list(cases())


def facts_of(model: ModelProto, inputs: list[Any], *, symbolic: bool) -> tuple[dict[str, Fact], dict[str, int]]:
    """Facts that the rules find; with ``symbolic`` each size of an input is a dim, but for small lists of integers."""
    facts: dict[str, Fact] = {}
    binding: dict[str, int] = {}
    for info, given in zip(model.graph.input, inputs, strict=True):
        array, element = np.asarray(given), info.type.tensor_type.elem_type
        is_list = array.dtype.kind in "iub" and array.ndim <= 1 and array.size <= 64
        if not symbolic or is_list:
            facts[info.name] = of_data(element, array)
            continue
        names = [f"{info.name}.{i}" for i in range(array.ndim)]
        binding |= dict(zip(names, array.shape, strict=True))
        facts[info.name] = Fact(element, tuple(map(symbol, names)))
    for tensor in model.graph.initializer:
        facts[tensor.name] = of_data(tensor.data_type, numpy_helper.to_array(tensor))
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    return walk(model.graph.node, facts, opsets, DimTable(least=0)), binding


def sized(dim: Dim, binding: Mapping[str, int]) -> int | None:
    out = substitute(dim, binding)
    return out if isinstance(out, int) else None


@pytest.mark.parametrize("symbolic", [False, True], ids=["sizes known", "sizes open"])
def test_no_result_contradicts_the_rules(symbolic: bool) -> None:
    wrong: list[str] = []
    told = left_open = 0
    for name, model, inputs, outputs in CASES:
        facts, binding = facts_of(model, inputs, symbolic=symbolic)
        for info, given in zip(model.graph.output, outputs, strict=True):
            fact, array = facts.get(info.name, Fact()), np.asarray(given)
            if fact.element not in (0, info.type.tensor_type.elem_type):
                wrong.append(f"{name}: element type {fact.element}")
            if fact.shape is None:
                left_open += 1
                continue
            sizes = [sized(d, binding) for d in fact.shape]
            if len(sizes) != array.ndim or any(s not in (None, d) for s, d in zip(sizes, array.shape, strict=True)):
                wrong.append(f"{name}: {fact.shape} of {array.shape}")
            told += sum(s is not None for s in sizes)
            left_open += sum(s is None for s in sizes)
    assert not wrong
    assert told > (20 if not symbolic else 2) * left_open


def test_known_elements_are_those_that_come_out() -> None:
    seen = 0
    for name, model, inputs, outputs in CASES:
        facts, _ = facts_of(model, inputs, symbolic=False)
        for info, given in zip(model.graph.output, outputs, strict=True):
            elements = facts.get(info.name, Fact()).elements
            if elements is None:
                continue
            for element, value in zip(elements.ravel().tolist(), np.asarray(given).ravel().tolist(), strict=True):
                if isinstance(element, (int, float)):
                    assert element == value or (element != element and value != value), name
                    seen += 1
    assert seen > 7000


def test_every_operator_of_the_node_tests_has_a_rule() -> None:
    missing = set()
    for _, model, _, _ in CASES:
        opsets = {entry.domain: entry.version for entry in model.opset_import}
        for node in model.graph.node:
            if not has_rule("" if node.domain == "ai.onnx" else node.domain, node.op_type, opsets.get(node.domain, 1)):
                missing.add(node.op_type)
    assert missing <= WITHOUT
