"""How much a model's own results move when its inputs move in their last places: what no rounding can promise."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verify.compare import WITHIN, Comparison, compare_values
from dmlc.verify.inputs import Feeds
from dmlc.verify.tolerance import REASSOCIATES
from dmlc.verify.trace import RunFailed, Side

#: How often the inputs are moved, by how many units in the last place at most, and how much further than that moves
#: its results a rewrite may move them: its roundings are as many as the model's nodes, not one for each input.
_TIMES, _UNITS, _FURTHER = 6, 2, 8


class Instability:
    """The original's results on inputs that are a little off. Equal numbers stay equal, whatever their sign, and 0
    stays 0: ties in the inputs are no matter of rounding."""

    def __init__(self, side: Side, feeds: Feeds, seed: list[int]) -> None:
        self._results: list[dict[str, Any]] = []
        rng = np.random.default_rng([*seed, 11])
        for _ in range(_TIMES):
            moved = _moved(feeds, rng)
            if moved is None:
                return
            try:
                self._results.append(side.run(moved))
            except RunFailed:
                continue

    def explains(self, comparison: Comparison, a: Array, b: Any, kind: str | None) -> bool:
        """Whether the output's difference is within what the original itself does."""
        others = [result[comparison.name] for result in self._results]
        if any(other.shape != a.shape for other in others):
            return True  # the size itself hangs on the last places
        if not others or comparison.places is None:
            return False
        if a.dtype.kind != "f":
            unstable = np.logical_or.reduce([other != a for other in others])
            return bool(unstable[comparison.places].all())
        with np.errstate(all="ignore"):
            apart = [np.abs(other.astype(np.float64) - a.astype(np.float64)) for other in others]
            changed = [np.isfinite(other) != np.isfinite(a) for other in others]
        slack = np.where(np.logical_or.reduce(changed), np.inf, _FURTHER * np.fmax.reduce(apart))
        slack = np.nan_to_num(slack, nan=0.0, posinf=np.inf)
        found = compare_values(comparison.name, a, b, frozenset({REASSOCIATES}), kind, slack)
        return found.status == WITHIN


def _moved(feeds: Feeds, rng: np.random.Generator) -> Feeds | None:
    """Each number of a float input times 1 plus a few units in the last place, the same for the same magnitude."""
    floats = {n: x for n, x in feeds.items() if isinstance(x, np.ndarray) and x.dtype.kind == "f" and x.size}
    if not floats:
        return None
    magnitudes = np.unique(np.concatenate([np.abs(x).astype(np.float64).ravel() for x in floats.values()]))
    units = rng.integers(-_UNITS, _UNITS + 1, magnitudes.size)
    out = dict(feeds)
    for name, x in floats.items():
        limits = np.finfo(x.dtype)
        sizes = np.abs(x).astype(np.float64)
        steps = units[np.searchsorted(magnitudes, sizes).clip(max=magnitudes.size - 1)]
        with np.errstate(all="ignore"):
            moved = x.astype(np.longdouble) * (1 + steps * np.longdouble(limits.eps))
            inside = np.clip(moved, np.longdouble(limits.min), np.longdouble(limits.max)).astype(x.dtype)
        out[name] = np.where(np.isfinite(x), inside, x)
    return out
