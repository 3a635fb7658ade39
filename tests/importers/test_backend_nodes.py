"""onnx's own node tests, at several opsets: valid and sound models with the same numbers before and after compiling.

The suite runs a sample, the same every time, with all exceptions; ``--node-tests=all`` runs all.
"""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, defs, version_converter
from onnx.reference.ops import op_pool_common

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.importers import import_model
from tests.rows import each_row
from tests.versions import ONNX_RUNTIME
from tools.model_checks import checker_complaint, session
from tools.node_tests import RANDOM, onnx_node_tests, pool
from tools.result_comparison import NODE_TOLERANCES, Tolerance, differences

TARGETS = ("directml", "cpu", "onnx")
#: One case in this many runs in the suite, in this many tests.
SAMPLE, PARTS = 24, 4
#: Refusals for DirectML, each by its reason: a pattern of the case's name, one of the message.
_REFUSED = {
    "axes that are fed cannot be folded, and DirectML does not write the result of an empty operand": (
        "^reduce_.*_empty_set",
        "an operand is empty",
    ),
    "no kernel of ONNX Runtime takes the batch axis first": ("_batchwise$", "the sequence axis first only"),
    "the ratio of the axes decides the sizes, which are fed": (
        "^resize_.*_not_(larger|smaller)$",
        "does not read keep",
    ),
    "at the newest opset no provider takes 4 bits, and at older ones DirectML's has to, which refuses them": (
        "^dequantizelinear_u?int4$",
        "at feature level 6.4, not [iu]4",
    ),
}
#: Cases with scores that are masked: -inf for ONNX, also by its definition in other operators, which targets without a
#: kernel get. ONNX Runtime's kernel writes the lowest number.
_MASKED = "qk_matmul_bias_.*_mask_causal$"
#: Cases that older versions of ONNX Runtime compute wrongly: groups of queries, and masks of infinity.
_WRONG = (
    *(("attention_3d_gqa", "attention_4d_gqa") if ONNX_RUNTIME < (1, 24) else ()),
    *(("attention_4d_softcap_neginf",) if ONNX_RUNTIME < (1, 28) else ()),
)
#: onnx states some results to four digits.
_EXPECTED = {name: Tolerance(1e-3, 2e-4) for name in ("float32", "float64")} | {"float16": NODE_TOLERANCES["float16"]}


def _all_cases() -> dict[str, Any]:
    return {name: case for name, case in onnx_node_tests().items() if not name.startswith(RANDOM)}


def _opset(model: ModelProto) -> int:
    return next((int(e.version) for e in model.opset_import if e.domain in ("", "ai.onnx")), 1)


def _versions(model: ModelProto) -> Iterator[ModelProto]:
    """The model as it is, at the first opset that has its operators as they are, and in an older form."""
    yield model
    own, domains = _opset(model), [n.domain for n in model.graph.node]
    if any(domains):
        return
    first = max((_since(node.op_type, own) for node in model.graph.node), default=own)
    first = max(first, 7)
    seen = {own}
    if first not in seen:
        copy = ModelProto.FromString(model.SerializeToString())
        del copy.opset_import[:]
        copy.opset_import.add(domain="", version=first)
        seen.add(first)
        yield copy
    if first > 9:
        with contextlib.suppress(Exception):  # the converter does not go back over every operator
            yield version_converter.convert_version(model, first - 1 if first <= 18 else 17)


def _since(name: str, opset: int) -> int:
    try:
        return int(defs.get_schema(name, opset, "").since_version)
    except Exception:  # an operator that this onnx does not know
        return opset


def _chosen(config: pytest.Config) -> list[str]:
    names = sorted(_all_cases())
    if config.getoption("--node-tests") == "all":
        return names
    always = re.compile(
        "|".join([_MASKED, "_u?int4$", "^mod_mixed_sign_float16$", *[pattern for pattern, _ in _REFUSED.values()]])
    )
    return [name for name in names if zlib.crc32(name.encode()) % SAMPLE == 0 or always.search(name)]


@pytest.mark.parametrize("part", range(PARTS))
def test_node_case(part: int, pytestconfig: pytest.Config, subtests: pytest.Subtests) -> None:
    """The results that onnx expects are the measure where ONNX Runtime does not know the original's opset.

    In the sample the targets take turns at the older opsets. The cases are made here, not where tests are collected:
    to make them takes seconds.
    """
    whole = pytestconfig.getoption("--node-tests") == "all"
    for name in _chosen(pytestconfig)[part::PARTS]:
        if not name.startswith(_WRONG):
            with subtests.test(name):
                _judge_case(name, whole)


def _judge_case(name: str, whole: bool) -> None:
    case, turn = onnx_node_tests()[name], zlib.crc32(name.encode()) // SAMPLE
    for number, model in enumerate(_versions(case.model)):
        if number and checker_complaint(model) is not None:
            continue  # an attribute that the older operator does not have
        before = _session_or_none(model)
        for target in TARGETS if whole or not number else (TARGETS[(turn + number) % len(TARGETS)],):
            program = dmlc.compile(model, target=target)
            after = _session_or_none(program.to_onnx())
            _require_sound(name, program, runs=after is not None)
            if before is None and after is None:
                continue
            assert after is not None, f"opset {_opset(model)} for {target}: the result does not load"
            _same_numbers(case, before, after, f"opset {_opset(model)} for {target}", expected=number == 0)


def _require_sound(name: str, program: dmlc.Program, *, runs: bool) -> None:
    """Nothing is refused but what is known, and what ONNX Runtime has no kernel for."""
    try:
        program.require_sound()
    except DmlcError as error:
        text = error.diagnostics[0].message
        if "the CPU provider has none either" in text or "CPU provider makes no kernel" in text:
            assert not runs, text
            return
        assert any(re.search(p, name) and re.search(m, text) for p, m in _REFUSED.values()), text


def _session_or_none(model: ModelProto) -> Any:
    try:
        return session(model)
    except Exception:  # ONNX Runtime's exceptions have no common base
        return None


def _same_numbers(case: Any, before: Any, after: Any, where: str, *, expected: bool) -> None:
    names = [i.name for i in case.model.graph.input]
    if before is not None:
        assert [i.name for i in after.get_inputs()] == [i.name for i in before.get_inputs()], where
        assert [o.name for o in after.get_outputs()] == [o.name for o in before.get_outputs()], where
    for inputs, outputs in case.data_sets:
        feeds = {name: x if isinstance(x, list) else _array(x) for name, x in zip(names, inputs, strict=False)}
        feeds = {name: x for name, x in feeds.items() if name in {i.name for i in after.get_inputs()}}
        if any(getattr(x, "dtype", np.dtype(bool)).isbuiltin != 1 for x in feeds.values()):
            continue  # ONNX Runtime takes no float8 or int4 from NumPy
        if any("float8" in output.type for output in after.get_outputs()):
            continue  # and gives none
        if any(x is None for x in inputs):
            continue  # an absent optional
        if before is None:
            if expected:
                wanted = [x if isinstance(x, list) else _array(x) for x in outputs]
                assert differences(wanted, after.run(None, feeds), _EXPECTED) == [], where
            continue
        try:
            wanted = before.run(None, feeds)
        except Exception:  # ONNX Runtime does not run the original on these
            continue
        got = after.run(None, feeds)
        if re.search(_MASKED, case.name):
            wanted, got = _with_infinities(wanted), _with_infinities(got)
        assert differences(wanted, got, NODE_TOLERANCES) == [], where


def _with_infinities(results: list[Any]) -> list[Any]:
    """The results with -inf in the place of the lowest number."""
    return [np.where(x == np.finfo(x.dtype).min, np.array(-np.inf, x.dtype), x) for x in results]


def _array(x: Any) -> Any:
    return onnx.numpy_helper.to_array(x) if isinstance(x, TensorProto) else np.asarray(x)


def test_the_cases_are_there() -> None:
    assert len(_all_cases()) >= 1400


@each_row("kind", ("AVG", "MAX", "LPPOOL"))
@each_row(
    ("size", "kernel", "strides"), [((9,), [2], [1]), ((6, 7), [3, 2], [2, 1]), ((5, 4, 6), [2, 2, 3], [1, 2, 3])]
)
def test_plain_windows_are_pooled_as_onnx_pools_them(
    kind: str, size: tuple[int, ...], kernel: list[int], strides: list[int]
) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, *size)).astype(np.float32)
    out = [(n - k) // step + 1 for n, k, step in zip(size, kernel, strides, strict=True)]
    wanted = op_pool_common.pool(x, x.shape, kernel, strides, out, kind, p=3)
    found = pool(x, x.shape, kernel, strides, out, kind, p=3)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)  # a power of an array may differ in its last place


def test_no_model_of_a_node_test_is_faulty() -> None:
    """Every fourth; ``test_model_facts`` reads all of them."""
    for case in list(_all_cases().values())[::4]:
        import_model(case.model)
