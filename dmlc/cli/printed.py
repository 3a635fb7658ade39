"""Texts and tables of records for Python: those that the commands print."""

from __future__ import annotations

from functools import singledispatch

from dmlc import api, builder, ir
from dmlc.api.checking import CheckResult
from dmlc.cli.check_view import details, first_line, where_rows, where_table
from dmlc.cli.compile_view import compared_rows, rewritten_text, table_text
from dmlc.cli.compile_view import first_line as first_line_of
from dmlc.cli.counts import operations
from dmlc.cli.model_comparison import ModelComparison, column
from dmlc.cli.next_steps import requires_line
from dmlc.cli.placement_view import requirements_of
from dmlc.cli.report_facts import figures_of
from dmlc.codegen import dml
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.shown import Rows, Shown
from dmlc.inference.model_facts import types_by_name
from dmlc.ir.printer import print_graph
from dmlc.ops.opaque import OpaqueAttributes
from dmlc.placement.report import Placement
from dmlc.placement.requirements import requirements
from dmlc.runtime.graph_model import names_in
from dmlc.views.notebook import record_html
from dmlc.views.stages import compiled_scene

#: So many inputs, outputs and dims are printed, in so many characters.
_MOST_LISTED, _LONGEST = 6, 300


@singledispatch
def text_of(record: object) -> str:
    """The text of a record: a graph, a program, a placement, or the result of a check."""
    raise TypeError(f"no text for {type(record).__name__}")


@singledispatch
def rows_of(record: object) -> Rows:
    """The table of a record of these kinds; the first row has the headings."""
    raise TypeError(f"no table for {type(record).__name__}")


@singledispatch
def html_of(record: Shown) -> str:
    """The HTML of a record for notebooks: its answer, and its table."""
    is_right = getattr(record, "ok", getattr(record, "equal", None))
    headline = record.headline()
    answer = "" if is_right is None else "same" if is_right else "different"
    return record_html(headline, record.to_rows(), answer="open" if headline.startswith("not ") else answer)


# --- graphs


@text_of.register
def _(graph: ir.Graph) -> str:
    """The program that the graph is; larger constants are in a file. What no program can say is written all the same,
    for people."""
    try:
        text: str = dml.emit(graph, f"{graph.name}.npz").payload
    except DmlcError:
        text = print_graph(graph)
    return text


@text_of.register
def _(graph: builder.Graph) -> str:
    return text_of(graph.graph)


@rows_of.register
def _(graph: ir.Graph) -> Rows:
    names = names_in(graph)
    rows = [("value", "operation", "type")]
    rows += [(names[value], "input", str(value.type)) for value in graph.inputs]
    for node in graph:
        a = node.attributes
        name = f"onnx.{a.op_type}" if isinstance(a, OpaqueAttributes) else node.op.name
        values, types = [names[value] for value in node.results], [str(value.type) for value in node.results]
        rows.append((", ".join(values), name, ", ".join(types)))
    return [*rows, *[(name, f"output, {names[value]}", str(value.type)) for name, value in graph.outputs]]


@rows_of.register
def _(graph: builder.Graph) -> Rows:
    return rows_of(graph.graph)


# --- programs


@text_of.register
def _(program: api.Program) -> str:
    """The first line and the table of ``dmlc compile``, and the inputs and outputs."""
    name, signature = program.signature.name, "".join(f"  {what}: {text}\n" for what, text in _signature_rows(program))
    found = _comparison(program)
    if found is None:
        return f"{name}: {_compiled(program, found)}\n\n{signature}"
    table, rewritten = table_text(program, found, {}, verbose=False), rewritten_text(program, found)
    text = f"{name}: {_compiled(program, found)}\n\n"
    text += f"{table}\n" if table else ""
    return text + signature + rewritten + requires_line(requirements_of(program))


@rows_of.register
def _(program: api.Program) -> Rows:
    found = _comparison(program)
    signature = _signature_rows(program)
    if found is None or found.before is None:
        return [("", "compiled"), ("model", _compiled(program, found)), *signature]
    rows = compared_rows(program, found.before, found.after, {}, verbose=True)
    return [("", "before", "after", "why"), *rows, *[(what, text, "", "") for what, text in signature]]


@html_of.register
def _(program: api.Program) -> str:
    """The figures of a report, the inputs and outputs, and the graph."""
    found = _comparison(program)
    headline = f"{program.signature.name}: {_compiled(program, found)}"
    table = [("", "type"), *_signature_rows(program)]
    if found is None:
        return record_html(headline, table)
    figures = figures_of(program, found.before, found.after, {})
    return record_html(headline, table, figures=figures, scene=compiled_scene(program))


def _compiled(program: api.Program, found: ModelComparison | None) -> str:
    """The target and what the program is for it."""
    if found is None:
        return f"{program.target.name}, {counted(operations(program.graph).total(), 'operation')}"
    return first_line_of(program, found)


def _signature_rows(program: api.Program) -> Rows:
    signature = program.signature
    dims = dict.fromkeys(name for _, type in signature.inputs for size in type.shape for name in ir.dim_names(size))
    inputs, outputs = [
        _listed([f"{name}: {type_}" for name, type_ in of]) for of in (signature.inputs, signature.outputs)
    ]
    return [("inputs", inputs), ("outputs", outputs), ("dynamic sizes", _listed(list(dims)))]


def _listed(parts: list[str]) -> str:
    """Return the first few parts, and how many more there are."""
    more = f", and {len(parts) - _MOST_LISTED} more" if len(parts) > _MOST_LISTED else ""
    text = ", ".join(parts[:_MOST_LISTED]) or "none"
    return (text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") + more


def _comparison(program: api.Program) -> ModelComparison | None:
    """The model before and after; None for NumPy code, and for a program of which no model is made."""
    if program.target.code == "numpy":
        return None
    try:
        made = api.emitted(program, "onnx")
    except DmlcError:
        return None
    target, source = program.target, program.source_model
    placed = None if target.provider is None else program.placement()
    after = column(made.payload, made.types, made.payload.ByteSize(), target, placed)
    before = None if source is None else column(source, types_by_name(program.source_graph), source.ByteSize(), target)
    return ModelComparison(before, after, 0.0)


# --- placements


@text_of.register
def _(report: Placement) -> str:
    return f"{report.verdict}\n\n{where_table(report)}" if report.nodes else f"{report.verdict}\n"


@rows_of.register
def _(report: Placement) -> Rows:
    return [*where_rows(report)]


@text_of.register
def _(result: CheckResult) -> str:
    """The first line and the table of ``dmlc check``, and what the model requires."""
    required = "" if result.placement is None else requires_line(requirements(result.placement))
    text = f"{first_line(result, result.source or 'the model', result.target)}\n{details(result, verbose=False)}"
    return f"{text}\n{required}" if required else text


@rows_of.register
def _(result: CheckResult) -> Rows:
    if result.placement is not None and result.placement.nodes:
        return rows_of(result.placement)
    return [("severity", "code", "message"), *[(d.severity, d.code.id, str(d.message)) for d in result.diagnostics]]
