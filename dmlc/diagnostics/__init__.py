"""Spans, codes, diagnostics and their rendering. The lowest layer: it imports no other package of dmlc."""

from dmlc.diagnostics.code import CODES, Code
from dmlc.diagnostics.diagnostic import Diagnostic, DmlcError, Label, OfNodes, fail, judged, naming, refuses
from dmlc.diagnostics.fix import (
    Change,
    Edit,
    Fix,
    Help,
    Proposal,
    around,
    proposal,
    removing,
    sentences,
    text_of,
    writing,
)
from dmlc.diagnostics.render import render, render_all, to_json
from dmlc.diagnostics.source import Source, Span
from dmlc.diagnostics.spelling import on_command_line, option
from dmlc.diagnostics.suggest import did_you_mean, suggestion

__all__ = [
    "CODES",
    "Change",
    "Code",
    "Diagnostic",
    "DmlcError",
    "Edit",
    "Fix",
    "Help",
    "Label",
    "OfNodes",
    "Proposal",
    "Source",
    "Span",
    "around",
    "did_you_mean",
    "fail",
    "judged",
    "naming",
    "on_command_line",
    "option",
    "proposal",
    "refuses",
    "removing",
    "render",
    "render_all",
    "sentences",
    "suggestion",
    "text_of",
    "to_json",
    "writing",
]
