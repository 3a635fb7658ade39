"""Axes that are computed: ONNX Runtime takes one that is given twice, so that their number does not give the rank."""

from __future__ import annotations

import numpy as np
from onnx.parser import parse_model

import dmlc
from dmlc.inference import Fact, Query, infer
from dmlc.ir import DimTable
from tests.inference.infer_helpers import new_dims
from tests.rows import each_row
from tools.model_checks import run, session

I64 = 7
OPERATORS = ("ReduceMax", "ReduceSum", "ReduceMean", "ReduceL2", "Squeeze")


@each_row("op", OPERATORS)
@each_row(("count", "rank"), [(0, None), (1, 2), (2, None), (3, None), (4, None)])
def test_the_rank_is_known_of_one_axis_alone(op: str, count: int, rank: int | None) -> None:
    attributes = {} if op == "Squeeze" else {"keepdims": 0}
    operands = [Fact(1, (2, 1, 1)), Fact(I64, (count,))]
    query = Query(op, operands, opset=18, attributes=attributes, dims=DimTable(least=0), new_dim=new_dims())
    assert infer(query)[0].rank == rank


@each_row("op", OPERATORS)
@each_row("axes", [[1, 1], [1, -2], [1, 2]])
@each_row("target", ["onnx", "cpu", "directml"])
def test_an_axis_that_is_fed_twice(op: str, axes: list[int], target: str) -> None:
    source = parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[2, 1, 1] x, int64[2] a, bool c) => (float[] y) <int64[2] a = {{1, 2}}>
        {{ m = {op}{"" if op == "Squeeze" else " <keepdims = 0>"} (x, a)
           y = If (c) <then_branch: graph = t () => (float[] p) {{ p = Abs (m) }},
                       else_branch: graph = e () => (float[] q) {{ q = Exp (m) }}> }}""")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    for attribute in source.graph.node[1].attribute:
        attribute.g.output[0].type.tensor_type.ClearField("shape")
    feeds = {"x": np.array([[[1.0]], [[-2.0]]], np.float32), "a": np.array(axes), "c": np.array(True)}
    made = dmlc.compile(source, target=target).to_onnx()
    for optimized in (False, True):
        np.testing.assert_array_equal(
            run(session(made, optimized=optimized), feeds)["y"], run(session(source), feeds)["y"]
        )
