"""Single nodes on a provider, each as one model in the worker: if it runs and is right, and its time."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec import Struct
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs, helper, numpy_helper

from dmlc import __version__, api
from dmlc.api.sources import ProgramSource, onnx_model
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.diagnostics.steps import step
from dmlc.inference.fact import Fact
from dmlc.inference.model_facts import facts_of_model
from dmlc.ir import DTYPES, DType
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.onnx_schema.nested import values_read_by
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE
from dmlc.placement.node_counts import is_constant
from dmlc.placement.probed import NodeKey, Probe, ProbedNode, known_numbers, node_key
from dmlc.placement.report import placement
from dmlc.runtime.devices import device_name, runtime_version
from dmlc.runtime.hosts import WORKER
from dmlc.runtime.onnx_reference import OnnxReference
from dmlc.runtime.ort_model import NONE, OrtModel
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.targets import Target
from dmlc.targets.capabilities import Capabilities
from dmlc.verifying.comparison import DIFFERENT, compare_values
from dmlc.verifying.tolerance import EXACT, REASSOCIATES

#: The seconds of one row, and those in which it is timed.
_LIMIT, _TIMED = 30.0, 0.1
#: Elements up to which ONNX's reference is asked: it goes element by element in Python.
_MOST_ELEMENTS = 1 << 20
#: Nodes for which dmlc's reference asks ONNX Runtime.
_ON_RUNTIME = (OPAQUE, OPAQUE_IMPURE)
_ENDS_PROCESS = re.compile(r"process ends|ends the process|hangs")


class SingleNode(Struct, frozen=True):
    """A node as a model, and what it is fed."""

    key: NodeKey
    model: ModelProto
    feeds: dict[str, Any]


def nodes_of_source(source: ProgramSource) -> tuple[dict[NodeKey, SingleNode], int]:
    """The different nodes of a model as it is, or of what a program compiles to; and how many have open sizes."""
    found = onnx_model(source, DEFAULTS)
    model = api.compile(source).to_onnx() if found is None else found[0]
    known = facts_of_model(model)
    opsets = imported_versions(model.opset_import)
    out: dict[NodeKey, SingleNode] = {}
    read = {*[info.name for info in known.graph.output], *_read(known.graph)}
    left = 0
    for node in known.graph.node:
        if is_constant(node):
            continue
        opset = opsets.get(plain_domain(node.domain), 0)
        key = node_key(node, opset, known.facts.of)
        if key is None:
            left += 1
        elif key not in out:
            values = {name: _value(known.facts.of[name]) for name in node.input if name}
            held = {name for name in values if name in known.facts.weights or known_numbers(known.facts.of[name])}
            out[key] = _single(key, node, values, held, model, read)
    return out, left


def _value(fact: Fact) -> Any:
    """Made-up elements of the type, small where they may be indices; the known numbers."""
    dtype = helper.tensor_dtype_to_np_dtype(fact.element)
    shape, numbers = tuple([int(str(size)) for size in fact.shape or ()]), known_numbers(fact)
    if numbers is not None:
        return np.array(numbers, dtype).reshape(shape)
    rng = np.random.default_rng(0)
    is_whole = dtype.kind in "iub"
    return np.asarray(rng.integers(0, 2, shape) if is_whole else rng.standard_normal(shape)).astype(dtype)


def _single(
    key: NodeKey, node: NodeProto, values: Mapping[str, Any], held: set[str], model: ModelProto, read: set[str]
) -> SingleNode:
    names = {name: f"x{place}" for place, name in enumerate(values)}
    made = NodeProto()
    made.CopyFrom(node)
    made.name = ""
    made.input[:] = [names.get(name, "") for name in node.input]
    made.output[:] = [f"y{place}" if name in read else "" for place, name in enumerate(node.output)]
    fed = {names[name]: value for name, value in values.items() if name not in held}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in fed.items()
    ]
    weights = [numpy_helper.from_array(values[name], names[name]) for name in values if name in held]
    graph = helper.make_graph([made], "node", inputs, [ValueInfoProto(name=n) for n in made.output if n], weights)
    return SingleNode(key, helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version), fed)


def _read(graph: GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from values_read_by(node)


# --- rows of the tables


def nodes_of_table(target: Target) -> Iterator[tuple[SingleNode, bool | None]]:
    """A node of each operator of the target's table, from ONNX's tests; see ``in_each_type``."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    seen = set()
    for case in cases:
        if case.model is None or len(case.model.graph.node) != 1 or not case.data_sets:
            continue
        (node,), inputs = case.model.graph.node, case.data_sets[0][0]
        is_new = node.op_type not in seen and not node.domain and defs.has(node.op_type, target.opset, "")
        if is_new and all(isinstance(x, np.ndarray) for x in inputs):
            found = list(in_each_type(case.model, inputs, target))
            if found:
                seen.add(node.op_type)
            yield from found


def in_each_type(model: ModelProto, inputs: Sequence[Any], target: Target) -> Iterator[tuple[SingleNode, bool | None]]:
    """The node of a model in each type of its first operand that ONNX declares; and if the target's table has it.

    None where it may run all the same: ONNX defines it by other operators, or its kernel is wrong for some numbers. No
    node for an operator that is not in the table, or has changed since the model's opset.
    """
    (node,), capabilities = model.graph.node, Capabilities(target, target.opset)
    schema = defs.get_schema(node.op_type, target.opset)
    parameter = schema.inputs[0].type_str if schema.inputs else ""
    is_known = any(_takes(capabilities, node.op_type, dtype, parameter) for dtype in DTYPES)
    if not is_known or schema.since_version > imported_versions(model.opset_import).get("", 0):
        return
    declared = [one.allowed_type_strs for one in schema.type_constraints if one.type_param_str == parameter]
    names = [name for name in node.input if name]
    formals = [schema.inputs[min(place, len(schema.inputs) - 1)] for place, name in enumerate(node.input) if name]
    newest = ModelProto()
    newest.CopyFrom(model)
    newest.opset_import[0].version = target.opset
    is_defined = schema.has_function or schema.has_context_dependent_function
    for dtype in DTYPES:
        if not any(f"tensor({_onnx_name(dtype)})" in types for types in declared):
            continue
        values = {
            name: _as_type(x, dtype) if formal.type_str == parameter else x
            for name, formal, x in zip(names, formals, inputs, strict=True)
        }
        facts = {n: Fact(helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in values.items()}
        key = node_key(node, target.opset, facts)
        if key is not None:
            takes = _takes(capabilities, node.op_type, dtype, parameter)
            is_open = capabilities.is_wrong(node.op_type, dtype) or (is_defined and not takes)
            yield _single(key, node, values, set(), newest, {*node.output}), None if is_open else takes


def _takes(capabilities: Capabilities, op_type: str, dtype: DType, parameter: str) -> bool:
    """Return whether the table has a kernel: the provider's, or without one the CPU's."""
    if capabilities.has_provider:
        return capabilities.computes(op_type, dtype, parameter)
    return capabilities.takes(op_type, dtype, parameter, inserted=True)


def _as_type(x: Any, dtype: DType) -> Any:
    return (np.abs(x) if dtype.name.startswith("u") else x).astype(dtype.numpy)


def _onnx_name(dtype: DType) -> str:
    return str(TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(dtype.numpy))).lower()


# --- rows


def probe(
    nodes: Mapping[NodeKey, SingleNode], backend: str, target: Target, *, force: bool = False
) -> tuple[Probe, int]:
    """Run each node; and how many were left out, for they are known to end the process. Raises ``DmlcError`` E0553."""
    device = device_name(backend)
    rows = []
    WORKER.limit, before = _LIMIT, WORKER.limit
    try:
        for number, single in enumerate(nodes.values(), 1):
            step(f"{single.key[0]}, {number} of {len(nodes)}")
            if force or not _ends_process(single, target):
                rows.append(probed(single, backend))
    finally:
        WORKER.limit = before
    version = runtime_version()
    return Probe(provider=backend, device=device, onnxruntime=version, dmlc=__version__, nodes=tuple(rows)), len(
        nodes
    ) - len(rows)


def _ends_process(single: SingleNode, target: Target) -> bool:
    if target.provider is None:
        return False
    return any(_ENDS_PROCESS.search(finding.limit) for _, finding in placement(single.model, target).findings)


def probed(single: SingleNode, backend: str) -> ProbedNode:
    """The row of one node."""
    try:
        model = OrtModel(single.model, backend=backend, level=NONE, isolated=True, timed=True, whole=backend != "cpu")
        found = model.run(single.feeds)
        (seconds,), _ = OrtModel.race([model], single.feeds, _TIMED)
    except RunFailed as error:
        if not error.ended and backend != "cpu" and _runs_on_cpu(single):
            return ProbedNode(*single.key, state="cpu")
        return ProbedNode(*single.key, state="late" if error.late else "crashed" if error.ended else "refused")
    right = None
    for expected in _references(single, backend):
        right = all(_close(name, expected[name], found[name]) for name in expected)
        if right:
            break
    return ProbedNode(*single.key, state="runs", right=right, microseconds=round(seconds * 1e6, 2))


def _runs_on_cpu(single: SingleNode) -> bool:
    try:
        OrtModel(single.model, level=NONE, isolated=True).run(single.feeds)
    except RunFailed:
        return False
    return True


def _references(single: SingleNode, backend: str) -> Iterator[dict[str, Any]]:
    """The results on the CPU provider; for that by ONNX's reference, and by dmlc's where ONNX's has the meaning of
    newer opsets."""
    if backend != "cpu":
        with suppress(RunFailed):
            yield OrtModel(single.model, level=NONE, isolated=True).run(single.feeds)
    elif sum(np.size(x) for x in single.feeds.values()) <= _MOST_ELEMENTS:
        with suppress(RunFailed, NotRunnable):
            yield OnnxReference(single.model).run(single.feeds)
        with suppress(DmlcError, RunFailed, NotRunnable):
            program = api.compile(single.model, target="onnx", only_rules=())
            if not any(node.op in _ON_RUNTIME for node in program.source_graph):
                yield program.run(single.feeds, backend="reference")


def _close(name: str, a: Any, b: Any) -> bool:
    """Compare floats in the narrower of two types: ONNX's reference gives a mean of f16 in f16, not in f32."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == b.dtype.kind == "f":
        narrow = min(a.dtype, b.dtype, key=lambda dtype: dtype.itemsize)
        a, b = a.astype(narrow), b.astype(narrow)
    return compare_values(name, a, b, frozenset((EXACT, REASSOCIATES))).status != DIFFERENT
