"""Where each node of an ONNX model runs, and what running it costs. No code is emitted here.

``report`` places a model on a target, ``statistics`` counts its nodes, dispatches and bytes. Both read the facts of
``dmlc.inference`` about a model's values.
"""

from __future__ import annotations
