"""A side of a comparison whose inner values cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.verify.inputs import Default, Feeds
from dmlc.verify.trace import Patch, Side, TraceStep


class ClosedSide:
    """The base of such sides: weights cannot be replaced, and steps are those of another side, ``traced_by``.

    As an original it needs ``traced_by``, a side that shows the steps of the same function.
    """

    traced_by: Side | None = None

    def __init__(
        self, input_names: Sequence[str], output_names: Sequence[str], size: int, *, defines_empty: bool = True
    ) -> None:
        self.input_names, self.output_names = tuple(input_names), tuple(output_names)
        self.kinds: dict[str, str] = {}
        self.composites: dict[str, str] = {}
        self.size, self.defines_empty = size, defines_empty

    def run(self, feeds: Feeds) -> dict[str, Any]:
        """Return the outputs by name. Raises ``RunFailed``."""
        raise NotImplementedError

    def run_optimized(self, feeds: Feeds) -> dict[str, Any] | None:
        return None

    def defaults(self) -> list[Default]:
        return []

    def weights(self) -> dict[str, Array]:
        return {}

    def run_with(self, feeds: Feeds, weights: Mapping[str, Array]) -> dict[str, Any]:
        return self.run(feeds)

    def run_rounded(self, feeds: Feeds, output: str, rng: np.random.Generator) -> dict[str, Any] | None:
        return None

    def run_narrow(self, feeds: Feeds, output: str) -> Any:
        return None

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        return None if self.traced_by is None else self.traced_by.run_patched(feeds, output, patches)

    def trace(self, feeds: Feeds, output: str) -> list[TraceStep] | None:
        return None if self.traced_by is None else self.traced_by.trace(feeds, output)
