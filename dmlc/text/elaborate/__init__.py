"""Syntax tree to graph: names, types, constants, calls."""

from __future__ import annotations

from dmlc.text.elaborate.program import elaborate as elaborate
