"""Copies of programs: in the process, through pickle, and of what they hand out."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.inference.carried import CARRIED, CARRIED_IMPURE
from dmlc.ir import FOREIGN, DimExpr, Graph, Operation, symbol
from dmlc.ir.dtype import DTYPES
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE
from dmlc.runtime.session import Session
from tests.rows import each_row

TEXT = """model heads(image: f32[batch, 3, H, W]) -> (peak, shares, kept) {
    peak = argmax(image, axes=[1, 2, 3], ties=last)
    shares = softmax(image, axes=[2, 3]) * 0.25
    kept = onnx.Celu(image, alpha=0.5)
    return peak, shares, kept
}"""
IMAGE = np.random.default_rng(1).standard_normal((2, 3, 4, 5), dtype=np.float32)


def written() -> dmlc.Program:
    return dmlc.compile(Source("heads.dml", TEXT), target="directml")


def built() -> dmlc.Program:
    g = dmlc.Graph("built")
    batch = g.dim("batch", min=1, max=64)
    image = g.input("image", dtype="float32", shape=(batch, 3, "H", "W"))
    g.output("peak", dmlc.argmax(image, axes=(1, 2, 3), ties="last"))
    g.output("shares", dmlc.softmax(image, axes=(2, 3)) * np.float32(0.25))
    return dmlc.compile(g, target="directml", allow=["range"])


def imported() -> dmlc.Program:
    """Nested graphs, a captured value, a stored weight, a string weight, a default, an opaque node, an open size."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,4,5] image, bool c, float[1] scale) => (float[N,3,1,1] y, float[N,3,4,5] z, string[1] s)
        <float[1] scale = {2}, float[5] w = {1, 2, 3, 4, 5}> {
            x = Mul (image, w)
            m = ReduceMax <axes = [2, 3]> (x)
            d = Sub (x, m)
            e = Exp (d)
            y = ReduceMax <axes = [2, 3]> (e)
            z = If (c) <
                then_branch = t () => (float[N,3,4,5] p) { p = Mul (e, scale) },
                else_branch = f () => (float[N,3,4,5] q) { q = Celu (x) }
            >
        }"""
    )
    model.graph.initializer.append(helper.make_tensor("text", TensorProto.STRING, [1], [b"a"]))
    model.graph.node.append(helper.make_node("Identity", ["text"], ["s"]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((100, 100), np.float32), "unused"))
    return dmlc.compile(model, target="cpu")


def left_as_it_is() -> dmlc.Program:
    """A model that stays at its opset."""
    model = parser.parse_model(
        """<ir_version: 4, opset_import: ["": 8]>
        g (float[2,3,4] image) => (float[2,3,4] y) { a = Softmax <axis = 1> (image) y = Relu (a) }"""
    )
    return dmlc.compile(model, target="onnx")


PROGRAMS = {f.__name__: f for f in (written, built, imported, left_as_it_is)}


def pickled(program: Any) -> Any:
    return pickle.loads(pickle.dumps(program))


def feeds_of(program: dmlc.Program) -> dict[str, np.ndarray]:
    feeds = {"image": IMAGE if program.signature.name != "g" or program.opset > 8 else IMAGE[:, :, :, 0]}
    if any(name == "c" for name, _ in program.signature.inputs):
        feeds["c"] = np.array(True)
    return feeds


@pytest.mark.parametrize("make", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("kind", [copy.copy, copy.deepcopy, pickled])
def test_a_copy_of_a_program_emits_runs_and_saves_the_same(
    make: Callable[[], dmlc.Program], kind: Callable[[Any], Any], tmp_path: Path
) -> None:
    program = make()
    backend = "cpu"
    want = (
        {} if make is left_as_it_is else program.run(feeds_of(program), backend)
    )  # sessions are there when it is copied
    twin = kind(program)
    assert twin is not program
    assert twin.to_bytes("onnx") == program.to_bytes("onnx")
    assert twin.ledger_document() == program.ledger_document()
    assert twin.signature == program.signature
    if make is built:
        assert twin.to_numpy() == program.to_numpy()
        assert twin.to_bytes("dml") == program.to_bytes("dml")
    for each, name in ((program, "a.onnx"), (twin, "b.onnx")):
        each.save(tmp_path / name)
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    for name, array in want.items():
        np.testing.assert_array_equal(twin.run(feeds_of(twin), backend)[name], array)
    assert kind(twin).to_bytes("onnx") == program.to_bytes("onnx")


#: Each program is loaded where no module of the package is.
LOADED = """
import pickle, sys
for file in sys.argv[1:]:
    for name in [name for name in sys.modules if name.split(".")[0] == "dmlc"]:
        del sys.modules[name]
    with open(file, "rb") as pickled, open(file + ".onnx", "wb") as out:
        out.write(pickle.load(pickled).to_bytes("onnx"))
"""


def test_a_pickled_program_lives_in_another_process(tmp_path: Path) -> None:
    """Hashes differ there, and no module of the package is loaded yet."""
    programs = {tmp_path / f"{name}.pickle": make() for name, make in PROGRAMS.items()}
    for file, program in programs.items():
        file.write_bytes(pickle.dumps(program))
    subprocess.run([sys.executable, "-c", LOADED, *map(str, programs)], check=True, timeout=120)
    for file, program in programs.items():
        assert Path(f"{file}.onnx").read_bytes() == program.to_bytes("onnx"), file.stem


def test_copies_of_a_deep_graph_do_not_nest() -> None:
    nodes = [helper.make_node("Relu" if i % 2 else "Abs", [f"v{i}"], [f"v{i + 1}"]) for i in range(5000)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("v0", "v5000")]
    model = helper.make_model(
        helper.make_graph(nodes, "g", ends[:1], ends[1:]), opset_imports=[helper.make_opsetid("", 17)]
    )
    program = dmlc.compile(model, target="onnx")
    assert pickled(program).to_bytes("onnx") == copy.deepcopy(program).to_bytes("onnx") == program.to_bytes("onnx")


@pytest.mark.parametrize("kind", [copy.copy, copy.deepcopy, pickled])
def test_things_compared_by_identity_stay_one_object(kind: Callable[[Any], Any]) -> None:
    operations = [*ALL_OPERATIONS, OPAQUE, OPAQUE_IMPURE, CARRIED, CARRIED_IMPURE]
    for one in (*operations, *DTYPES, FOREIGN):
        assert kind(one) is one, one
    size = symbol("N") * 2 + 1
    assert isinstance(size, DimExpr)
    assert kind(size) == size
    assert hash(kind(size)) == hash(size)


def test_an_operation_that_no_module_holds_says_so() -> None:
    op = copy.copy(ALL_OPERATIONS[0])
    stray = Operation(name="stray", operands=(), infer=op.infer, summary="")
    with pytest.raises(TypeError, match="operation stray cannot be copied or pickled"):
        pickle.dumps(stray)


def test_a_builder_graph_is_copied_with_all_that_it_holds() -> None:
    g = dmlc.Graph("built")
    x = g.input("x", dtype="float32", shape=("N", 4))
    g.output("y", dmlc.reduce_sum(x, axes=(1,)))
    for twin in (copy.deepcopy(g), pickled(g)):
        assert dmlc.compile(twin).to_bytes("onnx") == dmlc.compile(g).to_bytes("onnx")
        twin.input("more", dtype="float32", shape=(1,))
    assert [value.name for value in g.graph.inputs] == ["x"]
    with pytest.raises(TypeError, match=r"copy or pickle the dmlc\.Graph"):
        pickle.dumps(x)
    with pytest.raises(TypeError, match=r"copy or pickle the dmlc\.Graph"):
        copy.copy(x)


def test_parts_that_cannot_be_pickled_name_what_can() -> None:
    program = written()
    graph: Graph = program.graph
    for part in (graph.inputs[0], next(iter(graph))):
        with pytest.raises(TypeError, match="copy or pickle its graph"):
            pickle.dumps(part)
    with pytest.raises(TypeError, match="copy or pickle the program"):
        pickle.dumps(
            Session(
                dmlc.compile(Source("m.dml", "model m(x: f32[2]) -> (y) { y = -x\nreturn y }")).artifact("onnx"), "cpu"
            )
        )


def test_an_error_survives_a_process_pool() -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(Source("m.dml", "model m(x: f32[2]) -> (y) { y = argmax(x, axes=[3])\nreturn y }"))
    twin = pickled(caught.value)
    assert str(twin) == str(caught.value)
    assert (twin.exit_code, [d.code.id for d in twin.diagnostics]) == (1, ["E0301"])


# --- what a program hands out and was given


@each_row("make", PROGRAMS.values(), ids=PROGRAMS)
def test_changing_what_a_program_hands_out_changes_nothing_of_it(
    make: Callable[[], dmlc.Program], tmp_path: Path
) -> None:
    program = make()
    before = program.to_bytes("onnx")
    program.to_onnx().graph.node[0].op_type = "Changed"
    program.to_onnx().graph.ClearField("initializer")
    artifact = program.artifact("onnx")
    artifact.payload.graph.ClearField("node")
    artifact.locations.clear()
    assert program.to_onnx() is not program.to_onnx()
    assert program.to_bytes("onnx") == before
    program.save(tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == program.to_onnx()
    assert program.to_onnx().SerializeToString(deterministic=True) == before


def test_changing_the_source_model_later_changes_nothing_of_the_program() -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[3] x) => (float[3] y) <float[3] w = {1, 2, 3}> { a = Celu (x) y = Add (a, w) }"""
    )
    want = dmlc.compile(model).to_bytes("onnx")
    program = dmlc.compile(model)
    model.graph.node[0].op_type = "Relu"
    model.graph.initializer[0].float_data[0] = 5
    model.graph.output[0].name = "z"
    assert program.to_bytes("onnx") == want


@pytest.mark.parametrize("kind", [copy.copy, copy.deepcopy, pickled])
def test_parts_of_a_graph_are_not_copied_alone(kind: Callable[[Any], Any]) -> None:
    graph = written().graph
    for part, name in ((graph.inputs[0], "value"), (next(iter(graph)), "node")):
        with pytest.raises(TypeError, match=f"a {name} cannot be copied or pickled without"):
            kind(part)
