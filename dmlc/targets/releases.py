"""Releases of ONNX Runtime by the opsets that they read."""

from __future__ import annotations

#: The first release that reads an opset. Each release reads all opsets up to that of the ONNX release that it is built
#: with. Sources: onnx, docs/Versioning.md (ONNX 1.12 to 1.18 brought opsets 17 to 23); onnxruntime, release notes of
#: 1.12 to 1.18, pull requests 21897 (1.21: ONNX 1.17) and 24449 (after 1.22: ONNX 1.18).
_FIRST = {17: "1.12", 18: "1.14", 19: "1.15", 20: "1.17", 21: "1.18", 22: "1.21", 23: "1.23"}
#: The newest opset that is read by every release that dmlc is used with.
ORDINARY_OPSET = 17


def first_release(opset: int) -> str | None:
    """Return the first release of ONNX Runtime that reads an opset: that of opset 17 for older ones, None for an opset
    of which nothing is known."""
    return _FIRST.get(max(opset, ORDINARY_OPSET))
