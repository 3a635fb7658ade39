"""Rules of ONNX's operators, a module per family (sources: onnx, docs/Operators.md and docs/Changelog.md)."""
