"""One node against the tables: its kernel, what DirectML says of it, and what is known to go wrong."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct, field
from onnx import NodeProto

from dmlc.ir import Dim
from dmlc.onnx_schema.domains import MICROSOFT, plain_domain
from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.cpu_kernels import source as cpu_source
from dmlc.placement.cpu_kernels import why_not_on_cpu
from dmlc.placement.dependence import device_types, level_dependence, may_compute_in_half, releases
from dmlc.placement.faults import data_operands, holds
from dmlc.placement.values import KnownType, TypedNode, ValueScope, names_of, parameters, told_names
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.directml import first_level, least_feature_level, level_key, operator_rows, refusal
from dmlc.targets.provider import COVERED_DOMAINS, Kernel, ProviderRow

PROVIDER, CPU, FOLDED, UNKNOWN = "provider", "cpu", "folded", "unknown"
#: Constants up to this size do not hold a node back from the CPU (onnxruntime, GetCpuPreferredNodes).
_SMALL = 100
#: Operators that ONNX Runtime does not compute while it loads a model: random ones, and those that its fusions of
#: quantized operators look for (onnxruntime pull request 6643; seen with onnxruntime 1.32).
_UNFOLDED = frozenset(
    (
        *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        "DequantizeLinear",
    )
)
#: Operators whose result is a shape or a size.
_SHAPES = frozenset(("Shape", "Size"))
#: The beginning of the reason why a node with dynamic sizes is not fused.
OPEN_SIZES = "dynamic sizes: "
#: The reason why a node that has a kernel runs on the CPU.
OF_SHAPES = "ONNX Runtime keeps computations on shapes on the CPU"

#: Operators of ONNX that name their type parameters otherwise in some versions than the tables do: onnx is asked, whose
#: schemas take long to load.
BY_VERSION = frozenset(
    (
        *("BatchNormalization", "DequantizeLinear", "Dropout", "Identity", "Pow", "QuantizeLinear"),
        *("Resize", "Split", "Tile"),
    )
)


class Finding(Struct, frozen=True):
    """Something to know before shipping.

    ``effect`` is fails, wrong, imprecise, advice, cpu or unknown; ``operator`` is whose limit it is. ``source`` is the
    row of a table that says so; None for an operator that no table has.
    """

    effect: str
    operator: str
    limit: str
    source: str | None
    repair: str = ""


class Looked(Struct):
    """Result of looking a node up in the tables.

    ``host_operands`` are the operands, constants left out, that a node on the provider reads on the CPU,
    ``host_results`` the results that it writes there. ``depends_on`` are facts about the device and the release that
    the placement needs, in words; ``half`` is true if DirectML may compute the node in f16 where it is alone.
    ``is_of_kind`` is true if the result holds for every node of the same kind: it contains no name of a value, and the
    scope was not changed.
    """

    where: str
    why: str
    source: str | None = ""
    directml: tuple[str, ...] = ()
    level: str | None = None
    alone: str = ""
    host: bool = False
    findings: list[Finding] = field(default_factory=list)
    host_operands: tuple[int, ...] = ()
    host_results: tuple[int, ...] = ()
    depends_on: tuple[str, ...] = ()
    half: bool = False
    is_of_kind: bool = False


def look_up(
    proto: NodeProto, scope: ValueScope, capabilities: Capabilities, level: str, opsets: Mapping[str, int]
) -> Looked:
    """Look up the placement of a node. Values computed from constants join the constants of the scope."""
    domain = plain_domain(proto.domain)
    opset = opsets.get(domain, 0)
    types = [[scope.of(name) for name in names] for names in (proto.input, proto.output)]
    node = TypedNode(proto, domain, opset, types[0], types[1], scope)
    if _is_folded(node):
        scope.constant.update(proto.output)
        return Looked(FOLDED, "computed while the model is loaded: it depends on constants only")
    row = capabilities.row(proto.op_type, domain)
    kernel = None
    if row is None:
        found = _without_row(node, capabilities)
    else:
        kernel = capabilities.kernel(proto.op_type, domain)
        if kernel is None:
            found = _no_kernel(node, row, capabilities)
        else:
            found = _on_provider(node, row, kernel, capabilities, level)
    reason = why_not_on_cpu(node) if found.where == CPU else ""
    if reason:
        found.findings = [_fails(node, found, reason)]
    if found.host_results:
        scope.on_cpu.update(proto.output)
    elif found.where == PROVIDER and kernel is not None and not graphs_of(proto) and _prefers_cpu(node, kernel):
        return _kept_on_cpu(node)
    elif found.where == CPU and not scope.on_cpu.isdisjoint(proto.input):
        scope.on_cpu.update(proto.output)
        if _is_shape_arithmetic(node):
            return Looked(CPU, OF_SHAPES, found.source, findings=[f for f in found.findings if f.effect != "cpu"])
        scope.data_on_cpu.update(proto.output)
    return found


def _fails(node: TypedNode, found: Looked, reason: str) -> Finding:
    """The finding for a node that no provider runs; a way to the execution provider stays the way out."""
    repair = next((f.repair for f in found.findings if f.repair), "")
    return Finding("fails", node.label, f"{found.why}, and {reason}", cpu_source(), repair)


def _is_folded(node: TypedNode) -> bool:
    """Return whether ONNX Runtime computes the node while it loads the model (constant folding, level 1)."""
    if graphs_of(node.proto) or node.op in _UNFOLDED or node.domain not in ("", MICROSOFT):
        return False
    if node.op in _SHAPES and node.domain == "" and node.operands and node.operands[0].static:
        return True
    names = [name for name in node.proto.input if name]
    return bool(names) and node.scope.constant.issuperset(names)


def _prefers_cpu(node: TypedNode, kernel: Kernel) -> bool:
    """Return whether ONNX Runtime moves a node to the CPU because it depends on shapes alone, or on small operands.

    The operands are on the CPU, graph inputs or small constants, and none is absent. An operand that the provider's
    kernel reads on the CPU does not count: that node stays, and so does all behind it (GetCpuPreferredNodes).
    """
    scope, names = node.scope, node.proto.input
    if scope.on_cpu.isdisjoint(names) or any(v.dtype in ("f16", "bf16") for v in node.operands):
        return False
    return all(
        _is_small(name, scope)
        or name in scope.inputs
        or (name in scope.on_cpu and (index not in kernel.constant or name in scope.constant))
        for index, name in enumerate(names)
    )


def _kept_on_cpu(node: TypedNode) -> Looked:
    """The result for a node that follows the shapes that it reads to the CPU.

    Shape arithmetic there is as it should be. A node that also reads the data of an input takes the data along.
    """
    scope, proto = node.scope, node.proto
    scope.on_cpu.update(proto.output)
    out = Looked(CPU, OF_SHAPES, "GetCpuPreferredNodes")
    fed = [name for name in proto.input if name in scope.inputs and not _is_short(scope.of(name))]
    if not fed and scope.data_on_cpu.isdisjoint(proto.input):
        return out
    scope.data_on_cpu.update(proto.output)
    sizes = told_names(scope.sizes_behind([name for name in proto.input if name in scope.on_cpu]))
    bound = " ".join(f"--bind {name}=SIZE" for name in sizes) or "--bind"
    limit = (
        f"it reads {fed[0] if fed else 'data'} and a number computed from a shape, which ONNX Runtime keeps on the CPU"
    )
    out.findings = [Finding("cpu", node.label, limit, "GetCpuPreferredNodes", f"{bound} makes that number a constant")]
    return out


def _is_shape_arithmetic(node: TypedNode) -> bool:
    """Return whether a node computes a few numbers from shapes alone, so that the CPU is where it should be."""
    names = [name for name in node.proto.input if name]
    told = all(
        _is_small(name, node.scope) or (name in node.scope.on_cpu and name not in node.scope.data_on_cpu)
        for name in names
    )
    return told and not graphs_of(node.proto) and all(_is_short(value) for value in node.results)


def _is_short(value: KnownType) -> bool:
    """Return whether a value is known to have few elements."""
    sizes = [size for size in value.shape or () if isinstance(size, int)]
    return value.static and math.prod(sizes) <= _SMALL


def _is_small(name: str, scope: ValueScope) -> bool:
    return name in scope.constant and _is_short(scope.of(name))


# --- no kernel


def _without_row(node: TypedNode, capabilities: Capabilities) -> Looked:
    known = node.domain in COVERED_DOMAINS and (node.domain != "" or parameters("", node.op, max(node.opset, 1)))
    if not known:
        limit = f"ONNX has no operator {node.label} at opset {node.opset}"
        limit = f"no table covers the domain {node.domain}" if node.domain else limit
        finding = Finding("unknown", node.label, limit, None, "write it out as ONNX operators")
        return Looked(UNKNOWN, limit, None, findings=[finding])
    failure = next((f for f in capabilities.faults(node.op, node.domain) if node.op in f.operators), None)
    if failure is not None:
        return _on_cpu(node, failure.what, failure.source, failure.repair)
    why, source = f"{capabilities.device}'s provider has no kernel for {node.label}", capabilities.cite(node.label)
    return _on_cpu(node, why, source, "write it out in other operators")


def _on_cpu(node: TypedNode, why: str, source: str | None, repair: str) -> Looked:
    return Looked(CPU, why, source, findings=[Finding("cpu", node.label, why, source, repair)])


def _no_kernel(node: TypedNode, row: ProviderRow, capabilities: Capabilities) -> Looked:
    source, target = capabilities.cite(node.label), capabilities.target
    first, last = capabilities.provider.known_opsets
    if node.domain == "" and not first <= node.opset <= last:
        why = f"the tables cover opsets {first} to {last}, not {node.opset}"
        return Looked(UNKNOWN, why, source, findings=[Finding("unknown", node.label, why, source)])
    if not row.usable(node.opset):
        ranges = ", ".join(f"{a} to {b}" for a, b in row.opsets) or "none"
        why = f"{capabilities.device}'s provider has kernels for opsets {ranges}, not {node.opset}"
        best = max((min(b, target.max_opset) for a, b in row.opsets if a <= target.max_opset), default=None)
        if best is None:
            return _on_cpu(node, why, source, "write it out in other operators")
        also = _kept_off_at(best, node, row, capabilities)
        if also is not None:
            return _on_cpu(node, f"{why}; at {best} {also.limit}", also.source, f"opset {best}, and {also.repair}")
        return _on_cpu(node, why, source, f"opset {best}")
    newest = row.kernel(node.opset)
    since = newest.release if newest else "?"
    why = f"the provider has this kernel of {node.op} since onnxruntime {since}, not in {target.release}"
    out = _on_cpu(node, why, source, f"opset {target.opset}, or onnxruntime {since}")
    out.depends_on = (f"onnxruntime before {since}",)
    return out


def _kept_off_at(opset: int, node: TypedNode, row: ProviderRow, capabilities: Capabilities) -> Finding | None:
    """Return what leaves the node to the CPU at another opset too: the opset alone does not help."""
    kernel = row.kernel(opset)
    if kernel is None:
        return None
    letters = _letters(node, row)
    for failure in capabilities.faults(node.op, node.domain):
        if failure.effect == CPU and holds(failure, node, row, kernel, letters):
            return Finding(CPU, node.label, failure.what, failure.source, failure.repair)
    cause = _types_refused(node, row, kernel, letters, capabilities.target.release)
    if cause is None or cause[0] != CPU:
        return None
    return Finding(CPU, node.label, cause[1], capabilities.cite(node.label), _other_type(node, kernel, letters))


# --- with a kernel


def _on_provider(node: TypedNode, row: ProviderRow, kernel: Kernel, capabilities: Capabilities, level: str) -> Looked:
    row = row.of_kernel(kernel)
    source = capabilities.cite(node.label)
    letters = _letters(node, row)
    cause = _types_refused(node, row, kernel, letters, capabilities.target.release)
    failures = [f for f in capabilities.faults(node.op, node.domain) if holds(f, node, row, kernel, letters)]
    if cause is not None:
        known = next((f for f in failures if f.effect == "cpu"), None)
        effect, why = cause
        if effect == UNKNOWN:
            return Looked(UNKNOWN, why, source, findings=[Finding("unknown", node.label, why, source)])
        repair = known.repair if known else _other_type(node, kernel, letters)
        return _on_cpu(node, f"{why}{': ' + known.what if known else ''}", known.source if known else source, repair)
    hanging = tuple(releases(node, row, kernel, letters, capabilities))
    for failure in failures:
        if failure.effect == "cpu":
            out = _on_cpu(node, failure.what, failure.source, failure.repair)
            out.depends_on = hanging
            return out
    why = "its kernel is the CPU's, registered for the provider" if row.host else f"kernel {kernel.since} of {row.op}"
    out = Looked(PROVIDER, why, source, row.directml, host=row.host)
    out.findings = [Finding(f.effect, node.label, f.what, f.source, f.repair) for f in failures]
    if level:
        _against_directml(node, row, out, level)
    out.alone = _why_alone(node, row, kernel) if capabilities.provider.fuses else ""
    out.host_operands = tuple(
        index
        for index in sorted(kernel.constant | row.host_operands)
        if index < len(node.proto.input)
        and node.proto.input[index]
        and node.proto.input[index] not in node.scope.constant
    )
    out.host_results = tuple(sorted(row.host_results))
    out.depends_on = (*(device_types(node, row, kernel) if level else ()), *hanging, *level_dependence(out.level))
    out.half = may_compute_in_half(node, row, kernel)
    out.is_of_kind = node.domain != "ai.onnx.ml" and " is not constant" not in out.alone and not out.host_results
    return out


def _letters(node: TypedNode, row: ProviderRow) -> list[tuple[str, KnownType]]:
    """(type parameter or type, value) of every operand and result that is there."""
    found = parameters("", node.op, node.opset) if node.domain == "" and node.op in BY_VERSION else None
    inputs, outputs, _ = found or (row.inputs, row.outputs, False)
    pairs: list[tuple[str, KnownType]] = []
    for letters, values, names in (
        (inputs, node.operands, node.proto.input),
        (outputs, node.results, node.proto.output),
    ):
        for index, (value, name) in enumerate(zip(values, names, strict=True)):
            if name and letters:
                pairs.append((letters[min(index, len(letters) - 1)], value))
    return pairs


def _types_refused(
    node: TypedNode, row: ProviderRow, kernel: Kernel, letters: list[tuple[str, KnownType]], release: str | None
) -> tuple[str, str] | None:
    unknown = False
    told = {letter for letter, value in letters if value.dtype is not None}
    for letter, value in letters:
        types = kernel.types.get(letter)
        if not types:  # a parameter that no tensor has: sequences and optional values
            continue
        if value.dtype is None:
            unknown |= letter not in told
        elif value.dtype not in types and not (row.host and value.dtype == "other"):  # the CPU's kernel takes more
            return CPU, f"{node.op} takes {' '.join(sorted(types))} there, not {value.dtype}"
    if unknown:
        return UNKNOWN, f"the types of its operands are not known: {', '.join(v.text for _, v in letters)}"
    if kernel.types_release and release and level_key(release) < level_key(kernel.types_release):
        return UNKNOWN, f"its types are known from onnxruntime {kernel.types_release} on, not in {release}"
    return None


def _other_type(node: TypedNode, kernel: Kernel, letters: list[tuple[str, KnownType]]) -> str:
    if any(value.dtype == "string" for _, value in letters):
        return "give the model numbers in the place of texts"
    nearest = _nearest(kernel, letters)
    if nearest == "f32" and any(value.dtype == "f64" for _, value in letters):
        return "--f64 f32 computes it in f32"
    return f"cast to {nearest}"


def _nearest(kernel: Kernel, letters: list[tuple[str, KnownType]]) -> str:
    for letter, value in letters:
        types = kernel.types.get(letter)
        if types is not None and value.dtype is not None and value.dtype not in types:
            floats = value.dtype.startswith(("f", "b"))
            order = ("f32", "f16") if floats else ("i64", "i32", "u32", "f32")
            return next((t for t in order if t in types), " ".join(sorted(types)))
    return "a type that it takes"


def _against_directml(node: TypedNode, row: ProviderRow, out: Looked, level: str) -> None:
    """Ask DirectML's own tables."""
    least = least_feature_level()
    if not row.directml:
        out.level = least
        return
    name = row.directml[0]
    known = operator_rows().get(name)
    if known is None or row.tensors is None:
        return
    tensors = {}
    for tensor, slot in row.tensors.items():
        value = _slot(node, slot)
        if value is not None:
            tensors[tensor] = (value.dtype, value.rank)
    found = refusal(known, tensors, level)
    if found is None:
        if refusal(known, tensors, least) is None:
            out.level = least
        else:
            out.level = max((first_level(known, tensors) or least, least), key=level_key)
        return
    if not any(f.effect == "fails" for f in out.findings):
        repair = f"feature level {found.first_level}" if found.first_level else "another type"
        out.findings.append(Finding("fails", found.operator, found.limit, found.source, repair))
    out.level = found.first_level


def _slot(node: TypedNode, slot: str) -> KnownType | None:
    values = node.operands if slot[0] == "i" else node.results
    if slot[0] not in "io" or not slot[1:].isdecimal() or int(slot[1:]) > 7:
        return KnownType(slot)
    return values[int(slot[1:])] if int(slot[1:]) < len(values) else None


def _why_alone(node: TypedNode, row: ProviderRow, kernel: Kernel) -> str:
    """Return the reason why the node joins no fused graph; empty if it joins one."""
    if not row.graph or row.host:
        return f"{node.op} has no graph support"
    for index in sorted(kernel.constant):
        if index < len(node.proto.input) and node.proto.input[index]:
            name = node.proto.input[index]
            if name not in node.scope.constant:
                return f"operand {index} ({name}) is not constant"
    if kernel.graph_inputs is not None and len(node.proto.input) != kernel.graph_inputs:
        return f"in a graph it has {kernel.graph_inputs} operands, not {len(node.proto.input)}"
    if any(value.shape is None for value in node.values):
        return "a shape is not known"
    open_sizes = names_of(node.values)
    if open_sizes:
        return OPEN_SIZES + ", ".join(told_names(open_sizes) or open_sizes)
    if any(value.empty for value in (*data_operands(node, row, kernel), *node.results)):
        return "an empty dimension"
    return ""


# --- Placement of one node: a row of the report

#: The numbers of a node of f16 that is not fused may be those of sums in f16; in a fused graph they never are.
HALF = "not fused, it may compute in f16"


class NodePlacement(Struct):
    """One node. ``where`` is provider, cpu, folded or unknown; ``why`` says it in words.

    ``directml`` are the operators it becomes, ``level`` the first feature level that suffices for them (None: no table
    says). ``partition`` is the number of its fused graph, None where it is not fused, because of ``alone``.
    ``hangs_on`` says what the placement and the numbers depend on besides the model: types and the feature level of
    the device, the release of onnxruntime, dynamic sizes.
    """

    name: str
    op: str
    where: str
    why: str
    directml: tuple[str, ...] = ()
    level: str | None = None
    alone: str = ""
    partition: int | None = None
    dispatches: Dim | None = 0
    bytes: Dim | None = 0
    findings: tuple[Finding, ...] = ()
    source: str | None = ""
    hangs_on: tuple[str, ...] = ()

    @property
    def is_fused(self) -> bool:
        return self.partition is not None

    @property
    def verdict(self) -> str:
        """One line."""
        first = next((f for f in self.findings if f.effect in ("fails", "wrong")), None)
        if first is not None:
            return f"{'fails' if first.effect == 'fails' else 'wrong numbers'}: {first.limit}"
        if self.where == PROVIDER:
            return f"not fused: {self.alone}" if self.alone else "in a fused graph" if self.is_fused else self.why
        return self.why


def hangs_on(row: NodePlacement, looked: Looked) -> tuple[str, ...]:
    """List what the placement and the numbers of a node depend on besides the model, a few words each."""
    if row.where != PROVIDER:
        return (*looked.depends_on, *(("dynamic sizes",) if row.why == OF_SHAPES else ()))
    sizes = (row.alone,) if row.alone.startswith(OPEN_SIZES) else ()
    return (*looked.depends_on, *sizes, *((HALF,) if row.alone and looked.half else ()))
