"""Forms that the documents of several verbs share."""

from __future__ import annotations

from tools.output_schemas.forms import (
    COUNT,
    FLAG,
    NUMBER,
    REAL,
    SIZE,
    TEXT,
    TEXTS,
    Form,
    by_name,
    maybe,
    record,
    ref,
    rows,
    words,
)

_SPAN = {"file": TEXT, "line": COUNT, "column": COUNT, "end_line": COUNT, "end_column": COUNT}
_CLASS = words("exact", "reassociates", "range")
_LARGEST = {"absolute": maybe(REAL), "relative": maybe(REAL), "relative_to_largest": maybe(REAL), "ulp": maybe(REAL)}
_NODE = {"name": TEXT, "operator": TEXT, "inputs": TEXTS, "outputs": TEXTS, "places": TEXTS}

FIX: dict[str, Form] = {"title": TEXT, "safe": FLAG, "edits": rows(record({**_SPAN, "text": TEXT}))}

SHARED: dict[str, Form] = {
    "diagnostic": record(
        {
            "code": {"type": "string", "pattern": "^[EWI][0-9]{4}$"},
            "severity": words("error", "warning", "advice"),
            "message": TEXT,
            "file": maybe(TEXT),
            "labels": rows(record({**_SPAN, "text": TEXT})),
            "help": TEXT,
            "notes": TEXTS,
            "fix": maybe(record(FIX)),
        }
    ),
    "warning_group": record(
        {
            "code": {"type": "string", "pattern": "^[EWI][0-9]{4}$"},
            "severity": words("error", "warning", "advice"),
            "message": TEXT,
            "place": TEXT,
            "nodes": by_name(TEXTS),
            "help": TEXT,
            "notes": TEXTS,
        }
    ),
    "typed": record({"name": TEXT, "dtype": TEXT, "shape": rows(SIZE)}),
    "bounds": record({"min": NUMBER, "max": {"anyOf": [NUMBER, {"const": "inf"}]}}),
    "class": _CLASS,
    "rewrite": record(
        {"rule": TEXT, "class": _CLASS, "text": TEXT, "before": TEXTS, "after": TEXTS, "places": TEXTS}, what=TEXT
    ),
    "transfers": record(
        {
            "count": COUNT,
            "bytes": SIZE,
            "possible": COUNT,
            "edges": rows(
                record(
                    {
                        "value": TEXT,
                        "type": TEXT,
                        "from": TEXT,
                        "to": TEXT,
                        "readers": TEXTS,
                        "from_device": TEXT,
                        "to_device": TEXT,
                        "bytes": SIZE,
                        "open_dims": TEXTS,
                        "cure": TEXT,
                    }
                )
            ),
        }
    ),
    "model_size": record(
        {
            "nodes": by_name(COUNT),
            "total": COUNT,
            "on_cpu": maybe(COUNT),
            "copies": maybe(COUNT),
            "fused_graphs": maybe(COUNT),
            "dispatches": SIZE,
            "bytes_moved": maybe(SIZE),
            "unknown": COUNT,
            "opset": COUNT,
            "bytes": COUNT,
            "external_bytes": COUNT,
        }
    ),
    "next_step": record({"command": TEXT, "effect": TEXT}),
    "requires": record(
        {"onnxruntime": maybe(TEXT), "opset": COUNT, "feature_level": maybe(TEXT), "device_types": TEXTS}
    ),
    "compared_output": record(
        {
            "name": TEXT,
            "status": TEXT,
            "inputs": by_name(COUNT),
            "largest_error": record(_LARGEST),
            "signal_to_noise": maybe(REAL),
            "cosine": maybe(REAL),
            "zeros_of_another_sign": COUNT,
            "reasons": by_name(COUNT),
        },
        first_difference=record(
            {
                "input": COUNT,
                "pattern": TEXT,
                "shapes": by_name(rows(COUNT)),
                "what": TEXT,
                "index": maybe(rows(COUNT)),
                "original": {},
                "result": {},
                "elements": COUNT,
                "of": COUNT,
            }
        ),
    ),
    "skipped_input": record({"input": COUNT, "pattern": TEXT, "message": TEXT}),
    "node_summary": record(_NODE),
    "node_record": record({**_NODE, "from": TEXTS, "rules": TEXTS}),
    "worst_element": record(
        {
            "index": rows(COUNT),
            "a": {},
            "b": {},
            "absolute": maybe(REAL),
            "relative_to_largest": maybe(REAL),
            "ulp": maybe(REAL),
            "elements": COUNT,
            "of": COUNT,
        }
    ),
    "constant_change": record(
        {
            "name": TEXT,
            "status": words("added", "removed", "changed", "retyped"),
            "a": maybe(TEXT),
            "b": maybe(TEXT),
            "worst": maybe(ref("worst_element")),
        }
    ),
    "target": record(
        {
            "name": TEXT,
            "summary": TEXT,
            "opset": COUNT,
            "min_opset": COUNT,
            "max_opset": COUNT,
            "ir_version": COUNT,
            "source": TEXT,
            "kernels": maybe(TEXT),
            "installed_kernels": FLAG,
            "own_schemas": FLAG,
            "native_f16": FLAG,
            "max_rank": maybe(COUNT),
            "provider": maybe(TEXT),
            "release": maybe(TEXT),
            "feature_level": maybe(TEXT),
            "costs": maybe(TEXT),
            "code": TEXT,
            "portable": FLAG,
            "wraps_integers": FLAG,
            "runs_on_cpu": FLAG,
            "date": TEXT,
        }
    ),
    "operation": record(
        {
            "name": TEXT,
            "family": TEXT,
            "signature": TEXT,
            "summary": TEXT,
            "operands": rows(record({"name": TEXT, "dtypes": TEXT, "kind": TEXT})),
            "attributes": rows(record({"name": TEXT, "values": TEXT, "default": TEXT, "doc": TEXT})),
            "results": TEXTS,
            "notes": by_name(TEXT),
            "source": TEXT,
        }
    ),
    "rule": record(
        {"rule": TEXT, "class": _CLASS, "by_case": FLAG, "optional": FLAG, "passes": TEXTS, "summary": TEXT}
    ),
}

#: The interface of a model.
SIGNATURE: dict[str, Form] = {
    "model": TEXT,
    "inputs": rows(ref("typed")),
    "outputs": rows(ref("typed")),
    "dims": by_name(ref("bounds")),
    "conditions": TEXTS,
}
#: A verdict of the comparison of two models.
VERDICT: dict[str, Form] = {
    "verdict": words("same", "different", "not comparable"),
    "status": words("equal", "within", "different", "not verified"),
    "allowed": rows(ref("class")),
    "seed": COUNT,
    "inputs": record({"asked": COUNT, "ran": COUNT, "skipped": COUNT}),
    "reason": TEXT,
    "code": maybe(TEXT),
    "outputs": rows(ref("compared_output")),
    "skipped": rows(ref("skipped_input")),
    "notes": TEXTS,
}
LIBRARY: Form = record({"defs": TEXTS, "consts": TEXTS})
