"""Intermediate values of a model on the way to an output, used to find the cause of a difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dmlc.diagnostics import Diagnostic
from dmlc.ir import Array
from dmlc.verify.inputs import Default, Feeds, Interface


class RunFailed(Exception):
    """The model could not run on an input; the message is the runtime's. ``ended`` where its process did too, which
    takes a while to come back, ``late`` where it was ended because it took too long."""

    def __init__(self, message: str, *, ended: bool = False, late: bool = False) -> None:
        super().__init__(message)
        self.ended, self.late = ended, late


class NotVerifiable(Exception):
    """The model cannot be run at all; the message says why."""


class NoEvidence(Exception):
    """Nothing can be concluded about any model: what runs them is missing or broken. ``diagnostic`` names what to
    install, where that would help."""

    def __init__(self, reason: str, diagnostic: Diagnostic | None = None) -> None:
        super().__init__(reason)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One node that ran: ``op`` in lower case without underscores, so that ``ReduceMax`` of ONNX and ``reduce_max`` of
    the language are one; ``inner`` are the operators of graphs that it runs. Operands that are not numbers are None.
    ``reads`` and ``writes`` name the values; a fed one has the name of its input."""

    op: str
    operands: tuple[Array | None, ...]
    results: tuple[Array | None, ...]
    inner: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def floats(self) -> Iterator[Array]:
        """The operands of a float dtype."""
        return _floats(self.operands)

    def made(self) -> Iterator[Array]:
        """The results of a float dtype."""
        return _floats(self.results)

    def integers(self) -> list[Array]:
        """The operands of an integer dtype."""
        return [x for x in self.operands if x is not None and x.dtype.kind in "iu"]


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """Other elements for a value on the way: those of ``array`` at ``places``."""

    array: Array
    places: Array

    def into(self, array: Array) -> Array:
        """The value as it is computed, with these elements. Raises ``RunFailed`` where it has another shape then."""
        if array.shape != self.places.shape:
            raise RunFailed("a shape depends on the elements that are patched")
        return np.where(self.places, self.array, array)


def _floats(arrays: Iterable[Array | None]) -> Iterator[Array]:
    return (x for x in arrays if x is not None and x.dtype.kind == "f")


def op_key(name: str) -> str:
    """The form of an operator's name that ``TraceStep.op`` has."""
    return name.replace("_", "").lower()


class Side(Protocol):
    """One of the two that are compared."""

    #: The names that are fed, those with a default left out, and the names that come out, both in order.
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    #: The dtypes of outputs that are handed over in a wider one.
    kinds: dict[str, str]
    #: The types of outputs that are not tensors, as ONNX Runtime writes them, where they are known.
    composites: dict[str, str]
    #: Number of its nodes.
    size: int
    #: True if results over nothing mean something.
    defines_empty: bool

    def interfaces(self) -> list[Interface]:
        """Return the inputs to feed; several if the rank of an input is not known. Raises ``NoInputs``."""

    def defaults(self) -> list[Default]:
        """The defaults of inputs that other values must be found for, which are not mere data."""

    def run(self, feeds: Feeds) -> dict[str, Any]:
        """The outputs by name. Raises ``RunFailed``, ``NotVerifiable``."""

    def run_optimized(self, feeds: Feeds) -> dict[str, Any] | None:
        """The outputs as ONNX Runtime's default optimizations have them; None where they are not asked for, or change
        numbers on purpose. Raises as ``run`` does."""

    def weights(self) -> dict[str, Array]:
        """Its float constants of more than one element, where they can be replaced."""

    def run_with(self, feeds: Feeds, weights: Mapping[str, Array]) -> dict[str, Any]:
        """The outputs with other weights. Raises as ``run`` does."""

    def run_rounded(self, feeds: Feeds, output: str, rng: np.random.Generator) -> dict[str, Any] | None:
        """One output as it comes out where results on the way are rounded otherwise; None where that cannot be seen."""

    def run_narrow(self, feeds: Feeds, output: str) -> Any:
        """One output as it comes out where each f16 number on the way is rounded to f16; None where that cannot be
        asked for, or is so anyhow."""

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        """One output as it comes out with ``patches`` of values on the way, by the names of ``trace``; None where the
        side does not run with them."""

    def trace(self, feeds: Feeds, output: str) -> list[TraceStep] | None:
        """The steps that the output depends on, in order; None where they cannot be seen. Raises ``RunFailed``."""


def float_feeds(feeds: Feeds) -> list[Array]:
    """The fed arrays of a float dtype."""
    arrays = [part for value in feeds.values() for part in (value if isinstance(value, list) else [value])]
    return [x for x in arrays if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
