"""Types, shapes and known elements of ONNX values, by one rule per operator.

A rule sees one node: its attributes and the facts about its operands. Nothing here walks a model, and the work for a
node is bounded by the number of axes and by ``MOST_ELEMENTS``, whatever a model says.
"""

from __future__ import annotations

from dmlc.inference.fact import MOST_ELEMENTS, NOTHING, OPEN, Fact, Open
from dmlc.inference.query import Fault, Query
from dmlc.inference.registry import has_rule, infer

__all__ = ["MOST_ELEMENTS", "NOTHING", "OPEN", "Fact", "Fault", "Open", "Query", "has_rule", "infer"]
