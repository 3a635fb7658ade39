"""Subject: a model that is verified, with what is known about its inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dmlc.ir import Array
from dmlc.runtime.runnable import RunFailed
from dmlc.verifying.inputs import Default, Feeds, Interface, NoInputs
from dmlc.verifying.rounding import Noise


@dataclass(frozen=True, slots=True)
class TraceStep:
    """One node that ran: ``op`` in lower case without underscores, so that ``ReduceMax`` of ONNX and ``reduce_max`` of
    the language are one; ``inner`` are the operators of graphs that it runs. Operands that are not numbers are None.
    ``reads`` and ``writes`` name the values; a fed one has the name of its input. ``sees_nan`` is true if a NaN reaches
    a selection in such a graph."""

    op: str
    operands: tuple[Array | None, ...]
    results: tuple[Array | None, ...]
    inner: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    sees_nan: bool = False

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
    """Other elements for a value on the way: the elements of ``array`` at ``places``."""

    array: Array
    places: Array

    def into(self, array: Array) -> Array:
        """The value as it is computed, with these elements. Raises ``RunFailed`` if it has another shape then."""
        if array.shape != self.places.shape:
            raise RunFailed("a shape depends on the elements that are patched")
        return np.where(self.places, self.array, array)


def _floats(arrays: Iterable[Array | None]) -> Iterator[Array]:
    return (x for x in arrays if x is not None and x.dtype.kind == "f")


def op_key(name: str) -> str:
    """The form of an operator's name that ``TraceStep.op`` has."""
    return name.replace("_", "").lower()


class Subject:
    """One of the two that are compared; this class knows nothing about the inside.

    ``kinds`` are the dtypes of outputs that are handed over in a wider one, ``composites`` the types of outputs that
    are not tensors, as ONNX Runtime writes them. ``size`` is the number of nodes. ``is_program`` says that it is in the
    language: results over nothing mean something, and a NaN may win a selection or lose it. ``traced_by`` shows the
    steps of the same function; an original needs it.
    """

    traced_by: Subject | None = None

    def __init__(
        self, inputs: Sequence[str], outputs: Sequence[str], size: int = 0, *, is_program: bool = True
    ) -> None:
        self.inputs: tuple[str, ...] = tuple(inputs)
        self.outputs: tuple[str, ...] = tuple(outputs)
        self.kinds: dict[str, str] = {}
        self.composites: dict[str, str] = {}
        self.size: int = size
        self.is_program: bool = is_program

    def interfaces(self) -> list[Interface]:
        """Return the inputs to feed; several if the rank of an input is not known. Raises ``NoInputs``."""
        raise NoInputs("it does not declare its inputs: give them")

    def defaults(self) -> list[Default]:
        """The defaults of inputs that other values must be found for, which are not mere data."""
        return []

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """The outputs by name, or the ``wanted`` values that are tensors.

        Raises ``RunFailed``, ``NotRunnable``, ``NoEvidence``.
        """
        raise NotImplementedError

    def runs(self, many: Sequence[Feeds]) -> list[Callable[[], dict[str, Any]]]:
        """For each of the inputs, ``run`` on it, which may have happened already. Raises ``NoEvidence``."""
        return [partial(self.run, feeds) for feeds in many]

    def run_optimized(self, feeds: Feeds, without: Sequence[str] = ()) -> dict[str, Any] | None:
        """The outputs with ONNX Runtime's default optimizations, without some names; None for a model that does
        not run there, or whose numbers they change on purpose. Raises as ``run`` does."""
        return None

    def samples(self, feeds: Feeds, output: str, fixed: frozenset[str], noises: Iterable[Noise]) -> Iterator[Any]:
        """An output, for each noise with inputs, weights and results on the way that are rounded otherwise.

        Inputs and weights that are ``fixed`` stay as they are.
        """
        return iter(())

    def run_narrow(self, feeds: Feeds, output: str) -> Any:
        """An output if each f16 number on the way is rounded to f16; None if it is so anyhow, or cannot be asked."""
        return None

    def run_patched(self, feeds: Feeds, output: str, patches: Mapping[str, Patch]) -> Any:
        """An output with ``patches`` of values on the way, by the names of ``trace``; None if the model does not run
        with them."""
        return None if self.traced_by is None else self.traced_by.run_patched(feeds, output, patches)

    def trace(self, feeds: Feeds, output: str, patches: Mapping[str, Patch] | None = None) -> list[TraceStep] | None:
        """The steps that an output depends on, in order, with ``patches`` as in ``run_patched``; None if they cannot be
        seen. Raises ``RunFailed``."""
        return None if self.traced_by is None else self.traced_by.trace(feeds, output, patches)


def unlike_names(what: str, a: Sequence[str], b: Sequence[str]) -> str:
    """The sentence on inputs or outputs that have other names in the result."""
    names = [", ".join(each) or "none" for each in (a, b)]
    return f"the {what} are {names[0]} in the original and {names[1]} in the result"


def float_feeds(feeds: Feeds) -> list[Array]:
    """The fed arrays of a float dtype."""
    arrays = [part for value in feeds.values() for part in (value if isinstance(value, list) else [value])]
    return [x for x in arrays if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
