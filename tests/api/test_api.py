"""``dmlc.compile`` and ``Program``: what they take, what they give, what they refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import dmlc
from dmlc import api
from dmlc.diagnostics import Source
from dmlc.ir.printer import print_graph
from tests.rows import each_row

TEXT = """\
dim N in 2..64
const scale: f32[] = 2

model twice(x: f32[N, 4]) -> (y, top) {
    y = x * scale
    top, _ = top_k(y, k=2, axis=0)
    return y, top
}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "twice.dml"
    path.write_text(TEXT)
    return path


def built() -> dmlc.Graph:
    g = dmlc.Graph("twice")
    g.dim("N", min=2, max=64)
    x = g.input("x", "f32", ("N", 4))
    y = x * 2
    g.output("y", y)
    g.output("top", dmlc.top_k(y, k=2, axis=0).values)
    return g


X = np.arange(12, dtype=np.float32).reshape(3, 4)
BACKENDS = ["reference", "numpy", "cpu"]


def refused(**options: Any) -> dmlc.Diagnostic:
    source = options.pop("source", None) or built()
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(source, **options)
    return caught.value.diagnostics[0]


@each_row("backend", [None, *BACKENDS])
@each_row("kind", ["path", "text of path", "source", "builder"])
def test_every_source_on_every_backend(path: Path, kind: str, backend: str | None) -> None:
    source = {"path": path, "text of path": str(path), "source": Source("<here>", TEXT), "builder": built()}[kind]
    out = dmlc.compile(source).run({"x": X}, backend=backend)
    assert list(out) == ["y", "top"]
    np.testing.assert_array_equal(out["y"], 2 * X)
    np.testing.assert_array_equal(out["top"], 2 * X[:0:-1])


def test_a_program_may_be_run_often(path: Path) -> None:
    program = dmlc.compile(path)
    for backend in BACKENDS:
        for n in (2, 5, 3, 3):
            out = program.run({"x": np.ones((n, 4), np.float32)}, backend=backend)
            assert out["y"].shape == (n, 4)


def test_feeds_are_checked_on_every_backend(path: Path) -> None:
    program = dmlc.compile(path)
    for backend in BACKENDS:
        for feeds in ({}, {"x": X, "y": X}, {"x": X.astype("f8")}, {"x": X[:1]}, {"x": X[:, :3]}):
            with pytest.raises(dmlc.DmlcError) as caught:
                program.run(feeds, backend=backend)
            assert caught.value.diagnostics[0].code.id.startswith("E042")


def test_compiling_leaves_the_graph_alone() -> None:
    g = built()
    before = print_graph(g.graph)
    for options in ({}, {"bind": {"N": 3}}, {"target": "numpy"}, {"lower_hardmax": True}):
        dmlc.compile(g, **options).to_numpy()
        assert print_graph(g.graph) == before
    program = dmlc.compile(g)
    x = g.input("late", "f32", (3,))
    g.output("later", x + 1)
    assert list(dmlc.compile(g).signature.outputs)[-1][0] == "later"
    for backend in BACKENDS:
        assert list(program.run({"x": X}, backend=backend)) == ["y", "top"]


def test_lowering_leaves_the_source_graph_alone() -> None:
    """The reference runs what was written, and each target starts from there."""
    g = dmlc.Graph("g")
    g.output("y", dmlc.hardmax(g.input("x", "f32", (3, 4)), axes=(0, 1)))
    program = dmlc.compile(g)
    assert [node.op.name for node in program.source_graph] == ["hardmax"]
    assert "hardmax" not in [node.op.name for node in program.graph]
    program.to_numpy()
    assert print_graph(program.source_graph) == print_graph(g.graph)


def test_targets_decide_what_is_made() -> None:
    program = dmlc.compile(built(), target="numpy")
    assert program.default_backend() == "numpy"
    assert isinstance(program.to_onnx(), onnx.ModelProto)
    assert program.run({"x": X})["y"].tolist() == (2 * X).tolist()
    assert "directml" in repr(dmlc.compile(built()))


def test_emitted_code_is_made_once_and_the_same_each_time() -> None:
    program = dmlc.compile(built())
    assert api.emitted(program, "onnx") is api.emitted(program, "onnx")
    assert program.to_onnx() == program.to_onnx()
    assert program.to_bytes("onnx") == dmlc.compile(built()).to_bytes("onnx")
    assert program.to_numpy() == dmlc.compile(built()).to_numpy()


def test_save(tmp_path: Path) -> None:
    program = dmlc.compile(built())
    program.save(tmp_path / "m.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    program.save(str(tmp_path / "m.py"))
    namespace: dict[str, Any] = {}
    exec((tmp_path / "m.py").read_text(), namespace)
    np.testing.assert_array_equal(namespace["twice"](X)[0], 2 * X)
    for name, code, exit_code in (
        ("m.txt", "E0556", 2),
        ("m", "E0556", 2),
        ("no/such/m.onnx", "E0421", 2),
    ):
        with pytest.raises(dmlc.DmlcError) as caught:
            program.save(tmp_path / name)
        assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == (code, exit_code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.py"]


# --- binding dims


def test_bind(path: Path) -> None:
    program = dmlc.compile(path, bind={"N": 3})
    assert str(program.signature.inputs[0][1]) == "f32[3, 4]"
    assert "N" not in program.signature.bounds
    np.testing.assert_array_equal(program.run({"x": X})["y"], 2 * X)
    with pytest.raises(dmlc.DmlcError, match="axis 0 has size 2, not 3"):
        program.run({"x": X[:2]})


def test_bindings_that_cannot_be() -> None:
    assert refused(bind={"N": 65}).message == "N=65 is out of bounds: N is 2 to 64"
    assert refused(bind={"N": 1}).code.id == "E0555"
    assert refused(bind={"n": 3}).message == "the model has no dim n"
    g = dmlc.Graph("g")
    g.output("v", dmlc.top_k(g.input("x", "f32", ("N",)), k=5).values)
    error = refused(source=g, bind={"N": 4})
    assert error.code.id == "E0316"
    assert error.span is not None
    assert error.span.source.name == __file__


def test_a_binding_that_breaks_a_written_type(tmp_path: Path) -> None:
    path = tmp_path / "m.dml"
    path.write_text("model m(x: f32[N], y: f32[M]) -> (z: f32[N]) {\n    z = reshape(y, shape=[N])\n    return z\n}\n")
    assert dmlc.compile(path, bind={"N": 4, "M": 4}).signature.conditions == ()
    error = refused(source=path, bind={"N": 4, "M": 5})
    assert error.code.id in ("E0317", "E0555")


# --- choices


def test_choices_that_do_not_exist() -> None:
    assert refused(target="directx").code.id == "E0550"
    assert refused(target="directm").help == 'did you mean "directml"?'
    assert refused(target="dml").help == 'did you mean "directml"?'
    assert refused(target="CPUExecutionProvider").help == 'did you mean "cpu"?'
    assert refused(opset=10).code.id == "E0551"
    assert refused(opset=22).message == "target directml takes opsets 11 to 21, not 22"
    assert refused(allow=("rnage",)).help == 'did you mean "range"?'
    assert refused(exact=True, allow=("range",)).code.id == "E0556"
    assert refused(feature_level="7.5").code.id == "E0556"
    assert refused(feature_level="4.1").code.id == "E0557"
    dmlc.compile(built(), feature_level="5.0")
    dmlc.compile(built(), feature_level="1.0", target="cpu")
    with pytest.raises(dmlc.DmlcError, match='did you mean "numpy"') as caught:
        dmlc.compile(built()).run({"x": X}, backend="nmpy")
    assert caught.value.diagnostics[0].code.id == "E0553"


@each_row(
    ("options", "allowed"),
    [
        ({}, {"exact", "reassociates"}),
        ({"exact": True}, {"exact"}),
        ({"allow": ["range"]}, {"exact", "reassociates", "range"}),
        ({"allow": "range"}, {"exact", "reassociates", "range"}),
    ],
)
def test_classes_of_rewrites(options: dict[str, Any], allowed: set[str]) -> None:
    assert dmlc.compile(built(), **options).allowed == allowed


def test_opsets() -> None:
    model = dmlc.compile(built(), opset=13).to_onnx()
    assert {o.domain: o.version for o in model.opset_import}[""] == 13


# --- what cannot be compiled


def test_an_emitted_model_compiles_again(tmp_path: Path) -> None:
    program = dmlc.compile(built())
    program.save(tmp_path / "m.onnx")
    again = dmlc.compile(tmp_path / "m.onnx")
    feeds = program.random_feeds(1)
    for name, array in program.run(feeds, "cpu").items():
        np.testing.assert_array_equal(again.run(feeds, "cpu")[name], array)


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(tmp_path / "missing.dml")
    assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == ("E0420", 2)


def test_graphs_that_give_nothing_or_cannot_be_sized() -> None:
    g = dmlc.Graph("g")
    assert refused(source=g).code.id == "E0252"
    n = g.dim("N")
    x = g.input("x", "f32", (n * 8,))
    g.output("y", x)
    assert refused(source=g).message == "no input gives the size of N"
    h = dmlc.Graph("h")
    h.output("y", dmlc.reshape(h.input("x", "f32", (4,)), shape=("M", 2)))
    assert refused(source=h).code.id == "E0208"


def test_random_feeds_keep_indices_in_range() -> None:
    g = dmlc.Graph("g")
    x, i = g.input("x", "f32", ("N", 3)), g.input("i", "i64", ("M",))
    g.output("y", dmlc.gather(x, i, axis=1))
    program = dmlc.compile(g)
    for seed in range(5):
        feeds = program.random_feeds(seed)
        assert set(np.unique(feeds["i"])) <= {0, 1, 2}
        program.run(feeds, backend="reference")


@each_row("source", [None, 0, [1], onnx.GraphProto()])
def test_what_cannot_be_compiled(source: Any) -> None:
    with pytest.raises(
        dmlc.DmlcError, match=r"an onnx\.ModelProto or the bytes of a model is compiled, not "
    ) as caught:
        dmlc.compile(source)
    assert caught.value.diagnostics[0].code.id == "E0556"


@each_row("source", [built, lambda: dmlc.compile(built()).to_onnx()], ids=["program", "model"])
@each_row(
    ("option", "wrong", "code"),
    [
        *[("shapes", wrong, "E0337") for wrong in ([("x", (2, 4))], "x=2,4", "", 3, (), {"x": {2, 4}}, {"x": b"24"})],
        ("shapes", {"x": {2: 4}}, "E0337"),
        *[("bind", wrong, "E0555") for wrong in ([("N", 2)], "N=2", "", 3, False)],
        *[("limits", wrong, "E0556") for wrong in ([("nodes", 2)], "nodes=2", "", 3, 0)],
        *[(name, wrong, "E0556") for name in ("fuse", "allow", "skip_rules") for wrong in (None, 3, 0, b"", [3])],
        *[("only_rules", wrong, "E0556") for wrong in (3, False, b"", [3])],
    ],
)
def test_options_of_another_type(source: Any, option: str, wrong: Any, code: str) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(source(), **{option: wrong})
    assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == (code, 2)


def test_choices_of_another_type() -> None:
    wrong: dict[str, Any]
    for wrong, code in (({"opset": "17"}, "E0551"), ({"target": None}, "E0550"), ({"feature_level": 5.0}, "E0556")):
        with pytest.raises(dmlc.DmlcError) as caught:
            dmlc.compile(built(), **wrong)
        assert caught.value.diagnostics[0].code.id == code
    assert dmlc.compile(built(), opset=np.int64(17)).opset == 17  # type: ignore[arg-type]
    assert dmlc.compile(built(), shapes=None, bind=None, limits=None, only_rules=None).opset == 21
    with pytest.raises(dmlc.DmlcError, match="there is no backend 3"):
        dmlc.compile(built()).run({"x": np.zeros((2, 4), np.float32)}, backend=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["graph", "model"])
def test_the_name_of_another_model_is_refused(source: str) -> None:
    g = dmlc.Graph("heads")
    g.output("y", dmlc.exp(g.input("x", dtype="float32", shape=(3,))))
    given = g if source == "graph" else dmlc.compile(g).to_onnx()
    assert dmlc.compile(given, model="heads").signature.name == "heads"
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(given, model="tails")
    assert caught.value.diagnostics[0].code.id == "E0209"
    assert "the source is one model, heads, not tails" in str(caught.value)
