"""Pages of targets, of known faults of DirectML's provider, and of the tables that placement reads."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx.printer

from dmlc.passes.repair import RULES
from dmlc.placement.advice import code_of
from dmlc.placement.faults import AROUND, CONDITIONS
from dmlc.targets import load_target, target_names
from dmlc.targets.dispatch import parse_rows
from dmlc.targets.target import load_data
from tools.fault_models import FACTS
from tools.generated_files import write_or_compare
from tools.site.sources import ROOT
from tools.site.writing import Pages, choice, code, console, empty_folder, facts, fence, table

_EFFECTS = {
    "fails": "the session is not created",
    "wrong": "wrong numbers",
    "imprecise": "less exact numbers",
    "advice": "bad for some data or sizes",
    "cpu": "runs on the CPU",
}
#: Faults that something else than a rule of ``repair`` meets.
_ELSEWHERE = {
    "reduce-integers": "`exact-mean`",
    "reduce-unsigned": "`exact-mean`",
    "group-norm": "`lower-group-norm`",
    "fused-output": "the output becomes a copy (Identity)",
    "norm-f16": "`--accumulate f32`",
    "skip-norm-f16": "`--accumulate f32`",
    "lp-pool-f16": "`--accumulate f32`",
    "sum-f16": "`--accumulate f32`",
}

FAULTS = ROOT / "docs" / "known_faults.md"
_FAULTS = """# Known faults of DirectML's provider

ONNX Runtime's DirectML provider has {number} known faults. Rules of pass `repair` rewrite the nodes of {repaired}.
dmlc names the others. None was seen on a GPU here. The sources are the provider's code, reports, and runs on a
software device.

`dmlc targets directml --op GroupNormalization` prints the faults of one operator with their sources. The site has a
page for each fault: its releases, its source, and the smallest model that shows it.

Written by `python -m tools.site.target_pages --write`.
"""


# --- targets


def target_pages() -> Pages:
    """Return a page for each target, and their list with the tables that all of them share."""
    names = target_names()
    rows = [[f"[{name}]({_file(name)}.md)", load_target(name).summary] for name in names]
    text = "# Targets\n\nA target is what dmlc writes code for: `dmlc compile --target NAME`.\n\n"
    text += table(("target", "code for"), rows)
    shared = {"directml_limits.md": _limits(), "dispatches.md": _dispatches(), "optimizer_rewrites.md": _rewrites()}
    pages = {f"reference/targets/{_file(name)}.md": f"# Target {name}\n\n{console('targets', name)}" for name in names}
    return {
        "reference/targets/index.md": text,
        **pages,
        **{f"reference/targets/{name}": page for name, page in shared.items()},
        "reference/targets/transformers.md": _transformers(),
    }


def _file(name: str) -> str:
    return name.replace(":", "-")


def _limits() -> str:
    """Return the operators of which a tensor takes fewer than 8 axes at the newest level."""
    rows = []
    for row in load_data("directml_operators")["rows"]:
        level, tensors = row["levels"][0]
        few = [f"{name} {least} to {most}" for name, (least, most, _) in tensors.items() if most < 8]
        if few:
            functions = f" ({row['functions']})" if row.get("functions") else ""
            rows.append((f"`{row['operator']}`{functions}", level, ", ".join(few), row["source"]))
    head = "# Axes of DirectML's operators\n\nDirectML takes tensors of up to 8 axes. These operators take fewer.\n\n"
    return head + table(("DirectML operator", "from level", "axes of tensors", "source"), rows)


def _dispatches() -> str:
    found = load_data("dispatch")
    default, _ = parse_rows(found)
    rows = [("every other", str(default.count), default.source)]
    for row in found["rows"]:
        count = str(row["count"])
        count += f", {row['per_row']} more for each row" if "per_row" in row else ""
        count += f", {row['apart']} more for axes apart" if "apart" in row else ""
        count += "".join(f", {more} more with operand {index}" for index, more in row.get("operands", {}).items())
        rows.append((", ".join(map(code, row["operators"])), count, row["source"]))
    head = "# Dispatches of a node\n\nThe number of operators that the GPU is asked to run for a node: an estimate.\n\n"
    return head + table(("nodes", "dispatches", "source"), rows)


def _rewrites() -> str:
    rows = []
    for row in load_data("ort_optimizer")["rewrites"]:
        first, last = row["opsets"]
        made = f"{row['domain']}.{row['makes']}" if "domain" in row else row["makes"]
        rows.append((code(row["pass"]), str(row["level"]), f"{first} to {last}", code(made), row["source"]))
    head = (
        "# Rewrites of ONNX Runtime that change placement\n\nONNX Runtime rewrites a model while it creates a session. "
        "The placement report describes the effect of these rewrites.\n\n"
    )
    return head + table(("pass", "level", "opsets", "makes", "source"), rows)


_VERDICTS = {
    "right": "right",
    "rounding": "right up to rounding",
    "wrong": "**wrong numbers**",
    "fails": "**does not load or run**",
}


def _transformers() -> str:
    head = (
        "# Transformers of ONNX Runtime's optimizer\n\n[ONNX Runtime's own optimizer](../../optimizer.md) explains the "
        "columns. Level 0 runs at each level, with optimizations turned off too.\n\n"
    )
    columns = ("transformer", "level", "providers", "releases", "takes", "makes", "verdict", "when", "dmlc", "source")
    return head + table(columns, map(_transformer, load_data("ort_optimizer")["transformers"]))


def _transformer(row: Mapping[str, Any]) -> Sequence[str]:
    answer = "kept apart" if row.get("kept_apart") else "not kept apart" if row["verdict"] in ("wrong", "fails") else ""
    return (
        code(row["pass"]),
        str(row["level"]),
        row["providers"],
        _releases(row),
        row["takes"],
        row["makes"],
        _VERDICTS[row["verdict"]],
        row.get("when", ""),
        answer,
        re.sub(r"(issue|PR) #?(\d+)", r"\1 \2", row["source"]),
    )


# --- faults


def fault_pages() -> Pages:
    """Return a page for each known fault."""
    return {f"reference/faults/{row['id']}.md": _fault_page(row) for row in load_data("dml_ep")["failures"]}


def fault_list() -> str:
    """Return the list of the faults, the worst first. The repository has this page too, for its readers."""
    faults = load_data("dml_ep")["failures"]
    text = _FAULTS.format(number=len(faults), repaired=len([row for row in faults if _rules(row)]))
    for effect, title in _EFFECTS.items():
        rows = [
            (code(row["id"]), _nodes(row), row["what"].partition(": the session")[0], _repairs(row))
            for row in faults
            if row["effect"] == effect
        ]
        text += f"\n## {title[0].upper()}{title[1:]}: {len(rows)}\n\n"
        text += table(("fault", "nodes", "on DirectML", "repaired by"), rows)
    return text


def _fault_page(row: Mapping[str, Any]) -> str:
    nodes = row["operators"].replace("*", "Every node").replace(" ", ", ")
    text = f"# {nodes} on DirectML: {_EFFECTS[row['effect']]} ({row['id']})\n\n{facts(fault_rows(row))}"
    if row["id"] not in FACTS:
        return text
    model, _ = FACTS[row["id"]]()
    with empty_folder():
        onnx.save(model, "fault.onnx")
        shown = console("check", "fault.onnx")
    return f"{text}\n## Example\n\nThe smallest model with the fault:\n\n{fence(onnx.printer.to_text(model))}\n{shown}"


def fault_rows(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what is known of a fault."""
    return [
        ("fault", code(row["id"])),
        ("nodes", _nodes(row)),
        ("when", _trigger(row) or "always"),
        ("releases of ONNX Runtime", _releases(row)),
        ("on DirectML", f"{_EFFECTS[row['effect']]}: {row['what'].removesuffix(': the session is not created')}"),
        ("repaired by", _repairs(row) or "nothing"),
        ("not repaired", f"reported as {code_of(row['effect']).id}"),
        ("write instead", row["repair"]),
        ("source", row["source"]),
        ("all faults", "[the list](../../known_faults.md)"),
    ]


def _nodes(row: Mapping[str, Any]) -> str:
    nodes = "every node" if row["operators"] == "*" else ", ".join(map(code, row["operators"].split()))
    return nodes + (f" of {row['domain']}" if row.get("domain") else "")


def _releases(row: Mapping[str, Any]) -> str:
    first, last = row.get("from"), row.get("until")
    if first and last:
        return f"{first} to {last}"
    return f"up to {last}" if last else f"from {first} on" if first else "all"


def _rules(row: Mapping[str, Any]) -> list[str]:
    return [rule.name for rule in RULES if row["id"] in rule.repairs]


def _repairs(row: Mapping[str, Any]) -> str:
    return ", ".join([*map(code, _rules(row)), *([_ELSEWHERE[row["id"]]] if row["id"] in _ELSEWHERE else [])])


def _trigger(row: Mapping[str, Any]) -> str:
    """Return the conditions of a row in words; all must hold."""
    parts = [
        f"the kernel of opset {choice(row['since'])}" if "since" in row else "",
        "; ".join(f"{letter} is {choice(names.split())}" for letter, names in row.get("types", {}).items()),
        f"more than {row['ranks_over']} axes" if "ranks_over" in row else "",
        f"fewer than {row['ranks_under']} axes" if "ranks_under" in row else "",
        "an empty operand, and a result that is not" if row.get("empty") else "",
        f"more than {_count(row, 'results_over', 'result')}" if "results_over" in row else "",
        f"more than {_count(row, 'operands_over', 'operand')}" if "operands_over" in row else "",
        *[f"`{name}={value}`" for name, value in row.get("attributes", {}).items()],
        *[f"`{name}` other than {value}" for name, value in row.get("attributes_not", {}).items()],
        *[f"`{name}` with `{value}`" for name, value in row.get("contains", {}).items()],
        f"a negative number in `{row['negative']}`" if "negative" in row else "",
        f"without operand {choice(row['missing'])}" if "missing" in row else "",
        f"with operand {choice(row['given'])}" if "given" in row else "",
        f"with result {choice(row['results_given'])}" if "results_given" in row else "",
        f"operands {row['shapes_differ'][0]} and {row['shapes_differ'][1]} broadcast" if "shapes_differ" in row else "",
        f"{choice(row['mixed'])} differ" if "mixed" in row else "",
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


if __name__ == "__main__":
    sys.exit(write_or_compare("site.target_pages", __doc__, {FAULTS: fault_list()}))
