"""Lenses: a line above each model that says where its nodes run on the target, after each save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from dmlc import api
from dmlc.diagnostics import Diagnostic, DmlcError, Source
from dmlc.diagnostics.counted import counted
from dmlc.ir.collector import collector_paused
from dmlc.placement.node import CPU
from dmlc.placement.report import Placement
from dmlc.text.stopping import StoppedError, stoppable


class Placed(Struct, frozen=True):
    """The lens of each model, and what its target warns of."""

    lenses: dict[str, str]
    diagnostics: tuple[Diagnostic, ...] = ()


def placed(
    source: Source, models: Sequence[str], target: str, include: Sequence[Path], is_stopped: Callable[[], bool]
) -> Placed:
    """Compile the models of a program and look where their nodes run.

    Raises ``StoppedError`` soon after ``is_stopped`` is true.
    """

    def progress(_: str) -> None:
        if is_stopped():
            raise StoppedError

    lenses: dict[str, str] = {}
    found: list[Diagnostic] = []
    with collector_paused(begins=True), stoppable(is_stopped):
        for model in models:
            try:
                options: dict[str, Any] = {"target": target, "model": model, "include": include}  # the editor's words
                program = api.compile(source, **options, progress=progress)
                if program.target.provider is not None:
                    report = program.placement()
                    lenses[model] = f"{report.device}: {_placed_text(report)}"
                found += program.diagnostics
            except DmlcError as error:
                found += error.diagnostics
    once = {(d.code.id, d.place, d.message): d for d in found}
    return Placed(lenses, tuple(once.values()))


def _placed_text(report: Placement) -> str:
    """Text such as ``5 dispatches, nothing on the CPU``."""
    dispatches, on_cpu = report.dispatches, report.count(CPU)
    number = f"{'unknown' if dispatches is None else dispatches} {'dispatch' if dispatches == 1 else 'dispatches'}"
    return f"{number}, {counted(on_cpu, 'node') if on_cpu else 'nothing'} on the CPU"
