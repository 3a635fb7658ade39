"""dmlc: a graph compiler and a small language that fuses reductions before DirectML execution."""

__version__ = "0.1.0"
