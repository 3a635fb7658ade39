"""Measured ratios of what dmlc emits, and of dmlc itself, beside the bars that they are held to."""
