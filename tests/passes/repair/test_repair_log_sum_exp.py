"""ReduceLogSumExp on DirectML, whose own overflows."""

import numpy as np
import pytest
import repair_helpers as r

RULE = "shift-log-sum-exp"
INF = np.inf


@pytest.mark.parametrize("opset", [18, 21])
def test_large_and_infinite_numbers(opset: int) -> None:
    m = r.reduction("ReduceLogSumExp", r.FLOAT, opset, shape=(6, 2))
    x = np.array([[100, 100], [-200, -200], [1000, 0], [-INF, -INF], [INF, 1], [-INF, 2]], np.float32)
    program = r.repaired(m, "log-sum-exp", RULE, {"x": x}, rtol=1e-6)
    want = [100 + np.log(2), -200 + np.log(2), 1000, -INF, INF, 2]
    np.testing.assert_allclose(program.run({"x": x}, "cpu")["y"][:, 0], np.array(want, np.float32), rtol=1e-6)
    assert dict(r.fired(program))[RULE] == "reassociates"


def test_halves() -> None:
    m = r.reduction("ReduceLogSumExp", r.HALF, shape=(2, 3), keepdims=0)
    x = np.array([[100, 100, 99], [-5, 0, 5]], np.float16)
    r.repaired(m, "log-sum-exp", RULE, {"x": x}, rtol=2e-3)


def test_exact_refuses_it() -> None:
    program = r.left_alone(r.reduction("ReduceLogSumExp"), RULE, exact=True)
    assert r.operators(program) == ["ReduceLogSumExp"] and r.refusals(program) == ["E0592"]
    assert any("reassociates" in remark.reason() for remark in program.remarks if remark.rule == RULE)


def test_other_types_and_targets() -> None:
    for options in ({"target": "cpu"}, {"target": "onnx"}):
        assert r.operators(r.left_alone(r.reduction("ReduceLogSumExp"), RULE, **options)) == ["ReduceLogSumExp"]
    program = r.left_alone(r.reduction("ReduceLogSumExp", r.DOUBLE), RULE, opset=21)
    assert r.operators(program) == ["ReduceLogSumExp"] and program.placement().count("cpu") == 1
