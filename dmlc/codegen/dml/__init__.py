"""A graph as a program of the language."""

from dmlc.codegen.dml.text import emit

__all__ = ["emit"]
