"""Requirements of a model, and the obstacles that keep it from being one fused graph on the provider."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import json

from dmlc.diagnostics.counted import first_of
from dmlc.ir.answers import Answer
from dmlc.placement.dependence import needed_release, needed_type
from dmlc.placement.node import CPU, OF_SHAPES, PROVIDER, UNKNOWN, NodePlacement
from dmlc.placement.report import Placement
from dmlc.targets.directml import least_feature_level, level_key
from dmlc.targets.releases import ORDINARY_OPSET, first_release

#: The name of the fact in a model's metadata.
FACT = "requires"


class RequirementFacts(Answer, frozen=True):
    """The lowest release of ONNX Runtime (None: not known), the opset, the feature level, and types of the device.

    ``feature_level`` is None for a target without a provider.
    """

    onnxruntime: str | None
    opset: int
    feature_level: str | None = None
    device_types: tuple[str, ...] = ()


class Requirements(RequirementFacts, frozen=True):
    """Requirements of a model; ``level_operators`` are the operators that need the feature level."""

    level_operators: tuple[str, ...] = ()

    def facts(self) -> RequirementFacts:
        """Return the requirements without the operators."""
        return RequirementFacts.of(self)

    def fact(self) -> str:
        """The requirements as one line of JSON."""
        return json.encode(self.facts()).decode()

    def text(self) -> str:
        """Return what exceeds the ordinary, opset 17 and the feature level that the provider demands, in words; empty
        where nothing does."""
        parts = []
        if self.opset > ORDINARY_OPSET or self.onnxruntime != first_release(self.opset):
            known = f"ONNX Runtime {self.onnxruntime}" if self.onnxruntime else "an ONNX Runtime"
            parts.append(f"{known} (opset {self.opset})" if self.onnxruntime else f"{known} for opset {self.opset}")
        if self.feature_level and level_key(self.feature_level) > level_key(least_feature_level()):
            parts.append(f"feature level {self.feature_level} ({', '.join(self.level_operators)})")
        if self.device_types:
            parts.append(f"{' and '.join(self.device_types)} on the device")
        return ", ".join(parts)


def requirements(report: Placement) -> Requirements:
    """Return what a placed model requires for the placement to hold."""
    found = {text for node in report.nodes for text in node.hangs_on}
    releases = [first_release(report.opset), *map(needed_release, found)]
    operators = dict.fromkeys([node.op for node in report.nodes if node.level == report.level])
    types = sorted(filter(None, map(needed_type, found)))
    return Requirements(_latest(releases, report.opset), report.opset, report.level, tuple(types), tuple(operators))


def requirements_of_opset(opset: int) -> Requirements:
    """Return what a model of an opset requires on a target without a provider."""
    return Requirements(first_release(opset), opset)


def _latest(releases: Iterable[str | None], opset: int) -> str | None:
    """The latest release; None where the one that reads the opset is not known."""
    if first_release(opset) is None:
        return None
    return max(filter(None, releases), key=level_key)


# --- Obstacles: the operators that keep a model from being one fused graph wholly on the provider, and why

#: Operators that hold graphs: ONNX Runtime's DirectML provider fuses nothing in a graph that has one.
_HOLDERS = ("If", "Loop", "Scan", "SequenceMap")
#: So many nodes of one operator are named, the others counted.
_MOST_NAMES = 2


def obstacles(report: Placement) -> list[str]:
    """List what keeps the model from being one fused graph wholly on the provider, a sentence for each operator and
    reason; empty where it is one.

    Operators that turn fusion off or have no kernel come first, then those that are only not fused.
    """
    if report.feature_level is None:
        return []
    named: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for node in report.nodes:
        found = _obstacle(node)
        if found is not None:
            rank, reason = found
            named[rank, node.op, reason].append(node.name)
    is_off = any(rank == 0 for rank, _, _ in named)
    out = []
    for (rank, op, reason), names in sorted(named.items(), key=lambda item: item[0][0]):
        if is_off and rank > 1:
            continue  # these have a fused graph to join only where fusion is on
        out.append(f"{op} {first_of(names, _MOST_NAMES)}: {reason}")
    if not out and report.partitions > 1:
        out.append(_unconnected(report))
    return out


def _obstacle(node: NodePlacement) -> tuple[int, str] | None:
    """The rank of the reason, and the reason; None for a node that is not an obstacle."""
    if node.op in _HOLDERS:
        return (
            0,
            f"{node.why}; a node with a graph inside turns fusion off" if node.where == CPU else "it turns fusion off",
        )
    if node.where in (CPU, UNKNOWN):
        return 2 if node.why == OF_SHAPES else 1, node.why
    if node.where == PROVIDER and node.alone:
        return 2, f"not fused: {node.alone}"
    return None


def _unconnected(report: Placement) -> str:
    """The sentence on fused graphs that no value connects: the provider merges only what is connected."""
    first: dict[int, str] = {}
    for node in report.nodes:
        if node.partition is not None:
            first.setdefault(node.partition, f"{node.op} {node.name}")
    begin = first_of([*first.values()], _MOST_NAMES + 1)
    return f"{report.partitions} fused graphs that no value connects begin at {begin}"
