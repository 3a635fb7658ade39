"""Operators over dtypes, ranks, axes, ties and empty tensors on the provider: what the table says runs there is right.

By default one row of each operator; ``--webgpu=all`` runs all.
"""

from __future__ import annotations

import numpy as np
import pytest
from sweep_rows import Row, rows
from webgpu_helpers import Case, apart, together_on_webgpu

from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests import kit

pytestmark = pytest.mark.webgpu

#: Functions that a shader computes to three digits: WGSL asks no more of them (https://www.w3.org/TR/WGSL, 15.7.4).
_ROUGH = ("Acos", "Asin")


def chosen(*, every: bool) -> dict[str, Row]:
    """The rows whose node runs on the provider by the table of the target, without a known fault."""
    target, seen, out = load_target("webgpu"), set(), {}
    for row in rows():
        key = (row.op, row.operands[0].size == 0)
        if every or key not in seen:
            report = placement(row.model(), target)
            if not report.fails and report.count("provider") == len(report.nodes) == 1:
                seen.add(key)
                out[row.name] = row
    return out


def test_kernels_give_the_numbers_of_the_cpu(request: pytest.FixtureRequest) -> None:
    every = request.config.getoption("--webgpu") == "all"
    found = chosen(every=every)
    assert len(found) > (1000 if every else 60)
    got = together_on_webgpu(Case(name, row.model(), row.feeds()) for name, row in found.items())
    wrong = []
    for name, row in found.items():
        try:
            want = kit.run(row.model(), row.feeds())
        except Exception:  # the provider on the CPU has fewer kernels of f16
            continue
        outputs = got[name]
        if isinstance(outputs, Exception):
            wrong.append(f"{name}: {outputs}")
        elif row.op not in _ROUGH or not np.allclose(outputs["y0"], want["y0"], rtol=1e-3):
            wrong += [f"{name}: {text}" for text in apart(outputs, want)]
    assert not wrong, "\n".join(wrong)
