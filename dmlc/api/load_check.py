"""Check that the installed ONNX Runtime loads what was compiled: its load phase runs in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from dmlc.diagnostics import Diagnostic, Label, option
from dmlc.diagnostics.catalogue.advice import NO_CPU_KERNEL
from dmlc.diagnostics.catalogue.models import BROKEN_MODEL
from dmlc.diagnostics.catalogue.runs import RUNTIME_FAILED
from dmlc.onnx_schema.domains import imported_versions, plain_domain

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from dmlc.codegen.artifact import Artifact
    from dmlc.ir import Graph
    from dmlc.verify.load_phase import LoadRefusal


class LoadCheck(Struct, frozen=True):
    """The findings: errors and warnings; a ``note`` where only the source does not load; ``unchecked``, what is not
    known."""

    diagnostics: tuple[Diagnostic, ...] = ()
    note: str = ""
    unchecked: str = ""


def load_check(artifact: Artifact, graph: Graph, source: ModelProto | None, *, needs_cpu: bool) -> LoadCheck:
    """Check an emitted model and, if it was imported, its source; ``graph`` is what the program says.

    The error is E0431 where the source has the fault, E0554 where the emitted model alone does not load. Wrong types
    that the source declares are a note: the emitted model declares others. A kernel that the CPU provider refuses is an
    error if the target ``needs_cpu``, else a warning.
    """
    from dmlc.verify.load_phase import load_phase

    emitted = load_phase(artifact.payload)
    original = undeclared = None if source is None else load_phase(source).refusal
    if original is not None and source is not None:
        undeclared = load_phase(source, declared=False).refusal
    unchecked = f"not checked if ONNX Runtime loads the model: {emitted.unchecked}" if emitted.unchecked else ""
    fault = undeclared or (original if emitted.refusal is not None else None)
    if fault is not None:
        return LoadCheck((_of_source(fault),), unchecked=unchecked)
    if emitted.refusal is not None:
        found = _of_program(emitted.refusal, artifact, graph)
        if source is not None:
            found = _of_emitted(emitted.refusal, artifact, source)
        return LoadCheck((found,), unchecked=unchecked)
    note = ""
    if original is not None:
        note = f"ONNX Runtime refuses the model as it is, and loads what dmlc compile makes of it: {_text(original)}"
    return LoadCheck(tuple(_kernels(artifact, graph, needs_cpu=needs_cpu)), note, unchecked)


def _kernels(artifact: Artifact, graph: Graph, *, needs_cpu: bool) -> Iterator[Diagnostic]:
    """The nodes of which the CPU provider makes no kernel."""
    from dmlc.verify.kernels import refused_kernels

    for refused in refused_kernels(artifact.payload):
        node, labels = refused.node, _labels(artifact, graph, refused.node)
        message = f"ONNX Runtime's CPU provider makes no kernel of {_named(node)}: {refused.reason}"
        yield Diagnostic(RUNTIME_FAILED if needs_cpu else NO_CPU_KERNEL, message, labels, _page(node))


def _of_source(refusal: LoadRefusal) -> Diagnostic:
    """The error where the source does not load."""
    what = "" if refusal.node is not None else "ONNX Runtime refuses the model: "
    return Diagnostic(BROKEN_MODEL, what + _text(refusal), help=_page(refusal.node))


def _of_emitted(refusal: LoadRefusal, artifact: Artifact, source: ModelProto) -> Diagnostic:
    """The error where the source loads, and what was made of it does not."""
    own, opset = (imported_versions(model.opset_import).get("", 0) for model in (source, artifact.payload))
    other = f", or try {option(f'--opset {own}', f'opset={own}')}" if own != opset else ""
    help = f"ONNX Runtime loads the model as it is: use that{other}"
    message = f"ONNX Runtime refuses the compiled model: {_text(refusal)}"
    return Diagnostic(RUNTIME_FAILED, message, help=help)


def _of_program(refusal: LoadRefusal, artifact: Artifact, graph: Graph) -> Diagnostic:
    """The error where what was made of a program does not load, at the place of the node."""
    message = f"ONNX Runtime refuses the model: {_text(refusal)}"
    return Diagnostic(RUNTIME_FAILED, message, _labels(artifact, graph, refusal.node), _page(refusal.node))


def _labels(artifact: Artifact, graph: Graph, node: NodeProto | None) -> tuple[Label, ...]:
    """The place of a node of the emitted model in the program."""
    from dmlc.placement.advice import spans_by_place

    location = "" if node is None else artifact.locations.get(node.name, "")
    span = spans_by_place(graph).get(location) if location else None
    return () if span is None else (Label(span, "this node"),)


def _text(refusal: LoadRefusal) -> str:
    return refusal.reason if refusal.node is None else f"node {_named(refusal.node)}: {refusal.reason}"


def _named(node: NodeProto) -> str:
    operator = f"{node.domain}.{node.op_type}" if plain_domain(node.domain) else node.op_type
    return f"{operator} {node.name or next(filter(None, node.output), '')}".rstrip()


def _page(node: NodeProto | None) -> str:
    if node is None or plain_domain(node.domain):
        return "onnx.checker.check_model(model, full_check=True) may say more"
    return f"https://onnx.ai/onnx/operators/onnx__{node.op_type}.html describes its operands and attributes"
