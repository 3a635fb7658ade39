"""Contents of an ONNX file, read from the file alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import onnx

from dmlc.cli.layout import table, wrapped
from dmlc.cli.signatures import TypedValue
from dmlc.diagnostics.limits import Limits
from dmlc.importers import read_model
from dmlc.ir import as_dtype
from dmlc.ir.answers import Answer
from dmlc.onnx_schema.domains import imported_versions
from dmlc.onnx_schema.metadata import model_facts, other_entries
from dmlc.onnx_schema.types import element_name
from dmlc.placement.node_counts import node_counts
from dmlc.placement.report import placement
from dmlc.placement.requirements import RequirementFacts, Requirements, requirements, requirements_of_opset
from dmlc.runtime import files
from dmlc.targets import Target


class ConstantFacts(Answer, frozen=True):
    """The number of constants, and their bytes."""

    count: int
    bytes: int


class ModelAnswer(Answer, frozen=True):
    """The contents of an ONNX file; ``compiled`` are the facts of dmlc, if it made the model or parts of it."""

    source: str
    model: str
    ir_version: int
    opsets: dict[str, int]
    inputs: list[TypedValue]
    outputs: list[TypedValue]
    constants: ConstantFacts
    nodes: dict[str, int]
    requires: RequirementFacts
    compiled: list[dict[str, str]]
    metadata: dict[str, str]


def onnx_facts(path: Path, limits: Limits, target: Target) -> ModelAnswer:
    """Interface, opsets, node counts, and what the model requires on the target. Raises ``DmlcError`` E0420, E0430 or
    E0440."""
    model = read_model(path, files.read_bytes(path, limits, is_model=True), limits)
    constants = {tensor.name for tensor in model.graph.initializer}
    return ModelAnswer(
        source=str(path),
        model=model.graph.name,
        ir_version=model.ir_version,
        opsets={entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        inputs=[_typed(value) for value in model.graph.input if value.name not in constants],
        outputs=[_typed(value) for value in model.graph.output],
        constants=ConstantFacts(len(constants), sum(t.ByteSize() for t in model.graph.initializer)),
        nodes=dict(node_counts(model)),
        requires=_requirements(model, target).facts(),
        compiled=model_facts(model),
        metadata=other_entries(model),
    )


def _requirements(model: onnx.ModelProto, target: Target) -> Requirements:
    if target.provider is not None:
        return requirements(placement(model, target))
    return requirements_of_opset(imported_versions(model.opset_import).get("", 0))


def requires_text(facts: RequirementFacts) -> str:
    """The line of what a model requires, whole."""
    parts = [f"ONNX Runtime {facts.onnxruntime or 'for this opset'}", f"opset {facts.opset}"]
    parts += [f"feature level {facts.feature_level}"] if facts.feature_level else []
    parts += [f"{' and '.join(facts.device_types)} on the device"] if facts.device_types else []
    return f"requires {', '.join(parts)}\n"


def _typed(value: onnx.ValueInfoProto) -> TypedValue:
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return TypedValue(value.name, _dtype(tensor.elem_type), shape)


def _dtype(number: int) -> str:
    """NumPy's name, or ONNX's where NumPy has no such type."""
    try:
        return as_dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).long_name
    except KeyError:
        return element_name(number)


def onnx_page(facts: ModelAnswer) -> str:
    """The same for people."""
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts.opsets.items())
    out = f"ONNX model {facts.model}: IR version {facts.ir_version}, opset {opsets}\n"
    for title, values in (("inputs", facts.inputs), ("outputs", facts.outputs)):
        rows = [[value.name, f"{value.dtype}[{', '.join(map(str, value.shape))}]"] for value in values]
        out += f"\n{title}\n" + table(rows, "  ")
    rows = [[name, str(number)] for name, number in facts.nodes.items()]
    out += "\nnodes\n" + table([*rows, ["all", str(sum(facts.nodes.values()))]], "  ")
    out += f"\nconstants: {facts.constants.count}, {facts.constants.bytes:,} bytes\n"
    out += f"\n{requires_text(facts.requires)}"
    for compiled in facts.compiled:
        out += "\ncompiled by dmlc\n" + "".join([_fact_text(name, text) for name, text in compiled.items()])
    if facts.metadata:
        out += "\nmetadata\n" + table([[key, value] for key, value in facts.metadata.items()], "  ")
    return out


def _fact_text(name: str, text: str) -> str:
    """A fact of dmlc in lines: rewrites by rule, and records as ``key value`` pairs."""
    try:
        found = json.loads(text)
    except ValueError:  # a version or a name
        found = text
    if name == "ledger" and isinstance(found, dict):
        counts = Counter([str(row.get("rule")) for row in found.get("rewrites", [])])
        parts = [f"{number} {rule}" for rule, number in counts.most_common()]
        parts += [str(row.get("text")) for row in found.get("removed", [])]
        return _fact_line("rewrites", ", ".join(parts) or "none")
    return _fact_line(name, _plain(found))


def _fact_line(name: str, text: str) -> str:
    return wrapped(f"{name:<9} {text}", "  ", " " * 12)


def _plain(found: object) -> str:
    """A value of JSON without its signs: ``key value`` pairs, and lists with commas."""
    if isinstance(found, dict):
        return ", ".join([f"{key} {_plain(value)}" for key, value in found.items() if key != "schema" and value != {}])
    if isinstance(found, list):
        return ", ".join(map(_plain, found)) or "none"
    return str(found).lower() if isinstance(found, bool) else str(found)
