"""Running what was compiled: ONNX Runtime, the generated NumPy code, the reference."""
