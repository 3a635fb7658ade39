"""``replay(source, ledger)``: compile as a ledger says, rewrite by rewrite, or say where that is not what happens."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.codegen.ledger import REWRITE_FIELDS, SCHEMA, is_texts, wrong_field
from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.runtime import files
from dmlc.targets import load_target, target_names

#: A ledger that ``dmlc compile --ledger`` wrote: its path or its plain data.
Ledger: TypeAlias = "str | os.PathLike[str] | Mapping[str, Any]"


def replay(
    source: api.ProgramSource,
    ledger: Ledger,
    *,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
) -> api.Program:
    """Compile the source to what it was compiled to when the ledger was written.

    ``ledger`` is the file that ``dmlc compile --ledger`` wrote, or ``program.ledger_document()``: it holds the target,
    the opset and the options. Each rewrite must be the next one of the ledger: the same rule, class and nodes.
    ``include`` and ``limits`` as for ``compile``. Raises ``DmlcError``: E0420 (exit code 2), E0429 if it is not a
    ledger, E0556 (exit code 2) if it is neither a path nor data, E0559 if the rewrites are not those of the ledger,
    and what ``compile`` raises.
    """
    check_arguments(ledger=ledger)
    document = _checked(ledger if isinstance(ledger, Mapping) else _read(Path(ledger)))
    # a model whose nodes no later opset has keeps its own, which nobody can ask for
    opset = document["opset"]
    is_kept = document["target"] in target_names() and opset < load_target(document["target"]).min_opset
    operators = document["options"].pop("decompose")
    if operators:
        from dmlc.api.decomposition import decompose

        program = decompose(
            source,
            operators,
            target=document["target"],
            include=include,
            limits=limits,
            expected=document["rewrites"],
        )
        return _of_its_model(program, document)
    program = api.compile(
        source,
        target=document["target"],
        opset=None if is_kept else opset,
        model=document["model"],
        include=include,
        expected=document["rewrites"],
        limits=limits,
        **document["options"],
    )
    return _of_its_model(program, document)


def _of_its_model(program: api.Program, document: Mapping[str, Any]) -> api.Program:
    """The program. Raises ``DmlcError`` E0559 where the ledger is that of another model."""
    if program.signature.name != document["model"]:
        message = f"the ledger is that of {document['model']}, and this is {program.signature.name}"
        raise fail(codes.OTHER_LEDGER, message)
    return program


def _read(path: Path) -> Any:
    data = files.read_bytes(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:  # ValueError: not JSON, not UTF-8, an integer of too many digits
        raise _no_ledger(f"{path} is not JSON: {error}") from None


# --- what a ledger has


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_binding(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(n, str) and _is_number(v) for n, v in value.items())


def _are_ranges(value: Any) -> bool:
    ranges = value.values() if isinstance(value, dict) else [None]
    numbers = (int, float, type(None))
    return all(
        isinstance(pair, list) and len(pair) == 2 and all(isinstance(n, numbers) for n in pair) for pair in ranges
    )


def _are_shapes(value: Any) -> bool:
    shapes = value.values() if isinstance(value, dict) else [None]
    return all(isinstance(shape, list) and all(n is None or _is_number(n) for n in shape) for shape in shapes)


_OPTIONS = {
    "bind": _is_binding,
    "shapes": _are_shapes,
    "ranges": _are_ranges,
    "exact": lambda value: isinstance(value, bool),
    "allow": is_texts,
    "lower_hardmax": lambda value: isinstance(value, bool),
    "feature_level": lambda value: value is None or isinstance(value, str),
    "skip_rules": is_texts,
    "only_rules": lambda value: value is None or is_texts(value),
    "f64": lambda value: value is None or isinstance(value, str),
    "accumulate": lambda value: value is None or isinstance(value, str),
    "fuse": is_texts,
    "decompose": is_texts,
}
_FIELDS = {
    "model": lambda value: isinstance(value, str),
    "target": lambda value: isinstance(value, str),
    "opset": _is_number,
    "options": lambda value: isinstance(value, dict),
    "rewrites": lambda value: isinstance(value, list),
}


def _checked(document: Any) -> Mapping[str, Any]:
    """The ledger, in which every field has its form; fields that nothing is known of are left out."""
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise _no_ledger(f"a ledger is an object with schema {SCHEMA}")
    found = _fields(document, _FIELDS, "")
    found["options"] = _fields(
        {"shapes": {}, "ranges": {}, "fuse": [], "decompose": [], **found["options"]}, _OPTIONS, "options."
    )  # earlier ledgers have none
    rows = enumerate(found["rewrites"])
    found["rewrites"] = [_fields(row, REWRITE_FIELDS, f"rewrites[{number}].") for number, row in rows]
    return found


def _fields(value: Any, wanted: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _no_ledger(f"{prefix.rstrip('.')} is not an object")
    wrong = wrong_field(value, wanted)
    if wrong:
        raise _no_ledger(f"{prefix}{wrong} is missing or no such value")
    return {name: value[name] for name in wanted}


def _no_ledger(message: str) -> DmlcError:
    return fail(codes.NO_LEDGER, message, help="dmlc compile --ledger OUT.json writes one")
