"""The rules of ``fuse-dot``."""

from dmlc.passes.dot_rules.outer import MatmulFromSum

__all__ = ["MatmulFromSum"]
