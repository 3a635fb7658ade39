"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what the package gives."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from dmlc.api.program import Program
from dmlc.api.sources import ProgramSource
from dmlc.targets import Target, TargetName
from dmlc.targets.directml import FeatureLevel

def compile(
    source: ProgramSource,
    *,
    target: TargetName | Target = "directml",
    feature_level: FeatureLevel | None = None,
    opset: int | None = None,
    probed: str | os.PathLike[str] | None = None,
    bind: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    profiles: Mapping[str, int | Sequence[int]] | None = None,
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
    exact: bool = False,
    allow: Sequence[Literal["exact", "reassociates", "range"]] = (),
    skip_rules: Collection[str] = (),
    only_rules: Collection[str] | None = None,
    tune: bool = False,
    tune_seconds: int = 60,
    tuning: str | os.PathLike[str] | None = None,
    f64: Literal["f32"] | None = None,
    accumulate: Literal["f32"] | None = None,
    fuse: Sequence[Literal["attention"]] = (),
    lower_hardmax: bool = False,
    strict: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Program:
    """Compile a ``.dml`` or ``.onnx`` file, a builder's graph or an ONNX model for a target.

    The source is not changed. ``strict`` raises the problems of ``Program.problems`` too. Raises ``DmlcError``, and
    ``TypeError`` for an option that does not exist.

    Options:
        target: directml, webgpu, cpu, onnx or numpy (default: directml)
        feature_level: DirectML's feature level to rely on
        opset: the ONNX opset to emit (default: the target's)
        probed: take what dmlc doctor --probe wrote of a device before the tables of the package
        bind: fix a dynamic size
        shapes: fix the sizes of an input, or its rank; _, in Python None, leaves a size dynamic
        ranges: promise that every element of an input is within these bounds and not NaN, for rewrites
        profiles: compile for each combination of these sizes too: files OUT.batch1_seq128.onnx, and an index
        model: which model, where the file holds several
        include: a folder in which use and load look after the program's own
        limits: read more, or less, than is usual; see dmlc explain limits
        exact: only rewrites that keep every bit
        allow: also rewrites that are equal only under a precondition on values
        skip_rules: a rewrite that must not fire
        only_rules: the only rewrite that may fire; mandatory rules always do
        tune: time the lowerings of each node on this machine's device, and take the fastest
        tune_seconds: the most seconds that timing takes (default: 60)
        tuning: take the lowerings that are fastest by the times in this file; tune writes it
        f64: compute f64 in f32; inputs and outputs keep their types
        accumulate: compute in f32 the squares and products of f16 that are summed
        fuse: also make attention one operator (directml)
        lower_hardmax: lower hardmax over one axis too
        strict: a warning of the target or the numbers is an error
        progress: called with the name of each pass before it runs
    """
