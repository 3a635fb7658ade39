"""A node of a model at another opset of ONNX: as it is, in the form that it has there, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct
from onnx import NodeProto, TensorProto, defs

from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.moves import operators, to_inputs
from dmlc.onnx_schema.moves.draft import NOTHING, Draft, KnownValues, Row, Step, Unmovable, element_text, never, plain
from dmlc.onnx_schema.words import words_of

#: Every change that is more than an addition, by operator and version.
ROWS: dict[tuple[str, int], Row] = {(row.op, row.since): row for row in (*to_inputs.ROWS, *operators.ROWS)}
#: Nodes are converted to no older opset: targets have none, and a model that must stay below it is not converted.
_OLDEST = 11


class Moved(Struct, frozen=True):
    """Converted form of a node: nodes in order, and the constants that they use. An unchanged node is the same
    object."""

    nodes: list[NodeProto]
    constants: list[TensorProto]


def fits(node: NodeProto, have: int, want: int, known: KnownValues = NOTHING) -> bool:
    """Return whether a node of opset ``have`` can be converted to ``want``. Its nested graphs are not checked.

    Operators of other domains, and those that onnx does not know, are the same at every opset.
    """
    return not obstacle(node, have, want, known)


def obstacle(node: NodeProto, have: int, want: int, known: KnownValues = NOTHING) -> str:
    """Return the reason why a node cannot be converted to that opset; empty if it can."""
    steps = _steps(node, have, want)
    if not steps:
        return ""
    try:
        _walk(node, steps, want, known, lambda base: f"\0{base}")
    except Unmovable as refusal:
        return str(refusal)
    return ""


def move(
    node: NodeProto, have: int, want: int, fresh: Callable[[str], str], known: KnownValues = NOTHING
) -> Moved | None:
    """The node in its form at opset ``want``; None where it does not fit. ``fresh`` makes names of values that
    nobody has. The node given is not changed."""
    steps = _steps(node, have, want)
    if not steps:
        return Moved([node], [])
    try:
        draft = _walk(node, steps, want, known, fresh)
    except Unmovable:
        return None
    return Moved([*draft.before, draft.node, *draft.after], draft.constants)


def unchanged(node: NodeProto, have: int, want: int, known: KnownValues = NOTHING) -> bool:
    """Return whether the node means the same at that opset without a change."""
    same = same_call(node, have, want, known)
    return same is node or bool(same == node)


def same_call(node: NodeProto, have: int, want: int, known: KnownValues = NOTHING) -> NodeProto | None:
    """The node at that opset if it is the same operator with the same operands there, with other attributes at most;
    else None."""
    steps = _steps(node, have, want)
    if not steps:
        return node
    try:
        draft = _walk(node, steps, want, known, lambda base: base)
    except Unmovable:
        return None
    made = draft.node
    is_same = (made.op_type, made.input, made.output) == (node.op_type, node.input, node.output)
    return made if is_same and not draft.before and not draft.after else None


def _walk(
    node: NodeProto, steps: tuple[Step, ...], want: int, known: KnownValues, fresh: Callable[[str], str]
) -> Draft:
    copy = NodeProto()
    copy.CopyFrom(node)
    draft = Draft(copy, known, fresh, want, node.op_type)
    for step in steps:
        step(draft)
    return draft


# --- the way from one version to another


def _steps(node: NodeProto, have: int, want: int) -> tuple[Step, ...]:
    """Return the conversion steps of a node; empty if it is the same at both opsets."""
    return () if plain_domain(node.domain) else _steps_of(node.op_type, have, want)


@lru_cache(maxsize=4096)
def _steps_of(op_type: str, have: int, want: int) -> tuple[Step, ...]:
    if have == want or op_type not in _history():
        return ()
    if want < min(have, _OLDEST):
        return (never(f"nodes are converted to opset {_OLDEST} at the lowest"),)
    return tuple(_up(op_type, have, want) if want > have else _down(op_type, have, want))


@lru_cache(maxsize=1)
def _history() -> dict[str, dict[int, Any]]:
    """The schemas of ONNX's own operators by version, in order."""
    out: dict[str, dict[int, Any]] = {}
    for schema in sorted(defs.get_all_schemas_with_history(), key=lambda s: s.since_version):
        if schema.domain == "":
            out.setdefault(schema.name, {})[schema.since_version] = schema
    return out


def _at(op_type: str, opset: int) -> int | None:
    """The version of an operator that an opset has."""
    return max((since for since in _history()[op_type] if since <= opset), default=None)


def _up(op_type: str, have: int, want: int) -> list[Step]:
    first, last = _at(op_type, have), _at(op_type, want)
    if first is None:
        return [never(f"{op_type} came with a later opset than {have}")]
    steps: list[Step] = []
    versions, before = _history()[op_type], first
    for since in versions:
        if not first < since <= (last or 0):
            continue
        row = ROWS.get((op_type, since))
        if versions[since].deprecated and (row is None or not row.becomes):
            return [never(f"ONNX took {op_type} out at opset {since}")]
        if row is not None:
            steps.append(row.up)
            if row.becomes:
                return [*steps, partial(_rename, row.becomes), *_up(row.becomes, since, want)]
        gone = versions[before].attributes.keys() - versions[since].attributes.keys()
        if gone:
            steps.append(partial(_check_gone, frozenset(gone), since))
        if versions[since].max_input < versions[before].max_input:
            steps.append(partial(_check_operands, versions[since]))
        before = since
        if _types(versions[first]) - _types(versions[since]):
            steps.append(partial(_check_types, versions[since]))
    return steps


def _down(op_type: str, have: int, want: int) -> list[Step]:
    versions = _history()[op_type]
    first, last = _at(op_type, have), _at(op_type, want)
    if first is None:
        return [never(f"{op_type} came with a later opset than {have}")]
    steps: list[Step] = []
    newer = first
    for older in [since for since in reversed(versions) if since < first and since >= (last or 0)]:
        row = ROWS.get((op_type, newer))
        steps += [] if row is None else [row.down]
        steps.append(partial(_check_older, versions[newer], versions[older]))
        newer = older
    if last is None:
        return [never(f"{op_type} came with opset {newer}")]
    if versions[last].deprecated and last != first:
        return [never(f"{op_type} is deprecated at opset {want}")]
    return steps


# --- rules for all operators


def _rename(op_type: str, draft: Draft) -> None:
    draft.node.op_type = op_type


def _check_gone(names: frozenset[str], since: int, draft: Draft) -> None:
    """Refuse an attribute that the version does not have, and that no row of ``ROWS`` has said otherwise."""
    for attribute in draft.node.attribute:
        if attribute.name in names:
            raise Unmovable(f"{attribute.name} went with opset {since}")


def _check_operands(schema: Any, draft: Draft) -> None:
    """Refuse more operands than the version takes. Those of the first Tile are a count and an axis."""
    if len(draft.node.input) > schema.max_input:
        raise Unmovable(f"{schema.name} of opset {schema.since_version} takes {schema.max_input} operands")


def _types(schema: Any) -> frozenset[str]:
    return frozenset(text for c in schema.type_constraints for text in c.allowed_type_strs)


def _check_types(schema: Any, draft: Draft) -> None:
    allowed = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    bound: dict[str, str] = {}
    for names, formals in ((draft.node.input, schema.inputs), (draft.node.output, schema.outputs)):
        for i, name in enumerate(names):
            text, formal = draft.type_text(name), formals[min(i, len(formals) - 1)]
            if text is None:
                continue
            letter = formal.type_str
            if text not in allowed.get(letter, (letter,)):
                raise Unmovable(f"{schema.name} of opset {schema.since_version} does not take {text}")
            # the exponent of Pow has a type of its own from opset 12 on
            if formal.is_homogeneous and bound.setdefault(letter, text) != text:
                raise Unmovable(f"{schema.name} of opset {schema.since_version} takes no {bound[letter]} beside {text}")
    to = draft.get("to")  # Cast says the type of its result itself
    if isinstance(to, int) and element_text(to) not in allowed[schema.outputs[0].type_str]:
        raise Unmovable(f"{schema.name} of opset {schema.since_version} does not give {element_text(to)}")


def _check_older(newer: Any, older: Any, draft: Draft) -> None:
    """Nothing is used that came with the newer version. An attribute that says the default is left out."""
    for attribute in list(draft.node.attribute):
        if attribute.name not in older.attributes:
            formal = newer.attributes.get(attribute.name)
            default = formal.default_value if formal is not None else None
            if default is None or not default.name or plain(default) != plain(attribute):
                raise Unmovable(f"{attribute.name} came with opset {newer.since_version}")
            draft.pop(attribute.name)
        elif attribute.s and not attribute.ref_attr_name:
            word = attribute.s.decode("utf-8", "replace")
            before, after = (words_of("", s.name, s.since_version).get(attribute.name) for s in (older, newer))
            if before is not None and after is not None and word in after.known and word not in before.known:
                raise Unmovable(f"{attribute.name} {word} came with opset {newer.since_version}")
    draft.trim(older.min_input)  # a Loop without a condition names an empty one
    if len(draft.node.input) > older.max_input or len(draft.node.output) > older.max_output:
        raise Unmovable(f"an input or output came with opset {newer.since_version}")
    for i, formal in enumerate(older.inputs):
        if formal.option == defs.OpSchema.FormalParameterOption.Single and not draft.input(i):
            raise Unmovable(f"{formal.name} could not be absent before opset {newer.since_version}")
    _check_types(older, draft)
