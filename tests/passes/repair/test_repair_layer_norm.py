"""LayerNormalization with three results, of which the provider takes the first alone."""

import numpy as np
import pytest
import repair_helpers as r

from dmlc.placement.report import placement
from dmlc.targets import load_target

RULE = "one-layer-norm-result"


def layer_norm(
    results: list[str], used: list[str], kind: int = r.FLOAT, opset: int = 17, **attributes: object
) -> r.onnx.ModelProto:
    made = r.node("LayerNormalization", ["x", "s", "b"], results, epsilon=1e-3, **attributes)
    nodes = [made, *(r.node("Neg", [name], [f"{name}_out"]) for name in used)]
    array = r.helper.tensor_dtype_to_np_dtype(kind)
    scale, bias = np.array([1, 2, 0.5], array), np.array([0, 1, -1], array)
    kinds = {name: kind if name == "y" else r.FLOAT for name in used}
    outs = [(f"{name}_out", kinds[name], [2, 3 if name == "y" else 1]) for name in used]
    return r.model(nodes, [("x", kind, [2, 3])], outs, opset=opset, s=scale, b=bias)


X = np.array([[1, 2, 4], [-100, 3, 7]], np.float32)


@pytest.mark.parametrize("opset", [17, 21])
def test_results_that_are_used(opset: int) -> None:
    program = r.repaired(
        layer_norm(["y", "m", "i"], ["y", "m", "i"], opset=opset), "layer-norm-results", RULE, {"x": X}, rtol=1e-5
    )
    assert dict(r.fired(program))[RULE] == "reassociates"
    assert program.placement().count("cpu") == 0 and r.operators(program).count("LayerNormalization") == 1


@pytest.mark.parametrize("used", [["m"], ["y", "i"], ["y", "m"]])
def test_some_of_them(used: list[str]) -> None:
    program = r.repaired(layer_norm(["y", "m", "i"], used), "layer-norm-results", RULE, {"x": X}, rtol=1e-5)
    assert ("LayerNormalization" in r.operators(program)) is ("y" in used)


def test_halves_have_statistics_of_f32() -> None:
    m = layer_norm(["y", "m", "i"], ["y", "m", "i"], r.HALF)
    r.repaired(m, "layer-norm-results", RULE, {"x": X.astype(np.float16)}, rtol=3e-3)


def test_a_result_that_only_dead_nodes_use() -> None:
    m = layer_norm(["y", "m", "i"], ["y"])
    m.graph.node.append(r.node("Neg", ["m"], ["dead"]))
    program = r.repaired(m, "layer-norm-results", RULE, {"x": X}, rtol=1e-6, exact=True)
    assert dict(r.fired(program))[RULE] == "exact" and program.placement().count("cpu") == 0


def test_results_without_names_count() -> None:
    """The provider counts them (GetOutputCount), though nothing uses them."""
    m = layer_norm(["y", "", ""], ["y"])
    assert [f.effect for _, f in placement(m, load_target("directml")).findings] == ["cpu"]
    program = r.dmlc.compile(m)
    assert not program.placement().findings
    assert len(program.to_onnx().graph.node[0].output) == 1


def test_near_misses() -> None:
    assert RULE not in dict(r.fired(r.dmlc.compile(layer_norm(["y"], ["y"]))))
    m = layer_norm(["y", "m", "i"], ["y", "m"])
    program = r.left_alone(m, RULE, exact=True)
    assert program.placement().count("cpu") == 1 and [d.code.id for d in program.diagnostics] == ["W0601"]
    r.left_alone(m, RULE, target="cpu")
    r.left_alone(m, RULE, skip_rules=[RULE])
    r.faulty(layer_norm(["y", "m", "i"], ["y", "m"], stash_type=10))
    bfloat16 = r.dmlc.compile(layer_norm(["y", "m", "i"], ["y"], stash_type=r.onnx.TensorProto.BFLOAT16))
    assert RULE not in dict(r.fired(bfloat16)) and "its statistics are not f32" in [
        m.reason() for m in bfloat16.remarks
    ]
