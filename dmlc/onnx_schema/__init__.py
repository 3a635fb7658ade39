"""ONNX operators that are carried through: their schemas, their typing, their values."""
