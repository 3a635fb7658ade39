"""The documents of each verb: their fields, without those that every document has."""

from __future__ import annotations

from tools.output_schemas.forms import (
    COUNT,
    FLAG,
    NUMBER,
    SECONDS,
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
from tools.output_schemas.shared import FIX, LIBRARY, SIGNATURE, VERDICT

#: A document by its title: the fields that it has, and those that it may have.
Documents = dict[str, tuple[dict[str, Form], dict[str, Form]]]

_PLACED_NODE = record(
    {
        "name": TEXT,
        "operator": TEXT,
        "directml": TEXTS,
        "where": words("provider", "cpu", "folded", "unknown"),
        "why": TEXT,
        "source": TEXT,
        "partition": maybe(COUNT),
        "alone": TEXT,
        "dispatches": SIZE,
        "bytes": maybe(SIZE),
        "first_feature_level": maybe(TEXT),
        "verdict": TEXT,
        "hangs_on": TEXTS,
        "findings": rows(record({"effect": TEXT, "operator": TEXT, "limit": TEXT, "source": TEXT, "repair": TEXT})),
    }
)
_PLACEMENT: dict[str, Form] = {
    "next": rows(ref("next_step")),
    "requires": ref("requires"),
    "opset": COUNT,
    "feature_level": TEXT,
    "first_feature_level": TEXT,
    "verdict": TEXT,
    "partitions": COUNT,
    "obstacles": TEXTS,
    "dispatches": SIZE,
    "bytes": maybe(SIZE),
    "transfers": ref("transfers"),
    "open_dims": TEXTS,
    "open_inputs": TEXTS,
    "counts": record({"provider": COUNT, "cpu": COUNT, "folded": COUNT, "unknown": COUNT}),
    "nodes": rows(_PLACED_NODE),
}
_SOURCE: dict[str, Form] = {"source": TEXT}
_TARGET: dict[str, Form] = {"target": TEXT}
_MORE: dict[str, Form] = {"unknown_ranks": TEXTS, "unchecked": TEXT}

#: The fields of ``--fix``: what was fixed, the text of a program of stdin, the file of a fixed model.
_FIXED: dict[str, Form] = {"fixed": rows(record({"code": TEXT, **FIX})), "text": TEXT, "output": TEXT}

CHECK: Documents = {
    "a program or a model, placed": (
        {**_SOURCE, **_TARGET, **_PLACEMENT, **SIGNATURE, "notes": TEXTS},
        {**_MORE, **_FIXED},
    ),
    "a program or a model for a target without a provider": (
        {**_SOURCE, **_TARGET, "opset": COUNT, "nodes": COUNT, **SIGNATURE, "notes": TEXTS},
        {**_MORE, **_FIXED},
    ),
    "a library": ({**_SOURCE, **_TARGET, "library": LIBRARY}, _FIXED),
}
_WRITTEN: dict[str, Form] = {"output": TEXT, "written": FLAG, "kind": TEXT, **_TARGET}
_COMPARED: dict[str, Form] = {"before": ref("model_size"), "after": ref("model_size")}
_VERIFIED = record({**VERDICT, "ok": FLAG})

COMPILE: Documents = {
    "a compiled program": (
        {**_WRITTEN, "opset": COUNT, "nodes": COUNT, "bytes": COUNT, **SIGNATURE, "notes": TEXTS, "rewrites": COUNT},
        {
            **_COMPARED,
            "next": rows(ref("next_step")),
            "requires": ref("requires"),
            "transfers": ref("transfers"),
            "seconds": SECONDS,
            "diff": TEXT,
            "verification": _VERIFIED,
        },
    ),
    "a program that differs from its source": ({**_WRITTEN, "opset": COUNT, "verification": _VERIFIED}, {}),
    "profiles": (
        _WRITTEN,
        {
            "profiles": rows(
                record({"sizes": by_name(COUNT), "file": TEXT, "opset": COUNT, "bytes": COUNT, **_COMPARED})
            ),
            "seconds": SECONDS,
            "verification": rows(_VERIFIED),
        },
    ),
    "the list of rules": ({"rules": rows(ref("rule"))}, {}),
}
_BARE_NODES: Form = by_name(COUNT)

INSPECT: Documents = {
    "a program": (
        {
            **_SOURCE,
            **_TARGET,
            "opset": COUNT,
            **SIGNATURE,
            "operations": record({"before": _BARE_NODES, "after": _BARE_NODES}),
            "graph": record({"before": TEXT, "after": TEXT}),
            "nodes": record({"before": maybe(_BARE_NODES), "after": _BARE_NODES}),
        },
        {"requires": ref("requires")},
    ),
    "a model": (
        {
            **_SOURCE,
            "model": TEXT,
            "ir_version": COUNT,
            "opsets": by_name(NUMBER),
            "inputs": rows(ref("typed")),
            "outputs": rows(ref("typed")),
            "constants": record({"count": COUNT, "bytes": COUNT}),
            "nodes": _BARE_NODES,
            "requires": ref("requires"),
            "compiled": rows(by_name(TEXT)),
            "metadata": by_name(TEXT),
        },
        {},
    ),
    "a library": ({**_SOURCE, "library": LIBRARY}, {"target": TEXT}),
}
_REMARK: dict[str, Form] = {"rule": TEXT, "node": TEXT, "reason": TEXT, "places": TEXTS}
_LISTS: dict[str, Form] = {kind: by_name(TEXT) for kind in ("codes", "rules", "operations", "targets", "words")}

EXPLAIN: Documents = {
    "a program or a model": (
        {
            **_SOURCE,
            **_TARGET,
            "nodes": record({"before": COUNT, "after": COUNT}),
            "rewrites": rows(ref("rewrite")),
            "removed": rows(record({"cause": TEXT, "text": TEXT, "nodes": TEXTS})),
            "missed": rows(record({**_REMARK, "saves": maybe(COUNT)})),
            "lowerings": rows(record({"node": TEXT, "choice": TEXT, "places": TEXTS})),
            "passes": rows(record({"pass": TEXT, "seconds": SECONDS, "changed": FLAG})),
        },
        {},
    ),
    "a library": ({**_SOURCE, "library": LIBRARY}, {"target": TEXT}),
    "a node": (
        {**_SOURCE, "node": TEXT},
        {
            "operator": TEXT,
            "places": TEXTS,
            "from": TEXTS,
            "rules": TEXTS,
            "class": rows(ref("class")),
            "rewrites": rows(ref("rewrite")),
            "missed": rows(record({"rule": TEXT, "reason": TEXT})),
            "lowerings": TEXTS,
        },
    ),
    "a word of the output": ({"word": TEXT, "text": TEXT, "forms": TEXTS, "see": TEXT}, {}),
    "a code": ({"code": TEXT, "title": TEXT, "why": TEXT, "example": TEXT, "fixed": TEXT}, {}),
    "a rule": (
        {
            "rule": TEXT,
            "class": ref("class"),
            "by_case": FLAG,
            "optional": FLAG,
            "passes": TEXTS,
            "summary": TEXT,
            "conditions": TEXT,
            "example": maybe(TEXT),
            "applies": TEXTS,
            "stays": TEXTS,
        },
        {},
    ),
    "an operation": ({"operation": ref("operation")}, {}),
    "a target": ({"target": ref("target")}, {}),
    "the lists of words": ({}, _LISTS),
}
_KERNEL = record({"since": COUNT, "types": by_name(TEXTS), "constant": rows({}), "release": TEXT})
_TENSOR = record({"ranks": rows(COUNT), "types": TEXTS})

_BLOCK: dict[str, Form] = {"name": TEXT, "signature": TEXT, "summary": TEXT}


_VALUE = record(
    {
        "a": TEXT,
        "b": TEXT,
        "status": words("exact", "within", "different"),
        "what": maybe(TEXT),
        "worst": maybe(ref("worst_element")),
    }
)
_LOCATION = record(
    {
        "value": _VALUE,
        "node": maybe(ref("node_record")),
        "result_node": maybe(ref("node_record")),
        "inputs": rows(_VALUE),
        "constants": rows(ref("constant_change")),
        "attributes": TEXTS,
        "bodies": TEXTS,
        "agreeing": TEXTS,
        "behind": rows(ref("node_record")),
        "compared": COUNT,
        "held": COUNT,
    }
)


_CHANGES = rows(
    record(
        {
            "before": rows(ref("node_summary")),
            "after": rows(ref("node_summary")),
            "rules": TEXTS,
            "class": maybe(ref("class")),
            "details": TEXTS,
        }
    )
)
_ENTRIES = rows(record({"key": TEXT, "a": maybe(TEXT), "b": maybe(TEXT)}))


VERBS: dict[str, Documents] = {
    "compile": COMPILE,
    "check": CHECK,
    "explain": EXPLAIN,
    "inspect": INSPECT,
}
#: Fields that failures of a verb may have.
OF_FAILURES: dict[str, dict[str, Form]] = {"check": _FIXED}
