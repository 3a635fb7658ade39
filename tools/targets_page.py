"""The generated parts of ``docs/targets.md``: what the tables of the package say of DirectML.

``python -m tools.targets_page --write`` rewrites them.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dmlc.passes.repair import RULES
from dmlc.placement.advice import code_of
from dmlc.placement.faults import AROUND, CONDITIONS
from dmlc.targets.dispatch import parse_rows
from dmlc.targets.target import load_data, load_target, target_names

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "targets.md"
COMMAND = "python -m tools.targets_page --write"
_EFFECTS = {
    "fails": "the session is not created",
    "wrong": "wrong numbers",
    "imprecise": "other numbers",
    "advice": "bad for some data or sizes",
    "cpu": "runs on the CPU",
}
#: Faults that are met without a rule of ``repair``.
_ELSEWHERE = {
    "reduce-integers": "`exact-mean` (exact)",
    "reduce-unsigned": "`exact-mean` (exact)",
    "group-norm": "`lower-group-norm` (reassociates)",
    "fused-output": "the output becomes a copy (Identity)",
    "norm-f16": "`--accumulate f32`",
    "skip-norm-f16": "`--accumulate f32`",
    "lp-pool-f16": "`--accumulate f32`",
    "sum-f16": "`--accumulate f32`",
}


def page() -> str:
    """Return the page with its generated parts as the tables have them."""
    text = PAGE.read_text(encoding="utf-8")
    for name, lines in _parts().items():
        pattern = rf"(<!-- {name}: .*? -->\n)(.*?)(<!-- end of {name} -->)"
        found = re.findall(pattern, text, flags=re.S)
        if len(found) != 1:
            raise ValueError(f"{PAGE.name} has {len(found)} parts named {name}")
        first, old, last = found[0]
        text = text.replace(first + old + last, "".join((first, *[f"{line}\n" for line in lines], last)))
    return text


def _parts() -> Mapping[str, Sequence[str]]:
    provider = load_data("dml_ep")
    notes = json.loads((ROOT / "tools" / "targets_page.json").read_text(encoding="utf-8"))
    return {
        "targets": _table(("target", "opsets", "description", "source"), map(_target, target_names())),
        "faults": _table(
            ("known fault", "nodes", "where", "releases", "on DirectML", "answer of dmlc", "source"),
            (_fault(row) for row in provider["failures"]),
        ),
        "rewrites": _table(
            ("pass", "level", "opsets", "makes", "source"), map(_rewrite, load_data("ort_optimizer")["rewrites"])
        ),
        "limits": _table(("DirectML operator", "from level", "tensors of fewer axes", "source"), _limits()),
        "dispatches": _table(("nodes", "dispatches", "source"), _dispatches()),
        "readings": _table(
            ("reading", "state", "place, or reason", "source"),
            ((row["what"], row["state"], row["where"], row["source"]) for row in notes["readings"]),
        ),
        "trials": [
            f"{number}. {row['what']}. Decides: {row['decides']}. How: {row['how']}."
            for number, row in enumerate(notes["trials"], 1)
        ],
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _target(name: str) -> Sequence[str]:
    target = load_target(name)
    raw = load_data(f"targets/{name.replace(':', '-')}")
    return f"`{name}`", f"{target.min_opset} to {target.max_opset}", target.summary, raw["source"]


# --- faults


def _fault(row: Mapping[str, Any]) -> Sequence[str]:
    nodes = "every node" if row["operators"] == "*" else ", ".join(f"`{op}`" for op in row["operators"].split())
    domain = f" of {row['domain']}" if row.get("domain") else ""
    return (
        f"`{row['id']}`",
        nodes + domain,
        _trigger(row) or "always",
        _releases(row),
        f"{_EFFECTS[row['effect']]}: {row['what'].removesuffix(': the session is not created')}",
        _answer(row),
        row["source"],
    )


def _releases(row: Mapping[str, Any]) -> str:
    first, last = row.get("from"), row.get("until")
    return f"up to {last}" if last else f"from {first} on" if first else "all"


def _answer(row: Mapping[str, Any]) -> str:
    found = [f"`{rule.name}` ({rule.rewrite_class})" for rule in RULES if row["id"] in rule.repairs]
    if row["id"] in _ELSEWHERE:
        found.append(_ELSEWHERE[row["id"]])
    code = code_of(row["effect"]).id
    verb = {"E": "refuses", "W": "warns"}[code[0]] if row["effect"] != "advice" else "advises"
    said = f"{verb} ({code}); instead: {row['repair']}"
    return f"repairs: {', '.join(found)}; else {said}" if found else said


def _trigger(row: Mapping[str, Any]) -> str:
    """Return the conditions of a row in words; all must hold."""
    parts = [
        f"the kernel of opset {_or(row['since'])}" if "since" in row else "",
        "; ".join(f"{letter} is {_or(names.split())}" for letter, names in row.get("types", {}).items()),
        f"more than {row['ranks_over']} axes" if "ranks_over" in row else "",
        f"fewer than {row['ranks_under']} axes" if "ranks_under" in row else "",
        "an empty operand, and a result that is not" if row.get("empty") else "",
        f"more than {_count(row, 'results_over', 'result')}" if "results_over" in row else "",
        f"more than {_count(row, 'operands_over', 'operand')}" if "operands_over" in row else "",
        *[f"`{name}={value}`" for name, value in row.get("attributes", {}).items()],
        *[f"`{name}` other than {value}" for name, value in row.get("attributes_not", {}).items()],
        *[f"`{name}` with `{value}`" for name, value in row.get("contains", {}).items()],
        f"a negative number in `{row['negative']}`" if "negative" in row else "",
        f"without operand {_or(row['missing'])}" if "missing" in row else "",
        f"with operand {_or(row['given'])}" if "given" in row else "",
        f"with result {_or(row['results_given'])}" if "results_given" in row else "",
        f"operands {row['shapes_differ'][0]} and {row['shapes_differ'][1]} broadcast" if "shapes_differ" in row else "",
        f"{_or(row['mixed'])} differ" if "mixed" in row else "",
        f"more than {row['resized_over']} axes that are not 1" if "resized_over" in row else "",
        f"more than {row['letters_over']} letters" if "letters_over" in row else "",
        f"operand {row['constant_scalar']} is a constant of one element" if "constant_scalar" in row else "",
        _condition(row["when"]) if "when" in row else "",
    ]
    return "; ".join(filter(None, parts))


def _condition(name: str) -> str:
    function = AROUND.get(name) or CONDITIONS[name]
    text = (function.__doc__ or "").split("\n")[0]
    return text.removeprefix("True if ").removeprefix("Return whether ").rstrip(".")


def _count(row: Mapping[str, Any], key: str, noun: str) -> str:
    return f"{row[key]} {noun}" + ("" if row[key] == 1 else "s")


def _or(values: Iterable[Any]) -> str:
    *first, last = map(str, values)
    return f"{', '.join(first)} or {last}" if first else last


# --- other tables


def _rewrite(row: Mapping[str, Any]) -> Sequence[str]:
    first, last = row["opsets"]
    made = f"{row['domain']}.{row['makes']}" if "domain" in row else row["makes"]
    return f"`{row['pass']}`", str(row["level"]), f"{first} to {last}", f"`{made}`", row["source"]


def _limits() -> list[Sequence[str]]:
    """The operators of which a tensor takes fewer than 8 axes at the newest level."""
    out: list[Sequence[str]] = []
    for row in load_data("directml_operators")["rows"]:
        level, tensors = row["levels"][0]
        few = [f"{name} {least} to {most}" for name, (least, most, _) in tensors.items() if most < 8]
        if few:
            functions = f" ({row['functions']})" if row.get("functions") else ""
            out.append((f"`{row['operator']}`{functions}", level, ", ".join(few), row["source"]))
    return out


def _dispatches() -> list[Sequence[str]]:
    document = load_data("dispatch")
    default, _ = parse_rows(document)
    out: list[Sequence[str]] = [("every other", str(default.count), default.source)]
    for row in document["rows"]:
        count = str(row["count"])
        count += f", {row['per_row']} more for each row" if "per_row" in row else ""
        count += f", {row['apart']} more for axes apart" if "apart" in row else ""
        count += "".join(f", {more} more with operand {index}" for index, more in row.get("operands", {}).items())
        out.append((", ".join(f"`{op}`" for op in row["operators"]), count, row["source"]))
    return out


def main() -> int:
    """Write the page, or say whether it is current."""
    parser = argparse.ArgumentParser(prog="python -m tools.targets_page", description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the generated parts")
    made = page()
    if parser.parse_args().write:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    is_current = made == PAGE.read_text(encoding="utf-8")
    print("current" if is_current else f"not current: {COMMAND}")
    return 0 if is_current else 1


if __name__ == "__main__":
    raise SystemExit(main())
