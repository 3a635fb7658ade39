"""Facts in the metadata of emitted models: found again, in merged models too, and never those of another graph."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations, cycle
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, compose, helper, parser
from onnx_session import session

import dmlc
from dmlc import model_facts
from dmlc.diagnostics import Source
from dmlc.onnx_schema.metadata import keyed
from tests.rows import each_row

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("model.dml"))


def program(text: str, target: str = "directml", **options: object) -> dmlc.Program:
    return dmlc.compile(Source("m.dml", text), target=target, **options)


FIRST = (
    "model first(x: f32[N, 3, 4]) -> (y) {\n y = exp(x) / reduce_sum(exp(x), axes=[1, 2], keepdims=true)\nreturn y\n}"
)
SECOND = "dim M in 2..64\nmodel second(x: f32[M, 3, 4]) -> (y) {\n y = argmax(x, axes=[1, 2])\nreturn y\n}"


def entries(model: ModelProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.metadata_props}


@cache
def compiled_example(path: Path, target: str) -> dmlc.Program:
    return dmlc.compile(path, target=target, opset=17)


@each_row(
    ("a", "b", "target"),
    [
        (*pair, target)
        for pair, target in zip(combinations(EXAMPLES, 2), cycle(("directml", "cpu", "onnx")), strict=False)
    ],
)
def test_compiled_examples_merge_and_both_are_found(a: Path, b: Path, target: str) -> None:
    first, second = (compiled_example(path, target) for path in (a, b))
    models = first.to_onnx(), second.to_onnx()
    merged = compose.merge_models(*models, io_map=[], prefix1="a_", prefix2="b_")
    assert model_facts(merged) == [*model_facts(models[0]), *model_facts(models[1])]
    assert [json.loads(facts["ledger"])["schema"] for facts in model_facts(merged)] == [1, 1]
    feeds = [each.random_feeds(seed=3) for each in (first, second)]
    found = session(merged).run(
        None, {f"{p}_{k}": v for p, fed in zip("ab", feeds, strict=True) for k, v in fed.items()}
    )
    want = [out for each, fed in zip(models, feeds, strict=True) for out in session(each).run(None, fed)]
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_chain_of_two_compiled_models_runs() -> None:
    models = [program(text).to_onnx() for text in (FIRST, SECOND)]
    merged = compose.merge_models(*models, io_map=[("y", "x")], prefix1="a_", prefix2="b_")
    x = np.random.default_rng(0).standard_normal((2, 3, 4), dtype=np.float32)
    assert session(merged).run(None, {"a_x": x})[0].ravel().tolist() == np.argmax(x.reshape(2, 12), axis=1).tolist()
    assert len(model_facts(merged)) == 2


def test_equal_keys_have_equal_values() -> None:
    """Whatever differs: the rewrites, the target, the dims, the version."""
    made = [
        program(FIRST),
        program(FIRST, "cpu"),
        program(FIRST, only_rules=[]),
        program(SECOND),
        program(SECOND.replace("64", "65")),
        program(SECOND.replace("M", "N")),
        program(FIRST, bind={"N": 2}),
    ]
    known: dict[str, str] = {}
    for each in made:
        for key, value in entries(each.to_onnx()).items():
            assert known.setdefault(key, value) == value
    assert len({key.rpartition(".")[2] for key in known}) == len(made)
    assert keyed({"a": "1", "b": "2"}) == dict(reversed(keyed({"b": "2", "a": "1"}).items()))
    assert set(keyed({"a": "1", "b": "2"})) != set(keyed({"a": "2", "b": "1"}))


def test_equal_models_merge_to_one_set_of_facts() -> None:
    model = program(FIRST).to_onnx()
    merged = compose.merge_models(model, model, io_map=[], prefix1="a_", prefix2="b_")
    assert model_facts(merged) == model_facts(model)


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
def test_no_entry_is_empty(target: str) -> None:
    for text in (FIRST, SECOND, "model plain(x: f32[3]) -> (y) {\n y = x + 1\nreturn y\n}"):
        for key, value in entries(program(text, target).to_onnx()).items():
            assert value not in ("", "[]", "{}", "null"), key
    assert list(keyed({"a": "", "b": "x"}).values()) == ["x"]


def test_facts_of_a_graph_that_is_gone_are_dropped() -> None:
    models = [program(text).to_onnx() for text in (FIRST, SECOND)]
    merged = compose.merge_models(*models, io_map=[("y", "x")], prefix1="a_", prefix2="b_")
    helper.set_model_props(merged, {**entries(merged), "author": "me", "dmlc.version": "0.0", "dmlc.mine": "x"})
    del merged.opset_import[1:]
    for source in (models[0], merged):
        made = dmlc.compile(source, target="cpu").to_onnx()
        (facts,) = model_facts(made)
        assert facts["target"] == "cpu"
        assert "session" not in facts
        others = {key: value for key, value in entries(made).items() if not key.startswith("dmlc.")}
        assert others == ({"author": "me"} if source is merged else {})
        assert len(made.metadata_props) == len(facts) + len(others)


def test_compiling_what_was_compiled_is_stable() -> None:
    once = dmlc.compile(program(FIRST).to_onnx(), target="directml").to_onnx()
    assert dmlc.compile(once, target="directml").to_onnx() == once


def test_facts_are_read_from_what_onnx_runtime_gives(tmp_path: Path) -> None:
    made = program(SECOND)
    made.save(tmp_path / "m.onnx")
    metadata = session(onnx.load(tmp_path / "m.onnx")).get_modelmeta().custom_metadata_map
    (facts,) = model_facts(metadata)
    assert facts["target"] == "directml"
    assert json.loads(facts["dims"]) == {"M": [2, 64]}
    assert json.loads(facts["session"])["free_dimensions"] == ["M"]


def test_a_model_of_others_has_no_facts() -> None:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    assert model_facts(model) == []
    helper.set_model_props(model, {"dmlc.ledger": "x", "dmlc.ledger.12": "x", "xdmlc.ledger.01234567": "x"})
    assert model_facts(model) == []
