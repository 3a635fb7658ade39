"""Requirements of a model: the lowest ONNX Runtime, opset and feature level, and the types of the device."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import json

from dmlc.ir.answers import Answer
from dmlc.placement.dependence import needed_release, needed_type
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
