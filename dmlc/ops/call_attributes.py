"""Attributes of a call: keywords, synonyms and ``like``, bound to the canonical record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.diagnostics import proposal, removing, sentences, suggestion, writing
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import Attributes, Operation, OpError, TensorType, Value
from dmlc.ops.attributes import ATTRIBUTE_SPELLINGS, REQUIRED, AttributeSpec, Binding, ValueOf, attribute_specs, show

#: The keyword that gives the dtype of a tensor where a dtype is wanted.
LIKE = "like"

_KEYWORDS: dict[type[Attributes], dict[str, tuple[AttributeSpec, bool]]] = {}


def keywords_of(record: type[Attributes]) -> dict[str, tuple[AttributeSpec, bool]]:
    """Every keyword, with whether it is a synonym."""
    found = _KEYWORDS.get(record)
    if found is not None:
        return found
    out = _KEYWORDS[record] = {}
    for spec in attribute_specs(record):
        out[spec.name] = (spec, False)
        if spec.synonym:
            out[spec.synonym.name] = (spec, True)
    return out


def bind_attributes(
    op: Operation,
    operands: Sequence[Value | None],
    keywords: Mapping[str, Any],
    names: Sequence[str],
    written: dict[str, str] | None = None,
) -> Attributes:
    """The canonical attribute record; ``names`` are the operands' names, for messages.

    ``written`` receives which keyword gave which attribute. Raises ``OpError``.
    """
    written = {} if written is None else written
    known = keywords_of(op.attributes)
    if not known and not keywords:
        return op.attributes()
    types: list[TensorType | None] = [None if v is None else v.type for v in operands]
    raw: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if keyword not in known:
            raise _unknown_keyword(op, keyword, known)
        spec, is_synonym = known[keyword]
        if spec.name in raw:
            raise OpError(
                codes.BOTH_SYNONYMS,
                f"{written[spec.name]} and {keyword} both say {spec.name}",
                at=keyword,
                help=removing("keep one of them", keyword),
            )
        written.setdefault(spec.name, keyword)
        raw[spec.name] = (
            _translate(spec, keyword, value, Binding(keyword, op.name, types, names)) if is_synonym else value
        )
    values: dict[str, Any] = {}
    specs = attribute_specs(op.attributes)
    for spec in sorted(specs, key=lambda spec: isinstance(spec.default, ValueOf)):
        value = raw.get(spec.name, spec.default)
        if isinstance(value, ValueOf):
            value = values[value.text]
        if value is REQUIRED:
            raise OpError(
                codes.MISSING_ATTRIBUTE,
                f"{op.name} needs {spec.name}",
                help=f"write it, such as {spec.name}={spec.kind.example}",
            )
        if value is None and spec.default is None:
            values[spec.name] = None
            continue
        try:
            values[spec.name] = spec.kind.convert(value, Binding(spec.name, op.name, types, names, spec.required))
        except OpError as error:
            if spec.synonym is not None and isinstance(value, str) and value in spec.synonym.words:
                error.help = writing(spec.synonym.words[value])
            raise
    return op.attributes(**values)


def like_attribute(op: Operation) -> AttributeSpec | None:
    """Return the attribute that ``like`` gives: a dtype, or the shape of a reshape; None where there is none."""
    return next((spec for spec in attribute_specs(op.attributes) if spec.kind.like), None)


def with_like(op: Operation, keywords: Mapping[str, Any], written: dict[str, str]) -> Mapping[str, Any]:
    """The keywords with the dtype or shape of ``like``, a tensor or its type, in its place.

    Raises ``OpError`` E0305, E0307, E0335.
    """
    spec = like_attribute(op)
    if spec is None:
        return keywords
    like, others = keywords[LIKE], {name: value for name, value in keywords.items() if name != LIKE}
    if spec.name in others:
        message = f"{spec.name} and {LIKE} both say {spec.name}"
        raise OpError(codes.BOTH_SYNONYMS, message, at=LIKE, help=removing("keep one of them", LIKE))
    type = like.type if isinstance(like, Value) else like
    if not isinstance(type, TensorType):
        raise OpError(codes.NOT_A_TENSOR, f"{LIKE} takes a tensor, not {show(like)}", at=LIKE)
    written[spec.name] = LIKE
    return {**others, spec.name: getattr(type, spec.kind.like)}


def _translate(spec: AttributeSpec, keyword: str, value: Any, at: Binding) -> Any:
    assert spec.synonym is not None
    words = spec.synonym.words
    if isinstance(value, str) and value in words:
        return words[value]
    meant = [word for word, same in words.items() if same == value]
    near = writing(meant[0]) if meant else suggestion(value, words) if isinstance(value, str) else ""
    raise at.fail(f"{keyword} must be {' or '.join(words)}, not {value}", help=near)


def _unknown_keyword(op: Operation, keyword: str, known: Mapping[str, object]) -> OpError:
    takes = "it takes " + ", ".join(known) if known else "it takes none"
    meant = next((name for name in known if keyword in ATTRIBUTE_SPELLINGS.get(name, ())), None)
    help = suggestion(keyword, known, then=takes)
    if meant is not None:
        help = proposal(sentences(f'did you mean "{meant}"?', takes), meant, safe=True)
    return OpError(
        codes.UNKNOWN_ATTRIBUTE,
        f"{op.name} has no attribute {keyword}",
        at=keyword,
        help=help,
    )
