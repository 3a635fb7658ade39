"""Runnable: one thing that runs. Arrays by input name go in, arrays by output name come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dmlc.diagnostics import Diagnostic


class RunFailed(Exception):
    """The model could not run on an input; the message is the runtime's. ``ended`` if its process ended with it, which
    takes a while to come back, ``late`` if that was because it took too long."""

    def __init__(self, message: str, *, ended: bool = False, late: bool = False) -> None:
        super().__init__(message)
        self.ended: bool = ended
        self.late: bool = late


class NotRunnable(Exception):
    """The model cannot be run at all; the message says why."""


class NoEvidence(Exception):
    """Nothing can be concluded about any model: the runtime is missing or broken. ``diagnostic`` names what to
    install, if that would help."""

    def __init__(self, reason: str, diagnostic: Diagnostic | None = None) -> None:
        super().__init__(reason)
        self.diagnostic = diagnostic


class Runnable(Protocol):
    """A model on ONNX Runtime, a graph, NumPy code or a Python file."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs that must be fed, in order."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the outputs, in order."""

    def run(self, inputs: Mapping[str, Any], wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """The outputs by name, or the ``wanted`` ones. Raises ``RunFailed``."""
