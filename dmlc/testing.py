"""Checks for test suites of users: two models compute the same, on data that breaks rewrites.

``assert_equivalent`` needs onnxruntime; ``breaking_inputs`` needs hypothesis (``pip install hypothesis``), which is
loaded when it is first asked for.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.api.sources import ProgramSource
from dmlc.debugging.verification import locate, verify
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import NO_RANDOM_SIZES
from dmlc.diagnostics.parameters import parameters_of
from dmlc.verifying.graph_subject import graph_interface
from dmlc.verifying.inputs import SIZES, NoInputs, filled
from dmlc.verifying.patterns import PATTERNS

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from dmlc.ir import Array

__all__ = ["assert_equivalent", "breaking_inputs"]


@parameters_of(verify)
def assert_equivalent(*sources: Any, **options: Any) -> None:
    """Check that A and B compute the same; without B, that A and its compiled form for ``directml`` do.

    The arguments are as for ``dmlc.verify``. Raises ``AssertionError`` where they differ, or where nothing could be
    compared. Its text has the verdict, the worst element, and the first value that differs with its node. Raises
    ``DmlcError`` for a source that cannot be read.
    """
    found = locate(*sources, **options)
    if found.ok:
        return
    raise AssertionError(f"{found.to_text()}{found.last_line()}")


def breaking_inputs(source: ProgramSource | api.Program, *, specials: bool = True) -> SearchStrategy[dict[str, Array]]:
    """Return a hypothesis strategy of inputs: arrays by the names of the inputs of a program or a model.

    The arrays are of the kinds that break wrong rewrites: ties, extremes, denormals, large means, NaN and infinities,
    masks, sizes of 1 and at the bounds of dims. They keep promised ranges, and indices stay in their axis. Without
    ``specials`` all elements are ordinary numbers. A failing example shrinks to few sizes and a plain kind.
    Raises ``DmlcError`` E0427 if no sizes or no data are found, and ``ModuleNotFoundError`` without hypothesis.
    """
    check_arguments(specials=specials)
    strategies = _strategies()
    graph = (source if isinstance(source, api.Program) else api.compile(source, target="onnx")).source_graph
    try:
        interface = graph_interface(graph)
        bindings = list(islice(interface.bindings(0), SIZES))
        bindings += interface.empty_bindings(bindings[0])[:1] if specials else []
    except NoInputs as error:
        raise fail(NO_RANDOM_SIZES, str(error), help="declare bounds that the sizes keep, or give arrays") from None
    kinds = [pattern for pattern in PATTERNS if specials or pattern.is_plain]
    count = len(interface.inputs)
    parts = strategies.tuples(
        strategies.sampled_from(sorted(bindings, key=lambda binding: sum(binding.values()))),
        strategies.lists(strategies.sampled_from(kinds), min_size=count, max_size=count),
        strategies.integers(0, 2**16 - 1),
    )
    made: SearchStrategy[dict[str, Array]] = parts.map(lambda one: filled(interface, one[0], one[1], (one[2], 0)))
    return made


def _strategies() -> Any:
    """The module ``hypothesis.strategies``."""
    try:
        from hypothesis import strategies
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] != "hypothesis":
            raise
        message = "dmlc.testing.breaking_inputs makes hypothesis strategies: pip install hypothesis"
        raise ModuleNotFoundError(message, name="hypothesis") from None
    return strategies
