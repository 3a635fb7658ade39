"""Types, shapes and known elements of ONNX values, by one rule per operator.

A rule sees one node: its attributes and the facts about its operands. Nothing here walks a model, and the work for a
node is bounded by the number of axes and by ``MOST_ELEMENTS``, whatever a model says.
"""

from __future__ import annotations

from dmlc.inference.fact import NOTHING, Fact
from dmlc.inference.query import Query
from dmlc.inference.registry import counts_elements, has_rule, infer

__all__ = ["NOTHING", "Fact", "Query", "counts_elements", "has_rule", "infer"]
