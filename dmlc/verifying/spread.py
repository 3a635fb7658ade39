"""Spread of a model's results: how far they move when inputs, weights and results on the way are rounded otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verifying.comparison import DIFFERENT, compare_values
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.parts import as_one_array
from dmlc.verifying.rounding import Noise
from dmlc.verifying.subject import Subject, TraceStep
from dmlc.verifying.tolerance import REASSOCIATES

#: The number of samples, of which the first few are mostly enough, and how many times further than they move a rewrite
#: may move a result: its roundings are as many as the model's nodes.
_FIRST, _TIMES, _FURTHER = 2, 8, 8
#: The number of samples if something jumps, and the first ones explain half of what differs or few elements do: which
#: of many equal elements is the first takes more of them to see.
_TIMES_OF_JUMPS, _FEW = (16, 40), 4
#: The nodes of a model of which that many samples cost little, whatever the first ones explain.
_SMALL_NODES = 64

#: Larger exponents are not sure to be integers, nor odd or even.
_EXACT_EXPONENT = 64

#: Functions that jump: no rounding can be promised behind them, but for operands that are not rounded.
JUMPS = frozenset(
    {
        *("argmax", "argmin", "topk", "hardmax", "round", "floor", "ceil", "sign", "cast", "mod", "fmod", "floordiv"),
        *("greater", "less", "equal", "notequal", "greaterorequal", "lessorequal", "greaterequal", "lessequal"),
        *("nonzero", "unique", "nonmaxsuppression", "quantizelinear", "isnan", "isinf", "onehot"),
    }
)
#: Functions whose results are elements of their operands, or as exact as they are.
EXACT_OPS = frozenset(
    {
        *("identity", "reshape", "transpose", "squeeze", "unsqueeze", "flatten", "expand", "tile", "slice", "split"),
        *("gather", "gatherelements", "gathernd", "scatterelements", "scatternd", "concat", "pad", "where", "compress"),
        *("neg", "abs", "relu", "max", "min", "clip", "reducemax", "reducemin", "maxpool", "globalmaxpool"),
        *("depthtospace", "spacetodepth", "reversesequence", "constant", "constantofshape", "full", "iota", "range"),
    }
)


def jumped_on(steps: Sequence[TraceStep], feeds: Feeds) -> frozenset[str]:
    """Return the inputs and weights that functions with jumps read directly: their ties do not depend on rounding."""
    written = {name for step in steps for name in step.writes}
    given = {name for step in steps for name in step.reads if name not in written}
    exact: dict[str, frozenset[str]] = {name: frozenset([name]) for name in {*feeds, *given}}
    out: frozenset[str] = frozenset()
    for step in steps:
        reads = [name for name in step.reads if name]
        if not all(name in exact for name in reads):
            continue
        sources = frozenset().union(*(exact[name] for name in reads))
        if _jumps(step):
            out |= sources
        if step.op in JUMPS or step.op in EXACT_OPS:
            exact.update(dict.fromkeys(step.writes, sources))
    return out


def _jumps(step: TraceStep) -> bool:
    """Return whether a function jumps."""
    if step.op == "pow" and len(numbers := list(step.floats())) == 2:
        base, exponent = np.broadcast_arrays(*numbers)
        powers = exponent[base < 0]  # a number there if the exponent is an integer, and its sign if that is odd
        return bool((powers != np.round(powers)).any() or (np.abs(powers) > _EXACT_EXPONENT).any())
    return step.op in JUMPS or bool(step.inner & JUMPS)


class ResultSpread:
    """Samples of one output of a model on one input. ``steps`` are those on the way. ``fixed`` inputs and weights do
    not move. Ties stay ties if something on the way jumps."""

    def __init__(
        self,
        subject: Subject,
        feeds: Feeds,
        output: str,
        steps: Sequence[TraceStep],
        fixed: frozenset[str],
        kind: str | None,
    ) -> None:
        self._jumps, self._small = any(_jumps(step) for step in steps), subject.size <= _SMALL_NODES
        self._sample = partial(subject.samples, feeds, output, fixed)
        self._name, self._kind = output, kind
        self._tried = 0
        self._samples: list[Any] = []

    def _grow(self, times: int) -> None:
        """Take so many samples in all. One that cannot be computed is left out."""
        if times > self._tried:
            found = self._sample([Noise(seed, self._jumps) for seed in range(self._tried, times)])
            self._samples += [as_one_array(sample, self._kind) for sample in found]
            self._tried = times

    def varies_in_size(self, a: Array) -> bool:
        """Return whether a sample has another shape."""
        for times in (_TIMES, *_TIMES_OF_JUMPS):
            self._grow(times)
            if self._differ_in_size(a) or not self._jumps:
                break
        return self._differ_in_size(a)

    def _differ_in_size(self, a: Array) -> bool:
        return any(sample.shape != a.shape for sample in self._samples)

    def holds(self, a: Array, b: Any, places: Array) -> bool:
        """Return whether the elements of ``b`` at the places are within the spread of ``a``, which more samples only
        widen."""
        for times in (_FIRST, _TIMES, *_TIMES_OF_JUMPS):
            self._grow(times)
            inside = self.within(a, b)[places]
            if inside.all():
                return True
            nearly = self._small or inside.size <= max(2 * inside.sum(), _FEW)
            if times == _TIMES and not (self._jumps and nearly):
                break
        return False

    def within(self, a: Array, b: Any) -> Array:
        """The elements of ``b`` that differ from the elements of ``a`` no more than the samples of ``a`` do."""
        samples = [sample for sample in self._samples if sample.shape == a.shape]
        if self._samples and not samples:
            return np.ones(a.shape, bool)
        if not samples:
            return np.zeros(a.shape, bool)
        if a.dtype.kind != "f":
            same = np.equal(a, b) if np.shape(b) == a.shape else np.zeros(a.shape, bool)
            return np.asarray(np.logical_or.reduce([same, *(sample != a for sample in samples)]))
        with np.errstate(all="ignore"):
            apart = [np.abs(sample.astype(np.float64) - a.astype(np.float64)) for sample in samples]
            # nothing is promised if the original is a number in one sample and not in another
            changed = np.logical_or.reduce([_sort(sample) != _sort(a) for sample in samples])
            most = np.nan_to_num(np.fmax.reduce(apart), nan=0.0, posinf=np.inf)
            # an element may stay where it is by chance, while those beside it move
            numbers = most[np.isfinite(a)]
            slack = _FURTHER * np.maximum(most, np.median(numbers) if numbers.size else 0.0)
            # nor if an element moves by more than the largest: it has no digit that counts
            changed |= slack > np.abs(a[np.isfinite(a)]).max(initial=0)
            # nor how large it is if it changes its sign, and others are infinite: rounding makes what is divided by
            if any(np.isinf(x).any() for x in (a, *samples)) and np.shape(b) == a.shape:
                turns = np.logical_or.reduce([np.sign(sample) * np.sign(a) < 0 for sample in samples])
                changed |= turns & ~np.isnan(b)
        found = compare_values(self._name, a, b, frozenset({REASSOCIATES}), self._kind, slack)
        if found.status != DIFFERENT:
            return np.ones(a.shape, bool)
        outside = np.ones(a.shape, bool) if found.places is None else found.places
        return np.asarray(changed | ~outside)


def _sort(x: Array) -> Array:
    """Finite, NaN, or which infinity."""
    return np.asarray(np.where(np.isfinite(x), 0, np.where(np.isnan(x), 1, np.sign(x) + 3)))
