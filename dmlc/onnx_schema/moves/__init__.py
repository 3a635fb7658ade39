"""Version conversions of ONNX operators: one row for each change that is more than an addition."""
