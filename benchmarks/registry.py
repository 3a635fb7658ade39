"""The suites by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from benchmarks.records import Case, Settings
from benchmarks.suites import compiler_parts, compiling, numpy_code, patterns, reductions, selections, webgpu

Suite: TypeAlias = Callable[[Settings], Iterator[Case]]

SUITES: dict[str, Suite] = {
    "argmax": selections.argmax,
    "hardmax": selections.hardmax,
    "reduce": reductions.reduce,
    "softmax": reductions.softmax,
    "patterns": patterns.patterns,
    "numpy": numpy_code.numpy_code,
    "compile": compiling.compiling,
    "parse": compiler_parts.parse,
    "startup": compiler_parts.startup,
    "builder": compiler_parts.builder,
    "webgpu": webgpu.webgpu,
}
#: Suites that one thread runs, whatever is asked for.
SERIAL = ("compile", "parse", "startup", "builder", "webgpu")
#: Suites that need a device, and run where they are named.
ON_DEVICE = ("webgpu",)
