"""Options of the passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import integer_of, listed
from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import Graph
from dmlc.ir.fixed_shapes import FixedShape
from dmlc.ir.history import CLASSES
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext, PassManager
from dmlc.passes.pipeline import default_pipeline, fusions
from dmlc.targets import Target

#: The fusions that are made only where they are asked for.
ATTENTION = "attention"
FUSIONS = (ATTENTION,)


class Options(Struct, frozen=True):
    """Target and settings of a compilation.

    ``narrow_f64`` computes f64 in f32, ``accumulate_f32`` written-out squares and variances of f16. ``fuse_attention``
    makes attention one operator where the provider has it. ``binding`` fixed dims of the source; ``profile`` are those
    of them that a profile gives. ``shapes`` fixed its inputs, and ``ranges`` promise the bounds of the fed values. With
    ``decompose`` these operators are written in primitive ones, and no other pass runs.
    """

    target: Target
    opset: int
    allowed: frozenset[str]
    lower_hardmax: bool
    skip_rules: frozenset[str] = frozenset()
    only_rules: frozenset[str] | None = None
    progress: Callable[[str], None] | None = None
    narrow_f64: bool = False
    accumulate_f32: bool = False
    fuse_attention: bool = False
    limits: Limits = DEFAULTS
    binding: Mapping[str, int] = field(default_factory=dict)
    shapes: Mapping[str, FixedShape] = field(default_factory=dict)
    ranges: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    profile: Mapping[str, int] = field(default_factory=dict)
    decompose: frozenset[str] = frozenset()

    def asked(self) -> dict[str, Any]:
        """The options that rewrites depend on, beside the target and the opset, as keywords of ``compile``: plain data,
        which a ledger keeps."""
        return {
            "bind": dict(self.binding),
            "shapes": {name: list(shape) for name, shape in self.shapes.items()},
            "ranges": {name: [_finite(end) for end in ends] for name, ends in self.ranges.items()},
            "exact": REASSOCIATES not in self.allowed,
            "allow": [RANGE] if RANGE in self.allowed else [],
            "lower_hardmax": self.lower_hardmax,
            "feature_level": self.target.feature_level,
            "skip_rules": sorted(self.skip_rules),
            "only_rules": None if self.only_rules is None else sorted(self.only_rules),
            "f64": "f32" if self.narrow_f64 else None,
            "accumulate": "f32" if self.accumulate_f32 else None,
            "fuse": [ATTENTION] if self.fuse_attention else [],
            **({"decompose": sorted(self.decompose)} if self.decompose else {}),
        }

    def context(self, target: Target) -> PassContext:
        """The context in which the passes for a target run."""
        return PassContext(
            target,
            self.opset,
            self.allowed,
            self.skip_rules,
            self.only_rules,
            limits=self.limits,
            lower_hardmax=self.lower_hardmax,
            fuse_attention=self.fuse_attention,
            decompose=self.decompose,
        )

    def run(self, graph: Graph, target: Target) -> PassContext:
        """Run all passes for a target and return what they recorded. Raises ``DmlcError``."""
        context = self.context(target)
        context.progress = self.progress
        same = [condition.left - condition.right for condition in graph.conditions if condition.relation == "=="]
        graph.dims.zeros |= {*same, *(-difference for difference in same)}  # a rewrite may rely on what run time checks
        if graph.joined is not None and (self.binding or self.shapes):  # nodes were read before sizes were fixed
            graph.retyped = {node: None for node in graph if node.origin is not None}
        self.pipeline(target).run(graph, context)
        return context

    def pipeline(self, target: Target) -> PassManager:
        """All passes for a target; none at an opset below its own, for which no pass is made. Where operators are to be
        decomposed, all else stays as it is."""
        if self.decompose:
            from dmlc.passes.decompose import Decompose

            return PassManager((Decompose(),))
        if self.opset < target.min_opset:
            return PassManager(())
        return default_pipeline(
            target,
            lower_hardmax=self.lower_hardmax,
            narrow_f64=self.narrow_f64,
            accumulate_f32=self.accumulate_f32,
        )

    def fusions(self) -> PassManager:
        """The passes whose result is still a program of the language."""
        return PassManager(fusions(narrow_f64=self.narrow_f64, accumulate_f32=self.accumulate_f32))

    def narrowed(self, graph: Graph) -> Graph:
        """A copy of the graph that computes in f32 what is f64."""
        out = graph.clone()
        from dmlc.passes.narrow_f64 import NarrowF64

        NarrowF64().run(out, self.context(self.target))
        return out


def _finite(end: Any) -> Any:
    """A bound as plain data; None for an infinite one."""
    return None if isinstance(end, float) and math.isinf(end) else end


def chosen_opset(target: Target, opset: int | None) -> int:
    """The opset to emit. Raises ``DmlcError`` E0552 for one that the target does not take."""
    if opset is None:
        return target.opset
    found = integer_of(opset)
    if found is None or not target.min_opset <= found <= target.max_opset:
        text = f"target {target.name} takes opsets {target.min_opset} to {target.max_opset}, not {opset!r}"
        raise fail(codes.OPSET_OUT_OF_RANGE, text)
    return found


def chosen_classes(exact: bool, allow: Iterable[str]) -> frozenset[str]:
    """The classes of rewrites that may be applied. Raises ``DmlcError`` E0556 (exit code 2)."""
    allow = listed("allow", allow)
    for name in allow:
        if name not in CLASSES:
            help = did_you_mean(name, CLASSES) or f"classes are {', '.join(CLASSES)}"
            raise fail(codes.UNKNOWN_CHOICE, f"there is no class of rewrites {name}", help=help, exit_code=2)
    if exact and set(allow) - {EXACT}:
        raise fail(codes.UNKNOWN_CHOICE, f"exact and allow={', '.join(allow)} contradict each other", exit_code=2)
    classes = {EXACT} if exact else {EXACT, REASSOCIATES, *allow}
    return frozenset(classes | ({REASSOCIATES} if RANGE in classes else set()))


def chosen_numbers(f64: str | None, accumulate: str | None, allowed: frozenset[str]) -> tuple[bool, bool]:
    """Return whether f64 is computed in f32, and whether f16 is accumulated in f32. Raises E0556 (exit code 2)."""
    for name, word in (("f64", f64), ("accumulate", accumulate)):
        if word is not None and (not isinstance(word, str) or word != "f32"):
            raise fail(codes.UNKNOWN_CHOICE, f"{name} may be f32, not {word}", exit_code=2)
    if accumulate is not None and REASSOCIATES not in allowed:
        message = "exact and accumulate=f32 contradict each other: results are rounded at other places"
        raise fail(codes.UNKNOWN_CHOICE, message, exit_code=2)
    return f64 is not None, accumulate is not None


def chosen_fusions(fuse: Iterable[str], target: Target) -> bool:
    """Return whether attention is fused. Raises ``DmlcError`` E0556 (exit code 2) for another name, and for a target
    that has no operator for it."""
    fuse = listed("fuse", fuse)
    for name in fuse:
        if name not in FUSIONS:
            help = did_you_mean(name, FUSIONS) or f"fusions are {', '.join(FUSIONS)}"
            raise fail(codes.UNKNOWN_CHOICE, f"there is no fusion {name}", help=help, exit_code=2)
    if fuse and (target.provider is None or not target.own_schemas):
        message = f"target {target.name} has no operator for attention: fuse={ATTENTION} is for DirectML"
        raise fail(codes.UNKNOWN_CHOICE, message, exit_code=2)
    return bool(fuse)
