"""Load phase of ONNX Runtime: it checks the nodes of a model and infers their types, without weights and kernels."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, defs

from dmlc.diagnostics.counted import counted
from dmlc.onnx_schema.domains import imported_versions, plain_domain
from dmlc.onnx_schema.nested import all_graphs, all_nodes
from dmlc.runtime.hosts import WORKER
from dmlc.runtime.runnable import NoEvidence, RunFailed

#: Seconds that the load phase of one model may take; 100,000 nodes take less than one.
TIME_LIMIT = 60.0
#: Weights of more elements are left out: no shape depends on them.
_LARGE = 1024
#: Operators that ONNX Runtime does not know are taken out of the model, up to this many.
_MOST_UNKNOWN = 20
#: ONNX writes no limit on a number of operands as the largest integer.
_MANY = 1000
#: Names that are given to the nodes, to find the one that a message is about.
_MARK = re.compile(r'[("]node (\d+)[)"]')
_UNKNOWN = (
    re.compile(r"Fatal error: (?P<domain>[\w.-]*):(?P<op>\w+)\(-?\d+\) is not a registered function/op"),
    re.compile(r'In Node, \("[^"]*", (?P<op>[^,]+), "(?P<domain>[^"]*)", .*No Op registered for'),
)
#: Refusals that say nothing about the model, each with the reason in words.
_LIMITS = (
    (re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)"),
     "this ONNX Runtime reads IR versions up to {1}, and the model has {0}"),
    (re.compile(r"Opset (\d+) is under development .* domain (\S+) is till opset (\d+)"),
     "this ONNX Runtime reads opsets of {1} up to {2}, and the model has {0}"),
    (re.compile(r"NOT_IMPLEMENTED : (.*)"), "{0}"),
    (re.compile(r"bad_alloc|bad allocation|MemoryError"), "there is not enough memory"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LoadRefusal:
    """The reason why a model does not load, and the node that it is about, where it is about one."""

    reason: str
    node: NodeProto | None

    @property
    def text(self) -> str:
        """The node and the reason: ``node Relu r: it has 2 inputs, and takes 1``."""
        return self.reason if self.node is None else f"node {node_text(self.node)}: {self.reason}"


def node_text(node: NodeProto) -> str:
    """The operator and the name of a node: ``com.microsoft.Gelu act/Gelu``."""
    operator = f"{node.domain}.{node.op_type}" if plain_domain(node.domain) else node.op_type
    return f"{operator} {node.name or next(filter(None, node.output), '')}".rstrip()


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load phase: ``unchecked`` says why nothing is known about the model, or about a part of it."""

    refusal: LoadRefusal | None = None
    unchecked: str = ""


def load_phase(model: ModelProto, *, declared: bool = True) -> LoadResult:
    """Run the load phase on a model; without ``declared``, on one that declares no types but its inputs'."""
    try:
        return _looked_at(_light(model, declared=declared))
    except NoEvidence as error:
        return LoadResult(unchecked=str(error))
    except ValueError:  # protobuf writes up to 2 GiB
        return LoadResult(unchecked="the model without its weights is larger than 2 GiB")


def _looked_at(model: ModelProto) -> LoadResult:
    unknown: list[tuple[str, str]] = []
    while True:
        text = _refusal(model)
        operator = _unknown_operator(model, text)
        if operator is None or operator in unknown or len(unknown) == _MOST_UNKNOWN:
            break
        unknown.append(operator)
        if not _without_operator(model, operator):
            break
    lacks = _sentence(unknown)
    limit = lacks if operator is not None else _limit(text)
    if not text or limit:
        return LoadResult(unchecked=limit or lacks)
    return LoadResult(_located(model, text), lacks)


def _refusal(model: ModelProto) -> str:
    """The message of ONNX Runtime; empty if it loads the model. Raises ``NoEvidence``."""
    try:
        WORKER.ask_unproved(TIME_LIMIT, "parse", model.SerializeToString())
    except RunFailed as error:
        return " ".join(str(error).split()) or "it gives no reason"
    return ""


def _light(model: ModelProto, *, declared: bool) -> ModelProto:
    """A copy with inputs in the place of large weights."""
    out = ModelProto()
    for descriptor, value in model.ListFields():
        if descriptor.name not in ("graph", "training_info"):
            field = getattr(out, descriptor.name)
            if hasattr(field, "extend"):
                field.extend(value)
            else:
                setattr(out, descriptor.name, value)
    source, graph = model.graph, out.graph
    graph.name = source.name
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    graph.output.extend(source.output)
    graph.value_info.extend(source.value_info)
    graph.sparse_initializer.extend(source.sparse_initializer)
    graph.quantization_annotation.extend(source.quantization_annotation)
    names = {info.name for info in source.input}
    for tensor in source.initializer:
        if tensor.data_location == TensorProto.EXTERNAL or not is_large(tensor):
            graph.initializer.append(tensor)
        elif tensor.name not in names:
            _declare(graph, tensor.name, tensor.data_type, tensor.dims)
    if not declared:
        for each in all_graphs(graph):
            del each.value_info[:]
            for info in each.output:
                info.ClearField("type")
    return out


def is_large(tensor: TensorProto) -> bool:
    """Return whether a weight has so many elements that no shape depends on them. They are not read."""
    return bool(math.prod(tensor.dims) > _LARGE)


def _declare(graph: GraphProto, name: str, element_type: int, sizes: Collection[int]) -> None:
    tensor = graph.input.add(name=name).type.tensor_type
    tensor.elem_type = element_type
    tensor.shape.SetInParent()
    for size in sizes:
        tensor.shape.dim.add(dim_value=size)


# --- operators that ONNX Runtime does not know


def _unknown_operator(model: ModelProto, text: str) -> tuple[str, str] | None:
    """Domain and name of the operator that a message says is not known; None for one of ONNX that came later than the
    model's opset, which is a fault of the model."""
    for pattern in _UNKNOWN:
        found = pattern.search(text)
        if found is not None:
            domain, op = _plain(found["domain"]), found["op"]
            opset = imported_versions(model.opset_import).get("", 0)
            is_later = not domain and defs.has(op) and not defs.has(op, opset)
            return None if is_later else (domain, op)
    return None


def _plain(domain: str) -> str:
    """The domain by one name: ONNX's own has two."""
    return "" if domain == "ai.onnx" else domain


def _without_operator(model: ModelProto, operator: tuple[str, str]) -> bool:
    """Take the nodes of an operator out of a model: their results become inputs of it. Return False if a result has
    no declared type, or is declared as an output of the model alone."""
    types: dict[str, ValueInfoProto] = {}
    for graph in all_graphs(model.graph):
        types |= {info.name: info for info in (*graph.value_info, *graph.output) if info.type.WhichOneof("value")}
    results = []
    for graph in all_graphs(model.graph):
        nodes = [node for node in graph.node if (_plain(node.domain), node.op_type) == operator]
        results += [name for node in nodes for name in node.output if name]
        for node in nodes:
            graph.node.remove(node)
    if not results or any(name not in types for name in results):
        return False
    model.graph.input.extend([types[name] for name in results])
    return True


def _sentence(unknown: list[tuple[str, str]]) -> str:
    if not unknown:
        return ""
    names = sorted({f"{domain}.{op}" if domain else op for domain, op in unknown})
    return f"this ONNX Runtime does not know {', '.join(names)}"


def _limit(text: str) -> str:
    """The reason in words why a refusal is not held against the model; empty if it is."""
    for pattern, words in _LIMITS:
        found = pattern.search(text)
        if found is not None:
            return words.format(*found.groups())
    return ""


# --- the node


def _located(model: ModelProto, text: str) -> LoadRefusal:
    """The refusal of a model, whose nodes are named by number, to find the one that is refused."""
    nodes = list(all_nodes(model.graph.node))
    names = [node.name for node in nodes]
    for number, node in enumerate(nodes):
        node.name = f"node {number}"
    marked = _refusal(model) or text
    for node, name in zip(nodes, names, strict=True):
        node.name = name
    numbers = [int(number) for number in _MARK.findall(marked)]
    node = nodes[numbers[-1]] if numbers and numbers[-1] < len(nodes) else None
    return LoadRefusal(_reason(marked), node)


#: Parts of a message beside its reason: the kind of error, and the node, which ours names better.
_FRAMES = (
    re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : "),
    re.compile(r"^\S+\.(?:cc|h):\d+ .*?\(.*?\) "),
    re.compile(r"^This is an invalid model\. "),
    re.compile(r"^In Node, .* , Error "),
    re.compile(r"^.*\[\w*InferenceError\] "),
    re.compile(r"^(?:Error )?Node ?\(node \d+\)(?:'s)? (?:with schema\(\S*\) )?"),
    re.compile(r"^Type Error: "),
    re.compile(r" in node \(node \d+\)"),
    re.compile(r"node \d+ : "),
)
_COUNT = re.compile(r"^has (input|output) size (\d+) not in range \[min=(\d+), max=(\d+)\]$")
#: Reasons in plainer words.
_PLAINER = (
    (re.compile(r"^Type parameter \(\w+\) of Optype \(\w+\) bound to different types \((.+?\)+) and (.+)$"),
     "its operands have different types, {0} and {1}"),
    (re.compile(r"^Type '(.*)' of input parameter \((.*)\) of operator \(\w+\) is invalid$"),
     "its operand {1} cannot be {0}"),
    (re.compile(r"^Type \((.*)\) of output arg \((.*)\) of node \(.*\) does not match expected type \((.*)\)$"),
     "its result {1} is declared {0} and is {2}"),
    (re.compile(r"^No Op registered for (\w+) with domain_version of (\d+)$"), "opset {1} has no {0}"),
    (re.compile(r"^Graph output \((.*)\) does not exist in the graph$"), "output {0} is made by no node"),
    (re.compile(r"^input (\d+) is marked single but has an empty string in the graph$"), "operand {0} is left out"),
)  # fmt: skip


def _reason(text: str) -> str:
    for frame in _FRAMES:
        text = frame.sub("", text)
    text = text.rstrip(". ")
    for pattern, words in _PLAINER:
        found = pattern.match(text)
        if found is not None:
            return words.format(*found.groups())
    found = _COUNT.match(text)
    if found is None:
        return text
    what, count, least, most = found[1], int(found[2]), int(found[3]), int(found[4])
    takes = str(least) if least == most else f"{least} or more" if most > _MANY else f"{least} to {most}"
    return f"it has {counted(count, what)}, and takes {takes}"
