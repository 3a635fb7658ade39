"""Checks of the data files in ``dmlc/targets/data``: dmlc itself reads them unchecked.

Each check raises ``DmlcError`` E0590 with the file and what is wrong.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import Any

from onnx import TensorProto

from dmlc.ir import DTYPE_BY_NAME
from dmlc.targets.directml import level_key
from dmlc.targets.kernel_rows import INSERTED
from dmlc.targets.target import DataFile, Target, bad_data

_TYPES = frozenset(
    (
        *("f16", "f32", "f64", "bf16", "bool", "string"),
        *("i4", "i8", "i16", "i32", "i64"),
        *("u4", "u8", "u16", "u32", "u64"),
    )
)


def need(holds: bool, file: str, problem: str) -> None:
    """Raises ``DmlcError`` E0590 where something does not hold."""
    if not holds:
        raise bad_data(file, problem)


# --- the kinds of values; each takes anything and says whether it is of the kind

Check = Callable[[Any], bool]
#: No opset, rank, count or axis of a table is larger.
MOST = 10_000
#: Halves of a pair, which no encoding writes.
_LONE = re.compile("[\ud800-\udfff]")
_LEVEL = re.compile(r"\d{1,4}(\.\d{1,8})*", re.ASCII)


def is_text(value: Any) -> bool:
    """A text that every encoding of Unicode can write."""
    return isinstance(value, str) and (value.isascii() or _LONE.search(value) is None)


def is_name(value: Any) -> bool:
    return is_text(value) and bool(value.strip())


def is_level(value: Any) -> bool:
    """Numbers and points: a release, a feature level."""
    return is_text(value) and _LEVEL.fullmatch(value) is not None


def is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def is_number(value: Any) -> bool:
    """0 or more, and finite."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e18


def is_plain(value: Any) -> bool:
    """Return whether a value can be a node's attribute: a text, a number, or a list of them."""
    if isinstance(value, list):
        return all(not isinstance(each, list) and is_plain(each) for each in value)
    return is_text(value) or (isinstance(value, (int, float)) and abs(value) < 2**63)


def maybe(check: Check) -> Check:
    """Return a check that also accepts null."""
    return lambda value: value is None or check(value)


def list_of(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def map_of(check: Check) -> Check:
    """An object with any names."""
    return lambda value: isinstance(value, dict) and all(is_text(key) and check(each) for key, each in value.items())


def is_range(value: Any) -> bool:
    """The first and the last of some opsets."""
    return isinstance(value, list) and len(value) == 2 and all(map(is_count, value)) and value[0] <= value[1]


def need_fields(row: Any, checks: Mapping[str, Check], file: str, where: str) -> None:
    """Raise ``DmlcError`` E0590 for a row that is not an object, or has a wrong field. Fields may be missing."""
    need(isinstance(row, dict), file, f"{where} is not an object")
    wrong = [name for name, check in checks.items() if name in row and not check(row[name])]
    need(not wrong, file, f"{where}: {', '.join(wrong)} cannot be that")


def check_types(text: object, file: str, where: str) -> None:
    """Check the element types of a row."""
    need(is_text(text), file, f"{where}: types are one text")
    unknown = _unknown_types(str(text))
    need(not unknown, file, f"{where}: there is no type {', '.join(unknown)}")


@cache
def _unknown_types(text: str) -> list[str]:
    """The names in a text that are not types. Tables repeat few texts very often."""
    return sorted(name for name in {*text.split()} - _TYPES if not name.startswith("float8"))


# --- documents


def read_checked(file: DataFile) -> dict[str, Any]:
    """Read a data file. Raises ``DmlcError`` E0590 if it is not a JSON document of schema 1, with each name once."""
    try:
        data = json.loads(
            file.read_text("utf-8"), object_pairs_hook=_once, parse_constant=_no_number, parse_float=_number
        )
    except RecursionError:
        raise bad_data(file.name, "it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise bad_data(file.name, str(error)) from None
    fine = isinstance(data, dict) and data.get("schema") == 1 and isinstance(data["schema"], int)
    need(fine and not isinstance(data["schema"], bool), file.name, "it is not a document of schema 1")
    out: dict[str, Any] = data
    return out


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it says {next(name for name in names if names.count(name) > 1)!r} twice")
    return out


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


_FIELDS = frozenset(Target.__struct_fields__) - {"table"}
_KINDS: dict[str, Check] = {
    **dict.fromkeys(("opset", "min_opset", "max_opset", "ir_version", "order"), is_count),
    **dict.fromkeys(
        ("installed_kernels", "own_schemas", "native_f16", "portable", "wraps_integers", "runs_on_cpu"), is_flag
    ),
    **dict.fromkeys(("summary", "source", "date"), is_text),
    **dict.fromkeys(("kernels", "provider", "costs"), maybe(is_name)),
    **dict.fromkeys(("release", "feature_level"), maybe(is_level)),
    "max_rank": maybe(is_count),
    "code": lambda value: value in ("onnx", "numpy"),
}
_REQUIRED = ("summary", "opset", "min_opset", "max_opset", "ir_version", "source", "date")


def check_targets(documents: Mapping[str, dict[str, Any]]) -> None:
    """Check the targets of documents by file name; ``like`` takes over what another says."""
    rows: dict[str, tuple[str, dict[str, Any]]] = {}
    for file, data in documents.items():
        need(isinstance(data, dict) and is_name(data.get("name")), file, "a target has a name")
        need(data["name"] not in rows, file, f"there are two targets {data['name']}")
        rows[data["name"]] = (file, data)
        need(is_count(data.get("order", 0)), file, "order is a number")
    for name, (file, data) in rows.items():
        like = data.get("like")
        need(like is None or (is_name(like) and like in rows), file, f"there is no target {like} to be like")
        row = {**(rows[like][1] if like else {}), **data}
        row = {key: value for key, value in row.items() if key not in ("schema", "order", "like")}
        missing = [key for key in _REQUIRED if key not in row]
        need(not missing, file, f"{', '.join(missing)} must be said")
        unknown = sorted(row.keys() - _FIELDS)
        need(not unknown, file, f"{', '.join(unknown)} mean nothing")
        opsets = [row[key] for key in ("min_opset", "opset", "max_opset")]
        need(all(map(is_count, opsets)) and opsets == sorted(opsets), file, f"opsets {opsets}")
        need_fields(row, _KINDS, file, name)


#: Each opset of a row is looked up by itself, so that a row has few.
_MOST_OPSET = 1000


def check_kernels(data: dict[str, Any], file: str) -> None:
    """Check a kernel table."""
    need(is_name(data.get("source")), file, "it has a source")
    operators = data.get("operators")
    need(isinstance(operators, dict) and bool(operators), file, "operators are an object")
    for op, rows in dict(operators or {}).items():
        need(is_text(op) and isinstance(rows, list) and bool(rows), file, f"{op}: rows are a list")
        for row in rows:
            fine = isinstance(row, list) and len(row) == 3 and is_range(row[:2]) and row[1] <= _MOST_OPSET
            need(fine and isinstance(row[2], dict), file, f"{op}: a row is two opsets and types by parameter")
            _check_types(row[2], {*DTYPE_BY_NAME, INSERTED}, file, op)


def _check_types(types: dict[str, Any], known: Collection[str], file: str, op: str) -> None:
    """Check the names of element types that a row has by parameter."""
    for parameter, names in types.items():
        need(is_text(parameter) and is_text(names), file, f"{op}: types are one text")
        unknown = sorted(set(names.split()).difference(known))
        need(not unknown, file, f"{op}: there is no type {', '.join(unknown)}")


#: The names of ONNX's element types, as its declarations write them.
_ELEMENTS = frozenset([name.lower() for name, _ in TensorProto.DataType.items()])


def check_cpu_operators(data: dict[str, Any], file: str) -> None:
    """Check the table of what ONNX Runtime's CPU provider runs."""
    need(is_name(data.get("source")), file, "it has a source")
    need(is_count(data.get("newest_opset")), file, "it names the newest opset that was read")
    operators = data.get("operators")
    need(isinstance(operators, dict) and bool(operators), file, "operators are an object")
    for op, rows in dict(operators or {}).items():
        need(is_text(op) and isinstance(rows, list) and bool(rows), file, f"{op}: rows are a list")
        for row in rows:
            need(isinstance(row, list) and len(row) == 3, file, f"{op}: a row is two versions and types by parameter")
            first, last, types = row
            fine = is_count(first) and (last is None or (is_count(last) and first <= last))
            need(fine and isinstance(types, dict), file, f"{op}: a row is two versions and types by parameter")
            _check_types(types, _ELEMENTS, file, op)


_NUMBERS = ("node", "read", "run", "write")


def check_costs(data: dict[str, Any], file: str) -> None:
    """Check a cost model."""
    for key in ("source", "date"):
        need(is_text(data.get(key)) and data[key] != "", file, f"it has a {key}")
    kernels = data.get("kernels")
    need(isinstance(kernels, dict), file, "kernels are an object")
    rows: set[tuple[str, str]] = set()
    for name, kinds in dict(kernels or {}).items():
        need(
            is_text(name) and isinstance(kinds, dict) and bool(kinds), file, f"{name}: rows are an object by data types"
        )
        for dtypes, numbers in kinds.items():
            for dtype in dtypes.split():
                need(dtype == "any" or dtype in DTYPE_BY_NAME, file, f"{name}: there is no type {dtype}")
                need((name, dtype) not in rows, file, f"{name}: there are two rows of {dtype}")
                _check_rates(numbers, file, f"{name} {dtypes}")
                rows.add((name, dtype))
    need(("others", "any") in rows, file, "there is a row others for any")


def _check_rates(numbers: Any, file: str, where: str) -> None:
    fine = isinstance(numbers, list) and len(numbers) == len(_NUMBERS)
    fine = fine and all(map(is_number, numbers))
    need(fine, file, f"{where}: a row is {len(_NUMBERS)} numbers of 0 or more: {', '.join(_NUMBERS)}")


_WRONG = {
    **dict.fromkeys(("operators", "seen"), list_of(is_name)),
    **dict.fromkeys(("types", "what", "instead", "source"), is_name),
    **dict.fromkeys(("since", "until"), maybe(is_level)),
}


def check_wrong(data: dict[str, Any], file: str) -> None:
    """Check the kernels that are not to be trusted."""
    need(isinstance(data.get("wrong"), list), file, "wrong is a list")
    for row in data["wrong"]:
        need_fields(row, _WRONG, file, "a row")
        missing, unknown = sorted(_WRONG.keys() - row.keys()), sorted(row.keys() - _WRONG.keys())
        need(not missing, file, f"{', '.join(missing)} must be said")
        need(not unknown, file, f"{', '.join(unknown)} mean nothing")
        check_types(row["types"], file, row["what"])


_COST = {"dispatch_us": is_number, "bytes_per_us": is_number, "source": is_name}
_DISPATCH = {
    **dict.fromkeys(("count", "per_row", "apart", "before"), is_count),
    "source": is_name,
    "operands": map_of(is_count),
}


def check_dispatch(document: dict[str, Any], file: str) -> None:
    """Check the counts of dispatches, and what one costs."""
    cost = document.get("cost", {})
    need_fields(cost, _COST, file, "cost")
    need(cost.keys() == _COST.keys(), file, "cost and its source must be said")
    need(min(cost["dispatch_us"], cost["bytes_per_us"]) > 0, file, "what work costs is above 0")
    need(isinstance(document.get("rows"), list), file, "rows is a list")
    seen: set[str] = set()
    for row in document["rows"]:
        need(isinstance(row, dict) and list_of(is_name)(row.get("operators")), file, "a row has operators")
        _check_dispatches({key: value for key, value in row.items() if key != "operators"}, file)
        twice = [op for op in row["operators"] if op in seen]
        need(not twice, file, f"{', '.join(twice)} has two rows")
        seen.update(row["operators"])
    _check_dispatches(document.get("default"), file)


def _check_dispatches(facts: Any, file: str) -> None:
    need_fields(facts, _DISPATCH, file, "a row")
    need({"count", "source"} <= facts.keys() <= _DISPATCH.keys(), file, "a row has a count and a source")


def check_levels(data: dict[str, Any], file: str) -> None:
    """Check the feature levels: oldest first, and the least that is asked for."""
    need(list_of(lambda row: isinstance(row, dict))(data.get("levels")), file, "levels is a list of objects")
    levels = [row.get("level") for row in data["levels"]]
    need(bool(levels) and all(map(is_level, levels)), file, "levels are texts")
    need(levels == sorted(set(levels), key=level_key), file, "levels are in order")
    need(is_level(data.get("least")) and data["least"] in levels, file, "least is one of the levels")


def check_operators(data: dict[str, Any], file: str, levels: Sequence[str]) -> None:
    """Check DirectML's operators by feature level; ``levels`` are those that there are."""
    need(isinstance(data.get("rows"), list), file, "rows is a list")
    names: set[str] = set()
    for row in data["rows"]:
        need(isinstance(row, dict) and is_name(row.get("operator")), file, "a row has an operator")
        base = row["operator"]
        need(is_text(row.get("functions", "")), file, f"{base}: functions cannot be that")
        for function in row.get("functions", "").split() or [""]:
            name = f"{base}.{function}" if function else base
            need(name not in names, file, f"{name} has two rows")
            names.add(name)
        _check_operator(row, file, levels)
    without = data.get("without_limits", {})
    need(map_of(is_name)(without), file, "without_limits are reasons by operator")
    need(names.isdisjoint(without), file, "without_limits names operators that have no row")


def _check_operator(row: dict[str, Any], file: str, known: Sequence[str]) -> None:
    base = row["operator"]
    need(is_name(row.get("source")), file, f"{base}: a row has a source")
    need_fields(row, dict.fromkeys(("introduced", "optional", "measured"), is_text), file, base)
    need(row.get("introduced") in known, file, f"{base}: introduced is a feature level")
    pairs = list_of(lambda pair: isinstance(pair, list) and len(pair) == 2 and is_text(pair[0]))
    need(pairs(row.get("levels", [])), file, f"{base}: levels are feature levels with tensors")
    levels = row.get("levels", ())
    for _, tensors in levels:
        _check_tensors(tensors, file, base)
    keys = [level_key(level) for level, _ in levels if level in known]
    need(len(keys) == len(levels) > 0, file, f"{base}: levels are feature levels")
    need(keys == sorted(keys, reverse=True), file, f"{base}: levels are newest first")


def _check_tensors(tensors: Any, file: str, base: str) -> None:
    need(isinstance(tensors, dict) and bool(tensors), file, f"{base}: a level has tensors")
    for name, cells in tensors.items():
        need(isinstance(cells, list) and len(cells) == 3, file, f"{base}.{name}: ranks and types")
        least, most, types = cells
        need(is_text(name) and is_count(least) and is_count(most) and 0 < least <= most, file, f"{base}: ranks")
        check_types(types, file, f"{base}.{name}")


_ROW: dict[str, Check] = {
    "domain": is_text,
    "opsets": list_of(is_range),
    **dict.fromkeys(("directml", "inputs", "outputs"), list_of(is_text)),
    "tensors": maybe(map_of(is_text)),
    **dict.fromkeys(("unread", "host_operands", "host_results"), list_of(is_count)),
    **dict.fromkeys(("graph", "host"), is_flag),
}
_EARLIER: dict[str, Check] = {
    "until": is_level,
    "directml": list_of(is_text),
    "tensors": maybe(map_of(is_text)),
    "source": is_name,
}
_KERNEL: dict[str, Check] = {
    "constant": list_of(is_count),
    "graph_inputs": maybe(is_count),
    "query": is_text,
    **dict.fromkeys(("directml", "int64"), list_of(is_name)),
    "not_onnx": map_of(is_text),
    **dict.fromkeys(("release", "types_release"), lambda value: value == "" or is_level(value)),
}
_FAILURE: dict[str, Check] = {
    **dict.fromkeys(("id", "operators", "effect", "what", "repair", "source"), is_name),
    "domain": is_text,
    "since": list_of(is_count),
    **dict.fromkeys(("types", "contains"), maybe(map_of(is_text))),
    **dict.fromkeys(("ranks_over", "results_over", "operands_over"), maybe(is_count)),
    "empty": is_flag,
    **dict.fromkeys(("attributes", "attributes_not"), maybe(map_of(is_plain))),
    "negative": is_text,
    **dict.fromkeys(("from", "until"), is_level),
    **dict.fromkeys(("missing", "given", "results_given", "shapes_differ"), list_of(is_count)),
    **dict.fromkeys(("ranks_under", "resized_over", "letters_over", "constant_scalar"), maybe(is_count)),
    "mixed": list_of(is_name),
    "when": is_name,
    "unless": map_of(is_text),
}
_REWRITE: dict[str, Check] = {
    **dict.fromkeys(("pass", "makes", "source"), is_name),
    "domain": is_text,
    "level": is_count,
    "opsets": is_range,
    **dict.fromkeys(("patterns", "devices"), list_of(is_name)),
    "when": is_name,
}
_EFFECTS = ("fails", "wrong", "imprecise", "advice", "cpu")


_PROVIDER: dict[str, Check] = {
    **dict.fromkeys(("source", "cite", "date", "device", "dispatches"), is_text),
    "known_opsets": is_range,
    "fuses": is_flag,
    "session": lambda value: isinstance(value, dict),
}
_SESSION: dict[str, Check] = {
    "provider": is_name,
    **dict.fromkeys(("provider_options", "int64_options", "plain_layout"), map_of(is_text)),
    "session_options": map_of(is_plain),
}


def check_provider(data: dict[str, Any], file: str) -> None:
    """Check the table of an execution provider."""
    for key in ("rows", "failures", *_PROVIDER):
        need(key in data, file, f"{key} must be said")
    need_fields(data, _PROVIDER, file, "it")
    need(
        {"provider", "provider_options", "session_options"} <= data["session"].keys() <= _SESSION.keys(),
        file,
        "session",
    )
    need_fields(data["session"], _SESSION, file, "session")
    for key in ("rows", "failures"):
        need(isinstance(data[key], list), file, f"{key} is a list")
    seen: set[tuple[str, str]] = set()
    for row in data["rows"]:
        need(isinstance(row, dict) and is_name(row.get("op")), file, "a row has an op")
        where = (str(row.get("domain", "")), str(row["op"]))
        need(where not in seen, file, f"{where[1]} has two rows")
        seen.add(where)
        _check_row(row, file)
    for failure in data["failures"]:
        _check_failure(failure, file)


_VERDICTS = ("right", "rounding", "wrong", "fails")
_TRANSFORMER: dict[str, Check] = {
    **dict.fromkeys(("pass", "providers", "takes", "makes", "source"), is_name),
    **dict.fromkeys(("from", "until", "when"), is_name),
    "level": is_count,
    "kept_apart": is_flag,
}


def check_optimizer(data: dict[str, Any], file: str) -> None:
    """Check the table of ONNX Runtime's own transformers, and the list of those that decide where nodes run."""
    for key, checks, needed in (
        ("transformers", _TRANSFORMER, ("pass", "level", "providers", "verdict", "takes", "makes", "source")),
        ("rewrites", _REWRITE, ("pass", "level", "makes", "opsets", "source")),
    ):
        need(isinstance(data.get(key), list), file, f"{key} is a list")
        for row in data[key]:
            need_fields(row, checks, file, f"a row of {key}")
            missing = [name for name in needed if name not in row]
            need(not missing, file, f"a row of {key} has {', '.join(missing)}")
    for row in data["transformers"]:
        need(row["verdict"] in _VERDICTS, file, f"{row['pass']}: the verdict is one of {', '.join(_VERDICTS)}")
        is_faulty = row["verdict"] in ("wrong", "fails")
        need(is_faulty == ("when" in row) or not is_faulty, file, f"{row['pass']}: when must be said")
    names = {row["pass"] for row in data["transformers"]}
    unknown = [r["pass"] for r in data["rewrites"] if names.isdisjoint((r["pass"], f"{r['pass']}L{r['level']}"))]
    need(not unknown, file, f"there is no transformer {', '.join(unknown)}")


def _check_row(row: dict[str, Any], file: str) -> None:
    op = row["op"]
    need(isinstance(row.get("kernels"), list) and bool(row["kernels"]), file, f"{op}: a row has kernels")
    need_fields(row, _ROW, file, op)
    for kernel in row["kernels"]:
        need_fields(kernel, _KERNEL, file, f"{op}: a kernel")
        need(is_count(kernel.get("since")), file, f"{op}: a kernel has the version that it is for")
        need(isinstance(kernel.get("types"), dict), file, f"{op}: a kernel has types")
        for name, text in (*kernel["types"].items(), *kernel.get("not_onnx", {}).items()):
            check_types(text, file, f"{op} {name}")
    forms = row.get("earlier", [])
    need(isinstance(forms, list), file, f"{op}: earlier is a list")
    for form in forms:
        need_fields(form, _EARLIER, file, f"{op}: an earlier form")
        missing = [key for key in ("until", "directml", "source") if key not in form]
        need(not missing, file, f"{op}: an earlier form has {', '.join(missing)}")
    keys = [level_key(form["until"]) for form in forms]
    need(keys == sorted(set(keys)), file, f"{op}: earlier forms are oldest first")


def _check_failure(failure: Any, file: str) -> None:
    need(isinstance(failure, dict), file, "a failure is an object")
    for key in ("id", "operators", "effect", "what", "repair", "source"):
        need(bool(failure.get(key)), file, f"failure {failure.get('id')}: {key} must be said")
    need_fields(failure, _FAILURE, file, "a failure")
    need(failure["effect"] in _EFFECTS, file, f"failure {failure['id']}: effect is one of {', '.join(_EFFECTS)}")
    for text in (failure.get("types") or {}).values():
        check_types(text, file, failure["id"])
