"""onnx's own tests of operators on the provider, as they are: those that it takes whole.

By default one of each set of operators and types; ``--webgpu=all`` runs all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from webgpu_helpers import Case, apart, together_on_webgpu

from dmlc.onnx_schema.domains import imported_versions
from dmlc.placement.report import placement
from dmlc.targets import load_target
from dmlc.targets.capabilities import Capabilities
from tools.node_tests import RANDOM, onnx_node_tests

pytestmark = pytest.mark.webgpu

#: The newest opset that the provider has kernels of.
_NEWEST = 24
#: Tests with other numbers than ONNX Runtime's kernels on the CPU have too, or with rounded ones.
_OTHERWISE = (
    "averagepool_2d_ceil_last_window_starts_on_pad",
    "resize_downsample_scales_cubic_align_corners",
    "resize_downsample_scales_linear_align_corners",
)


def whole(*, every: bool) -> Iterator[tuple[str, Any]]:
    """The tests whose nodes run on the provider, all of them, by the table of the target, without a known fault;
    one of each set of operators and types, or ``every`` one."""
    target, seen = load_target("webgpu"), set()
    for name, case in onnx_node_tests().items():
        versions, key = imported_versions(case.model.opset_import), kind(case.model)
        if any(word in name for word in (*RANDOM, *_OTHERWISE)) or versions.keys() != {""} or versions[""] > _NEWEST:
            continue
        capabilities = Capabilities(target, versions[""])
        if (key in seen and not every) or any(capabilities.kernel(operator) is None for operator in key[0]):
            continue
        report = placement(case.model, target)
        if report.nodes and not report.fails and report.count("provider") == len(report.nodes):
            seen.add(key)
            yield name, case


def kind(model: ModelProto) -> tuple[frozenset[str], tuple[int, ...]]:
    operators = frozenset(node.op_type for node in model.graph.node)
    return operators, tuple([info.type.tensor_type.elem_type for info in model.graph.input])


def test_operators_give_the_numbers_of_onnx(request: pytest.FixtureRequest) -> None:
    found = dict(whole(every=request.config.getoption("--webgpu") == "all"))
    cases, expected = [], {}
    for name, case in found.items():
        (inputs, outputs), *_ = case.data_sets
        feeds = dict(zip([info.name for info in case.model.graph.input], map(np.asarray, inputs), strict=False))
        names = [info.name for info in case.model.graph.output]
        expected[name] = dict(zip(names, map(np.asarray, outputs), strict=True))
        cases.append(Case(name, case.model, feeds))
    assert len(cases) > 100
    wrong = []
    for name, got in together_on_webgpu(cases).items():
        wrong += (
            [f"{name}: {got}"] if isinstance(got, Exception) else [f"{name}: {x}" for x in apart(got, expected[name])]
        )
    assert not wrong, "\n".join(wrong)
