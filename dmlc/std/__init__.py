"""The standard library: ``dmlc.std.cross_entropy(logits, labels)``, a function for each block.

The blocks are the ``.dml`` files of this folder, which programs take with ``use cross_entropy from std``.
"""

from __future__ import annotations

from dmlc.api.functions import Function, std_block
from dmlc.text.standard_library import std_blocks


def __getattr__(name: str) -> Function:
    return std_block(name)


def __dir__() -> list[str]:
    return list(std_blocks())
