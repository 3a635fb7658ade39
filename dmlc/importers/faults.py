"""Faults of a model that ONNX Runtime refuses to load, found while the nodes are read.

Each node is compared with its operator's declaration, and the inference rules say which operands do not fit. Only
what is certain counts: declared types of values in between and sizes that nodes compute are not held against a node,
because ONNX Runtime loads such models.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import onnx
from msgspec import Struct, field
from onnx import AttributeProto, ModelProto, TypeProto

from dmlc.diagnostics import Diagnostic, DmlcError, did_you_mean
from dmlc.diagnostics.catalogue import models as codes
from dmlc.importers.order import Listed
from dmlc.ir import UNKNOWN, DType, ForeignType, TensorType, Value
from dmlc.onnx_schema.signatures import OperandType, find_signature, mismatch
from dmlc.onnx_schema.types import ELEMENT_TYPE, is_element_type
from dmlc.onnx_schema.words import words_of

#: Faults that are reported of one model.
_MOST = 10
#: Versions are integers of 32 bits.
_LARGEST_VERSION = 1 << 31
#: Operators that are named in the sentence on what was not checked.
_NAMED = 3
_HELP = "ONNX Runtime does not load it; onnx.checker.check_model(model, full_check=True) may say more"


class Unchecked(Struct):
    """Nodes for which nothing decides whether they load: by operator, and those of unknown operands."""

    operators: Counter[str] = field(default_factory=Counter)
    untyped: Counter[str] = field(default_factory=Counter)

    @property
    def sentence(self) -> str:
        """One line; empty if everything was checked."""
        parts = []
        if self.operators:
            parts.append(f"{_nodes(self.operators)}, which onnx {onnx.__version__} does not know")
        if self.untyped:
            parts.append(f"{_nodes(self.untyped)}, whose operands are not known well enough")
        return f"not checked: {'; '.join(parts)}" if parts else ""


def _nodes(counts: Counter[str]) -> str:
    total = sum(counts.values())
    names = sorted(counts)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{total} {'node' if total == 1 else 'nodes'} ({', '.join(names[:_NAMED])}{more})"


def _differs(attribute: AttributeProto | None, number: int) -> bool:
    return attribute is not None and not attribute.ref_attr_name and attribute.i != number


class FaultCheck:
    """The faults of one model, and the nodes that could not be checked."""

    def __init__(self, model: ModelProto, versions: Mapping[str, int]) -> None:
        self.faults: list[Diagnostic] = []
        self.failures: list[Diagnostic] = []
        self.unchecked = Unchecked()
        self._versions = versions
        self._answers: dict[tuple[object, ...], str | None] = {}
        names = [info.name for info in model.graph.input if not _is_typed(info.type)]
        names += [tensor.name for tensor in model.graph.initializer if tensor.data_type == 0]
        problems = [f"{name} lacks a type" for name in names]
        typed = [(info.name, info.type.tensor_type.elem_type) for info in model.graph.input]
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

    def declaration(
        self, node: Listed, domain: str, operands: Sequence[Value | None], dtypes: Sequence[DType | None]
    ) -> None:
        """Compare a node with its operator's declaration. Nodes of one kind, of operands of the same dtypes, share the
        answer."""
        if node.attributes:
            self._compare_words(node, domain)
        outputs = node.outputs
        key = (node.op_type, domain, tuple(dtypes), len(outputs), "" in outputs, *node.attributes)
        for name, attribute in node.attributes.items():
            if attribute.ref_attr_name or not node.kinds[name]:
                self._report_attribute(node, domain, attribute)
        answer = self._answers.get(key, _UNSEEN) if not node.has_twins else _UNSEEN
        if answer is _UNSEEN:
            answer = self._compared(node, domain, operands)
            if answer == "" and "" not in node.outputs and not any(_is_foreign(v) for v in operands):
                self._answers[key] = answer  # other types are judged by the values
        if answer:
            self.report(node, domain, answer)

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

    def _compared(self, node: Listed, domain: str, operands: Sequence[Value | None]) -> str | None:
        signature = find_signature(domain, node.op_type, self._versions.get(domain, 0))
        if signature is None:
            self.unchecked.operators[_label(node, domain)] += 1
            return None
        if any(v is not None and v.type == UNKNOWN for v in operands) and not node.may_hold_graphs:
            self.unchecked.untyped[_label(node, domain)] += 1
        types = [None if v is None else operand_type(v.type) for v in operands]
        names = [a.name for a in node.proto.attribute] if node.has_twins else list(node.attributes)
        return mismatch(signature, types, [bool(name) for name in node.outputs], names)

    def shapes(self, node: Listed, domain: str, fault: str) -> None:
        """Record a fault that an inference rule found, if ONNX infers shapes of the operator at all."""
        signature = find_signature(domain, node.op_type, self._versions.get(domain, 0))
        if signature is not None and signature.has_inference:
            self.report(node, domain, fault)

    def fails(self, node: Listed, domain: str, why: str) -> None:
        """Record why a node fails in each run, though it loads."""
        self.failures.append(Diagnostic(codes.BROKEN_MODEL, f"node {_named(node, domain)}: {why}"))

    def report(self, node: Listed, domain: str, fault: str, help: str = _HELP) -> None:
        """Record a fault of a node."""
        self.faults.append(Diagnostic(codes.BROKEN_MODEL, f"node {_named(node, domain)}: {fault}", help=help))


_UNSEEN = "?"


def operand_type(type: TensorType) -> OperandType:
    """The type without its sizes."""
    if not isinstance(type, ForeignType):
        return ELEMENT_TYPE[type.dtype]
    if not type.proto:
        return 0
    proto = TypeProto.FromString(type.proto)
    return int(proto.tensor_type.elem_type) if proto.HasField("tensor_type") else type.proto


def _is_foreign(value: Value | None) -> bool:
    return value is not None and isinstance(value.type, ForeignType)


def _label(node: Listed, domain: str) -> str:
    return f"{domain}.{node.op_type}" if domain else node.op_type


def _named(node: Listed, domain: str) -> str:
    return f"{_label(node, domain)} {node.name or next(filter(None, node.outputs), '')}".strip()


def _is_typed(type: TypeProto) -> bool:
    """True if a type has an element type, of a tensor or of what a sequence holds."""
    if type.WhichOneof("value") is None:
        return False
    return not type.HasField("tensor_type") or type.tensor_type.elem_type != 0
