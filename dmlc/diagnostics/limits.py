"""Limits on the size of the input, each declared once.

The command line's ``--limit``, ``dmlc.compile(limits=...)``, the messages and ``dmlc explain limits`` come from
these. Each limit is checked where it costs nothing: once per file, line or graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, get_type_hints

from dmlc.diagnostics.catalogue import limits as codes
from dmlc.diagnostics.catalogue import syntax
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE
from dmlc.diagnostics.code import Code
from dmlc.diagnostics.diagnostic import DmlcError, Label, fail
from dmlc.diagnostics.fix import sentences
from dmlc.diagnostics.given import integer_of
from dmlc.diagnostics.spelling import option
from dmlc.diagnostics.suggest import did_you_mean

#: No machine holds this much: the message suggests no override for it.
_COUNTLESS = 10**12


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: its unit, error code, the reason for it, its name and its default."""

    unit: str
    code: Code
    guards: str
    name: str = ""
    default: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one compilation."""

    file_bytes: Annotated[
        int, Limit("bytes", codes.FILE_BYTES, "an ONNX model that is read; files of its weights have no limit")
    ] = 2**31 - 1
    text_bytes: Annotated[int, Limit("bytes", syntax.TOO_LONG, "a program that is read")] = 16 * 2**20
    tokens: Annotated[int, Limit("tokens", codes.TOKENS, "names, numbers and signs of a program")] = 2_000_000
    nesting: Annotated[
        int, Limit("levels", syntax.NESTING, "brackets, signs, powers, calls of defs and of a model's functions")
    ] = 200
    statements: Annotated[int, Limit("statements", codes.STATEMENTS, "the defs of a program, unfolded")] = 50_000
    nodes: Annotated[
        int, Limit("nodes", codes.NODES, "a graph with all graphs and functions inside it, of a program or a model")
    ] = 2_000_000
    rank: Annotated[int, Limit("axes", codes.RANK, "every tensor")] = 64
    name_length: Annotated[int, Limit("characters", codes.NAME_LENGTH, "a name in a program or a model")] = 10_000
    unpacked_bytes: Annotated[int, Limit("bytes", codes.UNPACKED_BYTES, "a compressed array of a `.npz` file")] = 2**30
    folded_elements: Annotated[
        int, Limit("elements", codes.FOLDED_ELEMENTS, "one constant that is computed while compiling, and its operands")
    ] = 2**20
    folded_bytes: Annotated[
        int, Limit("bytes", codes.FOLDED_BYTES, "all constants that are computed while compiling")
    ] = 2**30

    @classmethod
    def of(cls, changed: Mapping[str, int] | None) -> Limits:
        """The limits with some of them changed. Raises ``DmlcError`` E0556 (exit code 2)."""
        if changed is not None and not isinstance(changed, Mapping):
            message = f"limits is a dict of numbers by the names of limits, not {type(changed).__name__}"
            raise fail(UNKNOWN_CHOICE, message, exit_code=2)
        found = {}
        for name, given in (changed or {}).items():
            if name not in LIMITS:
                help = did_you_mean(str(name), LIMITS) or f"limits are {', '.join(LIMITS)}"
                raise fail(UNKNOWN_CHOICE, f"there is no limit {name}", help=help, exit_code=2)
            size = integer_of(given)
            if size is None or size < 1:
                raise fail(UNKNOWN_CHOICE, f"limit {name} is an integer, 1 or more, not {given!r}", exit_code=2)
            found[name] = size
        return cls(**found)

    def passed(self, name: str, what: str, have: int, *labels: Label, instead: str = "") -> DmlcError:
        """The error of what has more than a limit allows. The way out is the override, which suffices, after what may
        be done ``instead``."""
        limit, most, is_countable = LIMITS[name], getattr(self, name), have <= _COUNTLESS
        count = f"{have:,}" if is_countable else f"more than {_COUNTLESS:,}"
        message = f"{what} {count} {limit.unit}, the limit is {most:,}"
        ways = [instead, way_out(name, have) if is_countable else ""]
        return fail(limit.code, message, *labels, help=sentences(*ways))


def way_out(name: str, enough: int) -> str:
    """The override, as it is typed."""
    return "if that is right: " + option(f"--limit {name}={enough}", f"limits={{{name!r}: {enough}}}")


def _declared() -> Iterator[Limit]:
    kinds = get_type_hints(Limits, include_extras=True)
    for name, default in asdict(Limits()).items():
        (limit,) = kinds[name].__metadata__
        yield replace(limit, name=name, default=default)


#: The limits by name, in the order of their declaration.
LIMITS: dict[str, Limit] = {limit.name: limit for limit in _declared()}
#: The default limits.
DEFAULTS = Limits()
