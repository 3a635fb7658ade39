"""Facts outside of the model that a node's placement or its numbers on DirectML depend on: the device, the release."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dmlc.placement.faults import data_operands, holds
from dmlc.placement.values import KnownType, TypedNode
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.directml import least_feature_level, level_key
from dmlc.targets.provider import Kernel, ProviderRow

#: Types that a DirectML device may lack (DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT). The provider asks the device for each,
#: and leaves nodes with one that it lacks to the CPU (onnxruntime, ExecutionProvider.cpp).
DEVICE_TYPES = {"f16": "FLOAT16", "f64": "FLOAT64", "i64": "INT64", "u64": "UINT64"}
#: The texts of a type that the device needs, and of a release that is needed, with what may follow them.
_NEEDS_TYPE, _NEEDS_RELEASE = "needs {} on the device", "onnxruntime {} or later"
_TYPE = re.compile(re.escape(_NEEDS_TYPE).replace(r"\{\}", r"(\w+)"))
_RELEASE = re.compile(re.escape(_NEEDS_RELEASE).replace(r"\{\}", r"([\d.]+)") + r"( \(.*\))?")
#: DirectML operators that compute nothing: they copy, place or fill.
_COPIES = frozenset(
    (
        *("CAST", "DEPTH_TO_SPACE1", "DIAGONAL_MATRIX", "DIAGONAL_MATRIX1", "ELEMENT_WISE_IDENTITY", "ELEMENT_WISE_IF"),
        *("FILL_VALUE_CONSTANT", "FOLD", "GATHER", "GATHER_ELEMENTS", "GATHER_ND1", "JOIN", "MAX_UNPOOLING"),
        *("NONZERO_COORDINATES", "ONE_HOT", "PADDING1", "REVERSE_SUBSEQUENCES", "SCATTER", "SCATTER_ND", "SLICE"),
        *("SLICE1", "SPACE_TO_DEPTH", "SPLIT", "TILE"),
    )
)


def device_types(node: TypedNode, row: ProviderRow, kernel: Kernel) -> Iterator[str]:
    """Yield the types, as DirectML names them, that the device must have for the provider to take the node, each in a
    few words. Operands that the kernel reads on the CPU do not count."""
    operands = enumerate(zip(node.proto.input, node.operands, strict=True))
    found = {value.dtype for index, (name, value) in operands if name and index not in kernel.constant}
    found.update(value.dtype for value, name in zip(node.results, node.proto.output, strict=True) if name)
    if not row.host:
        yield from [_NEEDS_TYPE.format(name) for dtype, name in DEVICE_TYPES.items() if dtype in found]


def may_compute_in_half(node: TypedNode, row: ProviderRow, kernel: Kernel) -> bool:
    """Return whether DirectML may compute the node in f16 where it runs alone.

    A node alone is compiled so where it has operands of f16 and nothing of f32 (onnxruntime, DmlOperator.cpp,
    AllowHalfPrecisionComputation); a fused graph never is (DmlGraphFusionHelper.cpp).
    """
    if not row.directml or _COPIES.issuperset(row.directml):
        return False
    read = [value.dtype for value in data_operands(node, row, kernel)]
    return "f16" in read and "f32" not in (*read, *(value.dtype for value in node.results))


def releases(
    node: TypedNode,
    row: ProviderRow,
    kernel: Kernel,
    letters: list[tuple[str, KnownType]],
    capabilities: Capabilities,
) -> Iterator[str]:
    """Yield the releases of onnxruntime that the verdict holds for.

    They have the kernel and its types, and agree with the target's release about the known faults of the node.
    """
    since = max(filter(None, (kernel.release, kernel.types_release)), key=level_key, default="")
    if since:
        yield _NEEDS_RELEASE.format(since)
    release = capabilities.target.release
    for fault in capabilities.provider.failures_of_some_releases(node.op, node.domain):
        if not holds(fault, node, row, kernel, letters):
            continue
        is_there = fault.in_release(release)
        if is_there and fault.first_release:
            yield f"{_NEEDS_RELEASE.format(fault.first_release)} ({fault.id})"
        if fault.last_release and (is_there or _is_before(fault.last_release, release)):
            yield f"onnxruntime {'up to' if is_there else 'after'} {fault.last_release} ({fault.id})"
        elif fault.first_release and not is_there:
            yield f"onnxruntime before {fault.first_release} ({fault.id})"


def _is_before(release: str, other: str | None) -> bool:
    return other is None or level_key(release) < level_key(other)


def level_dependence(level: str | None) -> tuple[str, ...]:
    """The feature level that a node asks for, where a device need not have it."""
    if level is None or level_key(level) <= level_key(least_feature_level()):
        return ()
    return (f"feature level {level} or later",)


def needed_type(dependence: str) -> str | None:
    """The type that the device must have by a text of ``device_types``; None for another text."""
    found = _TYPE.fullmatch(dependence)
    return found[1] if found else None


def needed_release(dependence: str) -> str | None:
    """The release that is the lowest by a text of ``releases``; None for another text."""
    found = _RELEASE.fullmatch(dependence)
    return found[1] if found else None
