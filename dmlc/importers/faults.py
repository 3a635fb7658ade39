"""Faults of a model that are found while its nodes are read, in words that name what was meant.

ONNX Runtime's own load phase finds the others. Only what is certain counts: declared types of values in between and
sizes that nodes compute are not held against a node, because ONNX Runtime loads such models.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import AttributeProto, ModelProto, TypeProto

from dmlc.diagnostics import Diagnostic, DmlcError, did_you_mean
from dmlc.diagnostics.catalogue import models as codes
from dmlc.importers.order import Listed
from dmlc.onnx_schema.installed import installed_schema
from dmlc.onnx_schema.types import is_element_type
from dmlc.onnx_schema.words import words_of

#: Faults that are reported of one model.
_MOST = 10
#: Versions are integers of 32 bits.
_LARGEST_VERSION = 1 << 31
_HELP = "ONNX Runtime does not load it; onnx.checker.check_model(model, full_check=True) may say more"


def _differs(attribute: AttributeProto | None, number: int) -> bool:
    return attribute is not None and not attribute.ref_attr_name and attribute.i != number


class FaultCheck:
    """The faults of one model."""

    def __init__(self, model: ModelProto, versions: Mapping[str, int]) -> None:
        self.faults: list[Diagnostic] = []
        self.failures: list[Diagnostic] = []
        self._versions = versions
        names = [info.name for info in model.graph.input if not _is_typed(info.type)]
        names += [tensor.name for tensor in model.graph.initializer if tensor.data_type == 0]
        problems = [f"{name} lacks a type" for name in names]
        typed = [(info.name, info.type.tensor_type.elem_type) for info in model.graph.input]
        typed += [(tensor.name, tensor.data_type) for tensor in model.graph.initializer]
        odd = [(name, number) for name, number in typed if not is_element_type(number)]
        problems += [f"{name} is of element type {number}, which ONNX does not have" for name, number in odd]
        if not 0 < versions.get("", 1) < _LARGEST_VERSION:
            problems.append(f"the model imports version {versions['']} of ONNX's operators")
        self.faults += [Diagnostic(codes.BROKEN_MODEL, problem) for problem in problems]

    def raise_if_any(self, *, runs: bool = False) -> None:
        """Raises ``DmlcError`` E0431 with a diagnostic for each faulty node, ten at most; with ``runs``, for each too
        that loads and fails in each run."""
        found = self.faults + self.failures if runs else self.faults
        if found:
            raise DmlcError(found[:_MOST])

    def attributes(self, node: Listed, domain: str) -> None:
        """Report attributes without a value, and words that an attribute does not take."""
        self._compare_words(node, domain)
        for name, attribute in node.attributes.items():
            if attribute.ref_attr_name or not node.kinds[name]:
                self._report_attribute(node, domain, attribute)

    def _compare_words(self, node: Listed, domain: str) -> None:
        """Report a word that an attribute does not take."""
        for name, words in words_of(domain, node.op_type, self._versions.get(domain, 0)).items():
            attribute = node.attributes.get(name)
            if attribute is None or attribute.ref_attr_name:
                continue
            stored = attribute.strings if attribute.type == AttributeProto.STRINGS else [attribute.s]
            given = [text.decode("utf-8", "replace") for text in stored]
            number = words.unknown(given)
            if number is not None:
                fault = f"its attribute {name} {words.refusal(given[number])}"
                self.report(node, domain, fault, did_you_mean(given[number], words.known) or _HELP)
            elif words.to is not None and given != [words.known[0]] and _differs(node.attributes.get("to"), words.to):
                fault = f'its attribute {name} must be {words.known[0]} for the type that it casts to, not "{given[0]}"'
                self.report(node, domain, fault)

    def _report_attribute(self, node: Listed, domain: str, attribute: AttributeProto) -> None:
        """Record why an attribute has no value."""
        if not attribute.type:
            self.report(node, domain, f"its attribute {attribute.name} has no type")
        if attribute.ref_attr_name:
            text = f"its attribute {attribute.name} refers to {attribute.ref_attr_name}, but it is in no function"
            self.report(node, domain, text)

    def shapes(self, node: Listed, domain: str, fault: str) -> None:
        """Record a fault that an inference rule found, if ONNX infers shapes of the operator at all."""
        schema = installed_schema(domain, node.op_type, self._versions.get(domain, 0))
        if schema is not None and schema.has_type_and_shape_inference_function:
            self.report(node, domain, fault)

    def fails(self, node: Listed, domain: str, why: str) -> None:
        """Record why a node fails in each run, though it loads."""
        self.failures.append(Diagnostic(codes.BROKEN_MODEL, f"node {_named(node, domain)}: {why}"))

    def report(self, node: Listed, domain: str, fault: str, help: str = _HELP) -> None:
        """Record a fault of a node."""
        self.faults.append(Diagnostic(codes.BROKEN_MODEL, f"node {_named(node, domain)}: {fault}", help=help))


def _label(node: Listed, domain: str) -> str:
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _named(node: Listed, domain: str) -> str:
    return f"{_label(node, domain)} {node.name or next(filter(None, node.outputs), '')}".strip()


def _is_typed(type: TypeProto) -> bool:
    """True if a type has an element type, of a tensor or of what a sequence holds."""
    if type.WhichOneof("value") is None:
        return False
    return not type.HasField("tensor_type") or type.tensor_type.elem_type != 0
