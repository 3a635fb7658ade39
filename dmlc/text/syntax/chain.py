"""Expressions of NumPy and PyTorch, such as ``x.exp().sum(-1)``, in the language."""

from __future__ import annotations

import re

from dmlc.ops.foreign import MODULES, Rewritten, attribute_instead, instead_of

#: A name, number, call or bracket, and the attributes, calls and indices behind it, in masked text.
_CHAIN = re.compile(r"\d[\w.]*|(?:[^\W\d]\w*|\(#*\)|\[#*\])(?:\s*\.\s*[^\W\d]\w*|\(#*\)|\[#*\])*")
_FIRST = re.compile(r"\d[\w.]*|(?:[^\W\d]\w*)?(?P<args>\(#*\)|\[#*\])?")
_STEP = re.compile(r"\s*\.\s*(?P<name>[^\W\d]\w*)\s*(?P<args>\(#*\))?|(?P<index>\[#*\])")
#: Modules in a module.
_INNER = frozenset(("functional", "linalg", "nn", "special"))
#: The results of PyTorch's max and min along an axis, by name or by number.
_RESULTS = {"values": "reduce_{}", "[0]": "reduce_{}", "indices": "arg{}", "[1]": "arg{}"}


class _NoEqual(Exception):
    """A part has no equal in the language."""


def masked(text: str) -> str:
    """The text with ``#`` for all that its outermost brackets hold."""
    out, depth = [], 0
    for sign in text:
        depth -= sign in ")]"
        out.append("#" if depth > 0 else sign)
        depth += sign in "(["
    return "".join(out)


def split(text: str) -> list[str]:
    """The arguments of a call."""
    ends = [i for i, sign in enumerate(masked(text)) if sign == ","]
    parts = [text[start + 1 : end].strip() for start, end in zip([-1, *ends], [*ends, len(text)], strict=True)]
    return [part for part in parts if part]


def bare(owner: str) -> str:
    """An operand as an argument of a call."""
    inner = owner[1:-1].strip()
    return inner if inner and masked(owner) == f"({'#' * (len(owner) - 2)})" else owner


def translated(text: str) -> Rewritten | None:
    """The chain in the language; None where a part of it has no equal."""
    try:
        new, is_same = _chain(text)
    except _NoEqual:
        return None
    return Rewritten(new, new, is_same)


def _expression(text: str) -> tuple[str, bool]:
    """The expression with its chains translated, and whether all of them mean the same for all operands."""
    if '"' in text or "'" in text:
        return text, True
    out, done, are_same = "", 0, True
    for found in _CHAIN.finditer(masked(text)):
        new, is_same = _chain(text[found.start() : found.end()])
        is_whole = found.group() == masked(text).strip()
        out += text[done : found.start()] + (new if is_whole or _is_closed(new) else f"({new})")
        done, are_same = found.end(), are_same and is_same
    return out + text[done:], are_same


def _is_closed(text: str) -> bool:
    return not re.search(r"[^\w.()\[\]#]", masked(text))


def _chain(text: str) -> tuple[str, bool]:
    """A chain in the language, and if it means the same. Raises ``_NoEqual``."""
    plain = masked(text)
    first = _FIRST.match(plain)
    assert first is not None
    place = first.end()
    current, is_same = text[:place], True
    if first["args"]:
        inner, is_same = _expression(text[first.start("args") + 1 : place - 1])
        current = f"{text[: first.start('args') + 1]}{inner}{text[place - 1]}"
    while place < len(text):
        step = _STEP.match(plain, place)
        if step is None:
            raise _NoEqual
        place = step.end()
        if step["index"]:
            current = f"{current if _is_closed(current) else f'({current})'}{text[step.start() : place]}"
            continue
        name = step["name"]
        if step["args"]:
            current, same, place = _call(current, name, text[step.start("args") + 1 : place - 1], text, place)
            is_same = is_same and same
        elif not (current in MODULES and name in _INNER):
            current, place = _attribute(current, name, text, place)
            is_same = is_same and name != "mT"
    return current, is_same


def _call(owner: str, name: str, written: str, text: str, place: int) -> tuple[str, bool, int]:
    """The call of a method or of a function of a module, with the result that is taken of several."""
    is_function = owner in MODULES
    operands, keywords, are_same = [] if is_function else [bare(owner)], {}, True
    for argument in split(written):
        keyword = re.fullmatch(r"(\w+)\s*=(?!=)\s*(.+)", argument, re.DOTALL)
        new, is_same = _expression(keyword[2] if keyword else argument)
        are_same = are_same and is_same
        if len(split(bare(new))) > 1:  # a tuple
            new = f"[{bare(new)}]"
        if keyword:
            keywords[keyword[1]] = new
        else:
            operands.append(new)
    if name in ("max", "min") and (len(operands) == 2 or {"dim", "axis"} & keywords.keys()):
        taken = re.compile(r"\s*\.\s*(values|indices)\b|\[[01]\]").match(text, place)
        if taken:
            op = _RESULTS[taken[1] or taken[0]].format(name)
            kept = {} if keywords.keys() & {"keepdim", "keepdims"} else {"keepdims": "false"}
            found = instead_of(op, operands, {**keywords, **kept})
            return found.text, False, taken.end()
    found = instead_of(name, operands, keywords, is_foreign=True)
    if not found.text:
        raise _NoEqual
    return found.text, are_same and found.is_same, place


def _attribute(owner: str, name: str, text: str, place: int) -> tuple[str, int]:
    if owner in MODULES:
        found = attribute_instead(name, owner)
    elif name == "shape" and (axis := re.compile(r"\s*\[\s*(-?\d+)\s*\]").match(text, place)):
        return f"size({bare(owner)}, axis={axis[1]})", axis.end()
    else:
        found = attribute_instead(name, bare(owner))
        found = found if found.endswith(f"({bare(owner)})") else ""
    if not found:
        raise _NoEqual
    return found, place
