"""The options of ``dmlc.compile`` on the command line: their parsers, and the words that give them a value."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from dmlc.cli.console import UsageError
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.shapes import SHAPE_DOES_NOT_FIT
from dmlc.diagnostics.limits import Limits
from dmlc.ir.fixed_shapes import FixedShape, shape_text
from dmlc.ops.ranges import range_text
from dmlc.passes.options import OPTIONS, Option

#: Names and their values, in the order of the command line.
Entries: TypeAlias = list[tuple[str, Any]]
_DIGITS = 100


def add_compile_options(parser: argparse.ArgumentParser, verb: str = "") -> None:
    """Add the options of ``dmlc.compile`` in their groups; ``verb`` is a command that has some for itself."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in OPTIONS.values():
        if option.flag and option.only in ("", verb):
            if option.group not in groups:
                groups[option.group] = parser.add_argument_group(option.group)
            _add(groups[option.group], option)


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add some options of ``dmlc.compile``, by the names of their keywords."""
    for name in names:
        _add(parser, OPTIONS[name])


def _add(parser: argparse.ArgumentParser | argparse._ArgumentGroup, option: Option) -> None:
    help, form = f"{option.description}{'; may be repeated' if option.repeats else ''}", _FORMS.get(option.name)
    given: dict[str, Any] = {"dest": option.name, "help": help}
    if form is not None:
        given |= {"action": "extend", "type": form.parse, "default": [], "metavar": option.example}
    elif isinstance(option.default, bool):
        given |= {"action": "store_true"}
    else:
        default = list(option.default) if isinstance(option.default, tuple) else option.default
        given |= {"default": default, "action": "append" if option.repeats else "store"}
        given |= {"metavar": option.example} if option.example else {"choices": option.words}
        given |= {"type": int} if option.type is int else {}
    parser.add_argument(option.flag, **given)


def keywords_of(args: argparse.Namespace) -> dict[str, Any]:
    """The keywords of ``dmlc.compile`` that the command line gives. Raises ``UsageError`` for an entry that is given
    twice, ``DmlcError`` E0337 where an input is given two shapes."""
    found = {}
    for name, option in OPTIONS.items():
        if name in args:
            value, form = getattr(args, name), _FORMS.get(name)
            found[name] = value if form is None else form.join(option.flag, value)
    return found


def option_words(name: str, value: Any) -> list[str]:
    """The words of a command line that give an option this value, the keyword of ``dmlc.compile``."""
    option, form = OPTIONS[name], _FORMS.get(name)
    flag = option.flag
    if value is None or value == option.default:
        return []
    if form is not None:
        return [word for key, one in value.items() for word in (flag, form.text(key, one))]
    if isinstance(value, bool):
        return [flag]
    return [word for one in (value if option.repeats else [value]) for word in (flag, str(one))]


def limits_of(args: argparse.Namespace) -> Limits:
    """The default limits, changed as the command line asks."""
    return Limits.of(dict(args.limits))


def _joined_shapes(_: str, given: Entries) -> dict[str, FixedShape]:
    """Return the shapes by input. Raises ``DmlcError`` E0337 where an input is given two."""
    found: dict[str, FixedShape] = {}
    for name, shape in given:
        before: FixedShape = found.get(name, shape)  # type: ignore[assignment]
        pairs = list(zip(before, shape, strict=False))
        if len(before) != len(shape) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            message = f"{name} is given two shapes: {shape_text(name, before)} and {shape_text(name, shape)}"
            raise fail(SHAPE_DOES_NOT_FIT, message, help="give one of them")
        found[name] = tuple([size if old is None else old for old, size in pairs])
    return found


def _each_once(flag: str, given: Entries) -> dict[str, Any]:
    """The values by name. Raises ``UsageError`` for a name that is given twice."""
    names = [name for name, _ in given]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{flag} {name} is given twice")
    return dict(given)


def _limits(text: str) -> Entries:
    return [entry for part in text.split(",") for entry in _binding(part)]


def _binding(text: str) -> Entries:
    name, sign, size = text.partition("=")
    try:
        if name and sign:
            return [(name.strip(), int(size))]
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=INTEGER")


def _profile(text: str) -> Entries:
    """The dim and its sizes in ``batch=1,8``."""
    name, sign, sizes = text.partition("=")
    parts = [part.strip() for part in sizes.split(",")]
    if name.strip() and sign and all(part.isascii() and part.isdigit() for part in parts):
        return [(name.strip(), [_size(part) for part in parts])]
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE,SIZE,...")


def _shape(text: str) -> Entries:
    name, sign, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
    if name and sign and all(part == "_" or (part.isascii() and part.isdigit()) for part in parts):
        return [(name.strip(), tuple([None if part == "_" else _size(part) for part in parts]))]
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE,SIZE,...; write _ for a size that stays open")


def _range(text: str) -> Entries:
    """The input and the two numbers in ``x=0.0..1.0``."""
    name, sign, ends = text.rpartition("=")
    low, dots, high = ends.partition("..")
    try:
        if name and sign and dots:
            return [(name.strip(), (_bound(low), _bound(high)))]
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LOW..HIGH, such as x=0.0..1.0 or x=0.0..inf")


def _bound(text: str) -> float:
    text = text.strip()
    return int(text) if text.removeprefix("-").isdigit() and len(text) <= _DIGITS else float(text)


def _size(text: str) -> int:
    if len(text) > _DIGITS:  # Python reads no integer of thousands of digits
        raise argparse.ArgumentTypeError(f"a size of {len(text)} digits is too large: the largest is 2**63 - 1")
    return int(text)


class _Form(NamedTuple):
    """The form of an option that gives names a value: how a word is parsed and written, and how several are joined."""

    parse: Callable[[str], Entries]
    text: Callable[[str, Any], str] = lambda name, value: f"{name}={value}"
    join: Callable[[str, Entries], dict[str, Any]] = _each_once


_FORMS = {
    "bind": _Form(_binding),
    "limits": _Form(_limits, join=lambda _, given: dict(given)),
    "profiles": _Form(_profile, lambda name, sizes: f"{name}={','.join(map(str, sizes))}"),
    "ranges": _Form(_range, lambda name, ends: f"{name}={range_text(ends)}"),
    "shapes": _Form(_shape, shape_text, _joined_shapes),
}
