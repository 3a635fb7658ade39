"""Check that the installed ONNX Runtime loads what was compiled: its load phase runs in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dmlc.api.load_errors import operator_page, source_error
from dmlc.api.load_result import LoadCheck
from dmlc.diagnostics import Diagnostic, Label, option
from dmlc.diagnostics.catalogue.advice import NO_CPU_KERNEL
from dmlc.diagnostics.catalogue.runs import RUNTIME_FAILED
from dmlc.onnx_schema.domains import imported_versions
from dmlc.onnx_schema.inlining import inlined
from dmlc.placement.advice import spans_by_place
from dmlc.verifying.kernels import refused_kernels
from dmlc.verifying.load_phase import LoadRefusal, load_phase, node_text

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from dmlc.codegen.artifact import Artifact
    from dmlc.ir import Graph
    from dmlc.targets import Target


def load_check(artifact: Artifact, graph: Graph, source: ModelProto | None, target: Target) -> LoadCheck:
    """Check an emitted model and, if it was imported, its source; ``graph`` is what the program says.

    The error is E0431 where the source has the fault, E0554 where the emitted model alone does not load. Wrong types
    that the source declares are a note: the emitted model declares others.
    """
    emitted = load_phase(artifact.payload)
    original = undeclared = None if source is None else load_phase(source).refusal
    if original is not None and source is not None:
        undeclared = load_phase(inlined(source), declared=False).refusal  # a function that dmlc inlines need not load
    unchecked = f"not checked if ONNX Runtime loads the model: {emitted.unchecked}" if emitted.unchecked else ""
    fault = undeclared or (original if emitted.refusal is not None else None)
    if fault is not None:
        return LoadCheck((source_error(fault),), unchecked=unchecked)
    if emitted.refusal is not None:
        found = _of_program(emitted.refusal, artifact, graph)
        if source is not None:
            found = _of_emitted(emitted.refusal, artifact, source, target.min_opset)
        return LoadCheck((found,), unchecked=unchecked)
    note = ""
    if original is not None:
        why = original.text
        note = f"ONNX Runtime refuses the model as it is, and loads what dmlc compile makes of it: {why}"
    return LoadCheck((), note, unchecked)


def kernel_check(artifact: Artifact, graph: Graph, target: Target) -> Iterator[Diagnostic]:
    """Find the nodes of which the CPU provider makes no kernel: errors for a target of its installed kernels, else
    warnings."""
    for refused in refused_kernels(artifact.payload):
        node, labels = refused.node, _labels(artifact, graph, refused.node)
        message = f"ONNX Runtime's CPU provider makes no kernel of {node_text(node)}: {refused.reason}"
        code = RUNTIME_FAILED if target.installed_kernels else NO_CPU_KERNEL
        yield Diagnostic(code, message, labels, operator_page(node))


def session_check(artifact: Artifact) -> Iterator[Diagnostic]:
    """Have the installed ONNX Runtime make a session of an emitted model, and give the error where it refuses.

    It gives nothing where nothing can be found out: without ONNX Runtime, and for a model too large to be handed over.
    """
    from dmlc.runtime.ort_model import OrtModel, plain_message
    from dmlc.runtime.runnable import NoEvidence, RunFailed
    from dmlc.runtime.session import opset_help

    try:
        OrtModel(artifact.payload, artifact.folder, threads=1, isolated=True)
    except RunFailed as error:
        why = plain_message(error)
        help = opset_help(artifact.payload, why) or _kernel_help(why)
        yield Diagnostic(RUNTIME_FAILED, f"ONNX Runtime refuses the model: {why}", help=help)
    except (NoEvidence, ValueError):
        return


def _kernel_help(why: str) -> str:
    """The way out for a model without a kernel; another one where that is not the reason."""
    if "implementation for" in why or "find kernel" in why:
        return "cast the operands of that node to a dtype that has a kernel, or write the node in other operators"
    return "dmlc verify SRC reports whether the model fails as it is"


def _of_emitted(refusal: LoadRefusal, artifact: Artifact, source: ModelProto, lowest: int) -> Diagnostic:
    """The error where the source loads, and what was made of it does not."""
    own, opset = (imported_versions(model.opset_import).get("", 0) for model in (source, artifact.payload))
    help = f"ONNX Runtime loads the model as it is, at opset {own}"
    if max(own, lowest) != opset:
        other = option(f"--opset {max(own, lowest)}", f"opset={max(own, lowest)}")
        help += f"; if it runs too, compile it with {other}"
    message = f"ONNX Runtime refuses the compiled model: {refusal.text}"
    return Diagnostic(RUNTIME_FAILED, message, help=help)


def _of_program(refusal: LoadRefusal, artifact: Artifact, graph: Graph) -> Diagnostic:
    """The error where what was made of a program does not load, at the place of the node."""
    message = f"ONNX Runtime refuses the model: {refusal.text}"
    return Diagnostic(RUNTIME_FAILED, message, _labels(artifact, graph, refusal.node), operator_page(refusal.node))


def _labels(artifact: Artifact, graph: Graph, node: NodeProto | None) -> tuple[Label, ...]:
    """The place of a node of the emitted model in the program."""
    location = "" if node is None else artifact.locations.get(node.name, "")
    span = spans_by_place(graph).get(location) if location else None
    return () if span is None else (Label(span, "this node"),)
