"""The judgement of what differs: within the spread of the original, not comparable, or different."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.verifying.comparison import DIFFERENT, WITHIN, Comparison, compare_values
from dmlc.verifying.dependence import dependent
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.parts import are_alike, as_one_array, is_composite
from dmlc.verifying.spread import ResultSpread, jumped_on
from dmlc.verifying.subject import Subject, TraceStep, float_feeds
from dmlc.verifying.tolerance import EXACT, RANGE, REASSOCIATES, Tolerance
from dmlc.verifying.undefined import (
    OUTSIDE,
    OVER_NOTHING,
    Definitions,
    UndefinedElements,
    departures,
    makes_no_turn,
    selects_nan,
    undefined_elements,
)
from dmlc.verifying.verdict import BEYOND, OVERFLOWED, RANDOM, UNSPECIFIED

_MOVES = "the original moves as far when its numbers are rounded otherwise"
_NARROW = "ONNX Runtime keeps f16 in f32 between nodes: the results are the same where each f16 number is rounded"
_NOT_FINITE = "the original is infinite or not a number there"


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a judgement: allowed classes, dtypes that outputs are handed over in a wider one of, the tolerance
    that was asked for, and inputs that are shapes or counts."""

    allowed: frozenset[str]
    kinds: Mapping[str, str]
    tolerance: Tolerance | None
    counts: frozenset[str]


class Judge:
    """The original on one input, and what is asked of it if an output differs. ``results`` are its outputs.

    ``plain`` inputs have no special values, so that a precondition on values holds. ``result`` is asked for its inner
    values too.
    """

    def __init__(
        self,
        original: Subject,
        result: Subject | None,
        feeds: Feeds,
        results: dict[str, Any],
        terms: Terms,
        *,
        plain: bool = False,
    ) -> None:
        self._original, self._result, self._feeds, self._results = original, result, feeds, results
        self._terms, self._plain = terms, plain
        self._again: dict[str, Any] | None = None
        self._steps: dict[tuple[str, bool], list[TraceStep] | None] = {}
        self._spreads: dict[str, ResultSpread] = {}

    def under(self, terms: Terms, *, alone: bool) -> Judge:
        """The same for other results on this input under other terms, for the original's own if it is ``alone``.

        What is known of the original is kept; the input does not count as plain.
        """
        found = Judge(self._original, None if alone else self._result, self._feeds, self._results, terms)
        found._again = self._again
        found._steps = {key: steps for key, steps in self._steps.items() if not (alone and key[1])}
        found._spreads = self._spreads if terms == self._terms else {}
        return found

    def judge(self, comparison: Comparison, b: Any) -> tuple[str, str]:
        """The status of an output that differs, and the reason if that is not a failure."""
        name, a = comparison.name, self._results.get(comparison.name)
        if self._is_random(name, a):
            return RANDOM, "the original gives other numbers each time it runs"
        kind = self._terms.kinds.get(name)
        if is_composite(a) and are_alike(a, b):
            a, b = as_one_array(a, kind), as_one_array(b, kind)
            found = compare_values(name, a, b, self._terms.allowed, kind, tolerance=self._terms.tolerance)
            comparison = found if found.places is not None else comparison
        empty = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.size == b.size == 0
        if empty and any(map(makes_no_turn, self._traced(name) or ())):
            return UNSPECIFIED, "ONNX does not say which shape a loop gives that makes no turn"
        status, reason, places = self._comparable(comparison, a)
        if status and (places is None or not places.any()):
            return status, reason
        if places is not None and self._is_same_narrow(name, b):
            return status or WITHIN, reason or _NARROW
        if places is not None and self._is_within_spread(name, a, b, places):
            return status or WITHIN, reason or _MOVES
        if places is None and self._varies_in_size(name, a):
            return WITHIN, _MOVES
        if RANGE in self._terms.allowed and not self._has_precondition(name):
            return BEYOND, "the precondition of a rewrite of class range does not hold"
        return DIFFERENT, ""

    def breaks(self) -> str:
        """The reason why a result may fail on the input; empty if it may not: an integer on the way, which may be an
        index or a size, a reduction over nothing, or an index outside is not defined."""
        for name in self._original.outputs:
            for found in self._undefined(name):
                if found.array.dtype.kind in "iu" or found.reason in (OVER_NOTHING, OUTSIDE):
                    return found.reason
        return ""

    # --- what is comparable

    def _comparable(self, comparison: Comparison, a: Any) -> tuple[str, str, Any]:
        """Status and reason if some elements are not comparable, and the places of the others that differ.

        The places are None if the outputs have no common elements.
        """
        name, places = comparison.name, comparison.places
        status, reason = "", ""
        found = self._undefined(name)
        if found:
            # the largest number in the place of an infinity overflows everywhere behind it
            find = partial(undefined_elements, defined=replace(self._definitions(name), ranges=False))
            reached = dependent(found, self._original, self._feeds, name, places, find)
            if np.any(reached):
                status, reason = found[0].kind, self._said(found, name)
            if places is None and reached is not True:  # another shape, and no undefined element decides on it
                status, reason = "", ""
            if places is None or np.shape(reached) != np.shape(places):
                return status, reason, np.zeros(np.shape(places), bool) if status and places is not None else places
            if not (places & reached).any():
                status, reason = "", ""
            places = places & ~np.asarray(reached)
        if places is not None and REASSOCIATES in self._terms.allowed and np.asarray(a).dtype.kind == "f":
            wild = places & self._wild(name, a)
            if wild.any() and not status:
                status, reason = OVERFLOWED, _NOT_FINITE
            places = places & ~wild
        return status, reason, places

    def _wild(self, name: str, a: Array) -> Array:
        """The elements of an output that are infinite or NaN because numbers are too large, or because infinities were
        fed. A NaN of an input or a weight, and one of a function that is not defined, must be there in the result."""
        steps = self._traced(name) or []
        given = [*float_feeds(self._feeds), *_weights(steps)]
        if any(np.isnan(x).any() for x in given):
            return np.zeros(a.shape, bool)
        found = [departures(step, x) for step in steps for x in step.made()]
        if any(one.pole.any() for one in found):
            return np.zeros(a.shape, bool)
        return ~np.isfinite(a) & ~(np.isnan(a) & any(one.undefined.any() for one in found))

    def _said(self, found: list[UndefinedElements], name: str) -> str:
        """The reasons of the elements that the output depends on."""
        kinds = list(dict.fromkeys(one.reason for one in found))
        if len(kinds) == 1:
            return kinds[0]
        for reason in kinds:
            alone = [one for one in found if one.reason == reason]
            if np.any(dependent(alone, self._original, self._feeds, name)):
                return reason
        return kinds[0]

    def _undefined(self, name: str) -> list[UndefinedElements]:
        steps = self._traced(name)
        return [] if steps is None else undefined_elements(steps, self._definitions(name))

    def _definitions(self, name: str) -> Definitions:
        others = self._traced(name, of_result=True)
        return Definitions(
            ranges=REASSOCIATES in self._terms.allowed,
            functions=np.asarray(self._results.get(name)).dtype.kind in "fO",
            empty=self._original.is_program,
            selections=not self._original.is_program and others is not None and not any(map(selects_nan, others)),
        )

    def _traced(self, name: str, *, of_result: bool = False) -> list[TraceStep] | None:
        subject, key = self._result if of_result else self._original, (name, of_result)
        if key not in self._steps:
            try:
                self._steps[key] = None if subject is None else subject.trace(self._feeds, name)
            except (RunFailed, NotRunnable, KeyError):
                self._steps[key] = None
        return self._steps[key]

    # --- the original's own spread

    def _is_same_narrow(self, name: str, b: Any) -> bool:
        """Return whether the results are the same if each f16 number on the way is rounded to f16."""
        a = self._original.run_narrow(self._feeds, name)
        if a is None:
            return False
        terms, narrow = self._terms, None if self._result is None else self._result.run_narrow(self._feeds, name)
        found = [
            compare_values(name, a, x, terms.allowed, terms.kinds.get(name), tolerance=terms.tolerance)
            for x in (b, narrow)
            if x is not None
        ]
        return any(each.status != DIFFERENT for each in found)

    def _is_within_spread(self, name: str, a: Any, b: Any, places: Any) -> bool:
        """Return whether the original's own results move as far at all of the places."""
        if not isinstance(a, np.ndarray) or a.dtype.kind not in "fiub":
            return False
        spread = self._spread(name)
        if spread is None:
            return False
        narrow = None if self._result is None else self._result.run_narrow(self._feeds, name)
        return any(spread.holds(a, x, places) for x in (b, narrow) if x is not None)

    def _varies_in_size(self, name: str, a: Any) -> bool:
        """Return whether the size itself depends on the last places."""
        spread = self._spread(name) if isinstance(a, np.ndarray) else None
        return spread is not None and spread.varies_in_size(a)

    def _spread(self, name: str) -> ResultSpread | None:
        if REASSOCIATES not in self._terms.allowed or self._terms.tolerance is not None or name not in self._results:
            return None
        if name not in self._spreads:
            steps, kind = self._traced(name) or [], self._terms.kinds.get(name)
            fixed = jumped_on(steps, self._feeds) | self._terms.counts
            self._spreads[name] = ResultSpread(self._original, self._feeds, name, steps, fixed, kind)
        return self._spreads[name]

    # --- the rest

    def _is_random(self, name: str, a: Any) -> bool:
        """Return whether the original gives another result when it is run again.

        It runs on other numbers before: a kernel that reads memory it did not write finds what is left there.
        """
        if self._again is None:
            with suppress(RunFailed):
                self._original.run({key: _other_numbers(x) for key, x in self._feeds.items()})
            try:
                self._again = self._original.run(self._feeds)
            except RunFailed:
                self._again = {}
        again = self._again.get(name)
        return name in self._again and compare_values(name, a, again, frozenset({EXACT})).status == DIFFERENT

    def _has_precondition(self, name: str) -> bool:
        """Return whether a precondition on values should hold: plain inputs, and no infinity on the way."""
        steps = self._traced(name) or ()
        return self._plain and all(np.isfinite(x).all() for step in steps for x in step.made())


def _other_numbers(x: Any) -> Any:
    """Other floats in the same shape; all else as it is, for integers may be indices."""
    with np.errstate(all="ignore"):
        return -3 * x + 1 if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


def _weights(steps: Sequence[TraceStep]) -> Iterator[Array]:
    """The floats that are not computed from others."""
    made = {name for step in steps for name in step.writes}
    for step in steps:
        if not step.operands:
            yield from step.made()
        for name, x in zip(step.reads, step.operands, strict=False):
            if name not in made and x is not None and x.dtype.kind == "f":
                yield x
