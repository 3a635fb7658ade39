"""Placement of each node of an ONNX model, and the cost of running it. No code is emitted here.

``report`` places a model on a target, ``statistics`` counts its nodes, dispatches and bytes. Both read the facts of
``dmlc.inference`` about a model's values.
"""

from __future__ import annotations
