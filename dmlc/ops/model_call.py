"""Calls of an ONNX model: its inputs are the operands, its outputs the results. Text and builder make them here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from msgspec import Struct

from dmlc.diagnostics import DmlcError, Help, Label, Proposal, removing, suggestion
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import DType, Graph, OpError, Value
from dmlc.ops.call import Argument, CallSite, diagnose, literal_value, no_dtype


class ModelInput(Struct, frozen=True):
    """An input of a model that is called. ``dtype`` is None for a type that the language lacks.

    One that ``has_default`` need not be given; one that is ``optional`` may be left out.
    """

    name: str
    dtype: DType | None
    has_default: bool = False
    optional: bool = False


class CallableModel(Protocol):
    """An ONNX model that programs call."""

    @property
    def title(self) -> str:
        """The name that messages call the model by."""

    @property
    def inputs(self) -> Sequence[ModelInput]:
        """Its inputs, in order."""

    @property
    def outputs(self) -> Sequence[str]:
        """The names of its outputs, in order."""

    def add_to(self, graph: Graph, operands: Mapping[str, Value], name: str, site: CallSite) -> list[Value]:
        """Add its nodes to a graph, under names that begin with ``name``; the results.

        Inputs that ``operands`` lack are left out. Raises ``OpError``, whose ``at`` is the name of an input, and
        ``DmlcError``.
        """


def call_model(
    graph: Graph,
    model: CallableModel,
    name: str,
    arguments: Sequence[Argument],
    keywords: Mapping[str, Argument],
    site: CallSite,
) -> list[Value]:
    """The results of a model on operands in the order of its inputs that have no default, or by their names.

    ``none`` leaves an input out that has a default or is optional. Raises ``DmlcError``: E0305 and E0308 for operands
    that the model does not have or needs, E0307 for one that is given twice, E0360 for one that does not fit.
    """
    given: dict[str, Argument] = {}
    places: dict[str, int | str] = {}
    try:
        _bind(model, name, arguments, keywords, given, places)
        operands = {}
        for number, info in enumerate(model.inputs):
            value = given.get(info.name)
            if value is None:
                if not info.has_default and not info.optional:
                    raise _missing(model, name, info)
                continue
            if not isinstance(value, Value):
                if info.dtype is None:
                    raise no_dtype(value, number)
                value = literal_value(graph, value, info.dtype, number, site)
            operands[info.name] = value
        return _added(graph, model, name, operands, places, site)
    except OpError as error:
        raise DmlcError(diagnose(error, site, list(arguments))) from None
    except DmlcError as error:
        labels = ([Label(site.span)] if site.span else []) + [Label(outer, "in this call") for outer in site.outer]
        error.diagnostics = tuple([d.labelled(labels) for d in error.diagnostics])
        raise


def _added(
    graph: Graph,
    model: CallableModel,
    name: str,
    operands: Mapping[str, Value],
    places: Mapping[str, int | str],
    site: CallSite,
) -> list[Value]:
    """The results of the model. Raises ``OpError``, which names the part of the call, not the input."""
    try:
        return model.add_to(graph, operands, name, site)
    except OpError as error:
        error.at = places.get(error.at, error.at) if isinstance(error.at, str) else error.at
        if isinstance(error.help, Proposal):  # its changes name the input too
            changes = [
                replace(c, at=places.get(c.at, c.at)) if isinstance(c.at, str) else c for c in error.help.changes
            ]
            error.help = replace(error.help, changes=tuple(changes))
        raise


def _bind(
    model: CallableModel,
    name: str,
    arguments: Sequence[Argument],
    keywords: Mapping[str, Argument],
    given: dict[str, Argument],
    places: dict[str, int | str],
) -> None:
    """Fill ``given`` with the operands by the names of inputs, and ``places`` with where they stand in the call."""
    inputs = {info.name: info for info in model.inputs}
    in_order = [info for info in model.inputs if not info.has_default]
    if len(arguments) > len(in_order):
        shown = f" ({', '.join(info.name for info in in_order)})" if in_order else ""
        others = [info.name for info in model.inputs if info.has_default]
        help: Help = f"write {', '.join(others)} as keywords" if others else ""
        noun = "operand" if len(in_order) == 1 else "operands"
        message = f"{name} takes {len(in_order)} {noun} in order{shown}, {len(arguments)} given"
        raise OpError(codes.OPERAND_COUNT, message, at=len(in_order), help=help)
    for number, (info, value) in enumerate(zip(in_order, arguments, strict=False)):
        given[info.name], places[info.name] = value, number
    for keyword, value in keywords.items():
        if keyword not in inputs:
            has = f"its inputs are {', '.join(inputs)}" if inputs else "it has no inputs"
            help = suggestion(keyword, inputs, then=has)
            raise OpError(codes.UNKNOWN_ATTRIBUTE, f"{model.title} has no input {keyword}", at=keyword, help=help)
        if keyword in given:
            message = f"{keyword} is given twice: in order and by name"
            raise OpError(codes.BOTH_SYNONYMS, message, at=keyword, help=removing("keep one of them", keyword))
        given[keyword], places[keyword] = value, keyword


def _missing(model: CallableModel, name: str, info: ModelInput) -> OpError:
    message = f"{name} needs {info.name}, an input of {model.title}"
    return OpError(codes.OPERAND_COUNT, message, help=f"give it in order, or write {info.name}=...")
