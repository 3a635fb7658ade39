"""How ONNX operators changed from version to version: one row for each change that is more than an addition."""
