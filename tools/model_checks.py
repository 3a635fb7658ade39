"""Check that a model is valid: ONNX's checker takes it, and ONNX Runtime loads it with and without optimizations."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
from onnx import ModelProto, TensorProto, ValueInfoProto, helper
from onnx.external_data_helper import load_external_data_for_model

import dmlc
from dmlc.api.artifact_meaning import needs_reference
from dmlc.importers.definitions import with_definitions, with_kernels
from dmlc.onnx_schema.nested import all_nodes, graphs_of

#: Operators of ONNX Runtime that it registers in ONNX's domain: the checker does not know them.
OWN_OPERATORS = frozenset(("SimplifiedLayerNormalization",))
#: The domain that the copy for the checker has them in. The checker passes over domains that it does not know.
_OWN_DOMAIN = "onnxruntime"

ort.set_default_logger_severity(4)


def session(
    model: ModelProto,
    folder: Path | None = None,
    *,
    optimized: bool = False,
    level: ort.GraphOptimizationLevel | None = None,
) -> ort.InferenceSession:
    """A session on the CPU provider with all optimizations, with none, or with those of a level.

    Raises what ONNX Runtime raises on loading.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if level is not None:
        options.graph_optimization_level = level
    elif not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    return ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def loads(model: ModelProto) -> bool:
    """Return whether ONNX Runtime loads the model without optimizations."""
    try:
        session(model)
    except Exception:  # ONNX Runtime's exceptions have no common base
        return False
    return True


def optimized_copy(model: ModelProto, level: str = "basic") -> ModelProto:
    """The model after the optimizations of a level, ``basic`` or ``extended``, on the CPU provider.

    Raises what ONNX Runtime raises on loading.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, f"ORT_ENABLE_{level.upper()}")
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        return onnx.load(options.optimized_model_filepath)


def run(found: ort.InferenceSession, feeds: Mapping[str, Any]) -> dict[str, Any]:
    """The results by output name; feeds that the session does not have as inputs are left out."""
    names = [output.name for output in found.get_outputs()]
    inputs = {i.name for i in (*found.get_inputs(), *found.get_overridable_initializers())}
    results = found.run(names, {name: array for name, array in feeds.items() if name in inputs})
    return dict(zip(names, results, strict=True))


def without_metadata(model: ModelProto) -> bytes:
    """The bytes of the model without its own metadata, which names the target."""
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ClearField("metadata_props")
    data: bytes = copy.SerializeToString(deterministic=True)
    return data


def defects(model: ModelProto, folder: Path | None = None, loaded: Collection[str] = ()) -> dict[str, str]:
    """Describe what rejects the model: ``checker``, ``loading``, ``loading optimized``; empty for a valid model.

    A model that need not run on ONNX Runtime's CPU provider need not load there. ``loaded`` names the ways of loading
    that are known to work.
    """
    out = {}
    text = checker_complaint(model, folder)
    if text is not None:
        out["checker"] = text
    ways = {} if needs_reference(model) else {"loading": False, "loading optimized": True}
    for name, optimized in ways.items():
        if name in loaded:
            continue
        try:
            session(model, folder, optimized=optimized)
        except Exception as error:  # ONNX Runtime's exceptions have no common base
            out[name] = _line(error)
    return out


def new_defects(
    model: ModelProto, source: ModelProto | None, folder: Path | None = None, loaded: Collection[str] = ()
) -> dict[str, str]:
    """As ``defects``, without those that the ``source`` has as well."""
    found = defects(model, folder, loaded)
    if source is None:
        return found
    if "checker" in found:
        text = checker_complaint(ranked(model), folder)
        found = {kind: t for kind, t in found.items() if kind != "checker"} | ({"checker": text} if text else {})
    return {kind: text for kind, text in found.items() if not _has(source, kind, folder)}


def ranked(model: ModelProto) -> ModelProto:
    """The model without outputs of unknown rank: ONNX Runtime takes them, and the checker does not."""
    out = ModelProto.FromString(model.SerializeToString())
    kept = [info for info in out.graph.output if _has_shape(info)]
    out.graph.ClearField("output")
    out.graph.output.extend(kept)
    if not kept:  # the checker wants an output
        value = helper.make_tensor("", TensorProto.INT64, [], [1])
        out.graph.node.append(helper.make_node("Constant", [], ["checked"], value=value))
        out.graph.output.append(helper.make_tensor_value_info("checked", TensorProto.INT64, []))
    return out


def _has_shape(info: ValueInfoProto) -> bool:
    return not info.type.HasField("tensor_type") or info.type.tensor_type.HasField("shape")


def _has(source: ModelProto, kind: str, folder: Path | None) -> bool:
    if kind == "checker":
        return checker_complaint(ranked(source), folder) is not None
    try:
        session(source, folder, optimized=kind == "loading optimized")
    except Exception:
        return True
    return False


def checker_complaint(model: ModelProto, folder: Path | None = None) -> str | None:
    """Return the complaint of ``onnx.checker`` with shape inference; None if it accepts the model."""
    copy = ModelProto()
    copy.CopyFrom(model)
    try:
        if folder is not None:
            load_external_data_for_model(copy, str(folder))
        renamed = [_own_renamed(body) for body in (copy.graph, *copy.functions)]
        if any(renamed):
            copy.opset_import.add(domain=_OWN_DOMAIN, version=1)
            for function in copy.functions:
                function.opset_import.add(domain=_OWN_DOMAIN, version=1)
        onnx.checker.check_model(copy, full_check=True)
    except Exception as error:  # ValidationError, InferenceError, or what a broken file leads to
        return _line(error)
    return None


def _own_renamed(body: onnx.GraphProto | onnx.FunctionProto) -> bool:
    """Put operators of ONNX Runtime's own into a domain that the checker passes over; True if there were any."""
    found = False
    for node in body.node:
        if node.domain in ("", "ai.onnx") and node.op_type in OWN_OPERATORS:
            node.domain, found = _OWN_DOMAIN, True
        for graph in graphs_of(node):
            found |= _own_renamed(graph)
    return found


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


#: Rules that write more nodes than they replace: a target's repairs, and lowerings that its costs chose.
ADDS_NODES = frozenset(
    (
        *("exact-mean", "lower-group-norm", "remainder-by-division", "shift-log-sum-exp"),
        *("hardmax-merged", "log-sum-exp-in-parts", "lower-log-sum-exp"),
        *("gelu-operator", "merge-matmul-batch", "merge-trilu-batch", "power-by-products", "slices-of-gate"),
        *("full-attention-bias", "lp-norm-in-parts", "matmul-of-letters", "merge-product-batch", "plain-skip-norm"),
    )
)


def node_count(graph: onnx.GraphProto) -> int:
    """The nodes of a graph and of the graphs inside it. Constants and copies do not count."""
    return sum(node.op_type not in ("Constant", "Identity") for node in all_nodes(graph.node))


def added_nodes(source: onnx.ModelProto, program: dmlc.Program) -> str:
    """The two counts where the emitted model has more nodes than its source and no rewrite accounts for them."""
    own = max(entry.version for entry in source.opset_import if entry.domain in ("", "ai.onnx"))
    if own > program.opset:  # operators that came later are there by ONNX's definition of them
        source = with_definitions(source, program.opset, lambda op_type: True)
    if program.target.provider is not None:  # and so are those that the provider has no kernel for
        source, _ = with_kernels(source, lambda domain, op_type: False)
    before, after = node_count(source.graph), node_count(program.to_onnx().graph)
    fired = {entry.rule for entry in program.ledger}
    return "" if after <= before or fired & ADDS_NODES else f"{after} nodes of {before}, by {sorted(fired)}"
