"""Contents of an ONNX file, read from the file alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from dmlc.cli.layout import table
from dmlc.codegen.onnx.metadata import model_facts, other_entries
from dmlc.diagnostics.limits import Limits
from dmlc.importers import read_model
from dmlc.ir import as_dtype
from dmlc.onnx_schema.domains import imported_versions
from dmlc.onnx_schema.types import element_name
from dmlc.placement.node_counts import node_counts
from dmlc.placement.report import placement
from dmlc.placement.requirements import Requirements, requirements, requirements_of_opset
from dmlc.runtime import files
from dmlc.targets import Target


def onnx_facts(path: Path, limits: Limits, target: Target) -> dict[str, Any]:
    """Interface, opsets, node counts, and what the model requires on the target. Raises ``DmlcError`` E0420, E0430 or
    E0440."""
    model = read_model(path, files.read_bytes(path, limits, is_model=True), limits)
    constants = {tensor.name for tensor in model.graph.initializer}
    return {
        "model": model.graph.name,
        "ir_version": model.ir_version,
        "opsets": {entry.domain or "ai.onnx": entry.version for entry in model.opset_import},
        "inputs": [_typed(value) for value in model.graph.input if value.name not in constants],
        "outputs": [_typed(value) for value in model.graph.output],
        "constants": {"count": len(constants), "bytes": sum(t.ByteSize() for t in model.graph.initializer)},
        "nodes": dict(node_counts(model)),
        "requires": _requirements(model, target).to_json(),
        "compiled": model_facts(model),
        "metadata": other_entries(model),
    }


def _requirements(model: onnx.ModelProto, target: Target) -> Requirements:
    if target.provider is not None:
        return requirements(placement(model, target))
    return requirements_of_opset(imported_versions(model.opset_import).get("", 0))


def requires_text(facts: Mapping[str, Any]) -> str:
    """The line of what a model requires, whole, from its fields in a document."""
    parts = [f"ONNX Runtime {facts['onnxruntime'] or 'for this opset'}", f"opset {facts['opset']}"]
    parts += [f"feature level {facts['feature_level']}"] if facts["feature_level"] else []
    parts += [f"{' and '.join(facts['device_types'])} on the device"] if facts["device_types"] else []
    return f"requires {', '.join(parts)}\n"


def _typed(value: onnx.ValueInfoProto) -> dict[str, Any]:
    tensor = value.type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else d.dim_param or "?" for d in tensor.shape.dim]
    return {"name": value.name, "dtype": _dtype(tensor.elem_type), "shape": shape}


def _dtype(number: int) -> str:
    """NumPy's name, or ONNX's where NumPy has no such type."""
    try:
        return as_dtype(onnx.helper.tensor_dtype_to_np_dtype(number)).long_name
    except KeyError:
        return element_name(number)


def onnx_page(facts: dict[str, Any]) -> str:
    """The same for people."""
    opsets = ", ".join(f"{domain} {version}" for domain, version in facts["opsets"].items())
    out = f"ONNX model {facts['model']}: IR version {facts['ir_version']}, opset {opsets}\n"
    for title in ("inputs", "outputs"):
        rows = [[v["name"], f"{v['dtype']}[{', '.join(map(str, v['shape']))}]"] for v in facts[title]]
        out += f"\n{title}\n" + table(rows, "  ")
    rows = [[name, str(number)] for name, number in facts["nodes"].items()]
    out += "\nnodes\n" + table([*rows, ["all", str(sum(facts["nodes"].values()))]], "  ")
    constants = facts["constants"]
    out += f"\nconstants: {constants['count']}, {constants['bytes']:,} bytes\n"
    out += f"\n{requires_text(facts['requires'])}"
    for compiled in facts["compiled"]:
        out += "\ncompiled by dmlc\n" + table([[name, text] for name, text in compiled.items()], "  ")
    if facts["metadata"]:
        out += "\nmetadata\n" + table([[key, value] for key, value in facts["metadata"].items()], "  ")
    return out
